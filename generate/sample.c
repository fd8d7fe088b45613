/* Draws tokens from logits. */
#include "base/memory.h"
#include "base/options.h"
#include "base/random.h"
#include "tutti_generate.h"

#include <math.h>
#include <stdlib.h>

struct candidate {
    float logit;
    int32_t token;
    double weight; /* proportional to its probability */
};

static bool is_likelier(const struct candidate *x, const struct candidate *y)
{
    return x->logit != y->logit ? x->logit > y->logit : x->token < y->token;
}

/* -1: none is finite. */
static int32_t likeliest(const float *logits, int64_t count)
{
    int32_t best = -1;
    for (int64_t i = 0; i < count; i++)
        if (isfinite(logits[i]) && (best < 0 || logits[i] > logits[best])) best = (int32_t)i;
    return best;
}

static void swap(struct candidate *candidates, int64_t i, int64_t j)
{
    const struct candidate kept = candidates[i];
    candidates[i] = candidates[j];
    candidates[j] = kept;
}

/* Moves a candidate of first to end - 1 to its place in their order, with the likelier ones before it. Returns the
 * place. The candidate is the middle one of three: equal and ordered logits are divided in halves, too. */
static int64_t divide(struct candidate *candidates, int64_t first, int64_t end)
{
    const int64_t middle = first + (end - first) / 2, last = end - 1;
    int64_t place = first;
    if (is_likelier(&candidates[middle], &candidates[first])) swap(candidates, middle, first);
    if (is_likelier(&candidates[last], &candidates[first])) swap(candidates, last, first);
    if (is_likelier(&candidates[middle], &candidates[last])) swap(candidates, middle, last);
    for (int64_t i = first; i < last; i++)
        if (is_likelier(&candidates[i], &candidates[last])) swap(candidates, i, place++);
    swap(candidates, place, last);
    return place;
}

/* Moves the likeliest candidates to the front, as few as weigh more than `mass` together, with the least likely of them
 * last. Returns their number. They are not sorted: of 50,000, that takes milliseconds. */
static int64_t take_likeliest(struct candidate *candidates, int64_t count, double mass)
{
    int64_t first = 0, end = count;
    while (end - first > 1) {
        const int64_t place = divide(candidates, first, end);
        double before = 0;
        for (int64_t i = first; i < place; i++) before += candidates[i].weight;
        if (before > mass) {
            end = place;
            continue;
        }
        mass -= before + candidates[place].weight;
        if (mass < 0) return place + 1;
        first = place + 1;
    }
    return end;
}

/* Sets the weights of the candidates. `best` is the largest logit. Returns the sum. */
static double weigh(struct candidate *candidates, int64_t count, float best, float temperature)
{
    double sum = 0;
    for (int64_t i = 0; i < count; i++) {
        candidates[i].weight = exp(((double)candidates[i].logit - (double)best) / (double)temperature);
        sum += candidates[i].weight;
    }
    return sum;
}

/* `number` is from 0 to less than 1. The weights of the candidates are 1 each. */
static int32_t draw_from(
    struct candidate *candidates, int64_t count, float best, const tutti_sampling *sampling, double number)
{
    if (sampling->top_k > 0 && sampling->top_k < count)
        count = take_likeliest(candidates, count, (double)sampling->top_k - 1);
    double sum = weigh(candidates, count, best, sampling->temperature);
    if (sampling->top_p > 0 && sampling->top_p < 1) {
        count = take_likeliest(candidates, count, nextafter((double)sampling->top_p * sum, 0)); /* at least top_p */
        sum = weigh(candidates, count, best, sampling->temperature);
    }
    return candidates[take_likeliest(candidates, count, number * sum) - 1].token;
}

static tutti_status read_sampling(tutti_sampling *sampling, const tutti_sampling *given)
{
    tutti_status status;
    TRY(OPTIONS_READ(sampling, given, tutti_sampling));
    if (!(sampling->temperature >= 0) || isinf(sampling->temperature))
        FAIL(TUTTI_INVALID, "the temperature is %g: it must be at least 0", (double)sampling->temperature);
    if (sampling->top_k < 0) FAIL(TUTTI_INVALID, "top_k is %lld: it must be at least 0", (long long)sampling->top_k);
    if (!(sampling->top_p >= 0 && sampling->top_p <= 1))
        FAIL(TUTTI_INVALID, "top_p is %g: it must be from 0 to 1", (double)sampling->top_p);
done:
    return status;
}

int32_t tutti_sample(const float *logits, int64_t count, const tutti_sampling *given, uint64_t draw)
{
    tutti_sampling sampling;
    if (read_sampling(&sampling, given) != TUTTI_OK) return -1;
    if (!logits || count < 1 || count > INT32_MAX) {
        fail(TUTTI_INVALID, "there are no logits to draw a token from");
        return -1;
    }
    const int32_t best = likeliest(logits, count);
    if (best < 0) fail(TUTTI_NOT_FINITE, "no logit is finite: the network computes NaN or infinity");
    if (best < 0 || sampling.temperature == 0) return best;
    struct candidate *candidates = memory_new((size_t)count, sizeof *candidates);
    if (!candidates) return -1;
    int64_t finite = 0;
    for (int64_t i = 0; i < count; i++)
        if (isfinite(logits[i])) candidates[finite++] = (struct candidate) { logits[i], (int32_t)i, 1 };
    const double number = (double)random_uniform(sampling.seed, RANDOM_SAMPLING, draw);
    const int32_t token = draw_from(candidates, finite, logits[best], &sampling, number);
    free(candidates);
    return token;
}
