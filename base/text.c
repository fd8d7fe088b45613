#include "base/text.h"

#include "base/memory.h"
#include "base/numbers.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

void text_append(struct text *text, const char *format, ...)
{
    if (text->failed) return;
    va_list arguments, again;
    va_start(arguments, format);
    va_copy(again, arguments);
    int length = number_print_list(NULL, 0, format, arguments);
    va_end(arguments);
    void *data = text->data;
    if (length < 0 || memory_grow(&data, &text->capacity, text->size + (size_t)length + 1, 1) != TUTTI_OK) {
        text->failed = true;
    } else {
        text->data = data;
        number_print_list(text->data + text->size, (size_t)length + 1, format, again);
        text->size += (size_t)length;
    }
    va_end(again);
}

void text_free(struct text *text)
{
    free(text->data);
    *text = (struct text) { 0 };
}

char *text_take(struct text *text)
{
    text_append(text, "%s", ""); /* an empty text is a string too */
    char *data = text->data;
    if (text->failed) {
        free(data);
        data = NULL;
    }
    *text = (struct text) { 0 };
    return data;
}

struct printable text_printable(const char *text)
{
    struct printable result;
    size_t size = 0;
    for (; text[size] && size < sizeof(result.text) - 4; size++) {
        unsigned char byte = (unsigned char)text[size];
        result.text[size] = byte < 0x20 || byte == 0x7f ? '?' : text[size];
    }
    strcpy(result.text + size, text[size] ? "..." : "");
    return result;
}

enum { NEAREST_MOST = 48 };

static bool same_letter(char a, char b)
{
    return tolower((unsigned char)a) == tolower((unsigned char)b);
}

/* The distance of Damerau and Levenshtein between texts of at most NEAREST_MOST bytes, where swapped letters are not
 * changed again. */
static int distance(const char *a, const char *b)
{
    int rows[3][NEAREST_MOST + 1], *before = rows[0], *last = rows[1], *row = rows[2];
    const int columns = (int)strlen(b);
    for (int j = 0; j <= columns; j++) last[j] = before[j] = j;
    for (int i = 1; a[i - 1]; i++) {
        row[0] = i;
        for (int j = 1; j <= columns; j++) {
            int least = last[j - 1] + !same_letter(a[i - 1], b[j - 1]);
            if (last[j] + 1 < least) least = last[j] + 1;
            if (row[j - 1] + 1 < least) least = row[j - 1] + 1;
            const bool swapped = i > 1 && j > 1 && same_letter(a[i - 1], b[j - 2]) && same_letter(a[i - 2], b[j - 1]);
            if (swapped && before[j - 2] + 1 < least) least = before[j - 2] + 1;
            row[j] = least;
        }
        int *free_row = before;
        before = last;
        last = row;
        row = free_row;
    }
    return last[columns];
}

const char *text_nearest(const char *text, const char *const *choices)
{
    const size_t length = strlen(text);
    const char *nearest = NULL;
    int least = length < 4 ? 2 : (int)(length + 2) / 3 + 1; /* a third of the letters may be wrong */
    if (length < 2 || length > NEAREST_MOST) return NULL;
    for (int i = 0; choices[i]; i++) {
        if (strlen(choices[i]) > NEAREST_MOST) continue;
        const size_t shorter = strlen(choices[i]) < length ? strlen(choices[i]) : length;
        int found = distance(text, choices[i]);
        if (found > 1 && shorter > 2 && strncasecmp(text, choices[i], shorter) == 0) found = 1;
        if (found >= least) continue;
        least = found;
        nearest = choices[i];
    }
    return nearest;
}

struct suggestion text_suggest(const char *text, const char *const *choices)
{
    struct suggestion suggestion = { "" };
    const char *nearest = text_nearest(text, choices);
    if (nearest) snprintf(suggestion.text, sizeof(suggestion.text), "; did you mean %s?", text_printable(nearest).text);
    return suggestion;
}

int text_character(const char *text)
{
    const unsigned char *at = (const unsigned char *)text;
    const int more = *at < 0x80     ? 0
        : *at >= 0xc2 && *at < 0xe0 ? 1
        : (*at & 0xf0) == 0xe0      ? 2
        : *at >= 0xf0 && *at < 0xf5 ? 3
                                    : -1;
    if (!*at || more < 0) return 0;
    uint32_t code = more ? *at & (0x3fu >> more) : *at;
    for (int i = 1; i <= more; i++) {
        if ((at[i] & 0xc0) != 0x80) return 0;
        code = code << 6 | (at[i] & 0x3fu);
    }
    if (more == 2 && (code < 0x800 || (code >= 0xd800 && code < 0xe000))) return 0;
    return more == 3 && (code < 0x10000 || code > 0x10ffff) ? 0 : 1 + more;
}

bool text_ends_with(const char *text, const char *end)
{
    const size_t length = strlen(text), tail = strlen(end);
    return length >= tail && !strcmp(text + length - tail, end);
}

bool text_has_extension(const char *name, const char *extension)
{
    const size_t length = strlen(name), tail = strlen(extension);
    return length > tail && !strcasecmp(name + length - tail, extension);
}

bool text_is_utf8(const char *text)
{
    for (int bytes; *text; text += bytes)
        if (!(bytes = text_character(text))) return false;
    return true;
}
