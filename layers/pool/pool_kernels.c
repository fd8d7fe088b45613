/* Pooling's implementations. Kernels: layers/pool/pool_cpu.cl, blocked, and pool_plain.cl, for any device, plain or
 * with channels last. The mean of the whole image has kernels of its own. */

#include "base/memory.h"
#include "base/numbers.h"
#include "layers/element.h"
#include "layers/elementwise.h"
#include "layers/pool/pool.h"

enum { TASKS = 8, GLOBAL_TASKS = 16, GROUP = 256 };

static bool is_blocked(const struct problem *problem)
{
    return problem->inputs[0]->layout == LAYOUT_BLOCKED;
}

static bool has_channels_last(const struct problem *problem)
{
    return problem->inputs[0]->layout == LAYOUT_CHANNELS_LAST || problem->outputs[0]->layout == LAYOUT_CHANNELS_LAST;
}

/* " -DSTREAM=1" where the output does not stay in the cache. */
static const char *stream_option(const struct problem *problem)
{
    return (size_t)value_elements(problem->outputs[0]) * sizeof(float) > STREAM_BYTES ? " -DSTREAM=1" : "";
}

/* Adds a launch with all sizes and `more` as options, and all buffers: inputs, the added tensor, outputs. */
static struct launch *add(const struct problem *problem, const struct operands *operands, struct launch_list *list,
    const char *source, const char *kernel, const char *more)
{
    const struct pool_sizes z = pool_sizes_of(problem);
    const struct node *node = problem->node;
    const struct window *a = &pool_attributes(node)->window;
    const bool adaptive = pool_is_adaptive(node), max = pool_is_max(node), adds = problem->add != NULL;
    char elements[ELEMENT_OPTIONS + 64];
    element_options(problem, elements, ELEMENT_OPTIONS);
    const int64_t x = z.h * z.w, y = z.oh * z.ow, most = z.n * z.c * (x > y ? x : y);
    if (!is_blocked(problem) && problem->outputs[0]->layout != LAYOUT_BLOCKED)
        number_append(elements, sizeof elements, " -DPLACE=%s", most <= INT32_MAX ? "uint" : "ulong");
    if (has_channels_last(problem)) number_append(elements, sizeof elements, " -DCHANNELS=%lld", (long long)z.c);
    struct launch *launch = launch_add(list, source, kernel,
        "-DH=%lld -DW=%lld -DOH=%lld -DOW=%lld -DKH=%lld -DKW=%lld -DSH=%lld -DSW=%lld -DPH=%lld -DPW=%lld "
        "-DADAPTIVE=%d "
        "-DCOUNT=%d -DADD=%d %s%s",
        (long long)z.h, (long long)z.w, (long long)z.oh, (long long)z.ow, (long long)(adaptive ? 1 : a->kernel[0]),
        (long long)(adaptive ? 1 : a->kernel[1]), (long long)a->stride[0], (long long)a->stride[1],
        (long long)a->padding[0], (long long)a->padding[1], adaptive, pool_attributes(node)->exclude_padding, adds,
        more, elements);
    launch_buffers(launch, operands->inputs, max && pool_is_gradient(node) ? 2 : 1);
    if (adds) launch_buffer(launch, operands->add);
    launch_buffers(launch, operands->outputs, max && !pool_is_gradient(node) ? 2 : 1);
    return launch;
}

/* ----------------------------------------------------------------------------------------------- any windows ---- */

/* FORM of max_pool_gradient, see pool_cpu.cl. */
static int form_of(const struct problem *problem)
{
    const struct window *a = &pool_attributes(problem->node)->window;
    const struct pool_sizes z = pool_sizes_of(problem);
    bool apart = a->kernel[0] == a->stride[0] && a->kernel[1] == a->stride[1] && !a->padding[0] && !a->padding[1];
    if (!is_blocked(problem)) return 0;
    if (apart && z.oh * a->stride[0] <= z.h && z.ow * a->stride[1] <= z.w) return 1;
    for (int i = 0; i < 2; i++)
        if (a->kernel[i] != 3 || a->stride[i] != 2 || a->padding[i] != 1) return 0;
    return z.oh == (z.h + 1) / 2 && z.ow == (z.w + 1) / 2 ? 2 : 0;
}

/* Number of floats of a gradient that a work-item of pool_plain.cl makes, see there. */
static int pixels_of(const struct problem *problem)
{
    const struct value *result = problem->outputs[0];
    if (!pool_is_gradient(problem->node)) return 1;
    if (!pool_is_max(problem->node)) return value_elements(result) % 4 == 0 ? 4 : 1;
    return result->layout != LAYOUT_CHANNELS_LAST && pool_sizes_of(problem).w % 4 == 0 ? 4 : 1;
}

