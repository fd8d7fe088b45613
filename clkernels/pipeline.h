/* Where the operands of gemm_pipelined.cl lie when they are packed, in chunks of 16 bytes: [products][line tiles][steps]
 * [lines of a tile][CHUNKS]. Lines are op(A)'s rows or op(B)'s columns; a step is BK elements of the sum, CHUNKS chunks of a
 * line. Their order changes every other line, so that eight lines of one column of chunks lie in all banks of local memory.
 * What a tile has beyond the matrix is zeros. */
#define TOGETHER 1
#include "compute.h"
#include "tile_product.h"

#define CHUNKS 4
#define SWIZZLED(line, chunk) ((chunk) ^ (line) / 2 % CHUNKS)
