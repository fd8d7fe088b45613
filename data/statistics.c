#include "data/statistics.h"

#include "base/memory.h"
#include "base/numbers.h"
#include "base/status.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static bool read_numbers(const char *text, int count, double *mean, double *std)
{
    for (int i = 0; i < 2 * count; i++) {
        char *end;
        const double number = number_read(text, &end);
        const char next = i == 2 * count - 1 ? '\0' : i == count - 1 ? '/' : ',';
        if (end == text || *end != next || !(fabs(number) <= (double)FLT_MAX)) return false;
        if (i >= count && !(number >= (double)FLT_MIN)) return false;
        *(i < count ? &mean[i] : &std[i - count]) = number;
        text = end + 1;
    }
    return true;
}

static tutti_status read_statistics(const char *text, int count, double *mean, double *std, bool *measure)
{
    for (int i = 0; i < count; i++) {
        mean[i] = 0;
        std[i] = 1;
    }
    *measure = !text || !strcmp(text, "measured");
    if (*measure || !strcmp(text, "none") || read_numbers(text, count, mean, std)) return TUTTI_OK;
    return fail(TUTTI_INVALID,
        "these data are normalised by measured, none, or %d means and as many standard deviations, not by '%.60s'",
        count, text);
}

tutti_status statistics_read(const char *text, int channels, float *mean, float *std, bool *measure)
{
    double means[STATISTICS_CHANNELS], deviations[STATISTICS_CHANNELS];
    const tutti_status status = read_statistics(text, channels, means, deviations, measure);
    for (int c = 0; c < channels; c++) {
        mean[c] = (float)means[c];
        std[c] = (float)deviations[c];
    }
    return status;
}

tutti_status statistics_read_images(const char *text, int channels, float *mean, float *std, bool *measure)
{
    static const float means[] = { 0.485f, 0.456f, 0.406f }, deviations[] = { 0.229f, 0.224f, 0.225f };
    if (statistics_read(text, channels, mean, std, measure) == TUTTI_OK) return TUTTI_OK;
    if (strcmp(text, "imagenet") || (channels != 1 && channels != 3))
        return fail(TUTTI_INVALID,
            "images are normalised by imagenet, measured, none, or the mean and standard deviation of %d channel%s, "
            "not by '%s'",
            channels, channels == 1 ? "" : "s", text);
    for (int c = 0; c < channels; c++) {
        mean[c] = channels == 1 ? 0.449f : means[c];
        std[c] = channels == 1 ? 0.226f : deviations[c];
    }
    return TUTTI_OK;
}

void statistics_add_many(struct statistics *statistics, const double *values, int count)
{
    double sum = 0, squares = 0;
    if (count == 0) return;
    for (int i = 0; i < count; i++) sum += values[i];
    const double mean = sum / count, from = mean - statistics->mean, all = statistics->count + count;
    for (int i = 0; i < count; i++) squares += (values[i] - mean) * (values[i] - mean);
    statistics->squares += squares + from * from * statistics->count * (count / all);
    statistics->mean += from * (count / all);
    statistics->count = all;
}

double statistics_deviation(const struct statistics *statistics)
{
    const double std = statistics->count > 0 ? sqrt(statistics->squares / statistics->count) : 0;
    return std > 1e-12 * (1 + fabs(statistics->mean)) ? std : 1;
}

void statistics_end(const struct statistics *statistics, float *mean, float *std)
{
    *mean = (float)statistics->mean;
    *std = (float)statistics_deviation(statistics);
}

tutti_status standards_read(struct standards *standards, const char *text, int count)
{
    *standards = (struct standards) { .count = count,
        .mean = memory_new((size_t)count, sizeof *standards->mean),
        .std = memory_new((size_t)count, sizeof *standards->std) };
    if (!standards->mean || !standards->std) return TUTTI_NO_MEMORY;
    return read_statistics(text, count, standards->mean, standards->std, &standards->measure);
}

tutti_status standards_read_targets(
    struct standards *standards, const tutti_data_options *options, int count, tutti_data_info *info)
{
    const tutti_status status = standards_read(standards, options->normalise_targets, count);
    info->target_mean = standards->mean;
    info->target_std = standards->std;
    return status == TUTTI_OK ? status : status_context(status, "the targets");
}

void standards_end(struct standards *standards, const struct statistics *columns)
{
    for (int i = 0; i < standards->count; i++) {
        standards->mean[i] = columns[i].mean;
        standards->std[i] = statistics_deviation(&columns[i]);
    }
    standards->measure = false;
}

void standards_free(struct standards *standards)
{
    free(standards->mean);
    free(standards->std);
}

float standards_apply(const struct standards *standards, int column, double value)
{
    enum { MOST = 1000000000 };
    value = (value - standards->mean[column]) / standards->std[column];
    return (float)fmax(-MOST, fmin(MOST, value));
}

void statistics_of_bytes(const int64_t counts[256], float *mean, float *std)
{
    double count = 0, sum = 0, squares = 0;
    for (int v = 0; v < 256; v++) {
        count += (double)counts[v];
        sum += (double)counts[v] * v / 255;
        squares += (double)counts[v] * v / 255 * v / 255;
    }
    const double average = count > 0 ? sum / count : 0;
    const struct statistics all = { count, average, squares - sum * average };
    statistics_end(&all, mean, std);
}
