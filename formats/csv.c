#include "formats/csv.h"

#include "base/memory.h"
#include "base/numbers.h"
#include "base/status.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { CHUNK = 1 << 16, NO_BYTE = -1 };

struct csv {
    char *path;
    FILE *file;
    unsigned char *chunk;
    size_t at, filled;
    char separator;
    int64_t line, row_line;
    bool failed; /* to read */
    /* The present row: its fields one after the other, each with a NUL, and where each begins. */
    char *text;
    size_t used, text_capacity;
    size_t *begins;
    size_t count, begins_capacity;
    char **fields;
    size_t fields_capacity;
};

/* ---------------------------------------------------------------------------------------------------- bytes ---- */

static void fill(struct csv *csv)
{
    csv->at = 0;
    csv->filled = fread(csv->chunk, 1, CHUNK, csv->file);
    if (csv->filled == 0 && ferror(csv->file)) csv->failed = true;
}

/* The next byte, which stays the next one; NO_BYTE at the end. */
static int peek(struct csv *csv)
{
    if (csv->at == csv->filled && !feof(csv->file) && !csv->failed) fill(csv);
    return csv->at < csv->filled ? csv->chunk[csv->at] : NO_BYTE;
}

static bool ends_line(int byte)
{
    return byte == '\n' || byte == '\r' || byte == NO_BYTE;
}

/* Moves past the end of a line: LF, CR LF, or CR. */
static void pass_line_end(struct csv *csv)
{
    if (peek(csv) == NO_BYTE) return;
    if (csv->chunk[csv->at++] == '\r' && peek(csv) == '\n') csv->at++;
    csv->line++;
}

/* --------------------------------------------------------------------------------------------------- fields ---- */

static tutti_status row_failed(const struct csv *csv, const char *reason)
{
    return fail(TUTTI_FORMAT, "%s: line %" PRId64 ": %s", csv->path, csv->row_line, reason);
}

static tutti_status append(struct csv *csv, int byte)
{
    if (csv->used >= CSV_MAX_ROW_BYTES) return row_failed(csv, "the row is longer than 16 MiB: is this a table?");
    void *text = csv->text;
    const tutti_status status = memory_grow(&text, &csv->text_capacity, csv->used + 1, 1);
    csv->text = text;
    if (status == TUTTI_OK) csv->text[csv->used++] = (char)byte;
    return status;
}

static tutti_status begin_field(struct csv *csv)
{
    if (csv->count == CSV_MAX_COLUMNS) return row_failed(csv, "the row has more than 65536 fields");
    void *begins = csv->begins;
    const tutti_status status = memory_grow(&begins, &csv->begins_capacity, csv->count + 1, sizeof *csv->begins);
    csv->begins = begins;
    if (status == TUTTI_OK) csv->begins[csv->count++] = csv->used;
    return status;
}

static bool is_space(const struct csv *csv, int byte)
{
    return byte == ' ' || (byte == '\t' && csv->separator != '\t');
}

static void skip_spaces(struct csv *csv)
{
    while (is_space(csv, peek(csv))) csv->at++;
}

/* Reads on after the opening quote. Two quotes in a row are one in the text. */
static tutti_status read_quoted(struct csv *csv)
{
    tutti_status status = TUTTI_OK;
    while (status == TUTTI_OK) {
        const int byte = peek(csv);
        if (byte == NO_BYTE) return row_failed(csv, "the file ends within quotes: it is cut, or a quote is too much");
        if (byte == '\0') return row_failed(csv, "there is a zero byte: this is not text in UTF-8");
        csv->at++;
        if (byte == '\n') csv->line++;
        if (byte == '"') {
            if (peek(csv) != '"') break;
            csv->at++;
        }
        status = append(csv, byte);
    }
    skip_spaces(csv);
    if (status == TUTTI_OK && peek(csv) != (unsigned char)csv->separator && !ends_line(peek(csv)))
        return row_failed(csv, "there is text after the quotes that end a field");
    return status;
}

static tutti_status read_plain(struct csv *csv)
{
    const size_t begin = csv->used;
    int byte;
    while ((byte = peek(csv)) != (unsigned char)csv->separator && !ends_line(byte)) {
        if (byte == '\0') return row_failed(csv, "there is a zero byte: this is not text in UTF-8");
        const tutti_status status = append(csv, byte);
        if (status != TUTTI_OK) return status;
        csv->at++;
    }
    while (csv->used > begin && is_space(csv, csv->text[csv->used - 1])) csv->used--;
    return TUTTI_OK;
}

