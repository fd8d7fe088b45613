#include "formats/csv.h"

#include "base/memory.h"
#include "base/numbers.h"
#include "base/status.h"
#include "base/text.h"
#include "formats/standard_input.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

/* Bytes after what is filled in the buffer that may be looked at. */
enum { CHUNK = 1 << 18, BLOCK = 64, PADDING = BLOCK };
#define NOWHERE (SIZE_MAX / 2) /* no byte of the buffer is less than a block after it */

/* A field between two positions of the buffer; quotes around it are not part of it, but doubled ones are within. */
struct span {
    size_t begin, end;
    bool quoted, doubled;
};

struct csv {
    char *path;
    gzFile file;
    char *buffer; /* with a line end after what is filled */
    size_t at, filled, capacity;
    bool ended;
    char separator; /* ' ': blanks, as many as there are */
    /* Bytes that end a field without quotes, and where they are from position `block` of the buffer on. */
    unsigned char special[256];
    size_t block;
    uint64_t ends;                 /* a bit for each byte */
    char separators[16], tabs[16]; /* the separator; the tab, where that is a blank, or zeros */
    int64_t line, row_line;
    struct span *spans; /* of the present row */
    char **fields;
    size_t count, spans_capacity, fields_capacity;
};

static tutti_status row_failed(const struct csv *csv, const char *reason)
{
    return fail(TUTTI_FORMAT, "%s: line %" PRId64 ": %s", csv->path, csv->row_line, reason);
}

/* ---------------------------------------------------------------------------------------------------- bytes ---- */

/* Reads more bytes after those that are not used yet, which move to the buffer's begin. */
static tutti_status fill(struct csv *csv)
{
    const size_t rest = csv->filled - csv->at, more = rest > CHUNK ? rest : CHUNK;
    void *buffer = csv->buffer;
    if (rest > CSV_MAX_ROW_BYTES) return row_failed(csv, "the row is longer than 16 MiB: is this a table?");
    if (rest > 0 && csv->at > 0) memmove(csv->buffer, csv->buffer + csv->at, rest);
    csv->at = 0;
    csv->filled = rest;
    csv->block = NOWHERE;
    const tutti_status status = memory_grow(&buffer, &csv->capacity, rest + more + 1 + PADDING, 1);
    csv->buffer = buffer;
    if (status != TUTTI_OK) return status;
    const int count = gzread(csv->file, csv->buffer + rest, (unsigned)more);
    int code = Z_OK;
    const char *text = count > 0 ? NULL : gzerror(csv->file, &code);
    if (code != Z_OK && code != Z_STREAM_END) {
        if (code == Z_ERRNO) return fail(TUTTI_FILE, "cannot read '%s': %s", csv->path, strerror(errno));
        return fail(
            TUTTI_FORMAT, "%s: damaged gzip data: %s", csv->path, code == Z_BUF_ERROR ? "the file is truncated" : text);
    }
    csv->ended = count == 0;
    csv->filled += (size_t)count;
    csv->buffer[csv->filled] = '\n';
    memset(csv->buffer + csv->filled + 1, 0, PADDING);
    return TUTTI_OK;
}

static bool ends_line(char byte)
{
    return byte == '\n' || byte == '\r';
}

static bool is_space(const struct csv *csv, char byte)
{
    return byte == ' ' || (byte == '\t' && csv->separator != '\t');
}

static size_t skip_spaces(const struct csv *csv, size_t at)
{
    while (at < csv->filled && is_space(csv, csv->buffer[at])) at++;
    return at;
}

/* ---------------------------------------------------------------------------------------------------- rows ---- */

/* What has been found of a row: all of it, or the end of the buffer, where more may follow. */
enum found { FOUND_ROW, FOUND_END };

static tutti_status make_span(struct csv *csv)
{
    void *spans = csv->spans;
    if (csv->count == CSV_MAX_COLUMNS) return row_failed(csv, "the row has more than 65536 fields");
    const tutti_status status = memory_grow(&spans, &csv->spans_capacity, csv->count + 1, sizeof *csv->spans);
    csv->spans = spans;
    return status;
}

/* Members by themselves: a struct that is written in parts and read as a whole at once makes processors wait. */
static inline tutti_status add_span(struct csv *csv, size_t begin, size_t end, bool quoted, bool doubled)
{
    const bool room = csv->count < csv->spans_capacity && csv->count < CSV_MAX_COLUMNS;
    const tutti_status status = room ? TUTTI_OK : make_span(csv);
    if (status != TUTTI_OK) return status;
    struct span *span = &csv->spans[csv->count++];
    span->begin = begin;
    span->end = end;
    span->quoted = quoted;
    span->doubled = doubled;
    return TUTTI_OK;
}

