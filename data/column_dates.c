/* Columns of dates and times. A value is seconds since 1970; year, month, day, weekday, hour and days become inputs. */
#include "data/column.h"

#include "base/status.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

enum date_format { YEAR_FIRST, MONTH_FIRST, DAY_FIRST, MONTH_NAMED, YEAR_MONTH, TIME_ONLY, DATE_FORMATS };
_Static_assert((int)DATE_FORMATS == (int)COLUMN_DATES, "they are counted");
enum { DAY = 86400, MOST_YEAR = 9999 };

struct date {
    int year, month, day;
    double seconds; /* of the day */
};

/* Days since 1970-01-01 in the Gregorian calendar (Howard Hinnant's days_from_civil). */
static int64_t days_of(int year, int month, int day)
{
    year -= month <= 2;
    const int era = year / 400, of_era = year - era * 400;
    const int of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
    return (int64_t)era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468;
}

static void date_of(int64_t days, struct date *date)
{
    days += 719468;
    const int64_t era = (days >= 0 ? days : days - 146096) / 146097;
    const int of_era = (int)(days - era * 146097);
    const int years = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
    const int of_year = of_era - (365 * years + years / 4 - years / 100), month = (5 * of_year + 2) / 153;
    date->day = of_year - (153 * month + 2) / 5 + 1;
    date->month = month < 10 ? month + 3 : month - 9;
    date->year = (int)(years + era * 400) + (date->month <= 2);
}

static bool is_valid(const struct date *date)
{
    static const int lengths[] = { 31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };
    const bool leap = (date->year % 4 == 0 && date->year % 100 != 0) || date->year % 400 == 0;
    if (date->year < 1 || date->year > MOST_YEAR || date->month < 1 || date->month > 12 || date->day < 1) return false;
    return date->day <= lengths[date->month - 1] && (date->month != 2 || date->day < 29 || leap);
}

/* ------------------------------------------------------------------------------------------------- reading ---- */

/* Reads `least` to `most` digits; false: there are others. */
static bool read_digits(const char **text, int least, int most, int *number)
{
    int count = 0;
    for (*number = 0; **text >= '0' && **text <= '9' && count <= most; ++*text, count++)
        *number = count < most ? 10 * *number + (**text - '0') : *number;
    return count >= least && count <= most;
}

static bool skip(const char **text, const char *characters)
{
    if (!**text || !strchr(characters, **text)) return false;
    ++*text;
    return true;
}

/* "HH:MM", perhaps with ":SS" and a fraction of seconds, and AM or PM. */
static bool read_time(const char **text, double *seconds)
{
    int hour, minute, second = 0;
    double fraction = 0, unit = 0.1;
    if (!read_digits(text, 1, 2, &hour) || !skip(text, ":") || !read_digits(text, 2, 2, &minute)) return false;
    if (skip(text, ":") && !read_digits(text, 2, 2, &second)) return false;
    if (skip(text, ".,"))
        for (; **text >= '0' && **text <= '9'; ++*text, unit /= 10) fraction += unit * (**text - '0');
    while (**text == ' ' && (text[0][1] == 'A' || text[0][1] == 'a' || text[0][1] == 'P' || text[0][1] == 'p')) ++*text;
    if (!strncasecmp(*text, "am", 2) || !strncasecmp(*text, "pm", 2)) {
        if (hour < 1 || hour > 12) return false;
        hour = hour % 12 + (**text == 'p' || **text == 'P' ? 12 : 0);
        *text += 2;
    }
    *seconds = hour * 3600.0 + minute * 60 + second + fraction;
    return hour < 24 && minute < 60 && second <= 60;
}

/* Nothing, "Z" or "+HH:MM": the seconds are then those of UTC. */
static bool read_zone(const char **text, double *seconds)
{
    int hours, minutes = 0;
    const char sign = **text;
    if (skip(text, "Zz")) return true;
    if (!skip(text, "+-")) return true;
    if (!read_digits(text, 2, 2, &hours)) return false;
    (void)skip(text, ":");
    if (**text && !read_digits(text, 2, 2, &minutes)) return false;
    *seconds -= (sign == '-' ? -1 : 1) * (hours * 3600.0 + minutes * 60);
    return true;
}

/* January, Jan, jan. ... */
static bool read_month(const char **text, int *month)
{
    static const char *const names[] = { "january", "february", "march", "april", "may", "june", "july", "august",
        "september", "october", "november", "december" };
    size_t letters = 0;
    while (((*text)[letters] | 0x20) >= 'a' && ((*text)[letters] | 0x20) <= 'z') letters++;
    for (*month = 1; *month <= 12; ++*month)
        if (letters >= 3 && letters <= strlen(names[*month - 1]) && !strncasecmp(*text, names[*month - 1], letters)) {
            *text += letters;
            (void)skip(text, ".");
            return true;
        }
    return false;
}

/* "5 Jan 2001", "05-Jan-2001", "Jan 5, 2001" */
static bool read_named(const char **text, struct date *date)
{
    const bool day_first = **text >= '0' && **text <= '9';
    if (day_first && (!read_digits(text, 1, 2, &date->day) || !skip(text, " -/"))) return false;
    if (!read_month(text, &date->month) || !skip(text, " -/,")) return false;
    if (!day_first && !read_digits(text, 1, 2, &date->day)) return false;
    while (!day_first && skip(text, ", ")) continue;
    return read_digits(text, 4, 4, &date->year);
}

