/* The network, the data and the expected results of a case. */
#include "tests/layers/expect.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/half.h"
#include "base/memory.h"
#include "base/random.h"
#include "runtime/device.h"
#include "tests/interpreted.h"

/* Small enough that no kink of a piecewise linear function lies within it, a power of two so that exact stays exact. */
#define STEP 0x1p-14

/* Central differences in double precision are good to this much of a gradient. */
#define OF_DIFFERENCES 1e-6

/* Where an output has many elements and each may read many parameters, a forward pass takes long: fewer differences. */
enum { DIRECTIONS = 2, POSITIONS = 6, DIRECTIONS_OF_LARGE = 1, POSITIONS_OF_LARGE = 2 };
#define LARGE 1000000000

bool skip_differences;

/* The case's network, run by the interpreter. */
struct model {
    const struct expectation *e;
    struct interpreted made;
    double *up, *down; /* results on both sides of a difference */
};

static double *tensor_of(const struct model *m, int tensor)
{
    return tensor ? interpreted_parameter(&m->made, tensor - 1) : m->made.interpreter.values[m->made.plan->feeds[0]];
}

/* The output; of a loss, its metrics. */
static const double *result_of(const struct model *m)
{
    const struct plan *plan = m->made.plan;
    return m->made.interpreter.values[m->e->has_loss ? plan->metrics : plan->outputs[0]];
}

static int64_t result_elements(const struct expectation *e)
{
    return e->has_loss ? 2 : e->output_elements;
}

static tutti_status forward(const struct model *m, double *result)
{
    const tutti_status status = interpreter_run(&m->made.interpreter, m->made.forward);
    memcpy(result, result_of(m), (size_t)result_elements(m->e) * sizeof *result);
    return status;
}

/* L's change between two results, divided by the distance. */
static double slope(const struct model *m, double step)
{
    if (m->e->has_loss) return (double)m->e->c.constants.gradient_weight * (m->up[0] - m->down[0]) / (2 * step);
    double sum = 0;
    for (int64_t i = 0; i < m->e->output_elements; i++) sum += (double)m->e->seed[i] * (m->up[i] - m->down[i]);
    return sum / (2 * step);
}

/* +1 or -1: the direction-th direction at element i of a tensor. */
static double direction_sign(int direction, int tensor, int64_t i)
{
    return random_bits(99, (uint32_t)(direction * MAX_TENSORS + tensor), (uint64_t)i) & 1 ? 1 : -1;
}

static void moved(const struct model *m, int tensor, int direction, double by)
{
    double *values = tensor_of(m, tensor);
    for (int64_t i = 0; i < m->e->gradients[tensor].elements; i++)
        values[i] += by * direction_sign(direction, tensor, i);
}

static void compare_difference(
    const char *what, double gradient, double difference, double scale, struct text *problems)
{
    const double allowed = OF_DIFFERENCES * (scale + fabs(difference));
    if (!(fabs(gradient - difference) <= allowed))
        text_append(problems, "  the interpreter's gradient %s is %.12g, but differences give %.12g (+-%.2g)\n", what,
            gradient, difference, allowed);
}

static bool is_large(const struct expectation *e)
{
    return e->output_elements * e->network->total_floats > LARGE;
}

static tutti_status along_directions(const struct model *m, int tensor, double scale, struct text *problems)
{
    tutti_status status = TUTTI_OK;
    const struct expected_gradient *g = &m->e->gradients[tensor];
    double step = STEP, *values = tensor_of(m, tensor);
    for (int64_t n = g->elements; n > 1; n /= 4) step /= 2;
    double *saved = memory_new((size_t)g->elements, sizeof *saved);
    if (!saved) return TUTTI_NO_MEMORY;
    memcpy(saved, values, (size_t)g->elements * sizeof *saved);
    for (int d = 0; d < (is_large(m->e) ? DIRECTIONS_OF_LARGE : DIRECTIONS); d++) {
        double sum = 0;
        for (int64_t i = 0; i < g->elements; i++) sum += g->values[i] * direction_sign(d, tensor, i);
        moved(m, tensor, d, step);
        TRY(forward(m, m->up));
        memcpy(values, saved, (size_t)g->elements * sizeof *saved);
        moved(m, tensor, d, -step);
        TRY(forward(m, m->down));
        memcpy(values, saved, (size_t)g->elements * sizeof *saved);
        compare_difference("along a direction", sum, slope(m, step), 4 * scale * sqrt((double)g->elements), problems);
    }
done:
    free(saved);
    return status;
}