/* Finds the end of a field with quotes; *at is after the first one. Two quotes in a row are one in the text. */
static tutti_status find_quoted(struct csv *csv, size_t *at, enum found *found)
{
    struct span span = { .begin = *at, .quoted = true };
    for (;;) {
        const char *quote = memchr(csv->buffer + *at, '"', csv->filled - *at);
        *at = quote ? (size_t)(quote - csv->buffer) + 1 : csv->filled;
        if (*at == csv->filled && !csv->ended) { /* another quote may follow */
            *found = FOUND_END;
            return TUTTI_OK;
        }
        if (!quote) return row_failed(csv, "the file ends within quotes: it is cut, or a quote is too much");
        if (*at == csv->filled || csv->buffer[*at] != '"') break;
        span.doubled = true;
        ++*at;
    }
    span.end = *at - 1;
    if (memchr(csv->buffer + span.begin, '\0', span.end - span.begin))
        return row_failed(csv, "there is a zero byte: this is not text in UTF-8");
    *at = skip_spaces(csv, *at);
    const char next = csv->buffer[*at];
    const bool blank = csv->separator == ' ' && is_space(csv, csv->buffer[*at - 1]);
    if (*at < csv->filled && next != csv->separator && !ends_line(next) && !blank)
        return row_failed(csv, "there is text after the quotes that end a field");
    return add_span(csv, span.begin, span.end, true, span.doubled);
}

/* Marks the bytes of a block that end a field. Not inlined: its constants would be loaded for each field. */
__attribute__((noinline)) static uint64_t mark_ends(const struct csv *csv, const char *block)
{
    uint64_t ends = 0;
#ifdef __SSE2__
    const __m128i separator = _mm_loadu_si128((const __m128i *)(const void *)csv->separators);
    const __m128i tab = _mm_loadu_si128((const __m128i *)(const void *)csv->tabs);
    for (int i = 0; i < BLOCK; i += (int)sizeof(__m128i)) {
        const __m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)(block + i));
        const __m128i lines =
            _mm_or_si128(_mm_cmpeq_epi8(bytes, _mm_set1_epi8('\n')), _mm_cmpeq_epi8(bytes, _mm_set1_epi8('\r')));
        const __m128i others = _mm_or_si128(_mm_cmpeq_epi8(bytes, _mm_setzero_si128()), _mm_cmpeq_epi8(bytes, tab));
        const __m128i all = _mm_or_si128(_mm_or_si128(lines, others), _mm_cmpeq_epi8(bytes, separator));
        ends |= (uint64_t)(unsigned)_mm_movemask_epi8(all) << i;
    }
#else
    for (int i = 0; i < BLOCK; i++) ends |= (uint64_t)csv->special[(unsigned char)block[i]] << i;
#endif
    return ends;
}

/* Finds the next byte that ends a field: a line end is after all that is filled. */
static size_t find_end(struct csv *csv, size_t at)
{
    for (;; at = csv->block + BLOCK) {
        if (at - csv->block >= BLOCK) {
            csv->block = at;
            csv->ends = mark_ends(csv, csv->buffer + at);
        }
        const uint64_t after = csv->ends >> (at - csv->block);
        if (after) return at + (size_t)__builtin_ctzll(after);
    }
}

static tutti_status find_plain(struct csv *csv, size_t *at)
{
    const char *buffer = csv->buffer;
    const size_t begin = *at;
    size_t end = find_end(csv, begin);
    *at = end;
    if (buffer[end] == '\0') return row_failed(csv, "there is a zero byte: this is not text in UTF-8");
    while (end > begin && is_space(csv, buffer[end - 1])) end--;
    return add_span(csv, begin, end, false, false);
}

/* Finds the fields of the row at *at, and what is after it. Nothing in the buffer changes, so that it can be found
 * again when more is there. */
static tutti_status find_row(struct csv *csv, size_t *at, enum found *found)
{
    csv->count = 0;
    *found = FOUND_ROW;
    for (;;) {
        *at = skip_spaces(csv, *at);
        if (csv->separator == ' ' && csv->count > 0 && (*at == csv->filled || ends_line(csv->buffer[*at]))) break;
        const bool quoted = *at < csv->filled && csv->buffer[*at] == '"';
        *at += quoted;
        const tutti_status status = quoted ? find_quoted(csv, at, found) : find_plain(csv, at);
        if (status != TUTTI_OK || *found == FOUND_END) return status;
        if (*at >= csv->filled || ends_line(csv->buffer[*at])) break;
        *at += csv->buffer[*at] == csv->separator;
    }
    /* LF may follow CR, and anything the end of the buffer. */
    if (*at + 1 >= csv->filled && !csv->ended) *found = FOUND_END;
    return TUTTI_OK;
}