/* Three numbers with one of the characters between them. */
static bool read_numbers(const char **text, int first, int *a, int *b, int *c, const char *between)
{
    const char *at;
    if (!read_digits(text, first == 4 ? 4 : 1, first, a) || !**text || !(at = strchr(between, **text))) return false;
    const char same[] = { *at, '\0' };
    return skip(text, same) && read_digits(text, 1, 2, b) && skip(text, same) &&
        read_digits(text, first == 4 ? 1 : 4, first == 4 ? 2 : 4, c);
}

static bool read_day(const char **text, enum date_format format, struct date *date)
{
    switch (format) {
    case YEAR_FIRST: return read_numbers(text, 4, &date->year, &date->month, &date->day, "-/.");
    case MONTH_FIRST: return read_numbers(text, 2, &date->month, &date->day, &date->year, "/-");
    case DAY_FIRST: return read_numbers(text, 2, &date->day, &date->month, &date->year, "/-.");
    case MONTH_NAMED: return read_named(text, date);
    case YEAR_MONTH:
        date->day = 1;
        return read_digits(text, 4, 4, &date->year) && skip(text, "-/") && read_digits(text, 1, 2, &date->month);
    default: return true;
    }
}

static bool read_as(const char *text, enum date_format format, double *value)
{
    struct date date = { 1970, 1, 1, 0 };
    if (!read_day(&text, format, &date) || !is_valid(&date)) return false;
    if (format == TIME_ONLY || (*text && skip(&text, "T "))) {
        if (!read_time(&text, &date.seconds)) return false;
        while (*text == ' ') text++;
        if (!read_zone(&text, &date.seconds)) return false;
    }
    *value = (double)days_of(date.year, date.month, date.day) * DAY + date.seconds;
    return !*text;
}

static unsigned recognise_date(const char *text)
{
    unsigned formats = 0;
    double value;
    for (int i = 0; i < DATE_FORMATS; i++)
        if (read_as(text, (enum date_format)i, &value)) formats |= 1U << i;
    return formats;
}

bool column_date_is_open(const struct column *column)
{
    const unsigned either = 1U << DAY_FIRST | 1U << MONTH_FIRST;
    return column->kind == &column_date && (column_formats(column) & either) == either;
}

void column_date_take_day_first(struct column *column)
{
    if (column_date_is_open(column)) column->format = 1U << DAY_FIRST;
}

bool column_date_is_day_first(const struct column *column)
{
    return column->format == 1U << DAY_FIRST;
}

bool column_date_has_late_day(double value)
{
    struct date date;
    if (isnan(value)) return false;
    date_of((int64_t)floor(value / DAY), &date);
    return date.day > 12;
}

void column_date_print(const struct column *column, double value, char *text, size_t size)
{
    struct date date;
    const double days = floor(value / DAY);
    const int minutes = (int)((value - days * DAY) / 60);
    const bool time_only = column->format == 1U << TIME_ONLY, day_only = !time_only && value <= days * DAY;
    char day[32] = "", time[32] = "";
    date_of((int64_t)days, &date);
    if (!time_only) snprintf(day, sizeof day, "%04d-%02d-%02d", date.year, date.month, date.day);
    if (!day_only) snprintf(time, sizeof time, "%s%02d:%02d", time_only ? "" : " ", minutes / 60, minutes % 60);
    snprintf(text, size, "%s%s", day, time);
}

static tutti_status read_date(struct column *column, const char *text, double *value)
{
    for (int i = 0; i < DATE_FORMATS; i++)
        if (column->format >> i & 1) return read_as(text, (enum date_format)i, value) ? TUTTI_OK : TUTTI_FORMAT;
    return TUTTI_FORMAT;
}

/* ------------------------------------------------------------------------------------------------ features ---- */

static void split_date(double value, double features[COLUMN_FEATURES])
{
    struct date date;
    const double days = floor(value / DAY);
    date_of((int64_t)days, &date);
    features[0] = date.year;
    features[1] = date.month;
    features[2] = date.day;
    features[3] = fmod(fmod(days + 3, 7) + 7, 7); /* Monday is 0: 1970 began on a Thursday */
    features[4] = (value - days * DAY) / 3600;
    features[5] = value / DAY;
}

static tutti_status fit_date(struct column *column, const struct column_cells *cells)
{
    return column_measure(column, cells, COLUMN_FEATURES, split_date);
}

static int width_date(const struct column *column)
{
    return COLUMN_FEATURES + column->indicator;
}

static void write_date(const struct column *column, double value, float *features)
{
    double numbers[COLUMN_FEATURES];
    split_date(isnan(value) ? column->median : value, numbers);
    for (int i = 0; i < COLUMN_FEATURES; i++) features[i] = column_standardise(column, i, numbers[i]);
    if (column->indicator) features[COLUMN_FEATURES] = isnan(value) ? 1.0f : 0.0f;
}

static int describe_date(const struct column *column, struct json_t *object)
{
    return column_describe_measured(column, COLUMN_FEATURES, object);
}

static bool restore_date(struct column *column, const struct json_t *object)
{
    return column_restore_measured(column, COLUMN_FEATURES, object) && fabs(column->median) < 1e12;
}

const struct column_kind column_date = { .name = "date",
    .noun = "a date or time",
    .recognise = recognise_date,
    .read = read_date,
    .fit = fit_date,
    .width = width_date,
    .write = write_date,
    .describe = describe_date,
    .restore = restore_date };
