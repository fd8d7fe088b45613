#include "tools/tagged.h"

#include "formats/json_lines.h"

#include <stdio.h>

/* The tag of a word, or NULL if it has no token. */
static const char *tag_at(const struct tagged *tagged, int64_t token, const float *outputs, char number[24])
{
    int64_t best = 0;
    if (token < 0) return NULL;
    const float *own = outputs + token * tagged->classes;
    for (int64_t c = 1; c < tagged->classes; c++)
        if (own[c] > own[best]) best = c;
    if (tagged->names) return tagged->names[best];
    snprintf(number, 24, "%lld", (long long)best);
    return number;
}

static void print_lines(const struct tagged *tagged, int64_t index, const float *outputs)
{
    const char *word;
    int64_t token = -1;
    char number[24];
    for (int64_t i = 0; (word = tutti_data_word(tagged->data->opened, tagged->part, index, i, &token)); i++) {
        const char *tag = tag_at(tagged, token, outputs, number);
        for (; *word; word++) putchar(*word == '\t' || *word == '\n' || *word == '\r' ? ' ' : *word);
        printf("\t%s\n", tag ? tag : "_");
    }
    putchar('\n');
}

static void list_tags(struct json_line *line, const struct tagged *tagged, int64_t index, const float *outputs)
{
    int64_t token = -1;
    char number[24];
    for (int64_t i = 0; tutti_data_word(tagged->data->opened, tagged->part, index, i, &token); i++)
        json_line_text(line, NULL, tag_at(tagged, token, outputs, number));
}

tutti_status tagged_print(
    const struct tagged *tagged, int64_t index, int64_t number, const char *title, const float *outputs, bool json)
{
    struct json_line line;
    const char *word;
    if (!json) {
        print_lines(tagged, index, outputs);
        return TUTTI_OK;
    }
    json_line_begin(&line, stdout);
    json_line_integer(&line, "index", number);
    json_line_text(&line, "sample", title);
    json_line_print(&line, "tokens [");
    for (int64_t i = 0; (word = tutti_data_word(tagged->data->opened, tagged->part, index, i, NULL)); i++)
        json_line_text(&line, NULL, word);
    json_line_print(&line, "] tags [");
    list_tags(&line, tagged, index, outputs);
    json_line_print(&line, "]");
    return json_line_end(&line);
}
