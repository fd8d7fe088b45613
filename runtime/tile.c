#include "runtime/tile.h"

static const struct tile plain[TILES] = {
    { 128, 128, 8, 8, 8 },
    { 64, 128, 8, 4, 8 },
    { 64, 64, 16, 4, 4 },
    { 32, 64, 16, 4, 4 },
    { 32, 32, 16, 4, 4 },
    { 16, 32, 16, 4, 4 },
    { 8, 128, 8, 4, 4 },
    { 128, 8, 8, 4, 4 },
};

/* Each form of instructions takes some of them. */
static const struct tile of_matrices[TILES] = {
    { 128, 128, 8, 8, 8 },
    { 128, 64, 16, 8, 4 },
    { 64, 64, 16, 8, 4 },
    { 32, 64, 16, 8, 4 },
    { 32, 64, 16, 4, 4 },
};

/* What clkernels/matrix_product.h calls ROWS, COLUMNS, ROWS_EACH, COLUMNS_EACH and DEPTH; 0: not for this type. */
static const struct instruction {
    int rows, columns, rows_each, columns_each, depth[COMPUTE_TYPES];
} instructions[MATRIX_FORMS] = {
    [MATRIX_MMA] = { 16, 8, 2, 2, { [COMPUTE_TF32] = 8, [COMPUTE_BF16] = 16, [COMPUTE_FP16] = 16 } },
    [MATRIX_MMA_LDMATRIX] = { 16, 8, 2, 2, { [COMPUTE_BF16] = 16, [COMPUTE_FP16] = 16 } },
    [MATRIX_MFMA] = { 16, 16, 4, 1, { [COMPUTE_BF16] = 16, [COMPUTE_FP16] = 16 } },
    [MATRIX_WMMA] = { 16, 16, 8, 1, { [COMPUTE_BF16] = 16, [COMPUTE_FP16] = 16 } },
    [MATRIX_MAD_16] = { 8, 16, 8, 1, { [COMPUTE_BF16] = 16, [COMPUTE_FP16] = 16 } },
    [MATRIX_MAD_8] = { 8, 8, 8, 1, { [COMPUTE_BF16] = 16, [COMPUTE_FP16] = 16 } },
};

/* Whether a subgroup's instructions fill its part of the tile, and the parts fill the tile. */
static bool takes(const struct instruction *in, enum compute_type compute, const struct tile *tile)
{
    if (!in->depth[compute] || !tile->bm || tile->tm % in->rows_each || tile->tn % in->columns_each) return false;
    const int64_t rows = tile->tm / in->rows_each * in->rows, columns = tile->tn / in->columns_each * in->columns;
    return tile->bm % rows == 0 && tile->bn % columns == 0 && tile->bk % in->depth[compute] == 0;
}

int tile_list(enum matrix_form form, enum compute_type compute, const struct tile *list[TILES])
{
    int count = 0;
    for (int i = 0; i < TILES; i++)
        if (form == MATRIX_NONE)
            list[count++] = &plain[i];
        else if (takes(&instructions[form], compute, &of_matrices[i]))
            list[count++] = &of_matrices[i];
    return count;
}

int64_t tile_items(const struct tile *tile)
{
    return tile->bm / tile->tm * (tile->bn / tile->tn);
}

size_t tile_local_bytes(const struct tile *tile, int buffers)
{
    const int64_t tiles = buffers * tile->bk * (tile->bm + tile->bn + 8), sums = 9 * tile_items(tile);
    return (size_t)(tiles > sums ? tiles : sums) * sizeof(float);
}

bool tile_fits(const struct tile *tile, int buffers, const struct capabilities *can)
{
    return (size_t)tile_items(tile) <= can->group_max && tile_local_bytes(tile, buffers) <= can->local_bytes;
}

const char *tile_matrix_refusal(enum compute_type compute, const struct capabilities *can)
{
    if (can->class != DEVICE_GPU) return "it needs a GPU-class device";
    if (compute == COMPUTE_FP32) return "matrix instructions round their operands, which --precision fp32 forbids";
    const char *refusal = can->matrix[compute].refusal;
    return refusal ? refusal : "no matrix instructions passed their check on this device";
}
