/* The table of all operations. */
#include "layers/dft/dft.h"
#include "layers/layers.h"
#include "layers/lines.h"
#include "layers/loop/loop.h"

const struct structural_operations structural = {
    .sum = &operation_add,
    .scale = &operation_scale,
    .copy = &operation_copy,
    .total = &operation_loss_total,
    .reorder = &operation_reorder,
    .floats = &operation_floats,
    .loop = &operation_loop,
};

#define ADDRESS(name, ...) &operation_##name,

const struct operation *const operations[] = { OPERATIONS(ADDRESS) NULL };
