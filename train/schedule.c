#include "train/schedule.h"

#include "base/options.h"
#include "base/status.h"

#include <math.h>
#include <xxhash.h>

#define PI 3.14159265358979323846
/* OneCycleLR's defaults: div_factor, final_div_factor, pct_start; ReduceLROnPlateau's: threshold, eps. */
#define FIRST_DIVISOR 25.0
#define LAST_DIVISOR 1e4
#define RISING 0.3
#define THRESHOLD 1e-4
#define LEAST_REDUCTION 1e-8

static tutti_status check(const tutti_schedule *options)
{
    if (options->kind < TUTTI_SCHEDULE_CONSTANT || options->kind > TUTTI_SCHEDULE_PLATEAU)
        return fail(TUTTI_INVALID, "schedule %d does not exist: pass one of tutti_schedule_kind", (int)options->kind);
    if (options->steps < TUTTI_SCHEDULE_CALL || options->warmup_steps < 0 || options->warmup_epochs < 0 ||
        options->step_size < 0 || options->patience < 0)
        return fail(TUTTI_INVALID, "a length of the schedule is negative: it must be at least 0");
    if (options->warmup_steps > 0 && options->warmup_epochs > 0)
        return fail(TUTTI_INVALID, "the warm-up is given in steps and in epochs: give one of them");
    if (!(options->factor >= 0 && options->factor < 1))
        return fail(TUTTI_INVALID, "the schedule's factor is %g: it must be above 0 and below 1", options->factor);
    if (!(options->lowest >= 0 && isfinite(options->lowest)))
        return fail(TUTTI_INVALID, "the lowest rate is %g: it must be finite and not negative", options->lowest);
    return TUTTI_OK;
}

tutti_status schedule_open(struct schedule *schedule, const tutti_schedule *given, int64_t steps, int64_t epoch)
{
    *schedule = (struct schedule) { .epoch = epoch };
    tutti_schedule *options = &schedule->options;
    tutti_status status = OPTIONS_READ(options, given, tutti_schedule);
    if (status == TUTTI_OK) status = check(options);
    if (status != TUTTI_OK) return status;
    if (options->factor == 0) options->factor = 0.1f;
    if (options->step_size == 0) options->step_size = 30;
    if (options->patience == 0) options->patience = 10;
    schedule->steps = options->steps > 0 ? options->steps : steps;
    schedule->warmup = options->warmup_steps;
    if (options->warmup_epochs > INT32_MAX || epoch > INT64_MAX / (options->warmup_epochs + 1) ||
        epoch > INT64_MAX / options->step_size)
        return fail(TUTTI_INVALID, "the schedule is too long: its lengths must be below 2^63 steps");
    if (options->warmup_epochs > 0) schedule->warmup = options->warmup_epochs * epoch;
    if (schedule->warmup >= schedule->steps && schedule->warmup > 0)
        return fail(TUTTI_INVALID, "the warm-up has %lld steps, but the training only %lld: lower it",
            (long long)schedule->warmup, (long long)schedule->steps);
    return TUTTI_OK;
}

/* Returns the rate after `part` of the way from one rate to another. */
static double anneal(double from, double to, double part)
{
    return to + (from - to) / 2 * (1 + cos(PI * part));
}

static double cosine(const struct schedule *schedule, double base, int64_t step)
{
    const double part = (double)step / (double)(schedule->steps - schedule->warmup);
    return anneal(base, schedule->options.lowest, fmin(part, 1));
}

static double one_cycle(const struct schedule *schedule, double base, int64_t step)
{
    const double total = (double)schedule->steps;
    const double top = schedule->warmup > 0 ? (double)schedule->warmup - 1 : RISING * total - 1;
    const double first = base / FIRST_DIVISOR, now = (double)step;
    if (now <= top) return anneal(first, base, top > 0 ? now / top : 1);
    return anneal(base, first / LAST_DIVISOR, fmin((now - top) / (total - 1 - top), 1));
}

static double reduced(const struct schedule *schedule, double base, int64_t reductions)
{
    double rate = base;
    for (int64_t i = 0; i < reductions; i++) {
        const double next = fmax(rate * schedule->options.factor, schedule->options.lowest);
        if (rate - next <= LEAST_REDUCTION) break;
        rate = next;
    }
    return rate;
}

double schedule_rate(const struct schedule *schedule, double base, int64_t step, int64_t reductions)
{
    const tutti_schedule *options = &schedule->options;
    if (options->kind == TUTTI_SCHEDULE_ONE_CYCLE) return one_cycle(schedule, base, step);
    const int64_t after = step - schedule->warmup; /* the warm-up */
    if (after < 0) return base * (double)(step + 1) / (double)(schedule->warmup + 1);
    switch (options->kind) {
    case TUTTI_SCHEDULE_COSINE: return cosine(schedule, base, after);
    case TUTTI_SCHEDULE_STEP:
        return base * pow(options->factor, (double)(after / (options->step_size * schedule->epoch)));
    case TUTTI_SCHEDULE_PLATEAU: return reduced(schedule, base, reductions);
    default: return base;
    }
}

uint64_t schedule_hash(const struct schedule *schedule)
{
    const tutti_schedule *options = &schedule->options;
    const double numbers[] = { options->kind, (double)schedule->steps, (double)schedule->warmup,
        (double)options->step_size, options->factor, (double)options->patience, options->lowest };
    return XXH3_64bits(numbers, sizeof(numbers));
}

/* ------------------------------------------------------------------------------------------------ metrics ---- */

void plateau_judge(struct plateau *plateau, const struct schedule *schedule, double loss)
{
    if (isfinite(loss) && (!plateau->any || loss < plateau->best * (1 - THRESHOLD))) {
        plateau->any = 1;
        plateau->best = loss;
        plateau->bad = 0;
        return;
    }
    if (++plateau->bad <= schedule->options.patience) return;
    plateau->reductions++;
    plateau->bad = 0;
}

static bool has_accuracy(const tutti_metrics *metrics)
{
    return isfinite(metrics->accuracy);
}

bool best_is_beaten(const struct best *best, const tutti_metrics *metrics)
{
    if (!isfinite(metrics->loss)) return false;
    if (best->epoch == 0) return true;
    if (has_accuracy(metrics) && metrics->accuracy != best->accuracy) return metrics->accuracy > best->accuracy;
    return metrics->loss < best->loss;
}

struct best best_of(const tutti_metrics *metrics, int64_t epoch)
{
    return (struct best) { epoch, metrics->loss, has_accuracy(metrics) ? metrics->accuracy : -1, 0 };
}
