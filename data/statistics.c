#include "data/statistics.h"

#include "base/numbers.h"
#include "base/status.h"

#include <float.h>
#include <math.h>
#include <string.h>

static bool read_numbers(const char *text, int count, float *mean, float *std)
{
    for (int i = 0; i < 2 * count; i++) {
        char *end;
        const double number = number_read(text, &end);
        const char next = i == 2 * count - 1 ? '\0' : i == count - 1 ? '/' : ',';
        if (end == text || *end != next || !(fabs(number) <= (double)FLT_MAX)) return false;
        if (i >= count && !(number >= (double)FLT_MIN)) return false;
        *(i < count ? &mean[i] : &std[i - count]) = (float)number;
        text = end + 1;
    }
    return true;
}

tutti_status statistics_read(const char *text, int count, float *mean, float *std, bool *measure)
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

void statistics_end(const struct statistics *statistics, float *mean, float *std)
{
    const double variance = statistics->count > 0 ? statistics->squares / statistics->count : 0;
    *mean = (float)statistics->mean;
    *std = (float)sqrt(variance);
    if (!(*std > 1e-12f * (1 + fabsf(*mean)))) *std = 1;
}
