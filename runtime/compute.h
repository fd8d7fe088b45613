/* What the operands of a product are rounded to before they are multiplied; sums are floats. Values are those of
 * clkernels/compute.h. */
#ifndef RUNTIME_COMPUTE_H
#define RUNTIME_COMPUTE_H

enum compute_type { COMPUTE_FP32, COMPUTE_TF32, COMPUTE_BF16, COMPUTE_FP16, COMPUTE_TYPES };

#endif
