/* attention n h s t d [v kv past causal mask boolean far cap scale before after counts joined
 *   stage drop]; hidden_attention: the same
 *   queries x [h][s][d]; keys [kv][t][d] and values [kv][t][v] are parameters plus the mean of the sample, and so are
 *   `past` ones before them
 *   before, after   windows, plus 1
 *   counts           keys that are there
 *   far              the mask hides all keys of odd queries by -1e9
 *   joined           inputs are [length][heads width]
 *   drop             dropout of the probabilities
 *   stage            the result is the scores of this stage + 1, plus the sum of what it is otherwise
 *
 * rotary n h s d [width interleaved joined ids]: x [h][s][d], cos and sin are parameters [s][width / 2], or tables. */
#include <math.h>
#include <stdio.h>

#include "base/random.h"
#include "tests/layers/cases.h"
#include "tutti_sequences.h"

enum { MOST_KEYS = 256 };

static int64_t heads_of_keys(const struct test_case *c)
{
    return case_get(c, "kv", case_get(c, "h", 1));
}

static int64_t keys_of(const struct test_case *c)
{
    return case_get(c, "past", 0) + case_get(c, "t", 1);
}

static tutti_tensor stored(tutti_network *network, const struct test_case *c, const char *name, tutti_tensor mean,
    int64_t length, int64_t width, bool joined)
{
    const int64_t heads = heads_of_keys(c);
    const tutti_tensor p = tutti_parameter(
        network, name, joined ? TUTTI_SHAPE(length, heads * width) : TUTTI_SHAPE(heads, length, width), NULL);
    return tutti_add(network, p, mean);
}

/* The mask's element for query i and key j. */
static float mask_of(const struct test_case *c, int64_t i, int64_t j)
{
    if (case_get(c, "boolean", 0)) return (i + j) % 3 != 0 && i != 1;
    if (case_get(c, "far", 0) && i % 2) return -1e9f;
    return (i * 5 + j * 3) % 7 == 0 ? -INFINITY : 0.25f * (float)((i + 2 * j) % 5);
}

static tutti_tensor mask(tutti_network *network, const struct test_case *c)
{
    float values[MOST_KEYS * MOST_KEYS];
    const int64_t s = case_get(c, "s", 1), keys = case_get(c, "mask", 0);
    for (int64_t i = 0; i < s * keys; i++) values[i] = mask_of(c, i / keys, i % keys);
    return tutti_constant(network, NULL, TUTTI_SHAPE(s, keys), values);
}

static tutti_tensor build(tutti_network *network, const struct test_case *c)
{
    const int64_t h = case_get(c, "h", 1), s = case_get(c, "s", 1), d = case_get(c, "d", 1), v = case_get(c, "v", d);
    const bool joined = case_get(c, "joined", 0);
    const int64_t t = case_get(c, "t", 1), past = case_get(c, "past", 0);
    const tutti_tensor x = tutti_input(network, "x", joined ? TUTTI_SHAPE(s, h * d) : TUTTI_SHAPE(h, s, d));
    const tutti_tensor mean = tutti_op(network, "reduce_mean", &x, 1, "keepdims=0");
    const tutti_tensor keys = stored(network, c, "k", mean, t, d, joined),
                       values = stored(network, c, "v", mean, t, v, joined);
    const float count = (float)case_get(c, "counts", 0);
    tutti_tensor masked, counts, past_keys, past_values, scores;
    tutti_attention_options options = { .heads = joined ? h : 0,
        .kv_heads = joined ? heads_of_keys(c) : 0,
        .scale = (float)case_get_real(c, "scale", 0),
        .softcap = (float)case_get_real(c, "cap", 0),
        .causal = case_get(c, "causal", 0),
        .window_before = case_get(c, "before", 0),
        .window_after = case_get(c, "after", 0),
        .mask_is_boolean = case_get(c, "boolean", 0),
        .dropout = (float)case_get_real(c, "drop", 0) };
    if (case_get(c, "mask", 0)) {
        masked = mask(network, c);
        options.mask = &masked;
    }
    if (case_get(c, "counts", 0)) {
        counts = tutti_constant(network, NULL, TUTTI_SHAPE(1), &count);
        options.key_counts = &counts;
    }
    if (past) {
        past_keys = stored(network, c, "past_k", mean, past, d, false);
        past_values = stored(network, c, "past_v", mean, past, v, false);
        options.past_key = &past_keys;
        options.past_value = &past_values;
    }
    if (case_get(c, "stage", 0)) {
        options.scores = &scores;
        options.scores_stage = (tutti_attention_stage)(case_get(c, "stage", 0) - 1);
    }
    const tutti_tensor y = tutti_attention(network, x, keys, values, &options);
    if (!case_get(c, "stage", 0)) return y;
    return tutti_add(network, scores, tutti_op(network, "reduce_sum", &y, 1, "keepdims=0"));
}

