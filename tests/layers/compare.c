/* Comparing a device's numbers with those expected. NaN never passes: every test is "not within", not "beyond". */
#include <math.h>

#include "tests/layers/expect.h"

enum { MOST_LINES = 3 };

static double root_mean_square(const double *values, int64_t count)
{
    double sum = 0;
    for (int64_t i = 0; i < count; i++) sum += values[i] * values[i];
    return count ? sqrt(sum / (double)count) : 0;
}

/* Appends what is wrong with one number, the first few times. */
static void wrong(
    const char *what, int64_t at, double got, double want, double allowed, int64_t *count, struct text *problems)
{
    if ((*count)++ < MOST_LINES)
        text_append(
            problems, "  %s[%lld] is %.9g, and must be %.9g (+-%.2g)\n", what, (long long)at, got, want, allowed);
}

void compare_array(
    const char *what, const float *got, const double *want, int64_t count, double limit, struct text *problems)
{
    double scale = root_mean_square(want, count);
    int64_t bad = 0;
    for (int64_t i = 0; i < count; i++) {
        double allowed = limit * (scale + fabs(want[i]));
        if (!(fabs((double)got[i] - want[i]) <= allowed))
            wrong(what, i, (double)got[i], want[i], allowed, &bad, problems);
    }
    if (bad > MOST_LINES)
        text_append(problems, "  %s: %lld of %lld are wrong\n", what, (long long)bad, (long long)count);
}
