/* Shared by conv2d's implementations "bf16" and "bf16_image". */
#ifndef LAYERS_CONV2D_BF16_H
#define LAYERS_CONV2D_BF16_H

#include "layers/schema/op.h"
#include "runtime/compute.h"

enum { BF16_BLOCK = 16 }; /* channels of a block, rows and columns of a tile */

/* Copies of a number that kernels pack: its parts; of several parts, also the first one with infinity and NaN. */
int bf16_copies(enum compute_type compute);
/* NULL, or why no pass of "bf16_image" takes the problem. */
const char *conv2d_bf16_image_refusal(const struct problem *problem);
/* Returns NULL, or why "bf16_image" is not chosen. The numbers are cycles for a position: of floats' multiply-adds,
 * of the tiles' at the same rate, padding included, and of packing. */
const char *conv2d_bf16_image_passed_over(const struct problem *problem, double floats, double sums, double packing);
void conv2d_bf16_image_layouts(const struct problem *problem, enum value_layout *inputs, enum value_layout *outputs);
/* Tiles of the chains of which a part of a weight gradient is the sum, whose sum and rounding errors need room as well;
 * 0: a part of so many tiles is one chain. */
int64_t conv2d_bf16_chain(const struct problem *problem, int64_t tiles);
void conv2d_bf16_remark(const struct problem *problem, struct text *text);

#endif
