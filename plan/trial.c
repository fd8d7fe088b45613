#include "plan/trial.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/random.h"
#include "graph/stored.h"
#include "layers/interpreter/interpreter.h"
#include "plan/node.h"
#include "runtime/memory.h"

/* The accepted difference, relative to the largest number of the output: far above any rounding, far below the error
 * of a miscompiled kernel. */
#define TOLERANCE 1e-3

/* Fills every output before a kernel writes it, so that missing writes are noticed. */
#define NOT_A_NUMBER 0x7fc00000

/* Fusions of a node that trials keep. KEPT: a gradient's mask, which every implementation takes. NEUTRAL: kept, too,
 * for trials of a plan's kernels, because they change no other result on a trial's data. */
enum { KEPT = FUSED(MASKED), NEUTRAL = FUSED(MASK) | FUSED(GATE) | FUSED(STATISTICS) };

void trial_problem(const struct plan *plan, struct node *node, struct problem *problem)
{
    const struct implementation *implementation = node->operation->implementations[node->implementation];
    node_separate(node, KEPT);
    problem_of(plan, node, problem);
    if (implementation->leaves_normalising && !problem->outputs[0]) problem->outputs[0] = problem->inputs[0];
}

/* Whether the function's gradient is that of the identity for the outputs that the numbers below give. */
static bool is_open(struct nonlinearity f)
{
    const bool clips = f.activation == ACTIVATION_CLIP && f.low <= 0 && f.high >= 3;
    return f.activation == ACTIVATION_NONE || f.activation == ACTIVATION_RELU || clips;
}

void trial_problem_in_plan(const struct plan *plan, struct node *node, struct problem *problem)
{
    const struct implementation *implementation = node->operation->implementations[node->implementation];
    const bool open = is_open(node_function(node, FUSION_MASK)) && is_open(node_function(node, FUSION_GATE));
    if (!implementation->statistics || !open) {
        trial_problem(plan, node, problem);
        return;
    }
    node_separate(node, KEPT | NEUTRAL);
    problem_of(plan, node, problem);
}

/* Position of element i of a value in its layout, counted in elements. */
static size_t place_of(const struct value *value, int width, size_t i)
{
    if (value->layout == LAYOUT_PLAIN) return i;
    const struct planes planes = value_planes(value, CHANNEL_AXIS);
    size_t area = (size_t)planes.pixels, channels = (size_t)planes.c, blocks = (size_t)divide_up(planes.c, width);
    size_t n = i / (channels * area), c = i / area % channels, at = i % area;
    if (value->layout == LAYOUT_CHANNELS_LAST) return (n * area + at) * channels + c;
    return ((n * blocks + c / (size_t)width) * area + at) * (size_t)width + c % (size_t)width;
}

static float from_bf16(uint16_t upper)
{
    const uint32_t bits = (uint32_t)upper << 16;
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}

/* Returns the upper half; the rest is cut off. */
static uint16_t to_bf16(float f)
{
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    return (uint16_t)(bits >> 16);
}

static const struct step_constants constants = { .seed_low = 1, .gradient_weight = 0.5f, .learning_rate = 0.1f };

/* Makes numbers in [0.1, 1.1). They are positive, so that they can also stand for deviations and open the gates of
 * relu, and both float types represent them. They repeat after a prime number of them, with which no tensor's rows or
 * channels repeat. */
enum { NUMBERS = 8191 };
static void make_numbers(uint32_t number, uint16_t numbers[NUMBERS])
{
    for (uint64_t i = 0; i < NUMBERS; i++) numbers[i] = to_bf16(0.1f + random_uniform(7, number, i));
}

/* Returns the factor of a value's made-up numbers for PORT_SMALL_IN_TRIALS, a power of two. */
static float factor_of(const struct value *value, unsigned flags)
{
    float factor = 1;
    if (!(flags & PORT_SMALL_IN_TRIALS)) return factor;
    for (int64_t rows = value_elements(value) / value_size(value, 0); rows > 1; rows /= 2) factor /= 2;
    return factor;
}

/* Stores made-up numbers, which repeat, as a parameter of bytes with scales; and reads them, as a kernel does. */
static void make_up_bytes(const struct value *value, const uint16_t numbers[NUMBERS], float factor, unsigned char *data)
{
    const int64_t row = value_size(value, 0), rows = value_elements(value) / row;
    const size_t bytes = stored_row_bytes(TYPE_INT8, row);
    for (int64_t r = 0; r < rows; r++)
        for (int64_t i = 0; i < row; i += STORED_BLOCK) {
            float block[STORED_BLOCK];
            const int64_t count = row - i < STORED_BLOCK ? row - i : STORED_BLOCK;
            for (int64_t j = 0; j < count; j++) block[j] = factor * from_bf16(numbers[(r * row + i + j) % NUMBERS]);
            stored_write(TYPE_INT8, row, i, count, block, data + (size_t)r * bytes);
        }
}

