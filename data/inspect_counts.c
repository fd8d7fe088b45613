#include "data/inspect.h"

#include "base/text.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void counts_add(struct counts *counts, const char *text)
{
    int at = 0;
    while (at < counts->count && strcmp(counts->list[at].text, text)) at++;
    if (at == COUNTED_MOST) {
        counts->others++;
        return;
    }
    if (at == counts->count) snprintf(counts->list[counts->count++].text, COUNTED_TEXT, "%s", text);
    counts->list[at].files++;
}

static int compare(const void *a, const void *b)
{
    const struct counted *first = a, *second = b;
    if (first->files != second->files) return first->files < second->files ? 1 : -1;
    return strcmp(first->text, second->text);
}

json_t *counts_json(struct counts *counts, int most)
{
    json_t *list = json_array();
    qsort(counts->list, (size_t)counts->count, sizeof counts->list[0], compare);
    for (int i = 0; i < counts->count && i < most; i++)
        json_array_append_new(
            list, json_pack("{s:s, s:I}", "name", counts->list[i].text, "files", (json_int_t)counts->list[i].files));
    return list;
}

json_t *inspect_text(const char *text)
{
    if (text_is_utf8(text)) return json_string(text);
    struct printable shown = text_printable(text);
    for (char *at = shown.text; *at; at++)
        if ((unsigned char)*at >= 0x80) *at = '?';
    return json_string(shown.text);
}

json_t *inspect_real(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

int64_t inspect_step(int64_t count, int64_t most)
{
    return most > 0 && count > most ? 1 + (count - 1) / most : 1;
}