/* Element of head, position, feature in an array [heads][length][width], or joined [length][heads][width]. */
static double element(
    const double *from, bool joined, int64_t heads, int64_t length, int64_t width, const int64_t at[3])
{
    return from[joined ? (at[1] * heads + at[0]) * width + at[2] : (at[0] * length + at[1]) * width + at[2]];
}

static double key_at(const struct test_case *c, const double *const *parameters, int part, double mean, int64_t head,
    int64_t j, int64_t f)
{
    const int64_t d = case_get(c, "d", 1), past = case_get(c, "past", 0), heads = heads_of_keys(c);
    const int64_t width = part ? case_get(c, "v", d) : d, t = case_get(c, "t", 1);
    const int64_t at[] = { head, j < past ? j : j - past, f };
    if (j < past) return mean + element(parameters[2 + part], false, heads, past, width, at);
    return mean + element(parameters[part], case_get(c, "joined", 0), heads, t, width, at);
}

/* What is added to the score; minus infinity: the key is not seen. */
static double bias_at(const struct test_case *c, int64_t i, int64_t j)
{
    const int64_t s = case_get(c, "s", 1), counts = case_get(c, "counts", 0), keys = case_get(c, "mask", 0);
    const int64_t distance = j - i - (counts ? counts - s : case_get(c, "past", 0));
    const int64_t before = case_get(c, "before", 0), after = case_get(c, "after", 0);
    if (case_get(c, "causal", 0) && distance > 0) return -INFINITY;
    if ((before && -distance > before - 1) || (after && distance > after - 1)) return -INFINITY;
    if (counts && j >= counts) return -INFINITY;
    if (!keys) return 0;
    const double number = j < keys ? (double)mask_of(c, i, j) : -INFINITY;
    if (!case_get(c, "boolean", 0)) return number;
    return number > 0 ? 0 : -INFINITY;
}

static void row_of(const struct test_case *c, int64_t stage, const double *x, const double *const *parameters,
    double mean, int64_t head, int64_t i, double *row)
{
    const int64_t h = case_get(c, "h", 1), s = case_get(c, "s", 1), d = case_get(c, "d", 1), keys = keys_of(c);
    const double cap = case_get_real(c, "cap", 0), scale = case_get_real(c, "scale", 0);
    double sum = 0, largest = -INFINITY;
    for (int64_t j = 0; j < keys; j++) {
        row[j] = 0;
        for (int64_t f = 0; f < d; f++)
            row[j] += element(x, case_get(c, "joined", 0), h, s, d, (int64_t[]) { head, i, f }) *
                key_at(c, parameters, 0, mean, head * heads_of_keys(c) / h, j, f);
        row[j] *= scale != 0 ? scale : (double)(1 / sqrtf((float)d));
        if (cap > 0 && stage != 1) row[j] = cap * tanh(row[j] / cap);
        if (stage == 0 || stage > 2) row[j] += bias_at(c, i, j);
        largest = fmax(largest, row[j]);
    }
    for (int64_t j = 0; j < keys && (stage == 0 || stage == 4); j++)
        sum += row[j] = isinf(largest) ? 0 : exp(row[j] - largest);
    for (int64_t j = 0; j < keys && sum > 0; j++) row[j] /= sum;
}

