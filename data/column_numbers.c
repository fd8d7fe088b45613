/* Columns that become one number: plain numbers, and other ways to write them. */
#include "data/column.h"

#include "base/status.h"
#include "base/table_words.h"
#include "formats/csv.h"

#include <float.h>
#include <math.h>
#include <string.h>
#include <strings.h>

enum { MOST_DIGITS = 400 };

static tutti_status fit_number(struct column *column, const struct column_cells *cells)
{
    return column_measure(column, cells, 1, NULL);
}

static int width_number(const struct column *column)
{
    return 1 + column->indicator;
}

static void write_number(const struct column *column, double value, float *features)
{
    features[0] = column_standardise(column, 0, isnan(value) ? column->median : value);
    if (column->indicator) features[1] = isnan(value) ? 1.0f : 0.0f;
}

static int describe_number(const struct column *column, struct json_t *object)
{
    return column_describe_measured(column, 1, object);
}

static bool restore_number(struct column *column, const struct json_t *object)
{
    return column_restore_measured(column, 1, object);
}

#define NUMBERS                                                                                                      \
    .is_number = true, .fit = fit_number, .width = width_number, .write = write_number, .describe = describe_number, \
    .restore = restore_number

static bool is_finite_number(const char *text, double *value)
{
    return csv_number(text, value) && fabs(*value) <= (double)FLT_MAX;
}

/* --------------------------------------------------------------------------------------------------- plain ---- */

static unsigned recognise_number(const char *text)
{
    double value;
    return is_finite_number(text, &value);
}

static tutti_status read_number(struct column *column, const char *text, double *value)
{
    (void)column;
    return is_finite_number(text, value) ? TUTTI_OK : TUTTI_FORMAT;
}

const struct column_kind column_number = {
    .name = "number", .noun = "a number", .recognise = recognise_number, .read = read_number, NUMBERS
};

/* ------------------------------------------------------------------------------------------------- boolean ---- */

static const char *const words[][2] = { TABLE_TRUTH_WORDS };
enum { WORDS = sizeof words / sizeof *words };

static unsigned recognise_boolean(const char *text)
{
    for (unsigned i = 0; i < WORDS; i++)
        if (!strcasecmp(text, words[i][0]) || !strcasecmp(text, words[i][1])) return 1U << i;
    return 0;
}

static tutti_status read_boolean(struct column *column, const char *text, double *value)
{
    for (unsigned i = 0; i < WORDS; i++) {
        *value = !strcasecmp(text, words[i][1]);
        if (column->format >> i & 1 && (*value > 0 || !strcasecmp(text, words[i][0]))) return TUTTI_OK;
    }
    return TUTTI_FORMAT;
}

const struct column_kind column_boolean = {
    .name = "boolean", .noun = "true or false", .recognise = recognise_boolean, .read = read_boolean, NUMBERS
};

/* ----------------------------------------------------------------------------------- with other characters ---- */

static bool is_digit(char character)
{
    return character >= '0' && character <= '9';
}

static tutti_status read_percent(struct column *column, const char *text, double *value)
{
    char digits[MOST_DIGITS];
    size_t length = strlen(text);
    (void)column;
    if (length < 2 || length > sizeof digits || text[length - 1] != '%') return TUTTI_FORMAT;
    while (length > 1 && text[length - 2] == ' ') length--;
    memcpy(digits, text, length - 1);
    digits[length - 1] = '\0';
    return is_finite_number(digits, value) ? TUTTI_OK : TUTTI_FORMAT;
}

static unsigned recognise_percent(const char *text)
{
    double value;
    return read_percent(NULL, text, &value) == TUTTI_OK;
}

const struct column_kind column_percent = {
    .name = "percent", .noun = "a percentage", .recognise = recognise_percent, .read = read_percent, NUMBERS
};

/* Copies a number without the characters between groups of three digits, and its fraction after a point. Groups begin
 * with one to three digits, the first of which is not 0 where there are several. false: it is written otherwise. */
static bool copy_groups(const char *text, const char *between, char point, char digits[MOST_DIGITS])
{
    size_t used = 0, group = 0, groups = 0;
    const char *at = text;
    if (*at == '+' || *at == '-') digits[used++] = *at++;
    const char first = *at;
    for (; is_digit(*at) || (*at && strchr(between, *at)); at++) {
        if (used > MOST_DIGITS - 8) return false;
        if (is_digit(*at)) {
            digits[used++] = *at;
            group++;
            continue;
        }
        if (groups++ == 0 ? group < 1 || group > 3 || first == '0' : group != 3) return false;
        group = 0;
    }
    if (groups > 0 ? group != 3 : group < 1) return false;
    if (*at == point && at[1]) {
        digits[used++] = '.';
        for (at++; is_digit(*at); at++) {
            if (used > MOST_DIGITS - 8) return false;
            digits[used++] = *at;
        }
    }
    digits[used] = '\0';
    return !*at;
}

/* Reads a number whose thousands, if they are apart, have characters of `between` between them. */
static tutti_status read_grouped(const char *text, const char *between, char point, double *value)
{
    char digits[MOST_DIGITS];
    return copy_groups(text, between, point, digits) && is_finite_number(digits, value) ? TUTTI_OK : TUTTI_FORMAT;
}

static tutti_status read_thousands(struct column *column, const char *text, double *value)
{
    (void)column;
    return read_grouped(text, ",'", '.', value);
}

static unsigned recognise_thousands(const char *text)
{
    double value;
    return read_thousands(NULL, text, &value) == TUTTI_OK;
}

const struct column_kind column_thousands = { .name = "thousands",
    .noun = "a number such as 1,234",
    .recognise = recognise_thousands,
    .read = read_thousands,
    NUMBERS };

static tutti_status read_comma(struct column *column, const char *text, double *value)
{
    (void)column;
    return read_grouped(text, ".'", ',', value);
}

static unsigned recognise_comma(const char *text)
{
    double value;
    return read_comma(NULL, text, &value) == TUTTI_OK;
}

const struct column_kind column_comma = { .name = "comma",
    .noun = "a number such as 1,5",
    .mostly = true,
    .recognise = recognise_comma,
    .read = read_comma,
    NUMBERS };
