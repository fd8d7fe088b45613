#include "layers/product.h"

#include <stdio.h>

#include "graph/stored.h"
#include "layers/elementwise.h"
#include "layers/epilogue.h"
#include "layers/layers.h"
#include "layers/remark.h"
#include "runtime/gemm.h"
#include "runtime/matrix.h"

/* y [rows, units] = x [rows, features] W^T;  dx = dy W;  dW [units, features] = dy^T x */
static struct gemm dense_sizes(const struct problem *problem)
{
    const struct operation *operation = problem->node->operation;
    const struct value *in0 = problem->inputs[0], *in1 = problem->inputs[1];
    const int64_t rows = value_elements(in0) / value_size(in0, 0);
    struct gemm gemm = { .m = rows, .n = value_size(problem->outputs[0], 0), .k = value_size(in0, 0), .batch = 1 };
    if (operation == &operation_dense) {
        gemm.transpose_b = true;
        gemm.bias = problem->inputs[2] != NULL;
    } else if (operation == &operation_dense_weight_gradient) {
        gemm = (struct gemm) {
            .m = value_size(in1, 0), .n = value_size(in0, 0), .k = rows, .batch = 1, .transpose_a = true
        };
    }
    return gemm;
}

/* Describes one product, not one for each index, if all share one matrix b and the rows of a's matrices are contiguous.
 */
static struct gemm matmul_sizes(const struct problem *problem)
{
    const struct matmul_attributes *attributes = matmul_attributes(problem->node);
    const struct value *a = problem->inputs[0], *b = problem->inputs[1], *y = problem->outputs[0];
    struct gemm gemm = {
        .m = value_size(y, 1),
        .n = value_size(y, 0),
        .k = value_size(a, attributes->transpose_a),
        .transpose_a = attributes->transpose_a,
        .transpose_b = attributes->transpose_b,
    };
    const int64_t of_a = gemm.m * gemm.k, of_b = gemm.k * gemm.n, of_y = gemm.m * gemm.n;
    gemm.batch = value_elements(y) / of_y;
    if (value_elements(b) == of_b && !gemm.transpose_a) {
        gemm.m *= gemm.batch;
        gemm.batch = 1;
    } else if (gemm.batch > 1) {
        gemm.a.stride = value_elements(a) == of_a ? 0 : of_a;
        gemm.b.stride = value_elements(b) == of_b ? 0 : of_b;
        gemm.c.stride = of_y;
    }
    return gemm;
}

/* Returns the product without the fusions. */
static struct gemm product_of(const struct problem *problem)
{
    const bool is_matmul = problem->node->operation == &operation_matmul;
    struct gemm gemm = is_matmul ? matmul_sizes(problem) : dense_sizes(problem);
    const bool is_full = is_matmul && matmul_attributes(problem->node)->full_precision;
    gemm.compute = is_full ? COMPUTE_FP32 : problem->compute;
    const struct value *w = problem->inputs[1];
    if (w->type == TYPE_BF16) gemm.stored = GEMM_BF16;
    if (w->type == TYPE_INT8) {
        gemm.stored = GEMM_INT8;
        gemm.b.ld = (int64_t)stored_row_bytes(TYPE_INT8, value_size(w, 0));
    }
    return gemm;
}

double product_flops(const struct problem *problem)
{
    const struct gemm gemm = product_of(problem);
    return 2.0 * (double)gemm.m * (double)gemm.n * (double)gemm.k * (double)gemm.batch;
}

double product_bytes(const struct problem *problem)
{
    double elements = (double)value_elements(problem->outputs[0]);
    return 4.0 * (elements + (double)value_elements(problem->inputs[0])) + (double)value_bytes(problem->inputs[1], 1);
}

struct product {
    const struct gemm_implementation *implementation;
    struct gemm gemm; /* without the fusions */
    struct gemm_design design;
};

static void design_product(
    const struct problem *problem, const struct gemm_implementation *implementation, struct product *product)
{
    product->implementation = implementation;
    product->gemm = product_of(problem);
    product->design = gemm_design(implementation, &product->gemm, problem->device);
    product->gemm.design = &product->design;
}

static size_t workspace(const struct problem *problem)
{
    const struct product *product = problem->design;
    return gemm_workspace(product->implementation, &product->gemm, problem->device);
}

static void emit(const struct problem *problem, const struct operands *operands, struct launch_list *list)
{
    const struct operation *operation = problem->node->operation;
    const struct product *product = problem->design;
    struct gemm gemm = product->gemm;
    const struct node *node = problem->node;
    const struct nonlinearity function = node_function(node, FUSION_ACTIVATION);
    char options[EPILOGUE_OPTIONS], masking[EPILOGUE_OPTIONS];
    if (operands->add) {
        gemm.accumulate = true;
        gemm.add = operands->add;
    }
    /* FUSION_ADD is gemm.accumulate, not an option. */
    if (function.activation) gemm.activation = epilogue_options_with(NULL, function, options, sizeof options);
    cl_mem a = operands->inputs[0], b = operands->inputs[1];
    if (operation == &operation_dense_weight_gradient) {
        a = operands->inputs[1];
        b = operands->inputs[0];
        gemm.sums = fused_output_buffer(problem, operands, FUSION_BIAS);
    } else if (operation == &operation_dense_data_gradient) {
        gemm.mask = fused_input_buffer(problem, operands, FUSION_MASK, 0);
        gemm.masking = mask_options(node_function(node, FUSION_MASK), masking, sizeof masking);
    }
    gemm_emit(product->implementation, &gemm, a, b, operands->outputs[0], gemm.bias ? operands->inputs[2] : NULL,
        operands->workspace, list);
}

static void remark(const struct problem *problem, struct text *text)
{
    const struct product *product = problem->design;
    if (product->implementation == &gemm_bf16)
        remark_bf16(problem->device->bf16[product->gemm.compute].form, bf16_terms(product->gemm.compute), text);
}

/* An implementation for each one of runtime/gemm.h: its functions, and its forms for the operations, which differ in
 * their fusions. */
#define FUNCTIONS(label, ...)                                               \
    static const char *fits_##label(const struct problem *problem)          \
    {                                                                       \
        const struct gemm gemm = product_of(problem);                       \
        return gemm_refusal(&gemm_##label, &gemm, problem->device);         \
    }                                                                       \
    static void design_##label(const struct problem *problem, void *design) \
    {                                                                       \
        design_product(problem, &gemm_##label, design);                     \
    }
GEMM_IMPLEMENTATIONS(FUNCTIONS)

#define IMPLEMENTATION(label, others)                         \
    &(const struct implementation) { .name = #label,          \
        .fits = fits_##label,                                 \
        .remark = remark,                                     \
        .fusions = FUSED(ADD) | FUSED(ACTIVATION) | (others), \
        .design_bytes = sizeof(struct product),               \
        .design = design_##label,                             \
        .workspace = workspace,                               \
        .emit = emit },
#define FORWARD(label, ...) IMPLEMENTATION(label, 0)
#define DATA_GRADIENT(label, masks, sums) IMPLEMENTATION(label, (masks)*FUSED(MASK))
#define WEIGHT_GRADIENT(label, masks, sums) IMPLEMENTATION(label, (sums)*FUSED(BIAS))

const struct implementation *const product_forward[] = { GEMM_IMPLEMENTATIONS(FORWARD) NULL };
const struct implementation *const product_data_gradient[] = { GEMM_IMPLEMENTATIONS(DATA_GRADIENT) NULL };
const struct implementation *const product_weight_gradient[] = { GEMM_IMPLEMENTATIONS(WEIGHT_GRADIENT) NULL };
