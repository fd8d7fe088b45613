/* Arguments that follow the others in convolutions for GPU-class devices that give statistics. */
#define TILE_STATISTICS_ARGUMENTS(X) X##_BUFFER(global float *, statistics) X##_INT(stride)
