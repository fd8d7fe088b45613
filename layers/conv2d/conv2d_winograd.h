/* Shared by the passes of conv2d by Winograd on CPU-class devices: F(4x4, 3x3), stride 1 or 2; F(4x4, 5x5), stride
 * 1. */
#ifndef LAYERS_CONV2D_WINOGRAD_H
#define LAYERS_CONV2D_WINOGRAD_H

#include "layers/conv2d/conv2d_cpu.h"

/* How layers/conv2d/winograd.h divides a problem. The data gradient is a forward pass with another padding and, with a
 * stride of 2, other tiles. */
struct winograd_tiles {
    int64_t taps, stride;            /* R */
    int64_t numbers, kernel_numbers; /* of a transformed tile, each a product for each pair of channels; of a kernel */
    int64_t side;                    /* of a tile of results */
    int64_t source_h, source_w, result_h, result_w, padding_h, padding_w;
    int64_t rows, columns, count;
    int64_t T, chunks; /* tiles at a time, and how many times: the pass's choice */
};

/* The most bytes of transformed weights that are kept in memory. */
enum { WINOGRAD_KEPT_BYTES = 10 << 20 };

/* Why Winograd's algorithm does not fit the problem; NULL: it fits. */
const char *winograd_fits(const struct problem *problem);
/* Returns the tiles without T and chunks, which the pass chooses. */
struct winograd_tiles winograd_tiles_of(const struct problem *problem, bool gradient);
/* FLOPs of the products; conv2d_flops() counts those of the direct sum. */
double winograd_flops(const struct problem *problem);

/* Adds a launch of conv2d_winograd_prepare_cpu.cl. `gradient`, `bias`, `groups`: where the kernel looks at them, else
 * false and NULL. */
struct launch *winograd_add_preparation(struct launch_list *list, const struct winograd_tiles *tiles, int64_t vectors,
    const char *kernel, bool gradient, bool bias, const struct conv2d_groups *groups);
/* Arguments of kernels that go over tiles. */
#define WINOGRAD_TILES_VALUES(p)                                                                                     \
    .source_height = (p)->source_h, .source_width = (p)->source_w, .result_height = (p)->result_h,                   \
    .result_width = (p)->result_w, .padding_h = (p)->padding_h, .padding_w = (p)->padding_w, .tile_rows = (p)->rows, \
    .tile_columns = (p)->columns, .tiles = (p)->count, .T = (p)->T

/* All sources, transformed once into the workspace, in slices of `slice` channels. */
struct winograd_sources {
    int64_t blocks, slice;
    size_t floats, from; /* from: floats into the workspace */
};
void winograd_emit_sources(const struct operands *operands, struct launch_list *list,
    const struct winograd_tiles *tiles, int64_t vectors, const struct winograd_sources *sources);

/* The weight gradient, of which this is the design. */
struct winograd_weights {
    struct conv2d_sizes z;
    struct conv2d_groups groups;
    struct winograd_tiles tiles;
    int64_t tiles_split, splits;
    int64_t vectors, channels;       /* NV, CT */
    int64_t task_c, task_k;          /* blocks of a task */
    int64_t c_tasks, k_tasks, tasks; /* tasks: that are launched */
    struct conv2d_scratch scratch;
    size_t parts_from; /* floats into the workspace */
    bool deep;         /* all tiles are transformed once; then: */
    int64_t c_blocks, panels, panels_max;
    size_t gradients_from, products_from; /* floats into the workspace, which begins with the sources */
    size_t deep_bytes;
};
void winograd_design_weight_gradient(const struct problem *problem, void *design);
size_t winograd_weight_gradient_workspace(const struct problem *problem);
void winograd_emit_weight_gradient(
    const struct problem *problem, const struct operands *operands, struct launch_list *list);

#endif
