/* A work-group's part of a matrix product on GPU-class devices, as clkernels/tile_product.h computes it: the shapes
 * that products and convolutions choose from. */
#ifndef RUNTIME_TILE_H
#define RUNTIME_TILE_H

#include "runtime/gemm.h"

/* bm x bn results, bk steps at a time; a work-item makes tm x tn of them. */
struct tile {
    int64_t bm, bn, bk, tm, tn;
};

/* Tiles are in the order of choice: from large to small, as large ones reuse more of what they load and small ones
 * keep all units of the device busy; then those for few rows or few columns. */
enum { TILES_SQUARE = 6, TILES = 8 };
/* Fills `list` with the tiles for these instructions and returns their number. MATRIX_NONE, which takes each type,
 * has TILES of them. */
int tile_list(enum matrix_form form, enum compute_type compute, const struct tile *list[TILES]);

int64_t tile_items(const struct tile *tile);
/* Bytes of so many buffers of local memory, whose rows may be padded by four floats. Afterwards the same memory holds
 * nine numbers of each work-item. */
size_t tile_local_bytes(const struct tile *tile, int buffers);
bool tile_fits(const struct tile *tile, int buffers, const struct capabilities *can);

/* Returns why this device has no form of matrix instructions for the type. */
const char *tile_matrix_refusal(enum compute_type compute, const struct capabilities *can);

#define TILE_OPTIONS "-DBM=%d -DBN=%d -DBK=%d -DTM=%d -DTN=%d -DMATRIX=%d -DCOMPUTE=%d"
#define TILE_VALUES(tile, form, compute) \
    (int)(tile)->bm, (int)(tile)->bn, (int)(tile)->bk, (int)(tile)->tm, (int)(tile)->tn, (int)(form), (int)(compute)
enum { TILE_LONG = 1 << 18 };
/* One more option, for a sum of so many steps in parts of so many: a long one is made of chains. They cost registers,
 * so that half as many groups share a processor of NVIDIA's; shorter sums are made of parts alone. Matrix instructions
 * round their operands, and a chain as long as a part costs less than that. */
#define TILE_CHAINS(form, steps, part) \
    ((form) == MATRIX_NONE && ((steps) >= TILE_LONG || (part) > GEMM_LONGEST_PART) ? " -DCHAINED=1" : "")

#endif
