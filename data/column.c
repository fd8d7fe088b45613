/* Which kinds of columns there are, and how one is chosen. */
#include "data/column.h"

#include "base/memory.h"
#include "base/status.h"
#include "base/table_words.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

const struct column_kind *const column_kinds[COLUMN_KINDS] = { &column_number, &column_boolean, &column_percent,
    &column_thousands, &column_comma, &column_date, &column_category };

void column_free(struct column *column)
{
    free(column->name);
    free(column->slots);
    table_classes_free(&column->categories);
}

/* Numbers are told from words by their first characters: they are most of what is asked. */
bool column_is_missing(const char *text)
{
    static const char *const words[] = { TABLE_MISSING_WORDS };
    switch (*text) {
    case '\0': return true;
    case '?':
    case '-':
    case '.': return !text[1];
    case 'n':
    case 'N':
    case '#':
    case '<':
        for (size_t i = 0; i < sizeof words / sizeof *words; i++)
            if (!strcasecmp(text, words[i])) return true;
        return false;
    default: return false;
    }
}

/* ------------------------------------------------------------------------------------------------ choosing ---- */

enum { THOUSANDS = 3, COMMA, DATE, CATEGORY = COLUMN_KINDS - 1 };

/* The number of dates of the format that most have, and all formats of so many. */
static int64_t count_dates(const struct column_profile *profile, unsigned *formats)
{
    int64_t most = 0;
    *formats = 0;
    for (int i = 0; i < COLUMN_DATES; i++)
        if (profile->dates[i] > most) most = profile->dates[i];
    for (int i = 0; i < COLUMN_DATES && most > 0; i++)
        if (profile->dates[i] == most) *formats |= 1U << i;
    return most;
}

/* Counts the formats of a text that may be a date, and returns them. Where few are, others are not looked at. */
static unsigned profile_date(struct column_profile *profile, const char *text)
{
    enum { FIRST = 16 };
    unsigned ignored;
    if (profile->filled > FIRST && 2 * count_dates(profile, &ignored) < profile->filled) return 0;
    const unsigned formats = column_date.recognise(text);
    for (int i = 0; i < COLUMN_DATES; i++) profile->dates[i] += formats >> i & 1;
    return formats;
}

tutti_status column_profile(struct column *column, const char *text)
{
    struct column_profile *profile = &column->profile;
    double number = 0, ignored;
    if (column_is_missing(text)) return TUTTI_OK;
    if (profile->filled++ == 0) memset(profile->formats, 0xff, sizeof profile->formats);
    if (column_number.read(column, text, &number) == TUTTI_OK) {
        profile->numbers++;
        profile->points = profile->points || strchr(text, '.');
    }
    if (number != floor(number)) profile->fractions = true;
    const unsigned date = profile_date(profile, text);
    for (int i = 0; i < COLUMN_KINDS; i++)
        if (profile->formats[i]) profile->formats[i] &= i == DATE ? date : column_kinds[i]->recognise(text);
    if (profile->many || !profile->formats[COLUMN_KINDS - 1]) return TUTTI_OK;
    const tutti_status status = column_category.read(column, text, &ignored);
    profile->many = status == TUTTI_FORMAT;
    return profile->many ? TUTTI_OK : status;
}

static bool fits(const struct column_profile *profile, int kind)
{
    const int64_t others = profile->filled - profile->numbers;
    if (!profile->formats[kind]) return false;
    return !column_kinds[kind]->mostly || 2 * others > profile->filled;
}

bool column_may_be_comma(const struct column *column)
{
    const struct column_profile *profile = &column->profile;
    return profile->numbers == profile->filled && profile->points && profile->formats[COMMA];
}

unsigned column_formats(const struct column *column)
{
    int kind = 0;
    while (kind < COLUMN_KINDS && column_kinds[kind] != column->kind) kind++;
    return kind < COLUMN_KINDS && column->profile.filled > 0 ? column->profile.formats[kind] : 0;
}

bool column_is_mostly_dates(const struct column *column)
{
    unsigned formats;
    const int64_t dates = count_dates(&column->profile, &formats), filled = column->profile.filled;
    return dates < filled && 10 * dates >= 9 * filled;
}

/* The first of several formats. */
static unsigned first_of(unsigned formats)
{
    return formats & ~(formats - 1);
}

const struct column_kind *column_choose(struct column *column, bool comma)
{
    struct column_profile *profile = &column->profile;
    column->format = 1;
    if (profile->filled == 0) return NULL;
    for (int i = 0; i < CATEGORY; i++) {
        if (i == THOUSANDS && comma && fits(profile, COMMA)) continue;
        if (!fits(profile, i)) continue;
        column->format = first_of(profile->formats[i]);
        return column_kinds[i];
    }
    const bool texts = profile->formats[CATEGORY] && !profile->many;
    /* Texts between numbers or dates are damaged, unless these are few that recur, such as 4, 6 and "rotary". */
    const bool recur = 4 * (int64_t)column->categories.count <= profile->filled;
    if (column_is_mostly_dates(column) && !(texts && recur)) {
        (void)count_dates(profile, &profile->formats[DATE]);
        column->format = first_of(profile->formats[DATE]);
        return &column_date;
    }
    if (2 * profile->numbers < profile->filled) return texts ? &column_category : NULL;
    return texts && recur && !profile->fractions ? &column_category : &column_number;
}

