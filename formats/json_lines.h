/* One JSON object per line, written as soon as it is complete. Used for the command's --json.
 *
 *     struct json_line line;
 *     json_line_begin(&line, stdout);
 *     json_line_print(&line, "epoch %d devices [", 3);
 *     json_line_print(&line, "{ name %s }", "...");    an element of the list has no key
 *     status = json_line_end(&line);                   closes the list, writes the line and flushes it
 *
 * Keys keep the order in which they come. Errors are sticky and reported by the end. */
#ifndef FORMATS_JSON_LINES_H
#define FORMATS_JSON_LINES_H

#include "base/text.h"
#include "tutti.h"

#include <stdio.h>

#define JSON_LINE_DEPTH 8

struct json_line {
    FILE *stream;
    struct text text;
    int depth;
    char closers[JSON_LINE_DEPTH];
    bool comma;   /* the next member follows another */
    bool misused; /* nested too deeply, or closed too often */
};

void json_line_begin(struct json_line *line, FILE *stream);
void json_line_integer(struct json_line *line, const char *key, int64_t value);
void json_line_number(struct json_line *line, const char *key, double value); /* 9 digits; NaN and infinities: null */
void json_line_digits(struct json_line *line, const char *key, double value, int digits);
void json_line_text(
    struct json_line *line, const char *key, const char *value); /* NULL: null; bytes that are not UTF-8: U+FFFD */
void json_line_object(struct json_line *line, const char *key);
void json_line_close(struct json_line *line); /* the innermost open list or object */
/* Several of these at once: "name %s size %d sizes [ %g %g ] more { }", words between spaces; %hhd: a boolean. */
void json_line_print(struct json_line *line, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Closes what is open, writes the line and flushes the stream. */
tutti_status json_line_end(struct json_line *line);

#endif