/* Writes the options of the windows. `form`: FORM of max_pool_gradient. */
static void window_options(const struct problem *problem, int form, char *buffer, size_t size)
{
    const bool gradient = pool_is_gradient(problem->node), max = pool_is_max(problem->node);
    const struct value *index = !max ? NULL : gradient ? problem->inputs[1] : problem->outputs[1];
    const char *type = index && index->type == TYPE_I32 ? "int" : "uchar";
    buffer[0] = '\0';
    if (max) number_append(buffer, size, "-DINDEX=%s -DWITH_INDEX=%d", type, index != NULL);
    if (is_blocked(problem) && max && gradient) number_append(buffer, size, " -DFORM=%d", form);
    if (is_blocked(problem))
        number_append(buffer, size, "%s", stream_option(problem));
    else if (gradient)
        number_append(buffer, size, " -DPIXELS=%d", pixels_of(problem));
}

/* Sets the tasks of pool_cpu.cl: (channel blocks, images, parts of `rows`). Or the work-items of pool_plain.cl, whose
 * number is its last argument. */
static void divide(struct launch *launch, const struct problem *problem, int64_t rows)
{
    const struct pool_sizes z = pool_sizes_of(problem);
    const int64_t blocks = divide_up(z.c, problem->device->vector_width);
    const int64_t items = value_elements(problem->outputs[0]) / pixels_of(problem);
    const int64_t parts = divide_up((int64_t)TASKS * problem->device->units, blocks * z.n);
    const size_t group = group_size(problem->device, GROUP);
    if (is_blocked(problem)) {
        launch_tasks(launch, (size_t)blocks, (size_t)z.n, (size_t)(parts > rows ? rows : parts));
        return;
    }
    launch_long(launch, items);
    launch_grid(launch, 1, size_round_up((size_t)items, group), 1, 1, group, 1, 1);
}

static void emit(const struct problem *problem, const struct operands *operands, struct launch_list *list)
{
    static const char *const kernels[2][2] = { { "average_pool", "average_pool_gradient" },
        { "max_pool", "max_pool_gradient" } };
    const struct node *node = problem->node;
    const struct pool_sizes z = pool_sizes_of(problem);
    const bool blocked = is_blocked(problem), max = pool_is_max(node), gradient = pool_is_gradient(node);
    const int form = max && gradient ? form_of(problem) : 0;
    char options[96];
    window_options(problem, form, options, sizeof options);
    struct launch *launch =
        add(problem, operands, list, blocked ? "pool_cpu" : "pool_plain", kernels[max][gradient], options);
    divide(launch, problem, gradient && !form ? z.h : z.oh);
    double bytes = 0;
    for (int i = 0; i < node->input_count; i++)
        if (problem->inputs[i]) bytes += (double)value_bytes(problem->inputs[i], 1);
    for (int i = 0; i < node->output_count; i++)
        if (problem->outputs[i]) bytes += (double)value_bytes(problem->outputs[i], 1);
    launch_work(launch, pool_flops(problem), bytes);
}

/* x and y (dy, dx) blocked. */
static void layouts_blocked(const struct problem *problem, enum value_layout *inputs, enum value_layout *outputs)
{
    for (int i = 0; i < problem->node->input_count; i++) inputs[i] = LAYOUT_BLOCKED;
    for (int i = 0; i < problem->node->output_count; i++) outputs[i] = LAYOUT_BLOCKED;
}

/* The result has channels last where convolutions want that: dy is small. With one pixel, both layouts are equal. */
static void layouts_gradient(const struct problem *problem, enum value_layout *inputs, enum value_layout *outputs)
{
    const bool last = problem->channels_last && value_has_channels_last(problem->outputs[0]);
    const struct pool_sizes z = pool_sizes_of(problem);
    outputs[0] = last ? LAYOUT_CHANNELS_LAST : LAYOUT_PLAIN;
    inputs[0] = z.oh * z.ow == 1 ? LAYOUT_PLAIN : outputs[0];
}

/* ------------------------------------------------------------------------------------------- the whole image ---- */

static const char *global_refusal(const struct problem *problem, const char *refusal)
{
    const struct window *a = &pool_attributes(problem->node)->window;
    const struct pool_sizes z = pool_sizes_of(problem);
    if (refusal) return refusal;
    const bool whole = a->kernel[0] == z.h && a->kernel[1] == z.w && !a->padding[0] && !a->padding[1];
    return whole ? NULL : "the kernel is not the whole image";
}

static const char *fits_global_cpu(const struct problem *problem)
{
    return global_refusal(problem, fits_cpu_class(problem));
}

static const char *fits_global_gpu(const struct problem *problem)
{
    return global_refusal(problem, fits_gpu_class(problem));
}

