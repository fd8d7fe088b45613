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

static int likelier_first(const void *a, const void *b)
{
    const struct candidate *x = a, *y = b;
    if (x->logit != y->logit) return x->logit < y->logit ? 1 : -1;
    return x->token < y->token ? -1 : 1;
}

/* -1: none is finite. */
static int32_t likeliest(const float *logits, int64_t count)
{
    int32_t best = -1;
    for (int64_t i = 0; i < count; i++)
        if (isfinite(logits[i]) && (best < 0 || logits[i] > logits[best])) best = (int32_t)i;
    return best;
}

/* Returns how many of the candidates, the likeliest first, are drawn from, and sets their weights. */
static int64_t weigh(struct candidate *candidates, int64_t count, const tutti_sampling *sampling)
{
    double sum = 0, part = 0;
    int64_t kept = sampling->top_k > 0 && sampling->top_k < count ? sampling->top_k : count;
    for (int64_t i = 0; i < kept; i++) {
        candidates[i].weight =
            exp(((double)candidates[i].logit - (double)candidates[0].logit) / (double)sampling->temperature);
        sum += candidates[i].weight;
    }
    if (sampling->top_p <= 0 || sampling->top_p >= 1) return kept;
    for (int64_t i = 0; i < kept; i++)
        if ((part += candidates[i].weight) >= (double)sampling->top_p * sum) return i + 1;
    return kept;
}

/* `number` is from 0 to less than 1. */
static int32_t draw_from(const struct candidate *candidates, int64_t count, double number)
{
    double sum = 0, part = 0;
    for (int64_t i = 0; i < count; i++) sum += candidates[i].weight;
    for (int64_t i = 0; i < count; i++)
        if ((part += candidates[i].weight) > number * sum) return candidates[i].token;
    return candidates[count - 1].token;
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
        if (isfinite(logits[i])) candidates[finite++] = (struct candidate) { logits[i], (int32_t)i, 0 };
    qsort(candidates, (size_t)finite, sizeof *candidates, likelier_first);
    const int64_t kept = weigh(candidates, finite, &sampling);
    const int32_t token = draw_from(candidates, kept, (double)random_uniform(sampling.seed, RANDOM_SAMPLING, draw));
    free(candidates);
    return token;
}