/* Drops probabilities of query e = head * s + i of a sample, by the counters that clkernels/dropout.cl defines. */
static void drop(const struct test_case *c, int64_t sample, int64_t e, double *row)
{
    const double probability = case_get_real(c, "drop", 0), scale = (double)(float)(1 / (1 - probability));
    const struct step_constants *s = &c->constants;
    const int64_t rows = case_get(c, "h", 1) * case_get(c, "s", 1), keys = keys_of(c);
    for (int64_t j = 0; j < keys && probability > 0; j++) {
        const uint64_t position = (uint64_t)(((s->first_sample + sample) * rows + e) * keys + j);
        const uint64_t block = position / 64 * 16 + position % 16;
        const uint32_t key[2] = { s->seed_low, s->seed_high ^ s->step_high };
        const uint32_t counter[4] = { (uint32_t)block, (uint32_t)(block >> 32), s->step_low, RANDOM_DROPOUT };
        uint32_t numbers[4];
        philox4x32(key, counter, numbers);
        row[j] = numbers[position % 64 / 16] < (uint32_t)(probability * 0x1p32) ? 0 : row[j] * scale;
    }
}

/* The results of a sample; returns their sum. */
static double attend(
    const struct test_case *c, int64_t sample, const double *x, const double *const *parameters, double mean, double *y)
{
    const int64_t h = case_get(c, "h", 1), s = case_get(c, "s", 1), v = case_get(c, "v", case_get(c, "d", 1));
    double row[MOST_KEYS], all = 0;
    for (int64_t e = 0; e < h * s; e++) {
        const int64_t head = e / s, i = e % s;
        row_of(c, 0, x, parameters, mean, head, i, row);
        drop(c, sample, e, row);
        for (int64_t f = 0; f < v; f++) {
            double sum = 0;
            for (int64_t j = 0; j < keys_of(c); j++)
                sum += row[j] * key_at(c, parameters, 1, mean, head * heads_of_keys(c) / h, j, f);
            all += sum;
            if (y) y[(case_get(c, "joined", 0) ? i * h + head : e) * v + f] = sum;
        }
    }
    return all;
}

static void reference(
    const struct test_case *c, const double *const *inputs, const double *const *parameters, double *y)
{
    const int64_t h = case_get(c, "h", 1), s = case_get(c, "s", 1), d = case_get(c, "d", 1), v = case_get(c, "v", d);
    const int64_t stage = case_get(c, "stage", 0);
    for (int64_t n = 0; n < case_get(c, "n", 1); n++) {
        const double *x = inputs[0] + n * h * s * d;
        double mean = 0;
        for (int64_t i = 0; i < h * s * d; i++) mean += x[i] / (double)(h * s * d);
        const double all = attend(c, n, x, parameters, mean, stage ? NULL : y + n * h * s * v);
        for (int64_t e = 0; e < h * s && stage; e++, y += keys_of(c)) {
            row_of(c, stage, x, parameters, mean, e / s, e % s, y);
            for (int64_t j = 0; j < keys_of(c); j++) y[j] += all;
        }
    }
}

static const char *const cases[] = {
    "attention n2 h2 s5 t7 d4",
    "attention n2 h3 s5 t7 d4 v6 joined1",
    "attention n2 h4 s3 t5 d4 kv2",
    "attention n1 h6 s3 t5 d5 kv3 v3 causal1 past2 joined1",
    "attention n2 h2 s5 t5 d4 causal1 scale0.5 cap2",
    "attention n2 h2 s5 t7 d4 mask7",
    "attention n2 h2 s5 t7 d4 mask6",
    "attention n2 h2 s5 t7 d4 mask5 boolean1", /* a row that sees nothing */
    "attention n1 h2 s4 t9 d3 before3 after2",
    "attention n1 h2 s4 t9 d3 counts6 causal1",
    "attention n1 h2 s4 t9 d3 counts3 before2 mask9 boolean1",
    "attention n1 h2 s4 t9 d3 cap2 mask9 boolean1 stage2",
    "attention n1 h2 s4 t9 d3 causal1 past2 stage4",
    "attention n2 h2 s5 t7 d4 drop0.25",
    "attention n3 h4 s3 t5 d4 kv2 v3 joined1 causal1 drop0.5",
    "attention n2 h2 s5 t7 d4 mask5 boolean1 drop0.25 stage4",
    /* More than one block of keys, and of queries, at the edges of vectors and tiles. */
    "attention n1 h2 s122 t131 d17 v33 joined1",
    "attention n2 h1 s49 t129 d5 drop0.25",
    "attention n1 h2 s61 t75 d16 past75 causal1 drop0.5",
    "attention n1 h1 s61 t150 d3 before20 after2 drop0.5 joined1",
    "attention n1 h1 s7 t140 d80 v66 mask133",
    "attention n1 h2 s50 t160 d32 mask160 boolean1",
    NULL,
};

