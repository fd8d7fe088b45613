#include "base/numbers.h"

#include "base/invariant.h"

#include <locale.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static pthread_once_t once = PTHREAD_ONCE_INIT;
static locale_t c_locale;

static void make_c_locale(void)
{
    c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0); /* part of the C library: it cannot be missing */
}

int number_print_list(char *buffer, size_t size, const char *format, va_list arguments)
{
    pthread_once(&once, make_c_locale);
    const locale_t before = uselocale(c_locale); /* of this thread only */
    const int length = vsnprintf(buffer, size, format, arguments);
    uselocale(before);
    return length;
}

int number_print(char *buffer, size_t size, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    const int length = number_print_list(buffer, size, format, arguments);
    va_end(arguments);
    return length;
}

void number_append(char *buffer, size_t size, const char *format, ...)
{
    const size_t used = strlen(buffer);
    va_list arguments;
    va_start(arguments, format);
    const int length = number_print_list(buffer + used, size - used, format, arguments);
    va_end(arguments);
    INVARIANT(length >= 0 && (size_t)length < size - used);
}

double number_read(const char *text, char **end)
{
    pthread_once(&once, make_c_locale);
    const locale_t before = uselocale(c_locale);
    const double number = strtod(text, end);
    uselocale(before);
    return number;
}

int number_compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}
