/* Running a case on one device: training with poisoned memory and guards, twice; then inference. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "plan/node.h"
#include "plan/plan.h"
#include "tests/layers/expect.h"
#include "tests/layers/guards.h"

enum { POISON = 0x7fc0beef, TAIL = 64 }; /* a NaN; floats after the arenas of parameters and gradients */

bool run_once;

struct bench {
    const struct expectation *e;
    struct device *device;
    struct text *problems;
    struct plan *plan;
    cl_mem parameters, gradients, frozen;
    size_t arena_bytes; /* of parameters and of gradients, tail included */
    float *results, *gradient_arena, *again;
};

/* Values that are rounded when they are stored; reorders of the input and the seed move numbers of bfloat16. */
static int rounded_values(const struct plan *plan)
{
    int rounded = 0;
    for (size_t n = 0; n < plan->graph.node_count; n++) {
        const struct node *node = &plan->graph.nodes[n];
        if (!strcmp(node->operation->name, "reorder")) continue;
        for (int i = 0; i < node->output_count; i++) {
            const struct value *value = graph_at(&plan->graph, node->outputs[i]);
            rounded += value && value->type == TYPE_BF16;
        }
    }
    return rounded;
}

/* Whether the value is computed. The input, the seed and parameters are numbers of bfloat16 in such a case. */
static bool is_computed(const struct graph *graph, int value)
{
    const struct value *v = graph_at(graph, value);
    while (v && v->producer >= 0) {
        const struct operation *operation = graph->nodes[v->producer].operation;
        if (!operation->alias && operation != structural.reorder) return true;
        v = graph_at(graph, graph->nodes[v->producer].inputs[0]);
    }
    return false;
}

static const char *implementation_of(const struct node *node)
{
    return node->implementation < 0 ? "" : node->operation->implementations[node->implementation]->name;
}

/* Whether a product computes bf16 dot products. */
static bool multiplies_bf16(const struct plan *plan)
{
    for (size_t n = 0; n < plan->graph.node_count; n++)
        if (!strcmp(implementation_of(&plan->graph.nodes[n]), "bf16")) return true;
    return false;
}

/* Operands that are rounded when products load them: in the GPU class, and on CPUs that compute bf16 dot products. Each
 * counts several times, because a sum's error is that of its terms, which may be larger than the sum. */
enum { TERMS = 2 };
static int computed_operands(const struct plan *plan)
{
    int rounded = 0;
    for (size_t n = 0; n < plan->graph.node_count; n++) {
        const struct node *node = &plan->graph.nodes[n];
        const char *name = node->operation->name;
        if (!strncmp(name, "conv2d", 6) || !strncmp(name, "dense", 5) || !strcmp(name, "matmul"))
            rounded += is_computed(&plan->graph, node->inputs[0]) + is_computed(&plan->graph, node->inputs[1]);
    }
    return rounded;
}

/* A number of two parts has 8 more bits than one of one. Three parts are as good as floats. */
static double tolerance_of_operands(const struct plan *plan)
{
    const struct capabilities *can = &plan->device->can;
    const enum compute_type compute = plan_compute(plan);
    if (can->class == DEVICE_CPU && !can->bf16[compute].form) return 0;
    const double rounded = tolerance_of_bf16(TERMS * computed_operands(plan));
    if (compute == COMPUTE_BF16) return rounded;
    return compute == COMPUTE_TF32 && multiplies_bf16(plan) ? ldexp(rounded, -8) : 0;
}

/* Winograd's transforms have fractions: it rounds where a sum of integers would not. */
static double limit_of(const struct bench *b)
{
    double limit = tolerance(b->e->class, b->e->length), winograd = tolerance(TOLERANCE_WINOGRAD, b->e->length);
    for (size_t n = 0; n < b->plan->graph.node_count; n++) {
        const struct node *node = &b->plan->graph.nodes[n];
        if (!strncmp(implementation_of(node), "winograd", 8) && limit < winograd) limit = winograd;
    }
    return limit + tolerance_of_bf16(rounded_values(b->plan)) + tolerance_of_operands(b->plan);
}

static tutti_status open_plan(struct bench *b, enum plan_mode mode, const char *force)
{
    tutti_status status = TUTTI_OK;
    const struct expectation *e = b->e;
    const size_t frozen = (size_t)e->network->frozen_floats * sizeof(float);
    b->arena_bytes = ((size_t)e->network->total_floats + TAIL) * sizeof(float);
    if (!b->parameters) TRY(buffer_new(b->device, b->arena_bytes, &b->parameters));
    if (!b->gradients) TRY(buffer_new(b->device, b->arena_bytes, &b->gradients));
    if (!b->frozen && frozen > 0) TRY(buffer_new(b->device, frozen, &b->frozen));
    struct plan_options options = { .mode = mode,
        .sizes.samples = e->samples,
        .objective = e->objective,
        .seeded = !e->has_loss && mode == PLAN_TRAIN,
        .force = force,
        .precision = e->precision,
        .guards = true,
        .parameters = b->parameters,
        .frozen = b->frozen,
        .gradients = mode == PLAN_TRAIN ? b->gradients : NULL };
    TRY(plan_new(b->device, e->network, &options, &b->plan));
    record_plan(b->plan);
done:
    return status;
}

