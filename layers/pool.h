/* What pooling's operations share: sizes, shapes, build options. */
#ifndef LAYERS_POOL_H
#define LAYERS_POOL_H

#include "graph/operation.h"

/* x [n, c, h, w], y [n, c, oh, ow]; from forward and gradient nodes alike. */
struct pool_sizes {
    int64_t n, c, h, w, oh, ow;
};
struct pool_sizes pool_sizes_of(const struct problem *problem);

/* The output of a window that slides (not adaptive): x's shape with the last two sizes replaced. */
tutti_status pool_shape(
    const char *name, const struct attributes *attributes, const struct value *x, tutti_shape *shape);
/* attributes.shape of a gradient node as its output. */
tutti_status pool_infer_gradient(const struct graph *graph, struct node *node, struct value *outputs);

/* A launch of a kernel of pool_cpu.cl or pool_plain.cl with all sizes as options, and `more` of them. */
struct launch *pool_launch(
    const struct problem *problem, struct launch_list *list, const char *source, const char *kernel, const char *more);
/* Tasks of pool_cpu.cl: (channel blocks, images, parts of `rows`); work: floats read and written. */
void pool_tasks(struct launch *launch, const struct problem *problem, int64_t rows);
/* Work-items of pool_plain.cl: one for each of `floats`, which is also the kernel's last argument. */
void pool_items(struct launch *launch, const struct problem *problem, int64_t floats);
/* " -DSTREAM=1" where an output of this many floats does not stay in the cache. */
const char *pool_stream(int64_t floats);
/* Whether the problem is one of pool_cpu.cl, whose values are all blocked; else of pool_plain.cl. */
bool pool_is_blocked(const struct problem *problem);
/* x and y (dy, dx) blocked. */
void pool_layouts_blocked(const struct problem *problem, enum value_layout *inputs, enum value_layout *outputs);
unsigned pool_epilogues_of_gradient(const struct problem *problem);
double pool_flops(const struct problem *problem);

/* Both implementations of windows, without emit. */
#define POOL_CPU                                                                                   \
    .name = "cpu", .fits = fits_cpu_class, .layouts = pool_layouts_blocked, .bf16_inputs = 1 << 0, \
    .bf16_outputs = 1 << 0
#define POOL_PLAIN .name = "plain", .fits = fits_everything

#endif
