#include "layers/product.h"

#include <stdio.h>

#include "base/memory.h"
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

/* Gives one product where b is one matrix for all and the rows of a's matrices lie below each other. */
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
    struct gemm gemm = problem->node->operation == &operation_matmul ? matmul_sizes(problem) : dense_sizes(problem);
    gemm.compute = problem->compute;
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
    for (int i = 0; i < 2; i++) elements += (double)value_elements(problem->inputs[i]);
    return 4.0 * elements;
}

struct product {
    int choice;
    struct gemm gemm; /* without the fusions */
    struct gemm_design design;
};

static void design_product(const struct problem *problem, int choice, struct product *product)
{
    product->choice = choice;
    product->gemm = product_of(problem);
    product->design = gemm_design(choice, &product->gemm, problem->device);
    product->gemm.design = &product->design;
}

static size_t workspace(const struct problem *problem)
{
    const struct product *product = problem->design;
    return gemm_workspace(product->choice, &product->gemm, problem->device);
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
    /* The product adds by its own means. */
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
    gemm_emit(product->choice, &gemm, a, b, operands->outputs[0], gemm.bias ? operands->inputs[2] : NULL,
        operands->workspace, list);
}

static void remark(const struct problem *problem, struct text *text)
{
    const struct product *product = problem->design;
    if (product->choice == GEMM_BF16)
        remark_bf16(problem->device->bf16[problem->compute].form, bf16_terms(problem->compute), text);
}

/* Defines an implementation for each one of runtime/gemm.h; with further fusions, a form for each operation. */
#define FUNCTIONS(choice, label)                                            \
    static const char *fits_##label(const struct problem *problem)          \
    {                                                                       \
        const struct gemm gemm = product_of(problem);                       \
        return gemm_refusal(choice, &gemm, problem->device);                \
    }                                                                       \
    static void design_##label(const struct problem *problem, void *design) \
    {                                                                       \
        design_product(problem, choice, design);                            \
    }
#define IMPLEMENTATION(label, others)                                                                             \
    .name = #label, .fits = fits_##label, .remark = remark, .fusions = FUSED(ADD) | FUSED(ACTIVATION) | (others), \
    .design_bytes = sizeof(struct product), .design = design_##label, .workspace = workspace, .emit = emit

FUNCTIONS(GEMM_SKINNY, skinny)
FUNCTIONS(GEMM_BF16, bf16)
FUNCTIONS(GEMM_PACKED, packed)
FUNCTIONS(GEMM_PIPELINED, pipelined)
FUNCTIONS(GEMM_MATRIX, matrix)
FUNCTIONS(GEMM_TILED, tiled)
FUNCTIONS(GEMM_CLBLAST, clblast)
FUNCTIONS(GEMM_PLAIN, plain)

static const struct implementation skinny = { IMPLEMENTATION(skinny, 0) }, clblast = { IMPLEMENTATION(clblast, 0) },
                                   plain = { IMPLEMENTATION(plain, 0) }, bf16_forward = { IMPLEMENTATION(bf16, 0) },
                                   bf16_data = { IMPLEMENTATION(bf16, FUSED(MASK)) },
                                   bf16_weights = { IMPLEMENTATION(bf16, FUSED(BIAS)) },
                                   packed_forward = { IMPLEMENTATION(packed, 0) },
                                   packed_data = { IMPLEMENTATION(packed, FUSED(MASK)) },
                                   packed_weights = { IMPLEMENTATION(packed, FUSED(BIAS)) },
                                   pipelined = { IMPLEMENTATION(pipelined, 0) },
                                   pipelined_data = { IMPLEMENTATION(pipelined, FUSED(MASK)) },
                                   matrix = { IMPLEMENTATION(matrix, 0) },
                                   matrix_data = { IMPLEMENTATION(matrix, FUSED(MASK)) },
                                   tiled = { IMPLEMENTATION(tiled, 0) },
                                   tiled_data = { IMPLEMENTATION(tiled, FUSED(MASK)) };

#define IMPLEMENTATIONS(bf16, packed, pipelined, matrix, tiled)                                \
    {                                                                                          \
        &skinny, &(bf16), &(packed), &(pipelined), &(matrix), &(tiled), &clblast, &plain, NULL \
    }
const struct implementation *const product_forward[] =
    IMPLEMENTATIONS(bf16_forward, packed_forward, pipelined, matrix, tiled);
const struct implementation *const product_data_gradient[] =
    IMPLEMENTATIONS(bf16_data, packed_data, pipelined_data, matrix_data, tiled_data);
const struct implementation *const product_weight_gradient[] =
    IMPLEMENTATIONS(bf16_weights, packed_weights, pipelined, matrix, tiled);
