#include "runtime/matrix.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "base/random.h"
#include "runtime/check.h"
#include "runtime/gemm.h"
#include "runtime/memory.h"
#include "runtime/tile.h"

/* In the order in which they are tried, each with the extension that makes it worth a trial. Those that tell a chip's
 * properties are named by one maker's drivers only: what the chip can do shows when their compilers take the
 * instruction. */
static const struct candidate {
    enum matrix_form form;
    const char *name, *extension;
} candidates[] = {
    { MATRIX_MMA_LDMATRIX, "mma-ldmatrix", "cl_nv_device_attribute_query" },
    { MATRIX_MMA, "mma", "cl_nv_device_attribute_query" },
    { MATRIX_MFMA, "mfma", "cl_amd_device_attribute_query" },
    { MATRIX_WMMA, "wmma", "cl_amd_device_attribute_query" },
    { MATRIX_MAD_16, "mad-16", "cl_intel_subgroup_matrix_multiply_accumulate" },
    { MATRIX_MAD_8, "mad-8", "cl_intel_subgroup_matrix_multiply_accumulate" },
};
enum { CANDIDATES = sizeof candidates / sizeof *candidates };

static const char *const types[COMPUTE_TYPES] = {
    [COMPUTE_FP32] = "fp32", [COMPUTE_TF32] = "tf32", [COMPUTE_BF16] = "bf16", [COMPUTE_FP16] = "fp16"
};

/* Odd, and more than a tile has; sums of small integers are exact in every type. */
enum { M = 133, N = 71, K = 53, LARGEST = 7 };

static void make_up(float *numbers, size_t count, uint32_t stream)
{
    for (size_t i = 0; i < count; i++)
        numbers[i] = (float)((int)(random_uniform(5, stream, i) * (2 * LARGEST + 1)) - LARGEST);
}

static tutti_status compare(const float *a, const float *b, const float *c)
{
    for (int i = 0; i < M; i++)
        for (int j = 0; j < N; j++) {
            double sum = 0;
            for (int k = 0; k < K; k++) sum += (double)a[i * K + k] * (double)b[k * N + j];
            if (!((double)c[i * N + j] == sum))
                return fail(
                    TUTTI_WRONG_RESULT, "an element of its product is %g, expected %g", (double)c[i * N + j], sum);
        }
    return TUTTI_OK;
}

static tutti_status multiply(
    struct device *device, const char *name, const struct gemm *gemm, const float *a, const float *b, float *c)
{
    const size_t a_bytes = sizeof(float) * M * K, b_bytes = sizeof(float) * K * N, c_bytes = sizeof(float) * M * N;
    tutti_status status = TUTTI_OK;
    cl_mem buffers[3] = { 0 };
    struct launch_list list;
    launch_list_init(&list, device);
    TRY(buffer_new(device, a_bytes, &buffers[0]));
    TRY(buffer_new(device, b_bytes, &buffers[1]));
    TRY(buffer_new(device, c_bytes, &buffers[2]));
    TRY(buffer_write(device, buffers[0], 0, a, a_bytes));
    TRY(buffer_write(device, buffers[1], 0, b, b_bytes));
    TRY(buffer_fill(device, buffers[2], 0, c_bytes, 0x7fc00000)); /* NaN: what is not written is noticed */
    check_trial_begins(device, name);
    gemm_emit(GEMM_MATRIX, gemm, buffers[0], buffers[1], buffers[2], NULL, NULL, &list);
    TRY(launch_list_realise(&list, NULL, NULL));
    TRY(launch_list_enqueue(&list, 0, list.count, NULL));
    TRY(buffer_read(device, buffers[2], 0, c, c_bytes));
done:
    launch_list_free(&list);
    for (size_t i = 0; i < sizeof buffers / sizeof *buffers; i++) buffer_free(&buffers[i]);
    return status;
}

static struct gemm product_of(enum compute_type compute)
{
    return (struct gemm) { .m = M, .n = N, .k = K, .compute = compute, .splits = 1 };
}

/* Of the form that device->can.matrix has for a `compute`. */
static tutti_status try_product(struct device *device, const char *name, const void *compute)
{
    tutti_status status = TUTTI_OK;
    const struct gemm gemm = product_of(*(const enum compute_type *)compute);
    float *a = memory_new(M * K, sizeof(float)), *b = memory_new(K * N, sizeof(float)),
          *c = memory_new(M * N, sizeof(float));
    if (!a || !b || !c) FAIL(TUTTI_NO_MEMORY, "not enough memory to check matrix instructions");
    const char *refusal = gemm_refusal(GEMM_MATRIX, &gemm, &device->can);
    if (refusal) FAIL(TUTTI_UNSUPPORTED, "%s", refusal);
    make_up(a, M * K, 1);
    make_up(b, K * N, 2);
    TRY(multiply(device, name, &gemm, a, b, c));
    TRY(compare(a, b, c));
done:
    free(a);
    free(b);
    free(c);
    return status;
}

void matrix_emit_trial(enum compute_type compute, struct launch_list *list)
{
    const struct gemm gemm = product_of(compute);
    if (!gemm_refusal(GEMM_MATRIX, &gemm, &list->device->can))
        gemm_emit(GEMM_MATRIX, &gemm, NULL, NULL, NULL, NULL, NULL, list);
}

/* NULL: the form that device->can.matrix has is proven. */
static const char *prove(struct device *device, const struct candidate *candidate, enum compute_type compute)
{
    char name[64];
    snprintf(name, sizeof name, "matrix/%s/%s", candidate->name, types[compute]);
    return check_trial(device, name, try_product, &compute);
}

void matrix_prove(struct device *device)
{
    for (enum compute_type compute = 0; compute < COMPUTE_TYPES; compute++) {
        struct matrix_ability *ability = &device->can.matrix[compute];
        ability->refusal = "the device has no extension with matrix instructions for this --precision";
        for (const struct candidate *c = candidates; c < candidates + CANDIDATES && !ability->form; c++) {
            const struct tile *list[TILES];
            if (tile_list(c->form, compute, list) == 0 || !device_has_extension(device->id, c->extension)) continue;
            ability->form = c->form;
            ability->refusal = prove(device, c, compute);
            if (ability->refusal) ability->form = MATRIX_NONE;
        }
    }
}
