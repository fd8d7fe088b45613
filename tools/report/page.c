#include "tools/report/page.h"

#include "base/file.h"
#include "base/status.h"
#include "tools/report/template.h"

json_t *page_facts(struct json_line *line)
{
    while (line->depth > 0) json_line_close(line);
    json_t *facts = line->text.failed || line->misused ? NULL : json_loads(line->text.data, 0, NULL);
    text_free(&line->text);
    return facts;
}

void page_member(struct json_line *line, const char *key, struct text *text)
{
    line->text.failed |= text->failed;
    if (!text->failed) json_line_text(line, key, text->data);
    text_free(text);
}

tutti_status page_write(json_t *facts, const char *path)
{
    struct text page = { .failed = !facts };
    template_fill(&page, embedded_report, facts);
    json_decref(facts);
    tutti_status status = page.failed ? fail(TUTTI_NO_MEMORY, "there is no memory for the page") : TUTTI_OK;
    if (status == TUTTI_OK) status = file_write(path, page.data, page.size);
    text_free(&page);
    return status;
}
