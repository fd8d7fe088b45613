/* Convolution on CPU-class devices: blocked implementations that conv2d.c lists. Activations are blocked (first layers
 * with few channels read the plain image), parameters and their gradients are plain.
 *
 *   bf16_image      up to 4 channels, no dilation, of bfloat16 numbers            conv2d_bf16.c, conv2d_bf16_image.c
 *   bf16            any kernel, stride, padding and dilation, of bfloat16 numbers conv2d_bf16.c
 *   winograd        3x3 of stride 1 or 2, 5x5: F(4x4, 3x3), F(4x4, 5x5)           conv2d_winograd.c and its kin
 *   pointwise       1x1, stride 1 or 2, no padding                                conv2d_pointwise.c
 *   depthwise       groups = input channels = output channels                     conv2d_depthwise.c
 *   winograd_rows   up to 4 channels, 5 to 8 wide, stride 2: F(4, 4) along rows   conv2d_winograd_rows.c
 *   direct          any kernel, stride, padding and dilation                      conv2d_direct.c
 *
 * bf16, winograd and direct take several groups of channels, too; the groups that they refuse go to conv2d_grouped.c.
 * The order in a list: bf16_image, bf16, winograd, pointwise, depthwise, winograd_rows, direct; each refuses what is
 * not its own.
 */
#ifndef LAYERS_CONV2D_CPU_H
#define LAYERS_CONV2D_CPU_H

#include "layers/conv2d/conv2d.h"

/* bf16_image and winograd_rows have no data gradient. */
extern const struct implementation conv2d_bf16_image, conv2d_bf16_image_weight_gradient;
extern const struct implementation conv2d_bf16[CONV2D_PASSES], conv2d_winograd[CONV2D_PASSES],
    conv2d_pointwise[CONV2D_PASSES], conv2d_depthwise[CONV2D_PASSES], conv2d_winograd_rows[CONV2D_PASSES],
    conv2d_direct[CONV2D_PASSES];

/* ------------------------------------------------------------------------------------- shared by these files */

/* Scratch of a task that should stay in a core's second-level cache. */
enum { CONV2D_SCRATCH_BYTES = 480 << 10 };
/* Whether the output bypasses the caches: where the pass has more than STREAM_BYTES (elementwise.h), reads no
 * addition, and a vector fills a line. Two stores for a line cost more than they save: on Zen 3 with AVX2 up to twice
 * the time of a 1x1 or depthwise pass. */
bool conv2d_streams(const struct problem *problem, const struct operands *operands, double bytes);

/* Why none of these implementations takes the problem: the device class, or a size too large for a kernel's int.
 * NULL: they may. */
const char *conv2d_cpu_refusal(const struct problem *problem);
/* Whether an image has so few channels that it is read in the plain layout. */
bool conv2d_cpu_plain_image(int64_t channels);
/* Fusions of each pass. Sigmoid would make padding lanes nonzero, and is fused only where there are none. */
enum {
    CONV2D_CPU_FORWARD = FUSED(ADD) | FUSED(ACTIVATION) | FUSED(STATISTICS),
    CONV2D_CPU_DATA_GRADIENT = FUSED(ADD) | FUSED(MASK) | FUSED(GATE),
    CONV2D_CPU_WEIGHT_GRADIENT = FUSED(ADD)
};
const char *conv2d_cpu_cannot_fuse(const struct problem *problem);
/* Whether statistics of the output can be given: nothing follows the sum but a data gradient's addition before its
 * gate. */
bool conv2d_cpu_statistics(const struct problem *problem);
/* Whether a data gradient's result may lie where its mask lies, each number of which is read for one result. */
bool conv2d_mask_in_place(const struct problem *problem, int input);
/* Images are blocked, parameters plain. */
void conv2d_cpu_layouts(const struct problem *problem, enum value_layout *inputs, enum value_layout *outputs);

/* The kernel's view of a forward or data-gradient pass: from `sources` channels to `results` channels. */
struct conv2d_channels {
    int64_t sources, results, source_blocks, result_blocks;
};
struct conv2d_channels conv2d_channels_of(const struct problem *problem, bool gradient);

/* Groups of channels as the kernels of blocked images compute them: each is a convolution of its own over the blocks
 * that hold its channels. It may begin or end in the middle of a block, and then its results are stored by halves.
 * Narrow groups are merged until they fill a block: the weights between different ones are zeros. One group is all
 * channels. */
