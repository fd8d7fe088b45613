/* Nodes that are matrix products: dense, its gradients and matmul. Their implementations are those of runtime/gemm.h
 * under the same names. */
#ifndef LAYERS_PRODUCT_H
#define LAYERS_PRODUCT_H

#include "graph/operation.h"

/* Implementations of dense and matmul; of data gradients, with a mask; of weight gradients, with sums of dy. */
extern const struct implementation *const product_forward[], *const product_data_gradient[],
                                                                 *const product_weight_gradient[];
double product_flops(const struct problem *problem);
double product_bytes(const struct problem *problem);

#endif
