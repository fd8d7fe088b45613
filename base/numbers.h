/* Text with numbers, whatever locale the program has set: the decimal point is always a point. */
#ifndef BASE_NUMBERS_H
#define BASE_NUMBERS_H

#include <stdarg.h>
#include <stddef.h>

/* snprintf() and vsnprintf() in the C locale. */
int number_print(char *buffer, size_t size, const char *format, ...) __attribute__((format(printf, 3, 4)));
int number_print_list(char *buffer, size_t size, const char *format, va_list arguments)
    __attribute__((format(printf, 3, 0)));
/* Appends to the text in the buffer, which the caller makes large enough for whatever the arguments are. A debug build
 * checks that it is. */
void number_append(char *buffer, size_t size, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* strtod() in the C locale. */
double number_read(const char *text, char **end);
/* For qsort(): doubles in ascending order. */
int number_compare(const void *a, const void *b);

#endif
