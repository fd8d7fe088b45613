/* Shared by the convolutions for CPU-class devices: refusals, layouts, packed weights, scratch, sums of parts. */
#include "layers/conv2d/conv2d_cpu.h"

#include <stdio.h>

#include "base/memory.h"
#include "layers/conv2d/arguments/conv2d_pack_cpu.h"
#include "layers/conv2d/arguments/conv2d_same_layout.h"
#include "layers/conv2d/arguments/conv2d_sum_cpu.h"
#include "layers/elementwise.h"
#include "layers/epilogue.h"

#include <limits.h>

/* The most groups that are merged: with four, three quarters of the products are of zeros. */
enum { MOST_MERGED = 4 };

/* A kernel counts pixels, rows and vectors in ints. */
static bool countable(double count)
{
    return count < (double)INT_MAX / 2;
}

const char *conv2d_cpu_refusal(const struct problem *problem)
{
    if (problem->device->class != DEVICE_CPU) return "it needs a CPU-class device";
    struct conv2d_sizes z = conv2d_sizes_of(problem);
    double v = problem->device->vector_width;
    double padded_h = (double)z.h + 2.0 * (double)z.padding_h + (double)z.dilation_h * (double)z.r;
    double padded_w = (double)z.w + 2.0 * (double)z.padding_w + (double)z.dilation_w * (double)z.s;
    if (!countable(padded_h * padded_w * v) || !countable((double)z.oh * (double)z.ow * v) ||
        !countable((double)z.n * padded_h * padded_w) || !countable((double)z.n * (double)z.oh * (double)z.ow))
        return "the images have more pixels than 32 bits can count";
    if (!countable((double)(z.c + 64) * (double)(z.k + 64) * (double)z.r * (double)z.s))
        return "there are more weights than 32 bits can count";
    return NULL;
}

bool conv2d_cpu_plain_image(int64_t channels)
{
    return channels <= 4;
}

struct conv2d_channels conv2d_channels_of(const struct problem *problem, bool gradient)
{
    struct conv2d_sizes z = conv2d_sizes_of(problem);
    int64_t v = problem->device->vector_width;
    struct conv2d_channels channels = { .sources = gradient ? z.k : z.c, .results = gradient ? z.c : z.k };
    channels.source_blocks = divide_up(channels.sources, v);
    channels.result_blocks = divide_up(channels.results, v);
    return channels;
}

/* Groups of the problem that are merged into one; 0: none would fill a block. */
static int64_t merged_groups(const struct conv2d_sizes *z, int64_t v)
{
    const int64_t least = z->c_group < z->k_group ? z->c_group : z->k_group;
    if (z->groups == 1 || least >= v) return 1;
    return v % least == 0 && v / least <= MOST_MERGED && z->groups % (v / least) == 0 ? v / least : 0;
}

/* The channels from which on a group may begin: of half a block, and of one step of Winograd's products. */
static int64_t half_block(int64_t v)
{
    return v > 8 ? v / 2 : 4;
}

const char *conv2d_groups_refusal(const struct problem *problem)
{
    const struct conv2d_sizes z = conv2d_sizes_of(problem);
    const int64_t v = problem->device->vector_width, half = half_block(v), merged = merged_groups(&z, v);
    if (z.groups == 1) return NULL;
    if (merged == 0) return "the groups are narrow and do not fill blocks of channels";
    if (z.c_group * merged % half != 0 || z.k_group * merged % half != 0)
        return "the groups do not begin at a block of channels or at half of one";
    return NULL;
}

struct conv2d_groups conv2d_groups_of(const struct problem *problem, bool gradient)
{
    const struct conv2d_sizes z = conv2d_sizes_of(problem);
    const int64_t v = problem->device->vector_width, merged = merged_groups(&z, v);
    const int64_t sources = gradient ? z.k_group : z.c_group, results = gradient ? z.c_group : z.k_group;
    struct conv2d_groups groups = { .merged = merged > 0 ? merged : 1 };
    groups.count = z.groups / groups.merged;
    groups.sources = sources * groups.merged;
    groups.results = results * groups.merged;
    groups.source_blocks = divide_up(groups.sources, v);
    groups.result_blocks = divide_up(groups.results, v);
    groups.all_source_blocks = divide_up(gradient ? z.k : z.c, v);
    groups.all_result_blocks = divide_up(gradient ? z.c : z.k, v);
    groups.halves = groups.count > 1 && (groups.sources % v != 0 || groups.results % v != 0);
    return groups;
}

const char *conv2d_halves_option(const struct conv2d_groups *groups)
{
    return groups && groups->halves ? "-DHALVES=1" : "";
}