const struct column_kind *column_kind_named(const char *name)
{
    for (int i = 0; i < COLUMN_KINDS; i++)
        if (!strcmp(column_kinds[i]->name, name)) return column_kinds[i];
    return NULL;
}

/* ------------------------------------------------------------------------------------------------ measured ---- */

static int compare(const void *a, const void *b)
{
    const double first = *(const double *)a, second = *(const double *)b;
    return first < second ? -1 : first > second;
}

/* The median of evenly spaced values, more of them where it stands for missing ones of the training. */
static tutti_status find_median(struct column *column, const struct column_cells *cells, int64_t count)
{
    const int64_t most = column->indicator ? 1 << 16 : 1 << 12, step = 1 + (count - 1) / most;
    int64_t seen = 0;
    size_t used = 0;
    if (count == 0) return TUTTI_OK;
    double *values = memory_new((size_t)(count / step + 1), sizeof *values);
    if (!values) return TUTTI_NO_MEMORY;
    for (int64_t row = 0; row < cells->rows; row++) {
        const double value = cells->first[(size_t)row * cells->stride];
        if (cells->part[row] == TUTTI_DATA_TRAIN && !isnan(value) && seen++ % step == 0) values[used++] = value;
    }
    qsort(values, used, sizeof *values, compare);
    column->median = used % 2 ? values[used / 2] : values[used / 2 - 1] / 2 + values[used / 2] / 2;
    free(values);
    return TUTTI_OK;
}

tutti_status column_measure(
    struct column *column, const struct column_cells *cells, int count, void (*split)(double value, double *features))
{
    enum { CHUNK = 256 };
    struct statistics measured[COLUMN_FEATURES] = { { 0 } };
    double values[CHUNK], chunk[CHUNK], features[COLUMN_FEATURES];
    int64_t row = 0, training = 0;
    while (row < cells->rows) {
        int used = 0;
        for (; used < CHUNK && row < cells->rows; row++) {
            const double value = cells->first[(size_t)row * cells->stride];
            if (cells->part[row] != TUTTI_DATA_TRAIN) continue;
            if (isnan(value))
                column->indicator = true;
            else
                values[used++] = value;
        }
        training += used;
        if (!split && !column->plain) statistics_add_many(&measured[0], values, used);
        for (int i = 0; split && i < count && !column->plain; i++) {
            for (int k = 0; k < used; k++) {
                split(values[k], features);
                chunk[k] = features[i];
            }
            statistics_add_many(&measured[i], chunk, used);
        }
    }
    for (int i = 0; i < count && !column->plain; i++) {
        column->mean[i] = measured[i].mean;
        column->std[i] = statistics_deviation(&measured[i]);
    }
    return find_median(column, cells, training);
}

float column_standardise(const struct column *column, int feature, double value)
{
    enum { MOST = 1000000000 };
    value = (value - column->mean[feature]) / column->std[feature];
    return (float)fmax(-MOST, fmin(MOST, value));
}

int column_describe_measured(const struct column *column, int count, json_t *object)
{
    json_t *mean = json_array(), *std = json_array();
    int failed = 0;
    for (int i = 0; i < count; i++) {
        failed |= json_array_append_new(mean, json_real(column->mean[i]));
        failed |= json_array_append_new(std, json_real(column->std[i]));
    }
    failed |= json_object_set_new(object, "mean", mean);
    failed |= json_object_set_new(object, "std", std);
    failed |= json_object_set_new(object, "median", json_real(column->median));
    return failed | json_object_set_new(object, "indicator", json_boolean(column->indicator));
}

bool column_restore_measured(struct column *column, int count, const json_t *object)
{
    const json_t *mean = json_object_get(object, "mean"), *std = json_object_get(object, "std");
    if (json_array_size(mean) != (size_t)count || json_array_size(std) != (size_t)count) return false;
    for (int i = 0; i < count; i++) {
        column->mean[i] = json_number_value(json_array_get(mean, (size_t)i));
        column->std[i] = json_number_value(json_array_get(std, (size_t)i));
        if (!isfinite(column->mean[i]) || !isfinite(column->std[i]) || !(column->std[i] > 0)) return false;
    }
    column->median = json_number_value(json_object_get(object, "median"));
    column->indicator = json_is_true(json_object_get(object, "indicator"));
    return isfinite(column->median);
}
