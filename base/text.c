#include "base/text.h"

#include "base/memory.h"
#include "base/numbers.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

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