const char *conv2d_cpu_cannot_fuse(const struct problem *problem)
{
    const bool sigmoid = node_function(problem->node, FUSION_ACTIVATION).activation == ACTIVATION_SIGMOID;
    const bool padding = problem->outputs[0]->shape.sizes[CHANNEL_AXIS] % problem->device->vector_width != 0;
    return padding && sigmoid ? "sigmoid would make padding other than zero" : NULL;
}

bool conv2d_cpu_statistics(const struct problem *problem)
{
    return !node_fusion(problem->node, FUSION_ACTIVATION) && (!problem->add || conv2d_is_data_gradient(problem));
}

bool conv2d_mask_in_place(const struct problem *problem, int input)
{
    const struct fusion *mask = node_fusion(problem->node, FUSION_MASK);
    return mask && input == mask->input;
}

void conv2d_cpu_layouts(const struct problem *problem, enum value_layout *inputs, enum value_layout *outputs)
{
    bool weights = conv2d_is_weight_gradient(problem);
    inputs[0] = LAYOUT_BLOCKED;
    inputs[1] = weights ? LAYOUT_BLOCKED : LAYOUT_PLAIN;
    fused_layouts(problem->node, LAYOUT_BLOCKED, inputs);
    outputs[0] = weights ? LAYOUT_PLAIN : LAYOUT_BLOCKED;
}

/* ------------------------------------------------------------------------------------------------ packed weights */

size_t conv2d_packing_bytes(const struct problem *problem, const struct conv2d_packing *packing)
{
    size_t panel = (size_t)(packing->vectors * problem->device->vector_width) * sizeof(float);
    const int64_t groups = conv2d_groups_of(problem, false).count;
    return (size_t)(groups * packing->panels) * panel * (size_t)(packing->padded * packing->taps + 1);
}

ARGUMENTS(pack, PACK_ARGUMENTS)
ARGUMENTS(pair, PAIR_ARGUMENTS)

void conv2d_packing_emit(const struct problem *problem, const struct operands *operands, struct launch_list *list,
    const struct conv2d_packing *packing, bool gradient)
{
    struct conv2d_sizes z = conv2d_sizes_of(problem);
    const struct conv2d_groups groups = conv2d_groups_of(problem, gradient);
    cl_mem bias = gradient ? NULL : operands->inputs[2];
    struct launch *launch = launch_add(list, "conv2d_pack_cpu", gradient ? "pack_gradient" : "pack_forward",
        "-DNV=%d -DSV=%d -DHAS_BIAS=%d %s", (int)packing->vectors, (int)packing->source_block, bias != NULL,
        conv2d_halves_option(&groups));
    ARGUMENTS_SET(launch, pack, .w = operands->inputs[1], .bias = conv2d_or(bias, operands->inputs[1]),
        .packed = operands->prepared, .C = gradient ? groups.results : groups.sources,
        .K = gradient ? groups.sources : groups.results, .taps = packing->taps, .padded = packing->padded,
        .merged = groups.merged);
    int64_t chunks = divide_up(groups.sources, problem->device->vector_width);
    launch_tasks(launch, (size_t)(gradient ? packing->panels : chunks), (size_t)(gradient ? chunks : packing->panels),
        (size_t)groups.count);
    launch_work(launch, 0, 8.0 * (double)(z.c_group * z.k * packing->taps));
    if (!packing->bf16) return;
    launch = launch_add(list, "conv2d_pack_cpu", "pair", "-DNV=%d -DSV=%d -DHAS_BIAS=%d", (int)packing->vectors,
        (int)packing->source_block, bias != NULL);
    ARGUMENTS_SET(launch, pair, .packed = operands->prepared, .panels = packing->panels, .padded = packing->padded);
    launch_tasks(launch, (size_t)chunks, (size_t)packing->panels, 1);
    launch_work(launch, 0, 6.0 * (double)(z.c * z.k));
}

/* ------------------------------------------------------------------------------------------------------- scratch */

struct conv2d_scratch conv2d_scratch_of(const struct problem *problem, size_t bytes)
{
    struct conv2d_scratch scratch = { .bytes = size_round_up(bytes, 64) };
    scratch.global = scratch.bytes > problem->device->local_bytes;
    return scratch;
}

int64_t conv2d_scratch_tasks(const struct problem *problem, const struct conv2d_scratch *scratch, int64_t wanted)
{
    int64_t most = 8 * (int64_t)problem->device->units;
    return scratch->global && wanted > most ? most : wanted;
}

