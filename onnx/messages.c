/* Messages about a node or a file: refusals, and notes to the caller. */
#include "onnx/import.h"

#include "base/numbers.h"

#include <stdarg.h>
#include <string.h>

tutti_status node_refuse(const char *format, ...)
{
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    number_print_list(text, sizeof text, format, arguments);
    va_end(arguments);
    return fail(TUTTI_UNSUPPORTED, "%s", text);
}

void import_note(const struct import *import, const char *format, ...)
{
    char line[512];
    va_list arguments;
    if (!import->options->note) return;
    va_start(arguments, format);
    number_print_list(line, sizeof line, format, arguments);
    va_end(arguments);
    import->options->note(import->options->user, line);
}

enum { NAMED = 6 };

void name_list_add(struct name_list *list, const char *name)
{
    const size_t length = strlen(name);
    if (list->count++ >= NAMED || length + 3 > sizeof list->names - list->length) return;
    if (list->length) list->names[list->length++] = ',', list->names[list->length++] = ' ';
    memcpy(list->names + list->length, name, length + 1);
    list->length += length;
}

const char *name_list_end(const struct name_list *list)
{
    return list->count > NAMED ? ", ..." : "";
}