static const struct operation_test test_attention = {
    .name = "attention",
    .build = build,
    .reference = reference,
    .cases = cases,
    .tolerance = TOLERANCE_NORMALISED,
    .inference = true,
};

/* A scale that leaves the scores of hidden queries equal. Differences of their numbers are rounded to 0. */
static const char *const hidden_cases[] = {
    "hidden_attention n2 h1 s7 t9 d3 mask9 far1 scale1e-30",
    "hidden_attention n1 h2 s13 t150 d5 mask150 far1 scale1e-30 drop0.25",
    NULL,
};

static const struct operation_test test_hidden = {
    .name = "hidden_attention",
    .build = build,
    .reference = reference,
    .cases = hidden_cases,
    .tolerance = TOLERANCE_NORMALISED,
    .inference = true,
    .kinks = true,
};

/* ------------------------------------------------------------------------------------------------------ rotary ---- */

static int64_t turned_width(const struct test_case *c)
{
    return case_get(c, "width", case_get(c, "d", 1));
}

static tutti_tensor build_rotary(tutti_network *network, const struct test_case *c)
{
    const int64_t h = case_get(c, "h", 1), s = case_get(c, "s", 1), d = case_get(c, "d", 1);
    const bool joined = case_get(c, "joined", 0), ids = case_get(c, "ids", 0);
    const tutti_shape table = TUTTI_SHAPE(s + ids, turned_width(c) / 2);
    tutti_tensor inputs[4] = { tutti_input(network, "x", joined ? TUTTI_SHAPE(s, h * d) : TUTTI_SHAPE(h, s, d)) };
    inputs[1] = tutti_parameter(network, "cos", table, NULL);
    inputs[2] = tutti_parameter(network, "sin", table, NULL);
    int32_t positions[MOST_KEYS];
    const int32_t rows = case_get(c, "from_end", 0) ? (int32_t)s + 1 : 0; /* of the table, if ids count from its end */
    for (int32_t i = 0; i < s; i++) positions[i] = (int32_t)s - i - rows;
    if (ids) inputs[3] = tutti_constant_typed(network, NULL, TUTTI_DTYPE_I32, &s, 1, positions);
    char attributes[64];
    snprintf(attributes, sizeof attributes, "heads=%d width=%d interleaved=%d", joined ? (int)h : 0,
        (int)case_get(c, "width", 0), (int)case_get(c, "interleaved", 0));
    return tutti_op(network, "rotary_embedding", inputs, 3 + ids, attributes);
}

static void reference_rotary(
    const struct test_case *c, const double *const *inputs, const double *const *parameters, double *y)
{
    const int64_t h = case_get(c, "h", 1), s = case_get(c, "s", 1), d = case_get(c, "d", 1), half = turned_width(c) / 2;
    for (int64_t i = 0; i < case_get(c, "n", 1) * h * s * d; i++) {
        const int64_t f = i % d, at = case_get(c, "joined", 0) ? i / d / h % s : i / d % s;
        const int64_t row = case_get(c, "ids", 0) ? s - at : at;
        const bool interleaved = case_get(c, "interleaved", 0), second = interleaved ? f % 2 : f >= half;
        const int64_t pair = interleaved ? f / 2 : f % half, step = interleaved ? 1 : half;
        const double *x = inputs[0] + i;
        y[i] = *x;
        if (f >= 2 * half) continue;
        const double cosine = parameters[0][row * half + pair], sine = parameters[1][row * half + pair];
        y[i] = second ? *x * cosine + x[-step] * sine : *x * cosine - x[step] * sine;
    }
}

static const char *const rotary_cases[] = {
    "rotary n2 h3 s5 d8",
    "rotary n2 h3 s5 d8 interleaved1",
    "rotary n2 h3 s5 d8 width4 joined1",
    "rotary n1 h2 s3 d6 width4 interleaved1 joined1 ids1",
    "rotary n2 h3 s4 d6 ids1",
    "rotary n2 h3 s4 d6 ids1 from_end1",
    NULL,
};

static const struct operation_test test_rotary = {
    .name = "rotary",
    .build = build_rotary,
    .reference = reference_rotary,
    .cases = rotary_cases,
};

OPERATION_TESTS(test_attention, &test_attention, &test_hidden, &test_rotary)