/* Writes a NUL after each field, and takes one of two quotes away, and blanks within quotes at both ends. */
static tutti_status list_fields(struct csv *csv, struct csv_row *row)
{
    void *fields = csv->fields;
    const tutti_status status = memory_grow(&fields, &csv->fields_capacity, csv->count, sizeof *csv->fields);
    csv->fields = fields;
    if (status != TUTTI_OK) return status;
    for (size_t i = 0; i < csv->count; i++) {
        struct span *span = &csv->spans[i];
        char *to = csv->fields[i] = csv->buffer + span->begin;
        if (span->quoted) {
            for (size_t k = span->begin; k < span->end; k++) csv->line += csv->buffer[k] == '\n';
            while (span->begin < span->end && is_space(csv, csv->buffer[span->begin])) span->begin++;
            while (span->end > span->begin && is_space(csv, csv->buffer[span->end - 1])) span->end--;
            to = csv->fields[i] = csv->buffer + span->begin;
            if (span->doubled) {
                for (const char *from = to, *end = csv->buffer + span->end; from < end; from += 1 + (*from == '"'))
                    *to++ = *from;
                *to = '\0';
                continue;
            }
        }
        csv->buffer[span->end] = '\0';
    }
    row->count = (int)csv->count;
    row->fields = csv->fields;
    return TUTTI_OK;
}

/* Moves past the end of a line: LF, CR LF, or CR. */
static void pass_line_end(struct csv *csv, char end)
{
    if (csv->at >= csv->filled) return;
    csv->at++;
    if (end == '\r' && csv->at < csv->filled && csv->buffer[csv->at] == '\n') csv->at++;
    csv->line++;
}

/* Moves to the next row that is not empty. */
static tutti_status skip_empty(struct csv *csv)
{
    for (;;) {
        const size_t next = skip_spaces(csv, csv->at);
        if (next + 1 >= csv->filled && !csv->ended) { /* LF may follow CR */
            const tutti_status status = fill(csv);
            if (status != TUTTI_OK) return status;
            continue;
        }
        if (next >= csv->filled) csv->at = csv->filled;
        if (next >= csv->filled || !ends_line(csv->buffer[next])) return TUTTI_OK;
        csv->at = next;
        pass_line_end(csv, csv->buffer[next]);
    }
}

tutti_status csv_next(struct csv *csv, struct csv_row *row)
{
    enum found found = FOUND_END;
    size_t at = 0;
    *row = (struct csv_row) { 0 };
    csv->row_line = csv->line;
    tutti_status status = skip_empty(csv);
    row->line = csv->row_line = csv->line;
    if (status != TUTTI_OK || csv->at == csv->filled) return status;
    for (;;) {
        at = csv->at;
        status = find_row(csv, &at, &found);
        if (status != TUTTI_OK) return status;
        if (found == FOUND_ROW) break;
        status = fill(csv);
        if (status != TUTTI_OK) return status;
    }
    if (at - csv->at > CSV_MAX_ROW_BYTES) return row_failed(csv, "the row is longer than 16 MiB: is this a table?");
    const char end = csv->buffer[at];
    status = list_fields(csv, row);
    csv->at = at;
    pass_line_end(csv, end);
    return status;
}

/* ----------------------------------------------------------------------------------------------------- file ---- */

bool csv_has_name(const char *path)
{
    static const char *const ends[] = { ".csv", ".tsv", ".tab", ".psv", ".csv.gz", ".tsv.gz", ".tab.gz", ".psv.gz" };
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        if (text_has_extension(path, ends[i])) return true;
    return false;
}

static bool is_digit(char character)
{
    return character >= '0' && character <= '9';
}

/* The one of the separators that the first row has most often; blanks, where there is none of them. Commas that all
 * stand between digits, at most one in a field of another separator, are decimal. */
