/* What follows the other arguments of convolutions for GPU-class devices that give statistics. */
#define TILE_STATISTICS_ARGUMENTS(X) X##_BUFFER(global float *, statistics) X##_INT(stride)
