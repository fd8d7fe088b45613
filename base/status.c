#include "base/status.h"

#include "base/numbers.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MESSAGE_BYTES = 2048 };

/* Per thread: several runtimes may fail at the same time without mixing their texts. */
static _Thread_local char message[MESSAGE_BYTES];
static _Thread_local tutti_status last;

/* Users get sentences; the place in our source is for those who asked for debug lines, or to report a broken contract.
 */
static bool place_wanted(tutti_status status)
{
    const char *level = getenv("TUTTI_LOG");
    return status == TUTTI_INTERNAL || (level && !strcmp(level, "debug"));
}

tutti_status status_fail(tutti_status status, const char *file, int line, const char *format, ...)
{
    char text[MESSAGE_BYTES]; /* the arguments may point into the older message */
    va_list arguments;
    va_start(arguments, format);
    number_print_list(text, sizeof(text), format, arguments);
    va_end(arguments);
    memcpy(message, text, sizeof(message));
    size_t length = strlen(message);
    if (place_wanted(status)) snprintf(message + length, sizeof(message) - length, " (%s:%d)", file, line);
    last = status;
    return status;
}

tutti_status status_context(tutti_status status, const char *format, ...)
{
    char text[MESSAGE_BYTES];
    va_list arguments;
    va_start(arguments, format);
    int length = number_print_list(text, sizeof(text), format, arguments);
    va_end(arguments);
    if (length < 0 || length > MESSAGE_BYTES - 1) length = MESSAGE_BYTES - 1;
    snprintf(text + length, sizeof(text) - (size_t)length, ": %.*s", MESSAGE_BYTES - length, message);
    memcpy(message, text, sizeof(message));
    last = status;
    return status;
}

tutti_status status_last(void)
{
    return last;
}

const char *status_message(void)
{
    return message;
}

void status_set(tutti_status status, const char *text)
{
    last = status;
    if (text != message) snprintf(message, sizeof(message), "%s", text);
}