/* First, last, and drawn ones. */
static tutti_status at_positions(const struct model *m, int tensor, double scale, struct text *problems)
{
    tutti_status status = TUTTI_OK;
    const struct expected_gradient *g = &m->e->gradients[tensor];
    double *values = tensor_of(m, tensor);
    const int64_t positions = is_large(m->e) ? POSITIONS_OF_LARGE : POSITIONS;
    for (int64_t i = 0; i < positions && i < g->elements; i++) {
        int64_t at = (int64_t)random_below(5, (uint32_t)tensor, (uint64_t)i, (uint64_t)g->elements);
        if (i < 2) at = i ? g->elements - 1 : 0;
        const double here = values[at];
        values[at] = here + STEP;
        TRY(forward(m, m->up));
        values[at] = here - STEP;
        TRY(forward(m, m->down));
        values[at] = here;
        compare_difference("at a position", g->values[at], slope(m, STEP), scale, problems);
    }
done:
    return status;
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

static double root_mean_square(const double *values, int64_t count)
{
    double sum = 0;
    for (int64_t i = 0; i < count; i++) sum += values[i] * values[i];
    return count ? sqrt(sum / (double)count) : 0;
}

/* Copies the gradient of a tensor; for a running statistic, the value that the node gives for its update. */
static tutti_status copy_gradient(const double *from, int tensor, struct expected_gradient *gradient)
{
    tutti_status status = TUTTI_OK;
    if (!from) FAIL(TUTTI_INTERNAL, "tensor %d has no gradient", tensor);
    gradient->values = memory_new((size_t)gradient->elements, sizeof *gradient->values);
    if (!gradient->values) return TUTTI_NO_MEMORY;
    memcpy(gradient->values, from, (size_t)gradient->elements * sizeof *from);
done:
    return status;
}

/* All gradients, before differences change the values. A plan with a loss has no gradient of its input; nor has one of
 * another type than floats. */
static tutti_status expect_gradients(const struct model *m, struct expectation *e, struct text *problems)
{
    tutti_status status = TUTTI_OK;
    const struct plan *plan = m->made.plan;
    for (int t = e->has_loss || e->type != TYPE_F32; t < e->tensors; t++) {
        if (t > 0 && parameter_is_fixed(&e->network->parameters[t - 1])) continue;
        const double *values = t == 0
            ? plan->input_gradient == NO_VALUE ? NULL : m->made.interpreter.values[plan->input_gradient]
            : interpreted_gradient(&m->made, t - 1);
        TRY(copy_gradient(values, t, &e->gradients[t]));
        if (!e->test->kinks) distrust_zeros("gradient", e->gradients[t].values, e->gradients[t].elements, problems);
    }
    if (e->test->kinks || skip_differences) goto done;
    for (int t = 0; t < e->tensors; t++) {
        const struct expected_gradient *gradient = &e->gradients[t];
        if (!gradient->values || (t > 0 && e->network->parameters[t - 1].kind == PARAMETER_STATISTIC)) continue;
        const double scale = root_mean_square(gradient->values, gradient->elements);
        TRY(at_positions(m, t, scale, problems));
        TRY(along_directions(m, t, scale, problems));
    }
done:
    return status;
}

/* Number i of an array of this type. */
static void store(enum value_type type, float number, int64_t i, void *to)
{
    uint32_t bits;
    memcpy(&bits, &number, sizeof bits);
    switch (type) {
    case TYPE_U8:
    case TYPE_BOOL: ((uint8_t *)to)[i] = (uint8_t)number; break;
    case TYPE_I32: ((int32_t *)to)[i] = (int32_t)number; break;
    case TYPE_F16: ((uint16_t *)to)[i] = half_from_float(number); break;
    case TYPE_BF16_INPUT: ((uint16_t *)to)[i] = (uint16_t)(bits >> 16); break;
    default: ((float *)to)[i] = number; break;
    }
}

/* of_products: parameters, too, are bfloat16 numbers, so that products of them are exact. */
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
        }
    }
    for (int64_t i = 0; i < e->input_elements; i++) store(e->type, e->input[i], i, e->fed);
}

/* whole: `from` is of int32. */
static void write_doubles(const void *from, bool whole, int64_t count, double *to)
{
    const float *floats = from;
    const int32_t *numbers = from;
    for (int64_t i = 0; i < count; i++) to[i] = whole ? (double)numbers[i] : (double)floats[i];
}

static void write_data(const struct expectation *e, const struct model *m)
{
    const struct plan *plan = m->made.plan;
    double *const *values = m->made.interpreter.values;
    write_doubles(e->input, false, e->input_elements, values[plan->feeds[0]]);
    if (plan->seed != NO_VALUE) write_doubles(e->seed, false, e->output_elements, values[plan->seed]);
    for (size_t p = 0; p < e->network->parameter_count; p++) {
        const struct parameter *how = &e->network->parameters[p];
        if (how->kind == PARAMETER_CONSTANT) continue;
        write_doubles(parameter_in(how, &(struct parameter_arenas) { e->parameters, e->frozen }), false, how->elements,
            interpreted_parameter(&m->made, (int)p));
    }
    if (plan->feed_count < 2) return;
    const int feed = plan->feeds[plan->feed_count - 1];
    const struct value *targets = graph_at(&plan->graph, feed);
    write_doubles(e->targets, targets->type == TYPE_I32, value_elements(targets), values[feed]);
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
    e->type = e->network->graph.values[input].type;
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
    e->fed = memory_new((size_t)e->input_elements, value_type_bytes(e->type));
    e->seed = memory_new(output, sizeof(float));
    e->targets = memory_new(output, sizeof(float));
    e->parameters = memory_new((size_t)e->network->total_floats, sizeof(float));
    e->frozen = memory_new((size_t)e->network->frozen_floats, sizeof(float));
    e->y = memory_new(output + 2, sizeof(double));
    for (int t = 0; t < e->tensors; t++)
        e->gradients[t].elements = t ? e->network->parameters[t - 1].elements : e->input_elements;
    return e->input && e->fed && e->seed && e->targets && e->parameters && e->frozen && e->y;
}

