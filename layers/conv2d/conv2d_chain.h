/* Sums of the weight gradients of convolutions on CPU-class devices. */
#include "sum.h"

/* The most multiply-adds of a chain in registers. Its sum is added to at most CONV2D_CHAINS others (conv2d_cpu.h), or
 * carries its error along. */
#define CONV2D_CHAIN (SUM_CHAIN / 2)