static tutti_status read_field(struct csv *csv)
{
    tutti_status status = TUTTI_OK;
    TRY(begin_field(csv));
    skip_spaces(csv);
    if (peek(csv) == '"') {
        csv->at++;
        TRY(read_quoted(csv));
    } else {
        TRY(read_plain(csv));
    }
    TRY(append(csv, '\0'));
done:
    return status;
}

static tutti_status list_fields(struct csv *csv, struct csv_row *row)
{
    void *fields = csv->fields;
    const tutti_status status = memory_grow(&fields, &csv->fields_capacity, csv->count, sizeof *csv->fields);
    csv->fields = fields;
    if (status != TUTTI_OK) return status;
    for (size_t i = 0; i < csv->count; i++) csv->fields[i] = csv->text + csv->begins[i];
    row->count = (int)csv->count;
    row->fields = csv->fields;
    return TUTTI_OK;
}

tutti_status csv_next(struct csv *csv, struct csv_row *row)
{
    tutti_status status = TUTTI_OK;
    *row = (struct csv_row) { 0 };
    csv->used = csv->count = 0;
    for (skip_spaces(csv); ends_line(peek(csv)) && peek(csv) != NO_BYTE; skip_spaces(csv)) pass_line_end(csv);
    row->line = csv->row_line = csv->line;
    if (peek(csv) != NO_BYTE) {
        TRY(read_field(csv));
        while (peek(csv) == (unsigned char)csv->separator) {
            csv->at++;
            TRY(read_field(csv));
        }
        pass_line_end(csv);
        TRY(list_fields(csv, row));
    }
    if (csv->failed) FAIL(TUTTI_FILE, "cannot read '%s': %s", csv->path, strerror(errno));
done:
    return status;
}

/* ----------------------------------------------------------------------------------------------------- file ---- */

static char find_separator(const struct csv *csv)
{
    const char candidates[] = ",;\t";
    const size_t length = strlen(csv->path);
    int counts[3] = { 0 }, best = 0;
    bool quoted = false;
    if (length >= 4 && !strcasecmp(csv->path + length - 4, ".tsv")) return '\t';
    for (size_t i = csv->at; i < csv->filled && (quoted || !ends_line(csv->chunk[i])); i++) {
        const char *found = csv->chunk[i] ? strchr(candidates, csv->chunk[i]) : NULL;
        if (csv->chunk[i] == '"') quoted = !quoted;
        if (found && !quoted) counts[found - candidates]++;
    }
    for (int i = 1; i < 3; i++)
        if (counts[i] > counts[best]) best = i;
    return candidates[best];
}

tutti_status csv_open(const char *path, struct csv **opened)
{
    tutti_status status = TUTTI_NO_MEMORY;
    struct csv *csv = memory_new(1, sizeof *csv);
    *opened = NULL;
    if (!csv) return status;
    csv->line = 1;
    csv->path = memory_copy_text(path);
    csv->chunk = memory_new(CHUNK, 1);
    if (!csv->path || !csv->chunk) goto done;
    csv->file = fopen(path, "rbe");
    if (!csv->file) FAIL(TUTTI_FILE, "cannot read '%s': %s", path, strerror(errno));
    fill(csv);
    if (csv->failed) FAIL(TUTTI_FILE, "cannot read '%s': %s", path, strerror(errno));
    if (csv->filled >= 3 && !memcmp(csv->chunk, "\xef\xbb\xbf", 3)) csv->at = 3;
    while (csv->at < csv->filled && (csv->chunk[csv->at] == '\n' || csv->chunk[csv->at] == '\r')) pass_line_end(csv);
    csv->separator = find_separator(csv);
    *opened = csv;
    return TUTTI_OK;
done:
    csv_close(csv);
    return status;
}

void csv_close(struct csv *csv)
{
    if (!csv) return;
    if (csv->file) (void)fclose(csv->file);
    free(csv->path);
    free(csv->chunk);
    free(csv->text);
    free(csv->begins);
    free(csv->fields);
    free(csv);
}

bool csv_number(const char *text, double *number)
{
    char *end;
    if (!*text || text[strspn(text, "+-.0123456789eE")]) return false; /* nor hexadecimal, nan, inf */
    *number = number_read(text, &end);
    return *end == '\0' && isfinite(*number);
}