/* One pixel for each channel is plain, as a dense layer after it wants it. On a GPU the image keeps its layout. */
static void layouts_global(const struct problem *problem, enum value_layout *inputs, enum value_layout *outputs)
{
    const bool last = problem->inputs[0]->layout == LAYOUT_CHANNELS_LAST;
    const enum value_layout image = problem->device->class == DEVICE_CPU ? LAYOUT_BLOCKED
        : last                                                           ? LAYOUT_CHANNELS_LAST
                                                                         : LAYOUT_PLAIN;
    inputs[0] = pool_is_gradient(problem->node) ? LAYOUT_PLAIN : image;
    outputs[0] = pool_is_gradient(problem->node) ? image : LAYOUT_PLAIN;
}

/* CPU class: tasks of several channel blocks of an image, some for each unit, which finish together. GPU class:
 * `lanes` work-items for each plane. */
static void divide_global(struct launch *launch, const struct problem *problem, size_t group, size_t lanes)
{
    const struct pool_sizes z = pool_sizes_of(problem);
    const int64_t blocks = divide_up(z.c, problem->device->vector_width);
    const int64_t wanted = divide_up(GLOBAL_TASKS * (int64_t)problem->device->units, z.n);
    const int64_t per = divide_up(blocks, wanted < blocks ? wanted : blocks);
    if (problem->device->class == DEVICE_GPU) {
        launch_long(launch, z.n * z.c);
        launch_grid(launch, 1, size_round_up((size_t)(z.n * z.c) * lanes, group), 1, 1, group, 1, 1);
        return;
    }
    LAUNCH_INTS(launch, blocks, z.c, per);
    launch_tasks(launch, (size_t)divide_up(blocks, per), (size_t)z.n, 1);
}

static void emit_global(const struct problem *problem, const struct operands *operands, struct launch_list *list)
{
    const bool gpu = problem->device->class == DEVICE_GPU, gradient = pool_is_gradient(problem->node);
    const struct pool_sizes z = pool_sizes_of(problem);
    const size_t group = group_size(problem->device, GROUP), few = group < 32 ? group : 32;
    const size_t lanes = z.h * z.w <= 1024 ? few : group;
    char options[64] = "";
    if (has_channels_last(problem)) { /* work-items side by side read channels side by side */
        emit(problem, operands, list);
        return;
    }
    if (gpu) number_append(options, sizeof options, "-DGROUP=%zu -DLANES=%zu", group, lanes);
    struct launch *launch = add(problem, operands, list, gpu ? "pool_plain" : "pool_cpu",
        gradient ? "global_average_pool_gradient" : "global_average_pool", gradient ? stream_option(problem) : options);
    divide_global(launch, problem, group, lanes);
    launch_work(launch, pool_flops(problem), 4.0 * (double)(z.n * z.c) * (double)(z.h * z.w + 1));
}

/* ---------------------------------------------------------------------------------------------------- tables ---- */

#define CPU                                                                                                 \
    .name = "cpu", .fits = fits_cpu_class, .layouts = layouts_blocked, .emit = emit, .bf16_inputs = 1 << 0, \
    .bf16_outputs = 1 << 0
#define PLAIN .name = "plain", .emit = emit
#define GLOBAL(class) \
    .name = "global_" #class, .fits = fits_global_##class, .layouts = layouts_global, .emit = emit_global
#define ANY_LAYOUT .any_layout = IN_PLAIN | IN_CHANNELS_LAST

static const struct implementation cpu = { CPU }, cpu_gradient = { CPU, .fusions = FUSED(ADD) },
                                   plain = { PLAIN, ANY_LAYOUT },
                                   max_gradient = { PLAIN, ANY_LAYOUT, .fusions = FUSED(ADD) },
                                   mean_gradient = { PLAIN, .layouts = layouts_gradient, .fusions = FUSED(ADD) },
                                   global_gpu = { GLOBAL(gpu) }, global_cpu = { GLOBAL(cpu), .bf16_inputs = 1 << 0 },
                                   global_gradient = { GLOBAL(cpu), .fusions = FUSED(ADD), .bf16_outputs = 1 << 0 };

const struct implementation *const pool_max[] = { &cpu, &plain, NULL };
const struct implementation *const pool_max_gradient[] = { &cpu_gradient, &max_gradient, NULL };
const struct implementation *const pool_mean[] = { &global_cpu, &global_gpu, &cpu, &plain, NULL };
const struct implementation *const pool_mean_gradient[] = { &global_gradient, &cpu_gradient, &mean_gradient, NULL };
const struct implementation *const pool_adaptive[] = { &cpu, &plain, NULL };
const struct implementation *const pool_adaptive_gradient[] = { &cpu_gradient, &mean_gradient, NULL };
