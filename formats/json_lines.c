#include "formats/json_lines.h"

#include "base/status.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <string.h>

/* Returns the bytes that can be written as they are: ASCII, or a character; 0: not UTF-8. */
static int plain_bytes(const char *text)
{
    int bytes = 0;
    while (text[bytes] >= 0x20 && text[bytes] < 0x7f && text[bytes] != '"' && text[bytes] != '\\') bytes++;
    return bytes ? bytes : text_character(text);
}

static void append_string(struct text *text, const char *string)
{
    text_append(text, "\"");
    while (*string) {
        const int bytes = plain_bytes(string);
        const char first = *string;
        if (bytes == 0)
            text_append(text, "\\ufffd");
        else if (first == '"' || first == '\\')
            text_append(text, "\\%c", first);
        else if (first == '\n')
            text_append(text, "\\n");
        else if (first == '\t')
            text_append(text, "\\t");
        else if ((unsigned char)first < 0x20 || first == 0x7f)
            text_append(text, "\\u%04x", first);
        else
            text_append(text, "%.*s", bytes, string);
        string += bytes ? bytes : 1;
    }
    text_append(text, "\"");
}

static void begin_member(struct json_line *line, const char *key)
{
    if (line->comma) text_append(&line->text, ", ");
    line->comma = true;
    if (!key) return;
    append_string(&line->text, key);
    text_append(&line->text, ": ");
}

static void open_level(struct json_line *line, const char *key, const char *opener, char closer)
{
    begin_member(line, key);
    if (line->depth == JSON_LINE_DEPTH) {
        line->misused = true;
        return;
    }
    text_append(&line->text, "%s", opener);
    line->closers[line->depth++] = closer;
    line->comma = false;
}

void json_line_begin(struct json_line *line, FILE *stream)
{
    memset(line, 0, sizeof(*line));
    line->stream = stream;
    open_level(line, NULL, "{", '}');
}

void json_line_integer(struct json_line *line, const char *key, int64_t value)
{
    begin_member(line, key);
    text_append(&line->text, "%" PRId64, value);
}

void json_line_number(struct json_line *line, const char *key, double value)
{
    json_line_digits(line, key, value, 9);
}

void json_line_digits(struct json_line *line, const char *key, double value, int digits)
{
    begin_member(line, key);
    if (!isfinite(value)) {
        text_append(&line->text, "null");
        return;
    }
    text_append(&line->text, "%.*g", digits, value);
}

void json_line_text(struct json_line *line, const char *key, const char *value)
{
    begin_member(line, key);
    if (value)
        append_string(&line->text, value);
    else
        text_append(&line->text, "null");
}

void json_line_object(struct json_line *line, const char *key)
{
    open_level(line, key, "{", '}');
}

void json_line_close(struct json_line *line)
{
    if (line->depth == 0) {
        line->misused = true;
        return;
    }
    text_append(&line->text, "%c", line->closers[--line->depth]);
    line->comma = true;
}

/* Adds the next of the values, as its conversion says. */
static void print_value(struct json_line *line, const char *key, const char *conversion, va_list *values)
{
    if (!strncmp(conversion, "%s", 2)) {
        json_line_text(line, key, va_arg(*values, const char *));
    } else if (!strncmp(conversion, "%g", 2)) {
        json_line_number(line, key, va_arg(*values, double));
    } else if (!strncmp(conversion, "%d", 2)) {
        json_line_integer(line, key, va_arg(*values, int));
    } else if (!strncmp(conversion, "%lld", 4)) {
        json_line_integer(line, key, va_arg(*values, long long));
    } else if (!strncmp(conversion, "%llu", 4)) {
        begin_member(line, key);
        text_append(&line->text, "%llu", va_arg(*values, unsigned long long));
    } else if (!strncmp(conversion, "%hhd", 4)) {
        begin_member(line, key);
        text_append(&line->text, va_arg(*values, int) ? "true" : "false");
    } else {
        line->misused = true;
    }
}

void json_line_print(struct json_line *line, const char *format, ...)
{
    va_list values;
    char name[32];
    const char *key = NULL;
    va_start(values, format);
    for (const char *at = format; *at; at += strspn(at, " ")) {
        const size_t length = strcspn(at, " ");
        const bool value = strchr("{}[]%", *at);
        if (*at == '{')
            json_line_object(line, key);
        else if (*at == '[')
            open_level(line, key, "[", ']');
        else if (*at == '%')
            print_value(line, key, at, &values);
        else if (value)
            json_line_close(line);
        else
            snprintf(name, sizeof(name), "%.*s", (int)length, at);
        key = value ? NULL : name;
        at += length;
    }
    va_end(values);
}

tutti_status json_line_end(struct json_line *line)
{
    tutti_status status = TUTTI_OK;
    while (line->depth > 0) json_line_close(line);
    text_append(&line->text, "\n");
    if (line->misused) FAIL(TUTTI_INTERNAL, "a line of JSON is nested too deeply or has too many closing brackets");
    if (line->text.failed) FAIL(TUTTI_NO_MEMORY, "no memory for a line of JSON");
    if (fwrite(line->text.data, 1, line->text.size, line->stream) != line->text.size || fflush(line->stream) != 0)
        FAIL(TUTTI_FILE, "a line of JSON cannot be written: %s", strerror(errno));
done:
    text_free(&line->text);
    return status;
}
