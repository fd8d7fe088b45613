#include "tools/page.h"

#include "base/file.h"
#include "base/numbers.h"
#include "base/status.h"
#include "tools/template.h"

#include <math.h>
#include <string.h>

static int character_count(const char *text)
{
    int count = 0;
    for (int bytes; *text; count++) text += (bytes = text_character(text)) ? bytes : 1;
    return count;
}

void page_text_cut(struct text *page, const char *text, int characters)
{
    const bool cut = character_count(text) > characters;
    for (int i = 0; *text && i < characters; i++) {
        const int bytes = text_character(text);
        if (cut && i == characters - 1)
            text_append(page, "\xe2\x80\xa6");
        else if (bytes == 0)
            text_append(page, "\xef\xbf\xbd");
        else if (strchr("&<>\"'", *text))
            text_append(page, "&#%d;", *text);
        else if ((unsigned char)*text < 0x20 || *text == 0x7f)
            text_append(page, " ");
        else
            text_append(page, "%.*s", bytes, text);
        text += bytes ? bytes : 1;
    }
}

void page_text(struct text *page, const char *text)
{
    page_text_cut(page, text, character_count(text) + 1);
}

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

const char *format_count(double value, char *buffer, size_t size)
{
    if (value < 1e4)
        number_print(buffer, size, "%.0f", value);
    else if (value < 1e6)
        number_print(buffer, size, "%d,%03d", (int)value / 1000, (int)value % 1000);
    else
        number_print(buffer, size, "%.3g %c", value < 1e9 ? value / 1e6 : value / 1e9, value < 1e9 ? 'M' : 'G');
    return buffer;
}

const char *format_seconds(double seconds, char *buffer, size_t size)
{
    const long long whole = llround(seconds);
    if (!(seconds >= 0) || seconds > 1e12)
        number_print(buffer, size, "unknown");
    else if (seconds < 60)
        number_print(buffer, size, "%.1f s", seconds);
    else if (whole < 3600)
        number_print(buffer, size, "%lld:%02lld min", whole / 60, whole % 60);
    else
        number_print(buffer, size, "%lld:%02lld h", whole / 3600, whole / 60 % 60);
    return buffer;
}

const char *format_bytes(double bytes, char *buffer, size_t size)
{
    if (bytes < (double)(1 << 30))
        number_print(buffer, size, "%.*f MiB", bytes < 10 * (1 << 20) ? 1 : 0, bytes / (1 << 20));
    else
        number_print(buffer, size, "%.1f GiB", bytes / (1 << 30));
    return buffer;
}
