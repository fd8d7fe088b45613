/* Matrices that are stored in fewer bits than floats: frozen parameters for which tutti_store() was called.
 *
 *   TYPE_BF16  bfloat16 numbers, to the nearest, ties to even
 *   TYPE_INT8  for each row, its numbers as bytes, filled up to a multiple of 4, and a float for each STORED_BLOCK of
 *              them, the scale: a number is byte * scale. The scale is the block's largest magnitude / 127, rounded up
 *              to 16 bits, so that products with a byte are exact and storing them again changes nothing. If the block
 *              has an infinity or NaN, the scale is NaN.
 *
 * A row is the last axis. clkernels/stored.h reads both. */
#ifndef GRAPH_STORED_H
#define GRAPH_STORED_H

#include "graph/graph.h"

enum { STORED_BLOCK = 64 };

/* Bytes of a row of so many numbers: of TYPE_F32, TYPE_BF16 or TYPE_INT8. */
size_t stored_row_bytes(enum value_type type, int64_t length);
/* Writes `count` numbers of a row of `length`, from `first` on, a multiple of STORED_BLOCK; so is the count unless they
 * are the last ones. */
void stored_write(enum value_type type, int64_t length, int64_t first, int64_t count, const float *from, void *row);
/* Reads whole rows. */
void stored_read(enum value_type type, int64_t rows, int64_t length, const void *from, float *to);

#endif