/* Writes a value's made-up numbers. Integers stay 0: labels are class 0. */
static void make_up(const struct value *value, uint32_t number, unsigned flags, int width, void *data)
{
    const float factor = factor_of(value, flags);
    if (value->role == ROLE_CONSTANTS) {
        *(struct step_constants *)data = constants;
        return;
    }
    if (!value_is_float(value)) return;
    uint16_t numbers[NUMBERS];
    make_numbers(number, numbers);
    size_t elements = (size_t)value_elements(value);
    if (value->type == TYPE_INT8) make_up_bytes(value, numbers, factor, data);
    for (size_t i = 0; value->type != TYPE_INT8 && i < elements; i++) {
        const size_t at = place_of(value, width, i);
        if (value->type == TYPE_BF16)
            ((uint16_t *)data)[at] = to_bf16(factor * from_bf16(numbers[i % NUMBERS]));
        else
            ((float *)data)[at] = factor * from_bf16(numbers[i % NUMBERS]);
    }
}

static tutti_status upload(
    struct device *device, const struct value *value, uint32_t number, unsigned flags, cl_mem *buffer)
{
    tutti_status status = TUTTI_OK;
    size_t bytes = value_bytes(value, device->can.vector_width);
    void *data = memory_new(bytes, 1);
    if (!data) return TUTTI_NO_MEMORY;
    if (!(flags & PORT_ZERO_IN_TRIALS)) make_up(value, number, flags, device->can.vector_width, data);
    TRY(buffer_new(device, bytes, buffer));
    TRY(buffer_write(device, *buffer, 0, data, bytes));
done:
    free(data);
    return status;
}

/* Returns a value of a trial, in the layout and the type that the implementation wants. */
static struct value take_value(const struct value *given, enum value_layout layout, bool bf16)
{
    struct value value = *given;
    value.layout = layout;
    if (value.type == TYPE_BF16 && value.role != ROLE_PARAMETER && !bf16) value.type = TYPE_F32;
    return value;
}

/* Copies the problem, with its values as the implementation wants them, and makes its design. */
static tutti_status take_problem(
    struct trial *trial, const struct problem *given, const struct implementation *implementation)
{
    enum value_layout inputs[GRAPH_MAX_INPUTS] = { 0 }, outputs[GRAPH_MAX_OUTPUTS] = { 0 };
    if (implementation->layouts) implementation->layouts(given, inputs, outputs);
    trial->problem = *given;
    for (int i = 0; i < GRAPH_MAX_INPUTS; i++) {
        if (!given->inputs[i]) continue;
        trial->inputs[i] = take_value(given->inputs[i], inputs[i], input_takes_bf16(implementation, given->node, i));
        trial->problem.inputs[i] = &trial->inputs[i];
    }
    for (int i = 0; i < GRAPH_MAX_OUTPUTS; i++) {
        if (!given->outputs[i]) continue;
        trial->outputs[i] =
            take_value(given->outputs[i], outputs[i], output_takes_bf16(implementation, given->node, i));
        trial->problem.outputs[i] = &trial->outputs[i];
    }
    trial->problem.design = NULL;
    if (!implementation->design) return TUTTI_OK;
    trial->problem.design = trial->design = design_new(&trial->problem, implementation);
    return trial->design ? TUTTI_OK : TUTTI_NO_MEMORY;
}

static tutti_status make_buffers(struct trial *trial, const struct implementation *implementation)
{
    tutti_status status = TUTTI_OK;
    const struct problem *problem = &trial->problem;
    struct operands *operands = &trial->operands;
    const size_t workspace = workspace_bytes(implementation, problem);
    size_t prepared = implementation->prepared ? implementation->prepared(problem) : 0;
    for (int i = 0; i < problem->node->input_count; i++)
        if (problem->inputs[i])
            TRY(upload(trial->device, problem->inputs[i], (uint32_t)i, node_input_port(problem->node, i)->flags,
                &operands->inputs[i]));
    for (int i = 0; i < problem->node->output_count; i++) {
        if (!problem->outputs[i]) continue;
        const size_t bytes = value_bytes(problem->outputs[i], trial->device->can.vector_width);
        TRY(buffer_new(trial->device, bytes, &operands->outputs[i]));
        if (bytes >= 4) TRY(buffer_fill(trial->device, operands->outputs[i], 0, bytes / 4 * 4, NOT_A_NUMBER));
    }
    if (workspace) TRY(buffer_new(trial->device, workspace, &operands->workspace));
    if (prepared) TRY(buffer_new(trial->device, prepared, &operands->prepared));
done:
    return status;
}

