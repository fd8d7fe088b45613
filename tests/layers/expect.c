/* The network, the data and the expected results of a case. */
#include "tests/layers/expect.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/random.h"
#include "runtime/device.h"

/* Small enough that no kink of a piecewise linear function lies within it, a power of two so that exact stays exact. */
#define STEP 0x1p-14

double direction_sign(int direction, int tensor, int64_t i)
{
    return random_bits(99, (uint32_t)(direction * MAX_TENSORS + tensor), (uint64_t)i) & 1 ? 1 : -1;
}

static void evaluate(const struct expectation *e, double *y)
{
    const double *input = e->doubles[0];
    const double *parameters[MAX_TENSORS];
    for (int i = 1; i < e->tensors; i++) parameters[i - 1] = e->doubles[i];
    e->test->reference(&e->c, &input, parameters, y);
}

/* L's change between two results, divided by the distance. */
static double slope(const struct expectation *e, const double *up, const double *down, double step)
{
    if (e->has_loss) return (double)e->c.constants.loss_scale * (up[0] - down[0]) / (2 * step);
    double sum = 0;
    for (int64_t i = 0; i < e->output_elements; i++) sum += (double)e->seed[i] * (up[i] - down[i]);
    return sum / (2 * step);
}

static void moved(const struct expectation *e, int tensor, int direction, double by)
{
    for (int64_t i = 0; i < e->gradients[tensor].elements; i++)
        e->doubles[tensor][i] += by * direction_sign(direction, tensor, i);
}

static void along_directions(struct expectation *e, int tensor, double *up, double *down)
{
    struct expected_gradient *g = &e->gradients[tensor];
    double step = STEP;
    for (int64_t n = g->elements; n > 1; n /= 4) step /= 2;
    double *saved = memory_new((size_t)g->elements, sizeof *saved);
    memcpy(saved, e->doubles[tensor], (size_t)g->elements * sizeof *saved);
    for (int d = 0; d < 2; d++) {
        moved(e, tensor, d, step);
        evaluate(e, up);
        memcpy(e->doubles[tensor], saved, (size_t)g->elements * sizeof *saved);
        moved(e, tensor, d, -step);
        evaluate(e, down);
        memcpy(e->doubles[tensor], saved, (size_t)g->elements * sizeof *saved);
        g->along[d] = slope(e, up, down, step);
    }
    free(saved);
}

/* Every element where that is cheap, else some: first, last, and drawn ones. */
static void at_positions(struct expectation *e, int tensor, double *up, double *down)
{
    struct expected_gradient *g = &e->gradients[tensor];
    double work = (double)e->output_elements * (double)e->length;
    int64_t affordable = (int64_t)(2e7 / work) + 12;
    g->samples = g->elements < affordable ? g->elements : affordable;
    g->positions = memory_new((size_t)g->samples, sizeof *g->positions);
    g->values = memory_new((size_t)g->samples, sizeof *g->values);
    for (int64_t i = 0; i < g->samples; i++) {
        int64_t at = g->samples == g->elements
            ? i
            : (int64_t)random_below(5, (uint32_t)tensor, (uint64_t)i, (uint64_t)g->elements);
        if (i == 0) at = 0;
        if (i == 1) at = g->elements - 1;
        if (g->samples == g->elements) at = i;
        double here = e->doubles[tensor][at];
        e->doubles[tensor][at] = here + STEP;
        evaluate(e, up);
        e->doubles[tensor][at] = here - STEP;
        evaluate(e, down);
        e->doubles[tensor][at] = here;
        g->positions[i] = at;
        g->values[i] = slope(e, up, down, STEP);
    }
}

/* A result that is mostly zero proves little. */
static void distrust_zeros(const char *what, const double *values, int64_t count, struct text *problems)
{
    int64_t other = 0;
    for (int64_t i = 0; i < count; i++) other += values[i] != 0;
    if (other * 25 < count || !other)
        text_append(problems, "  %s: %lld of %lld expected values are zero: the case proves nothing\n", what,
            (long long)(count - other), (long long)count);
}

