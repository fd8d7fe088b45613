/* x = 0 in the channels from C on of the last block of [N][blocks][HW][V], of floats or of bfloat16 (CLEARED). Launched by
 * layers/elementwise.c with one work-item per image and pixel, in groups of one: get_global_id(0) is the pixel, (1) the
 * image. */
kernel void clear_padding(global CLEARED *x, int blocks, int HW, int C)
{
    const size_t at = ((get_global_id(1) * blocks + blocks - 1) * HW + get_global_id(0)) * V;
    for (int lane = C - (blocks - 1) * V; lane < V; lane++) x[at + lane] = 0;
}