tutti_status trial_make(struct device *device, const struct problem *problem,
    const struct implementation *implementation, struct trial *trial)
{
    tutti_status status = TUTTI_OK;
    memset(trial, 0, sizeof *trial);
    trial->device = device;
    launch_list_init(&trial->list, device);
    TRY(take_problem(trial, problem, implementation));
    TRY(make_buffers(trial, implementation));
    if (trial->operands.prepared && implementation->emit_prepare)
        implementation->emit_prepare(&trial->problem, &trial->operands, &trial->list);
    trial->prepared = trial->list.count;
    implementation->emit(&trial->problem, &trial->operands, &trial->list);
    TRY(launch_list_realise(&trial->list, NULL, NULL));
done:
    return status;
}

void trial_emit(const struct problem *problem, const struct implementation *implementation, struct launch_list *list)
{
    struct trial trial = { 0 };
    const tutti_status status = take_problem(&trial, problem, implementation);
    if (status != TUTTI_OK) {
        list->status = status;
        return;
    }
    stand_in_operands(NULL, &trial.problem, implementation, &trial.operands);
    if (trial.operands.prepared && implementation->emit_prepare)
        implementation->emit_prepare(&trial.problem, &trial.operands, list);
    implementation->emit(&trial.problem, &trial.operands, list);
    free(trial.design);
}

tutti_status trial_run(struct trial *trial)
{
    tutti_status status = launch_list_enqueue(&trial->list, 0, trial->list.count, NULL);
    return status == TUTTI_OK ? device_wait(trial->device) : status;
}

tutti_status trial_repeat(struct trial *trial, int times)
{
    tutti_status status = TUTTI_OK;
    const size_t first = trial->problem.training ? 0 : trial->prepared;
    for (int i = 0; i < times && status == TUTTI_OK; i++)
        status = launch_list_enqueue(&trial->list, first, trial->list.count, NULL);
    return status == TUTTI_OK ? device_wait(trial->device) : status;
}

/* Reads an output as plain floats, which the caller frees; NULL in *data where it is absent or has integers. */
static tutti_status output_read(struct trial *trial, int output, float **data)
{
    tutti_status status = TUTTI_OK;
    const struct value *value = trial->problem.outputs[output];
    void *raw = NULL;
    *data = NULL;
    if (!value || !value_is_float(value)) return TUTTI_OK;
    int width = trial->device->can.vector_width;
    size_t bytes = value_bytes(value, width), elements = (size_t)value_elements(value);
    raw = memory_new(bytes, 1);
    *data = memory_new(elements, sizeof(float));
    if (!raw || !*data) FAIL(TUTTI_NO_MEMORY, "not enough memory to compare a kernel's results");
    TRY(buffer_read(trial->device, trial->operands.outputs[output], 0, raw, bytes));
    for (size_t e = 0; e < elements; e++) {
        const size_t at = place_of(value, width, e);
        (*data)[e] = value->type == TYPE_BF16 ? from_bf16(((uint16_t *)raw)[at]) : ((float *)raw)[at];
    }
done:
    free(raw);
    return status;
}

static tutti_status compare(
    const struct problem *problem, int output, const float *result, const float *reference, const char *whose)
{
    size_t elements = (size_t)value_elements(problem->outputs[output]);
    double largest = 0, worst = 0;
    for (size_t e = 0; e < elements; e++) {
        double difference = fabs((double)result[e] - reference[e]);
        largest = fmax(largest, fabs((double)reference[e]));
        if (!(difference <= worst)) worst = difference; /* NaN stays */
    }
    double stored = problem->outputs[output]->type == TYPE_BF16 ? 0x1p-8 : 0;
    if (worst <= (TOLERANCE + stored) * largest + 1e-6) return TUTTI_OK;
    return fail(TUTTI_WRONG_RESULT, "its output %d differs from %s by %g; the largest element is %g", output, whose,
        worst, largest);
}

tutti_status trial_compare(struct trial *trial, struct trial *reference)
{
    tutti_status status = TUTTI_OK;
    float *result = NULL, *expected = NULL;
    for (int i = 0; i < GRAPH_MAX_OUTPUTS; i++) {
        free(result);
        free(expected);
        result = expected = NULL;
        if (!reference->problem.outputs[i]) continue;
        TRY(output_read(trial, i, &result));
        TRY(output_read(reference, i, &expected));
        if (result) TRY(compare(&trial->problem, i, result, expected, "the plain kernel's"));
    }
done:
    free(result);
    free(expected);
    return status;
}

