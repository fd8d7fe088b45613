/* reorder for GPU-class devices between [N][C][pixels] and [N][pixels][C]: each image is a matrix that is transposed.
 *
 *   tiles   y[n][column][row] = x[n][row][column]; groups of TILE x TILE work-items, (columns, rows, N), through local
 *           memory, so that both sides are read and written along their rows. TYPE: uint for 32 bits, uchar for 8.
 *
 * Launched by layers/reorder.c. */
__attribute__((reqd_work_group_size(TILE, TILE, 1))) kernel void tiles(
    global const TYPE *restrict x, global TYPE *restrict y, int rows, int columns)
{
    local TYPE tile[TILE][TILE + 1];
    const int i = get_local_id(0), j = get_local_id(1), row = get_group_id(1) * TILE, column = get_group_id(0) * TILE;
    const size_t image = (size_t)get_group_id(2) * rows * columns;
    if (row + j < rows && column + i < columns) tile[j][i] = x[image + (size_t)(row + j) * columns + column + i];
    barrier(CLK_LOCAL_MEM_FENCE);
    if (column + j < columns && row + i < rows) y[image + (size_t)(column + j) * rows + row + i] = tile[i][j];
}
