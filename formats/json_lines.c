#include "formats/json_lines.h"

#include "base/status.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

/* Returns the length of the UTF-8 sequence that begins here; 0 if there is none (RFC 3629: no surrogates, shortest
 * form only). */
static int sequence_bytes(const unsigned char *text)
{
    static const struct {
        unsigned char low, high, second_low, second_high;
        int bytes;
    } forms[] = {
        { 0x01, 0x7f, 0, 0, 1 },
        { 0xc2, 0xdf, 0x80, 0xbf, 2 },
        { 0xe0, 0xe0, 0xa0, 0xbf, 3 },
        { 0xe1, 0xec, 0x80, 0xbf, 3 },
        { 0xed, 0xed, 0x80, 0x9f, 3 },
        { 0xee, 0xef, 0x80, 0xbf, 3 },
        { 0xf0, 0xf0, 0x90, 0xbf, 4 },
        { 0xf1, 0xf3, 0x80, 0xbf, 4 },
        { 0xf4, 0xf4, 0x80, 0x8f, 4 },
    };
    for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
        if (text[0] < forms[i].low || text[0] > forms[i].high) continue;
        if (forms[i].bytes > 1 && (text[1] < forms[i].second_low || text[1] > forms[i].second_high)) return 0;
        for (int k = 2; k < forms[i].bytes; k++) {
            if ((text[k] & 0xc0) != 0x80) return 0;
        }
        return forms[i].bytes;
    }
    return 0;
}

static void append_string(struct text *text, const char *string)
{
    text_append(text, "\"");
    for (const unsigned char *at = (const unsigned char *)string; *at;) {
        int bytes = sequence_bytes(at);
        if (bytes == 0)
            text_append(text, "\\ufffd");
        else if (*at == '"' || *at == '\\')
            text_append(text, "\\%c", *at);
        else if (*at == '\n')
            text_append(text, "\\n");
        else if (*at == '\t')
            text_append(text, "\\t");
        else if (*at < 0x20 || *at == 0x7f)
            text_append(text, "\\u%04x", *at);
        else
            text_append(text, "%.*s", bytes, (const char *)at);
        at += bytes ? bytes : 1;
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

static void open_level(struct json_line *line, const char *opener, char closer)
{
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
    open_level(line, "{", '}');
}

void json_line_integer(struct json_line *line, const char *key, int64_t value)
{
    begin_member(line, key);
    text_append(&line->text, "%" PRId64, value);
}

void json_line_unsigned(struct json_line *line, const char *key, uint64_t value)
{
    begin_member(line, key);
    text_append(&line->text, "%" PRIu64, value);
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

void json_line_boolean(struct json_line *line, const char *key, bool value)
{
    begin_member(line, key);
    text_append(&line->text, value ? "true" : "false");
}

void json_line_text(struct json_line *line, const char *key, const char *value)
{
    begin_member(line, key);
    if (value)
        append_string(&line->text, value);
    else
        text_append(&line->text, "null");
}

void json_line_list(struct json_line *line, const char *key)
{
    begin_member(line, key);
    open_level(line, "[", ']');
}

void json_line_object(struct json_line *line, const char *key)
{
    begin_member(line, key);
    open_level(line, "{", '}');
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