static void expect_gradients(struct expectation *e, struct text *problems)
{
    int64_t floats = e->output_elements > 2 ? e->output_elements : 2;
    double *up = memory_new((size_t)floats, sizeof *up), *down = memory_new((size_t)floats, sizeof *down);
    for (int t = 0; t < e->tensors; t++) {
        if (t > 0 && e->network->parameters[t - 1].kind != PARAMETER_TRAINED) continue;
        if (t == 0 && (e->has_loss || e->whole_numbers)) continue; /* a plan with a loss has no gradient of its input */
        e->gradients[t].known = true;
        at_positions(e, t, up, down);
        along_directions(e, t, up, down);
        distrust_zeros("gradient", e->gradients[t].values, e->gradients[t].samples, problems);
    }
    free(up);
    free(down);
}

/* of_products: parameters are such numbers too as the precision rounds to, so that products of them are exact. */
static void fill_data(struct expectation *e, bool of_products)
{
    bool integers = e->class == TOLERANCE_EXACT && !e->test->reals;
    for (int64_t i = 0; i < e->input_elements; i++) e->input[i] = integers ? test_integer(1, i, 3) : test_real(1, i);
    if (e->test->fill) e->test->fill(&e->c, e->input, e->input_elements);
    for (int64_t i = 0; i < e->output_elements; i++) e->seed[i] = integers ? test_integer(2, i, 2) : test_real(2, i);
    const bool bf16 = e->precision != TUTTI_FP32;
    for (int64_t i = 0; bf16 && i < e->input_elements; i++) e->input[i] = test_bf16(e->input[i]);
    for (int64_t i = 0; bf16 && i < e->output_elements; i++) e->seed[i] = test_bf16(e->seed[i]);
    for (size_t p = 0; p < e->network->parameter_count; p++) {
        const struct parameter *how = &e->network->parameters[p];
        float *to = parameter_in(how, &(struct parameter_arenas) { e->parameters, e->frozen });
        if (how->kind == PARAMETER_CONSTANT) {
            memcpy(to, how->values, (size_t)how->elements * sizeof *to);
            continue;
        }
        /* Biases of halves keep sums of integers off the kinks of activations; running variances are positive. */
        for (int64_t i = 0; i < how->elements; i++) {
            to[i] = integers ? test_integer(10 + (uint32_t)p, i, 2) : test_real(10 + (uint32_t)p, i);
            if (integers && how->shape.rank == 1) to[i] += 0.5f;
            if (how->kind == PARAMETER_STATISTIC) to[i] = fabsf(to[i]) + 0.25f;
            if (bf16 && of_products) to[i] = test_bf16(to[i]);
            e->doubles[1 + p][i] = (double)to[i];
        }
    }
    for (int64_t i = 0; i < e->input_elements; i++) {
        e->doubles[0][i] = (double)e->input[i];
        const int32_t whole = e->whole_numbers ? (int32_t)e->input[i] : 0;
        if (e->whole_numbers) memcpy(&e->input[i], &whole, sizeof whole);
    }
}

static int64_t elements_of(tutti_shape shape)
{
    int64_t elements = 1;
    for (int i = 0; i < shape.rank; i++) elements *= shape.sizes[i];
    return elements;
}

static bool build(struct expectation *e, struct tutti_runtime *runtime, struct text *problems)
{
    e->network = tutti_network_new(runtime);
    e->output = e->test->build(e->network, &e->c);
    e->has_loss = e->test->loss_plus_1 || e->test->loss;
    e->objective =
        objective_of(e->output, e->test->loss_plus_1 ? (tutti_loss)(e->test->loss_plus_1 - 1) : TUTTI_LOSS_NONE);
    if (e->test->loss) {
        e->objective.losses[e->objective.loss_count] = e->test->loss(e->network, e->output, &e->c).id;
        e->objective.weights[e->objective.loss_count++] = 1;
    }
    if (tutti_network_status(e->network) != TUTTI_OK || network_layout(e->network) != TUTTI_OK) {
        text_append(problems, "  building the network: %s\n", tutti_message(NULL));
        return false;
    }
    tutti_shape in, out;
    int input = NO_VALUE;
    for (size_t v = e->network->graph.value_count; v-- > 0;)
        if (e->network->graph.values[v].role == ROLE_INPUT) input = (int)v;
    if (tutti_shape_of(e->network, (tutti_tensor) { input }, &in) != TUTTI_OK ||
        tutti_shape_of(e->network, e->output, &out) != TUTTI_OK || e->network->parameter_count + 1 > MAX_TENSORS) {
        text_append(problems, "  the network has no input, no output or more than %d parameters\n", MAX_TENSORS - 1);
        return false;
    }
    e->whole_numbers = e->network->graph.values[input].type == TYPE_I32;
    e->samples = case_get(&e->c, "n", 1);
    e->input_elements = e->samples * elements_of(in);
    e->output_elements = e->samples * elements_of(out);
    e->tensors = 1 + (int)e->network->parameter_count;
    return true;
}