static size_t fed_bytes(const struct expectation *e)
{
    return (size_t)e->input_elements * value_type_bytes(e->type);
}

static tutti_status upload(struct bench *b)
{
    tutti_status status = TUTTI_OK;
    const struct expectation *e = b->e;
    struct plan *plan = b->plan;
    TRY(guards_poison(plan));
    TRY(buffer_fill(b->device, b->gradients, 0, b->arena_bytes, POISON));
    TRY(buffer_fill(b->device, b->parameters, 0, b->arena_bytes, POISON));
    TRY(buffer_write(b->device, b->parameters, 0, e->parameters, (size_t)e->network->total_floats * sizeof(float)));
    if (b->frozen)
        TRY(buffer_write(b->device, b->frozen, 0, e->frozen, (size_t)e->network->frozen_floats * sizeof(float)));
    TRY(buffer_write(b->device, plan_buffer(plan, plan->feeds[0]), 0, e->fed, fed_bytes(e)));
    if (plan->seed != NO_VALUE)
        TRY(buffer_write(
            b->device, plan_buffer(plan, plan->seed), 0, e->seed, (size_t)e->output_elements * sizeof(float)));
    if (plan->feed_count > 1) {
        const int feed = plan->feeds[plan->feed_count - 1];
        const struct value *targets = graph_at(&plan->graph, feed);
        if (plan_buffer(plan, feed))
            TRY(buffer_write(b->device, plan_buffer(plan, feed), 0, e->targets, value_bytes(targets, 1)));
    }
    if (plan->constants != NO_VALUE && plan_buffer(plan, plan->constants))
        TRY(buffer_write(b->device, plan_buffer(plan, plan->constants), 0, &e->c.constants, sizeof e->c.constants));
done:
    return status;
}

/* Reads a value as the host does. */
static tutti_status read_value(struct bench *b, int value, float *to, int64_t count)
{
    return buffer_read(b->device, plan_buffer(b->plan, value), 0, to, (size_t)count * sizeof(float));
}

static void check_same(struct bench *b, const char *what, const void *got, const void *want, size_t bytes)
{
    if (memcmp(got, want, bytes)) text_append(b->problems, "  %s\n", what);
}

static void check_poison(struct bench *b, const char *what, const float *from, int64_t first, int64_t last)
{
    for (int64_t i = first; i < last; i++) {
        uint32_t bits;
        memcpy(&bits, &from[i], sizeof bits);
        if (bits == POISON) continue;
        text_append(b->problems, "  something wrote into the gap after %s, %lld floats after its end\n", what,
            (long long)(i - first));
        return;
    }
}

/* Inputs and parameters are as they were, guards hold, the gaps of the gradient arena too. */
static tutti_status check_untouched(struct bench *b)
{
    tutti_status status = TUTTI_OK;
    const struct expectation *e = b->e;
    const tutti_network *network = e->network;
    TRY(guards_check(b->plan));
    TRY(buffer_read(b->device, plan_buffer(b->plan, b->plan->feeds[0]), 0, b->results, fed_bytes(e)));
    check_same(b, "the input was overwritten", b->results, e->fed, fed_bytes(e));
    TRY(buffer_read(b->device, b->parameters, 0, b->again, b->arena_bytes));
    check_same(
        b, "the parameters were overwritten", b->again, e->parameters, (size_t)network->total_floats * sizeof(float));
    check_poison(b, "the parameters", b->again, network->total_floats, network->total_floats + TAIL);
    TRY(buffer_read(b->device, b->gradients, 0, b->gradient_arena, b->arena_bytes));
    for (size_t p = 0; p < network->parameter_count; p++) {
        const struct parameter *how = &network->parameters[p];
        int64_t end = how->offset + how->elements;
        if (parameter_is_fixed(how)) continue;
        check_poison(b, how->name, b->gradient_arena, end,
            (end + PARAMETER_ALIGNMENT - 1) / PARAMETER_ALIGNMENT * PARAMETER_ALIGNMENT);
    }
    check_poison(b, "the gradients", b->gradient_arena, network->total_floats, network->total_floats + TAIL);
done:
    return status;
}

