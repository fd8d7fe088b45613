/* The nodes that are matrix products, dense, its gradients and matmul: their implementations are those of
 * runtime/gemm.h under the same names. */
#ifndef LAYERS_PRODUCT_H
#define LAYERS_PRODUCT_H

#include "graph/operation.h"

/* Of dense and matmul; of gradients whose result may go behind an activation; of gradients that can also sum dy. */
extern const struct implementation *const product_forward[], *const product_data_gradient[],
                                                                 *const product_weight_gradient[];
double product_flops(const struct problem *problem);
double product_bytes(const struct problem *problem);

#endif
