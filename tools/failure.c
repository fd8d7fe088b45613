#include "tools/failure.h"

#include <stdarg.h>
#include <stdio.h>

int wrong_use(const char *command, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fprintf(stderr, "tutti %s: ", command);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    return EXIT_WRONG_USE;
}

int work_failed(const char *command, tutti_status status, const char *message)
{
    fprintf(stderr, "tutti %s: %s\n", command, message && *message ? message : tutti_status_text(status));
    return status == TUTTI_NO_DEVICE ? EXIT_WRONG_USE : status == TUTTI_CANCELLED ? EXIT_INTERRUPTED : EXIT_WORK_FAILED;
}