static char find_separator(const struct csv *csv)
{
    static const char candidates[] = ",;\t|";
    enum { CANDIDATES = sizeof candidates - 1 };
    int counts[CANDIDATES] = { 0 }, best = 0, other = 1, commas = 0;
    bool quoted = false, blanks = false, decimal = true;
    if (text_has_extension(csv->path, ".tsv") || text_has_extension(csv->path, ".tsv.gz")) return '\t';
    const size_t begin = skip_spaces(csv, csv->at);
    for (size_t i = begin; i < csv->filled && (quoted || !ends_line(csv->buffer[i])); i++) {
        const char byte = csv->buffer[i];
        const char *found = byte ? strchr(candidates, byte) : NULL;
        if (byte == '"') quoted = !quoted;
        if (found && !quoted) {
            counts[found - candidates]++;
            commas = byte == ',' ? commas + 1 : 0;
        }
        if (byte == ',' && !quoted)
            decimal &= commas == 1 && i > begin && is_digit(csv->buffer[i - 1]) && is_digit(csv->buffer[i + 1]);
        if (!quoted && i > begin && byte != ' ' && !ends_line(byte)) blanks |= csv->buffer[i - 1] == ' ';
    }
    for (int i = 2; i < CANDIDATES; i++)
        if (counts[i] > counts[other]) other = i;
    if (counts[other] > counts[0] || (decimal && counts[other] > 0)) best = other;
    return counts[best] == 0 && blanks ? ' ' : candidates[best];
}

char csv_separator(const struct csv *csv)
{
    return csv->separator;
}

static tutti_status open_file(struct csv *csv)
{
    int descriptor;
    if (strcmp(csv->path, CSV_STANDARD_INPUT)) {
        csv->file = gzopen(csv->path, "rbe");
    } else {
        const tutti_status status = standard_input_open(&descriptor);
        if (status != TUTTI_OK) return status;
        csv->file = gzdopen(descriptor, "rb");
        if (!csv->file) (void)close(descriptor);
    }
    return csv->file ? TUTTI_OK : fail(TUTTI_FILE, "cannot read '%s': %s", csv->path, strerror(errno));
}

tutti_status csv_open(const char *path, struct csv **opened)
{
    tutti_status status = TUTTI_NO_MEMORY;
    struct csv *csv = memory_new(1, sizeof *csv);
    *opened = NULL;
    if (!csv) return status;
    csv->line = csv->row_line = 1;
    csv->path = memory_copy_text(path);
    if (!csv->path) goto done;
    TRY(open_file(csv));
    (void)gzbuffer(csv->file, CHUNK);
    TRY(fill(csv));
    if (csv->filled >= 3 && !memcmp(csv->buffer, "\xef\xbb\xbf", 3)) csv->at = 3;
    while (csv->at < csv->filled && ends_line(csv->buffer[csv->at])) pass_line_end(csv, csv->buffer[csv->at]);
    csv->separator = find_separator(csv);
    csv->block = NOWHERE;
    memset(csv->separators, csv->separator, sizeof csv->separators);
    memset(csv->tabs, csv->separator == ' ' ? '\t' : '\0', sizeof csv->tabs);
    csv->special['\0'] = csv->special['\n'] = csv->special['\r'] = csv->special[(unsigned char)csv->separator] = 1;
    if (csv->separator == ' ') csv->special['\t'] = 1;
    *opened = csv;
    return TUTTI_OK;
done:
    csv_close(csv);
    return status;
}

void csv_close(struct csv *csv)
{
    if (!csv) return;
    if (csv->file) (void)gzclose_r(csv->file);
    free(csv->path);
    free(csv->buffer);
    free(csv->spans);
    free(csv->fields);
    free(csv);
}

/* -------------------------------------------------------------------------------------------------- numbers ---- */

/* The digits of a number, at most 18 of them, and the power of ten that they are times. */
struct decimal {
    uint64_t digits;
    int power;
    bool negative, exact; /* all digits are there */
};

/* Adds digits to a number, which is wrong if there are too many. Returns the end of the digits. */
static const char *add_digits(const char *text, uint64_t *number)
{
    uint64_t sum = *number;
    for (unsigned digit; (digit = (unsigned)(unsigned char)*text - '0') < 10; text++) sum = 10 * sum + digit;
    *number = sum;
    return text;
}

/* Returns false if it is not a power. */
static bool read_power(const char *text, int *power)
{
    enum { MOST_EXPONENT = 100000 };
    const bool down = *text == '-';
    int number = 0;
    text += *text == '-' || *text == '+';
    if (!is_digit(*text)) return false;
    for (; is_digit(*text); text++)
        if (number < MOST_EXPONENT) number = 10 * number + (*text - '0');
    *power += down ? -number : number;
    return !*text;
}