/* Activations of exp and tanh are not exact, whatever they follow. */
static enum tolerance_class class_of(const struct operation_test *test, const struct test_case *c)
{
    int64_t activation = case_get(c, "act", 0);
    bool function = activation == ACTIVATION_SIGMOID || activation == ACTIVATION_TANH;
    return function && test->tolerance < TOLERANCE_FUNCTION ? TOLERANCE_FUNCTION : test->tolerance;
}

/* The interpreter's result is the one that the test computes by itself. */
static void compare_reference(const struct model *m, double *own, struct text *problems)
{
    const struct expectation *e = m->e;
    const double *input = tensor_of(m, 0), *parameters[MAX_TENSORS];
    for (int t = 1; t < e->tensors; t++) parameters[t - 1] = tensor_of(m, t);
    e->test->reference(&e->c, &input, parameters, own);
    for (int64_t i = 0; i < e->output_elements; i++) {
        if (fabs(e->y[i] - own[i]) <= 1e-12 * (1 + fabs(own[i]))) continue;
        text_append(
            problems, "  y[%lld] is %.12g by the interpreter, and must be %.12g\n", (long long)i, e->y[i], own[i]);
        return;
    }
}

/* The results of training and of inference, and the gradients. */
static tutti_status interpret(struct expectation *e, struct device *device, bool gradients, struct text *problems)
{
    tutti_status status = TUTTI_OK;
    const size_t elements = (size_t)result_elements(e);
    struct model m = { .e = e, .up = memory_new(elements, sizeof *m.up), .down = memory_new(elements, sizeof *m.down) };
    const struct plan_options options = {
        .mode = PLAN_TRAIN, .sizes.samples = e->samples, .objective = e->objective, .seeded = !e->has_loss
    };
    if (!m.up || !m.down) FAIL(TUTTI_NO_MEMORY, "not enough memory for the expected results");
    TRY(interpreted_new(device, e->network, &options, false, &m.made));
    m.made.interpreter.constants = e->c.constants;
    write_data(e, &m);
    TRY(interpreter_run(&m.made.interpreter, m.made.plan->graph.node_count));
    memcpy(e->y, result_of(&m), elements * sizeof *e->y);
    if (!e->test->kinks) distrust_zeros("y", e->y, e->has_loss ? 1 : e->output_elements, problems);
    if (e->test->reference) compare_reference(&m, m.up, problems);
    if (gradients && !e->test->no_gradient) TRY(expect_gradients(&m, e, problems));
    if (!e->test->inference) goto done;
    e->y_inference = memory_new(elements, sizeof *e->y_inference);
    if (!e->y_inference) FAIL(TUTTI_NO_MEMORY, "not enough memory for the expected results");
    m.made.interpreter.inference = true;
    TRY(forward(&m, e->y_inference));
done:
    interpreted_free(&m.made);
    free(m.up);
    free(m.down);
    return status;
}

bool expectation_make(struct expectation *e, struct tutti_runtime *runtime, const struct operation_test *test,
    const char *line, bool gradients, tutti_precision precision, struct text *problems)
{
    memset(e, 0, sizeof *e);
    e->test = test;
    e->precision = precision;
    if (!case_parse(line, &e->c)) return false;
    if (test->check) test->check(&e->c, problems);
    e->class = class_of(test, &e->c);
    if (!build(e, runtime, problems) || !allocate(e)) return false;
    int64_t longest = e->input_elements;
    for (int t = 1; t < e->tensors; t++)
        if (e->gradients[t].elements > longest) longest = e->gradients[t].elements;
    e->length = test->length ? test->length(&e->c) : longest;
    fill_data(e, runtime->devices[0].can.class == DEVICE_GPU);
    if (test->targets) test->targets(&e->c, e->targets, e->output_elements);
    if (interpret(e, &runtime->devices[0], gradients, problems) == TUTTI_OK) return true;
    text_append(problems, "  the interpreter: %s\n", tutti_message(NULL));
    return false;
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
    for (int t = 0; t < e->tensors; t++) free(e->gradients[t].values);
    free(e->input);
    free(e->fed);
    free(e->seed);
    free(e->targets);
    free(e->parameters);
    free(e->frozen);
    free(e->y);
    free(e->y_inference);
    tutti_network_free(e->network);
    memset(e, 0, sizeof *e);
}