int64_t conv2d_scratch_group_tasks(
    const struct problem *problem, const struct conv2d_scratch *scratch, int64_t wanted, int64_t groups)
{
    const int64_t most = divide_up(8 * (int64_t)problem->device->units, groups);
    return scratch->global && wanted > most ? most : wanted;
}

size_t conv2d_scratch_workspace(const struct conv2d_scratch *scratch, int64_t tasks)
{
    return scratch->global ? scratch->bytes * (size_t)tasks : 0;
}

struct scratch_argument conv2d_scratch_argument(const struct conv2d_scratch *scratch, const struct operands *operands)
{
    return (
        struct scratch_argument) { .buffer = scratch->global ? operands->workspace : NULL, .bytes = scratch->bytes };
}

/* --------------------------------------------------------------------------------------- parts of weight gradients */

size_t conv2d_parts_bytes(const struct problem *problem, int64_t parts)
{
    struct conv2d_sizes z = conv2d_sizes_of(problem);
    int64_t v = problem->device->vector_width;
    return (size_t)(parts * divide_up(z.k, v) * v) * (size_t)(z.c_group * z.r * z.s) * sizeof(float);
}

ARGUMENTS(sum, SUM_ARGUMENTS)

static void sum_parts(const struct problem *problem, struct launch_list *list, cl_mem from,
    const struct conv2d_parts *parts, const struct node *node, cl_mem add, cl_mem to)
{
    struct conv2d_sizes z = conv2d_sizes_of(problem);
    int64_t v = problem->device->vector_width, blocks = divide_up(z.k, v), length = z.c_group * z.r * z.s;
    int64_t chunks = divide_up(4 * (int64_t)problem->device->units, blocks);
    int64_t share = divide_up(divide_up(length, chunks), v) * v;
    char epilogue[EPILOGUE_OPTIONS];
    struct launch *launch =
        launch_add(list, "conv2d_sum_cpu", "conv2d_sum", "%s", epilogue_options(node, epilogue, sizeof epilogue));
    ARGUMENTS_SET(launch, sum, .workspace = from, .offset = (int64_t)parts->offset, .add = conv2d_or(add, to), .dw = to,
        .K = z.k, .length = length, .part_blocks = parts->blocks, .part_length = parts->length, .parts = parts->count,
        .share = share);
    launch_tasks(launch, (size_t)blocks, (size_t)divide_up(length, share), 1);
    const double numbers = (double)(z.k * length);
    launch_work(launch, (double)parts->count * numbers, 4.0 * (double)(parts->count + 1) * numbers);
}

void conv2d_parts_emit_padded(const struct problem *problem, const struct operands *operands, struct launch_list *list,
    const struct conv2d_parts *parts)
{
    if (conv2d_is_data_gradient(problem))
        sum_parts(problem, list, operands->workspace, parts, NULL, NULL,
            fused_output_buffer(problem, operands, FUSION_WEIGHTS));
    else
        sum_parts(problem, list, operands->workspace, parts, problem->node, operands->add, operands->outputs[0]);
}

void conv2d_parts_emit(const struct problem *problem, const struct operands *operands, struct launch_list *list,
    int64_t parts, size_t offset)
{
    struct conv2d_sizes z = conv2d_sizes_of(problem);
    const int64_t blocks = divide_up(z.k, problem->device->vector_width);
    conv2d_parts_emit_padded(
        problem, operands, list, &(struct conv2d_parts) { parts, blocks, z.c_group * z.r * z.s, offset });
}

/* -------------------------------------------------------------------------------------------------------- choices */

int64_t conv2d_registers(const struct problem *problem)
{
    return problem->device->vector_width == 16 ? 32 : 16;
}

enum { LINE_BYTES = 64 };

bool conv2d_streams(const struct problem *problem, const struct operands *operands, double bytes)
{
    size_t vector = (size_t)problem->device->vector_width * value_type_bytes(problem->outputs[0]->type);
    return vector >= LINE_BYTES && !operands->add && bytes > STREAM_BYTES;
}

int64_t conv2d_tasks_wanted(const struct problem *problem, double flops)
{
    int64_t most = 8 * (int64_t)problem->device->units, useful = (int64_t)(flops / 1e6); /* 1e6: some 5 us */
    return useful < 1 ? 1 : useful < most ? useful : most;
}

int64_t conv2d_ceiling(int64_t a, int64_t b)
{
    return a > 0 ? (a + b - 1) / b : -(-a / b);
}

cl_mem conv2d_or(cl_mem buffer, cl_mem fallback)
{
    return buffer ? buffer : fallback;
}