/* Returns false if it is not a decimal number. */
static bool read_decimal(const char *text, struct decimal *decimal)
{
    enum { MOST_DIGITS = 18, MOST_LENGTH = 1000 };
    *decimal = (struct decimal) { .negative = *text == '-' };
    text += *text == '-' || *text == '+';
    const char *first = text;
    while (*text == '0') text++;
    const char *begin = text;
    text = add_digits(text, &decimal->digits);
    ptrdiff_t digits = text - begin, all = text - first;
    if (*text == '.') {
        begin = text + 1;
        text = add_digits(begin, &decimal->digits);
        const ptrdiff_t fraction = text - begin;
        digits += fraction; /* zeros before others count, too */
        all += fraction;
        decimal->power = fraction < MOST_LENGTH ? (int)-fraction : -MOST_LENGTH;
    }
    decimal->exact = digits <= MOST_DIGITS;
    if (all == 0) return false;
    return !*text || ((*text == 'e' || *text == 'E') && read_power(text + 1, &decimal->power));
}

static const double powers[] = { 1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
    1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22 };
enum { MOST_POWER = sizeof powers / sizeof *powers - 1 };
static const uint64_t most_exact = (uint64_t)1 << 53;

/* Reads a number such as -12.5, which most are, as csv_number() does; false: it is written otherwise. */
static bool read_short(const char *text, double *number)
{
    enum { MOST_DIGITS = 18 };
    const bool negative = *text == '-';
    const char *at = text + negative, *first = at;
    uint64_t digits = 0;
    at = add_digits(at, &digits);
    ptrdiff_t count = at - first, fraction = 0;
    if (*at == '.') {
        first = at + 1;
        at = add_digits(first, &digits);
        fraction = at - first;
        count += fraction;
    }
    if (*at || count == 0 || count > MOST_DIGITS || digits > most_exact) return false;
    const double whole = negative ? -(double)digits : (double)digits;
    *number = fraction ? whole / powers[fraction] : whole;
    return true;
}

#define BYTES(byte) (UINT64_C(0x0101010101010101) * (byte))

/* The first byte that is 0, from 0 on; 8: none is. */
static unsigned first_zero(uint64_t bytes)
{
    const uint64_t zeros = (bytes - BYTES(0x01)) & ~bytes & BYTES(0x80); /* after the first one, others may be marked */
    return zeros ? (unsigned)__builtin_ctzll(zeros) / 8 : 8;
}

/* Eight digits, the first one in the lowest byte. false: some are not digits. */
static bool read_eight(uint64_t bytes, uint64_t *number)
{
    const uint64_t high = BYTES(0xf0), every_fourth = UINT64_C(0x000000ff000000ff);
    if ((bytes & high) != BYTES(0x30) || ((bytes + BYTES(0x06)) & high) != BYTES(0x30)) return false;
    bytes = (bytes & BYTES(0x0f)) * 10 + ((bytes & BYTES(0x0f)) >> 8); /* two digits in every other byte */
    *number = ((bytes & every_fourth) * (100 + (UINT64_C(1000000) << 32)) +
                  (bytes >> 16 & every_fourth) * (1 + (UINT64_C(10000) << 32))) >>
        32;
    return true;
}

bool csv_field_number(const char *field, double *number)
{
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    uint64_t bytes, digits;
    const bool negative = *field == '-';
    memcpy(&bytes, field + negative, sizeof bytes);
    const unsigned length = first_zero(bytes);
    const unsigned before = first_zero(bytes ^ BYTES('.')); /* the point, if it is there */
    const bool point = before < length;
    const unsigned count = length - point;
    if (length == 8 || count == 0) return csv_number(field, number);
    /* Without the point, and with zeros before them so that they are eight digits. */
    const uint64_t whole = ((uint64_t)1 << 8 * (point ? before : length)) - 1;
    bytes = (bytes & whole) | (point ? bytes >> 8 & ~whole : 0);
    bytes = bytes << 8 * (8 - count) | BYTES('0') >> 8 * count;
    if (!read_eight(bytes, &digits)) return csv_number(field, number);
    const double value = negative ? -(double)digits : (double)digits;
    *number = value / powers[point ? length - before - 1 : 0];
    return true;
#else
    return csv_number(field, number);
#endif
}

bool csv_number(const char *text, double *number)
{
    struct decimal decimal;
    char *end;
    if (read_short(text, number)) return true;
    if (!read_decimal(text, &decimal)) return false;
    /* Digits and power are doubles without rounding: their quotient or product is rounded once, as number_read()
     * rounds. */
    if (decimal.exact && decimal.digits <= most_exact && decimal.power >= -MOST_POWER && decimal.power <= MOST_POWER) {
        const double digits = decimal.negative ? -(double)decimal.digits : (double)decimal.digits;
        *number = decimal.power < 0 ? digits / powers[-decimal.power] : digits * powers[decimal.power];
        return true;
    }
    *number = number_read(text, &end);
    return *end == '\0' && isfinite(*number);
}