static bool allocate(struct expectation *e)
{
    size_t output = (size_t)e->output_elements;
    e->input = memory_new((size_t)e->input_elements, sizeof(float));
    e->seed = memory_new(output, sizeof(float));
    e->targets = memory_new(output, sizeof(float));
    e->parameters = memory_new((size_t)e->network->total_floats, sizeof(float));
    e->y = memory_new(output + 2, sizeof(double));
    e->frozen = memory_new((size_t)e->network->frozen_floats, sizeof(float));
    bool good = e->input && e->seed && e->targets && e->parameters && e->frozen && e->y;
    for (int t = 0; t < e->tensors; t++) {
        e->gradients[t].elements = t ? e->network->parameters[t - 1].elements : e->input_elements;
        e->doubles[t] = memory_new((size_t)e->gradients[t].elements, sizeof(double));
        good = good && e->doubles[t];
    }
    return good;
}

/* Activations of exp and tanh are not exact, whatever they follow. */
static enum tolerance_class class_of(const struct operation_test *test, const struct test_case *c)
{
    int64_t activation = case_get(c, "act", 0);
    bool function = activation == ACTIVATION_SIGMOID || activation == ACTIVATION_TANH;
    return function && test->tolerance < TOLERANCE_FUNCTION ? TOLERANCE_FUNCTION : test->tolerance;
}

bool expectation_make(struct expectation *e, struct tutti_runtime *runtime, const struct operation_test *test,
    const char *line, bool gradients, tutti_precision precision, struct text *problems)
{
    memset(e, 0, sizeof *e);
    e->test = test;
    e->precision = precision;
    if (!case_parse(line, &e->c)) return false;
    e->class = class_of(test, &e->c);
    if (!build(e, runtime, problems) || !allocate(e)) return false;
    int64_t longest = e->input_elements;
    for (int t = 1; t < e->tensors; t++)
        if (e->gradients[t].elements > longest) longest = e->gradients[t].elements;
    e->length = test->length ? test->length(&e->c) : longest;
    fill_data(e, runtime->devices[0].can.class == DEVICE_GPU);
    if (test->targets) test->targets(&e->c, e->targets, e->output_elements);
    evaluate(e, e->y);
    memcpy(e->loss, e->y, sizeof e->loss);
    distrust_zeros("y", e->y, e->has_loss ? 1 : e->output_elements, problems);
    if (gradients && !test->no_gradient) expect_gradients(e, problems);
    if (test->inference) {
        e->y_inference = memory_new((size_t)e->output_elements + 2, sizeof(double));
        e->c.training = false;
        evaluate(e, e->y_inference);
        e->c.training = true;
    }
    return true;
}

bool case_is_within(struct tutti_runtime *runtime, const struct operation_test *test, const char *line, int64_t most)
{
    struct expectation e = { .test = test };
    struct text problems = { 0 };
    const bool within = case_parse(line, &e.c) && build(&e, runtime, &problems) && e.input_elements <= most &&
        e.output_elements <= most && e.network->total_floats <= most;
    text_free(&problems);
    expectation_free(&e);
    return within;
}

void expectation_free(struct expectation *e)
{
    for (int t = 0; t < e->tensors; t++) {
        free(e->doubles[t]);
        free(e->gradients[t].positions);
        free(e->gradients[t].values);
    }
    free(e->input);
    free(e->seed);
    free(e->targets);
    free(e->parameters);
    free(e->frozen);
    free(e->y);
    free(e->y_inference);
    tutti_network_free(e->network);
    memset(e, 0, sizeof *e);
}