struct conv2d_groups {
    int64_t count, merged;                /* groups; the problem's groups in each */
    int64_t sources, results;             /* channels of a group; of a weight gradient, of x and of y */
    int64_t source_blocks, result_blocks; /* that hold a group's channels */
    int64_t all_source_blocks, all_result_blocks;
    bool halves;
};
/* Why these kernels do not take the problem's groups. NULL: they do. */
const char *conv2d_groups_refusal(const struct problem *problem);
struct conv2d_groups conv2d_groups_of(const struct problem *problem, bool gradient);
/* The kernels' option HALVES, where it is not 0. */
const char *conv2d_halves_option(const struct conv2d_groups *groups);
/* Arguments of kernels. */
#define CONV2D_GROUPS_VALUES(g)                                                                                \
    .group_sources = (g)->sources, .group_results = (g)->results, .all_source_blocks = (g)->all_source_blocks, \
    .all_result_blocks = (g)->all_result_blocks

/* Weights packed by layers/conv2d/conv2d_pack_cpu.cl. */
struct conv2d_packing {
    int64_t vectors;      /* NV: blocks of output channels in a panel */
    int64_t padded;       /* source channels, rounded up for the unrolled loop */
    int64_t source_block; /* V, or 1 for a plain image */
    int64_t panels, taps;
    bool bf16; /* of neighbouring source channels, as bfloat16 numbers; of 1x1 alone */
};
size_t conv2d_packing_bytes(const struct problem *problem, const struct conv2d_packing *packing);
void conv2d_packing_emit(const struct problem *problem, const struct operands *operands, struct launch_list *list,
    const struct conv2d_packing *packing, bool gradient);

/* Scratch for each task: local memory, or slices at the beginning of the workspace. */
struct conv2d_scratch {
    bool global;
    size_t bytes; /* of a task; a multiple of 64 */
};
struct conv2d_scratch conv2d_scratch_of(const struct problem *problem, size_t bytes);
/* Tasks to launch for `wanted` of them, which loop over the rest; and workspace bytes of so many tasks. */
int64_t conv2d_scratch_tasks(const struct problem *problem, const struct conv2d_scratch *scratch, int64_t wanted);
/* The same for each of `groups` groups. */
int64_t conv2d_scratch_group_tasks(
    const struct problem *problem, const struct conv2d_scratch *scratch, int64_t wanted, int64_t groups);
size_t conv2d_scratch_workspace(const struct conv2d_scratch *scratch, int64_t tasks);
/* The last two arguments of a kernel with scratch. */
struct scratch_argument conv2d_scratch_argument(const struct conv2d_scratch *scratch, const struct operands *operands);
#define SCRATCH_VALUES(p, operands) \
    .scratch = conv2d_scratch_argument((p), (operands)), .scratch_floats = (int64_t)((p)->bytes / sizeof(float))

/* The most chains of products that a part of a weight gradient adds up: more would round as one chain of numbers does.
 * conv2d_sum carries the parts' errors along. CONV2D_LONGEST_PART: the terms of these chains, if each
 * has CONV2D_CHAIN (conv2d_chain.h). */
enum { CONV2D_CHAINS = 32, CONV2D_LONGEST_PART = CONV2D_CHAINS * 64 };
/* Sums partial weight gradients, [parts][ceil(K/V)][C * R * S][V], from `offset` (floats) on in the workspace. Those
 * of a data gradient go to the output of FUSION_WEIGHTS. */
size_t conv2d_parts_bytes(const struct problem *problem, int64_t parts);
void conv2d_parts_emit(const struct problem *problem, const struct operands *operands, struct launch_list *list,
    int64_t parts, size_t offset);
/* Like conv2d_parts_emit(), but parts are padded to more blocks and elements: [count][blocks][length][V]. */
struct conv2d_parts {
    int64_t count, blocks, length;
    size_t offset;
};
void conv2d_parts_emit_padded(const struct problem *problem, const struct operands *operands, struct launch_list *list,
    const struct conv2d_parts *parts);

/* Vector registers that the accumulators may count on. */
int64_t conv2d_registers(const struct problem *problem);
/* Tasks wanted for so many FLOPs: enough that all units finish together, not so many that launching them costs. */
int64_t conv2d_tasks_wanted(const struct problem *problem, double flops);
/* a / b upwards, b > 0. */
int64_t conv2d_ceiling(int64_t a, int64_t b);
/* A buffer for an argument that the kernel does not use. */
cl_mem conv2d_or(cl_mem buffer, cl_mem fallback);

#endif
