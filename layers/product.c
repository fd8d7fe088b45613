#include "layers/product.h"

#include <stdio.h>

#include "base/memory.h"
#include "layers/elementwise.h"
#include "layers/epilogue.h"
#include "layers/layers.h"
#include "runtime/gemm.h"

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

/* One product where b is the same for all and the rows of a's matrices lie below each other. */
static struct gemm matmul_sizes(const struct problem *problem)
{
    const struct attributes *attributes = &problem->node->attributes;
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
        gemm.stride_a = value_elements(a) == of_a ? 0 : of_a;
        gemm.stride_b = value_elements(b) == of_b ? 0 : of_b;
        gemm.stride_c = of_y;
    }
    return gemm;
}

/* Without the epilogue. */
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

/* The options of clkernels/derivative.h for the activation behind which a data gradient goes. */
static const char *masking_options(const struct attributes *a, char *buffer, size_t size)
{
    snprintf(buffer, size, "-DMASK=%d", (int)a->activation);
    epilogue_append_bounds(buffer, size, a->activation, a->low, a->high);
    return buffer;
}

struct product {
    int choice;
    struct gemm gemm; /* without the epilogue */
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
    struct epilogue epilogue = problem->node->epilogue;
    char options[EPILOGUE_OPTIONS], masking[EPILOGUE_OPTIONS];
    if (operands->add) {
        gemm.accumulate = true;
        gemm.add = operands->add;
    }
    epilogue.add = NO_VALUE; /* the product adds by its own means */
    if (epilogue.activation != ACTIVATION_NONE) gemm.activation = epilogue_options(&epilogue, options, sizeof options);
    cl_mem a = operands->inputs[0], b = operands->inputs[1];
    if (operation == &operation_dense_weight_gradient) {
        a = operands->inputs[1];
        b = operands->inputs[0];
        gemm.sums = operands->outputs[SUM_OUTPUT];
    } else if (operation == &operation_dense_data_gradient) {
        gemm.mask = operands->inputs[MASK_INPUT];
        gemm.masking = masking_options(&problem->node->attributes, masking, sizeof masking);
    }
    gemm_emit(product->choice, &gemm, a, b, operands->outputs[0], gemm.bias ? operands->inputs[2] : NULL,
        operands->workspace, list);
}

/* An implementation for each of the matrix product's; of those that do more, a form for each operation. */
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
#define IMPLEMENTATION(label)                                                                                 \
    .name = #label, .fits = fits_##label, .epilogues = epilogues_all, .design_bytes = sizeof(struct product), \
    .design = design_##label, .workspace = workspace, .emit = emit

FUNCTIONS(GEMM_SKINNY, skinny)
FUNCTIONS(GEMM_PACKED, packed)
FUNCTIONS(GEMM_PIPELINED, pipelined)
FUNCTIONS(GEMM_MATRIX, matrix)
FUNCTIONS(GEMM_TILED, tiled)
FUNCTIONS(GEMM_CLBLAST, clblast)
FUNCTIONS(GEMM_PLAIN, plain)

static const struct implementation skinny = { IMPLEMENTATION(skinny) }, clblast = { IMPLEMENTATION(clblast) },
                                   plain = { IMPLEMENTATION(plain) }, packed_forward = { IMPLEMENTATION(packed) },
                                   packed_data = { IMPLEMENTATION(packed), .fusions = FUSED_MASK },
                                   packed_weights = { IMPLEMENTATION(packed), .fusions = FUSED_BIAS },
                                   pipelined = { IMPLEMENTATION(pipelined) },
                                   pipelined_data = { IMPLEMENTATION(pipelined), .fusions = FUSED_MASK },
                                   matrix = { IMPLEMENTATION(matrix) },
                                   matrix_data = { IMPLEMENTATION(matrix), .fusions = FUSED_MASK },
                                   tiled = { IMPLEMENTATION(tiled) },
                                   tiled_data = { IMPLEMENTATION(tiled), .fusions = FUSED_MASK };

#define IMPLEMENTATIONS(packed, pipelined, matrix, tiled)                             \
    {                                                                                 \
        &skinny, &(packed), &(pipelined), &(matrix), &(tiled), &clblast, &plain, NULL \
    }
const struct implementation *const product_forward[] = IMPLEMENTATIONS(packed_forward, pipelined, matrix, tiled);
const struct implementation *const product_data_gradient[] =
    IMPLEMENTATIONS(packed_data, pipelined_data, matrix_data, tiled_data);
const struct implementation *const product_weight_gradient[] =
    IMPLEMENTATIONS(packed_weights, pipelined, matrix, tiled);