static tutti_status compare_forward(struct bench *b, const double *want, double limit)
{
    tutti_status status = TUTTI_OK;
    const struct expectation *e = b->e;
    if (b->plan->metrics != NO_VALUE) {
        TRY(read_value(b, b->plan->metrics, b->results, 2));
        compare_array("loss", b->results, e->y, 1, limit, b->problems);
        compare_array("correct", b->results + 1, e->y + 1, 1, e->test->loss ? limit : 0, b->problems);
        return TUTTI_OK;
    }
    TRY(read_value(b, b->plan->outputs[0], b->results, e->output_elements));
    compare_array("y", b->results, want, e->output_elements, limit, b->problems);
done:
    return status;
}

static tutti_status compare_backward(struct bench *b, double limit)
{
    tutti_status status = TUTTI_OK;
    const struct expectation *e = b->e;
    if (e->gradients[0].values) {
        if (b->plan->input_gradient == NO_VALUE)
            return fail(TUTTI_WRONG_RESULT, "the plan has no gradient of the input");
        TRY(read_value(b, b->plan->input_gradient, b->results, e->input_elements));
        compare_array(
            "gradient of the input", b->results, e->gradients[0].values, e->input_elements, limit, b->problems);
    }
    for (int t = 1; t < e->tensors; t++) {
        const struct parameter *how = &e->network->parameters[t - 1];
        char what[160];
        snprintf(what, sizeof what, "gradient of %s", how->name);
        if (e->gradients[t].values)
            compare_array(
                what, b->gradient_arena + how->offset, e->gradients[t].values, how->elements, limit, b->problems);
    }
done:
    return status;
}

/* A second run over what the first one left must give the same bytes. */
static tutti_status check_repeats(struct bench *b)
{
    tutti_status status = TUTTI_OK;
    const struct expectation *e = b->e;
    TRY(plan_enqueue(b->plan, NULL, NULL));
    TRY(buffer_read(b->device, b->gradients, 0, b->again, b->arena_bytes));
    check_same(b, "the gradients of a second run differ from the first's", b->again, b->gradient_arena,
        (size_t)e->network->total_floats * sizeof(float));
done:
    return status;
}

static tutti_status train(struct bench *b, const char *force, bool gradients, struct text *chosen, struct text *others)
{
    tutti_status status = TUTTI_OK;
    TRY(open_plan(b, PLAN_TRAIN, force));
    describe_choices(b->plan, chosen, others);
    TRY(upload(b));
    TRY(plan_enqueue(b->plan, NULL, NULL));
    TRY(check_untouched(b));
    double limit = limit_of(b);
    if (b->e->precision == TUTTI_BF16 && b->device->can.class == DEVICE_CPU && !rounded_values(b->plan) &&
        !multiplies_bf16(b->plan))
        text_append(b->problems, "  no value is stored as bfloat16: the case proves nothing\n");
    TRY(compare_forward(b, b->e->y, limit));
    if (gradients) TRY(compare_backward(b, limit));
    if (!run_once) TRY(check_repeats(b));
done:
    plan_free(b->plan);
    b->plan = NULL;
    return status;
}

static tutti_status infer(struct bench *b, const char *force)
{
    tutti_status status = TUTTI_OK;
    const struct expectation *e = b->e;
    if (e->has_loss) return TUTTI_OK;
    TRY(open_plan(b, PLAN_INFER, force));
    TRY(upload(b));
    TRY(plan_prepare(b->plan));
    TRY(plan_enqueue(b->plan, NULL, NULL));
    TRY(guards_check(b->plan));
    TRY(compare_forward(b, e->y_inference ? e->y_inference : e->y, limit_of(b)));
done:
    plan_free(b->plan);
    b->plan = NULL;
    return status;
}

void run_case(const struct expectation *e, struct device *device, const char *force, bool gradients,
    struct text *problems, struct text *chosen, struct text *others)
{
    struct bench b = { .e = e, .device = device, .problems = problems };
    size_t floats = (size_t)e->network->total_floats + TAIL;
    int64_t most = e->input_elements > e->output_elements ? e->input_elements : e->output_elements;
    b.results = memory_new((size_t)most + 2, sizeof(float));
    b.gradient_arena = memory_new(floats, sizeof(float));
    b.again = memory_new(floats, sizeof(float));
    tutti_status status = b.results && b.gradient_arena && b.again ? TUTTI_OK : TUTTI_NO_MEMORY;
    if (status == TUTTI_OK) status = train(&b, force, gradients, chosen, others);
    if (status != TUTTI_OK) text_append(problems, "  training: %s\n", tutti_message(NULL));
    status = infer(&b, force);
    if (status != TUTTI_OK) text_append(problems, "  inference: %s\n", tutti_message(NULL));
    buffer_free(&b.parameters);
    buffer_free(&b.gradients);
    buffer_free(&b.frozen);
    free(b.results);
    free(b.gradient_arena);
    free(b.again);
}