/* Rounds numbers as a parameter of bytes with scales does. Returns false without memory. */
static bool round_to_bytes(const struct value *value, double *array)
{
    const int64_t row = value_size(value, 0), rows = value_elements(value) / row;
    float *numbers = memory_new((size_t)row, sizeof *numbers);
    unsigned char *bytes = memory_new(stored_row_bytes(TYPE_INT8, row), 1);
    for (int64_t r = 0; numbers && bytes && r < rows; r++) {
        for (int64_t i = 0; i < row; i++) numbers[i] = (float)array[r * row + i];
        stored_write(TYPE_INT8, row, 0, row, numbers, bytes);
        stored_read(TYPE_INT8, 1, row, bytes, numbers);
        for (int64_t i = 0; i < row; i++) array[r * row + i] = (double)numbers[i];
    }
    const bool done = numbers && bytes;
    free(numbers);
    free(bytes);
    return done;
}

/* Returns the numbers that upload() wrote, in the order of the value's shape. */
static double *input_array(const struct value *value, uint32_t number, unsigned flags)
{
    const double factor = (double)factor_of(value, flags);
    const size_t elements = (size_t)value_elements(value);
    uint16_t numbers[NUMBERS];
    double *array = memory_new(elements, sizeof *array);
    if (!array || flags & PORT_ZERO_IN_TRIALS || value->role == ROLE_CONSTANTS || !value_is_float(value)) return array;
    make_numbers(number, numbers);
    for (size_t i = 0; i < elements; i++) array[i] = factor * (double)from_bf16(numbers[i % NUMBERS]);
    if (value->type == TYPE_INT8 && !round_to_bytes(value, array)) {
        free(array);
        return NULL;
    }
    return array;
}

/* Computes the problem with the interpreter. The caller frees the arrays, also after a failure. */
static tutti_status interpret(const struct problem *problem, struct thread_pool *threads, struct node_arrays *arrays)
{
    *arrays = (struct node_arrays) { .constants = &constants, .threads = threads };
    for (int i = 0; i < problem->node->input_count; i++) {
        if (!problem->inputs[i]) continue;
        arrays->inputs[i] = input_array(problem->inputs[i], (uint32_t)i, node_input_port(problem->node, i)->flags);
        if (!arrays->inputs[i]) return TUTTI_NO_MEMORY;
    }
    for (int i = 0; i < problem->node->output_count; i++) {
        if (!problem->outputs[i]) continue;
        arrays->outputs[i] = memory_new((size_t)value_elements(problem->outputs[i]), sizeof(double));
        if (!arrays->outputs[i]) return TUTTI_NO_MEMORY;
    }
    return interpret_node(problem, arrays);
}

static tutti_status check_output(struct trial *trial, int output, const double *want)
{
    tutti_status status = TUTTI_OK;
    float *result = NULL, *expected = NULL;
    TRY(output_read(trial, output, &result));
    if (!result) goto done;
    const size_t elements = (size_t)value_elements(trial->problem.outputs[output]);
    expected = memory_new(elements, sizeof *expected);
    if (!expected) FAIL(TUTTI_NO_MEMORY, "not enough memory to compare a kernel's results");
    for (size_t i = 0; i < elements; i++) expected[i] = (float)want[i];
    TRY(compare(&trial->problem, output, result, expected, "the interpreter's"));
done:
    free(result);
    free(expected);
    return status;
}

tutti_status trial_check(struct trial *trial, const struct problem *problem, struct thread_pool *threads)
{
    struct node_arrays arrays;
    tutti_status status = interpret(problem, threads, &arrays);
    for (int i = 0; i < GRAPH_MAX_OUTPUTS && status == TUTTI_OK; i++)
        if (arrays.outputs[i]) status = check_output(trial, i, arrays.outputs[i]);
    for (int i = 0; i < GRAPH_MAX_INPUTS; i++) free(arrays.inputs[i]);
    for (int i = 0; i < GRAPH_MAX_OUTPUTS; i++) free(arrays.outputs[i]);
    return status;
}

void trial_keep_outputs(struct trial *trial)
{
    launch_list_free(&trial->list);
    for (int i = 0; i < GRAPH_MAX_INPUTS; i++) buffer_free(&trial->operands.inputs[i]);
    buffer_free(&trial->operands.workspace);
    buffer_free(&trial->operands.prepared);
    free(trial->design);
    trial->design = NULL;
}

void trial_free(struct trial *trial)
{
    trial_keep_outputs(trial);
    for (int i = 0; i < GRAPH_MAX_OUTPUTS; i++) buffer_free(&trial->operands.outputs[i]);
}
