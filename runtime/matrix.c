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
#define PIPELINED_EXTENSION "cl_nv_device_attribute_query"

static const char *const types[COMPUTE_TYPES] = {
    [COMPUTE_FP32] = "fp32", [COMPUTE_TF32] = "tf32", [COMPUTE_BF16] = "bf16", [COMPUTE_FP16] = "fp16"
};

/* Odd, and more than a tile has; sums of small integers are exact in every type. Of a pipeline, more steps than are
 * under way at a time. */
enum { M = 133, N = 71, K = 53, K_PIPELINED = 149, LARGEST = 7 };

static void make_up(float *numbers, size_t count, uint32_t stream)
{
    for (size_t i = 0; i < count; i++)
        numbers[i] = (float)((int)(random_uniform(5, stream, i) * (2 * LARGEST + 1)) - LARGEST);
}

static tutti_status compare(int64_t k, const float *a, const float *b, const float *c)
{
    for (int i = 0; i < M; i++)
        for (int j = 0; j < N; j++) {
            double sum = 0;
            for (int64_t l = 0; l < k; l++) sum += (double)a[i * k + l] * (double)b[l * N + j];
            if (!((double)c[i * N + j] == sum))
                return fail(
                    TUTTI_WRONG_RESULT, "an element of its product is %g, expected %g", (double)c[i * N + j], sum);
        }
    return TUTTI_OK;
}

static tutti_status multiply(struct device *device, const char *name, int implementation, const struct gemm *gemm,
    const float *a, const float *b, float *c)
{
    const size_t k_bytes = sizeof(float) * (size_t)gemm->k, a_bytes = M * k_bytes, b_bytes = N * k_bytes,
                 c_bytes = sizeof(float) * M * N, workspace = gemm_workspace(implementation, gemm, &device->can);
    tutti_status status = TUTTI_OK;
    cl_mem buffers[4] = { 0 };
    struct launch_list list;
    launch_list_init(&list, device);
    TRY(buffer_new(device, a_bytes, &buffers[0]));
    TRY(buffer_new(device, b_bytes, &buffers[1]));
    TRY(buffer_new(device, c_bytes, &buffers[2]));
    if (workspace) TRY(buffer_new(device, workspace, &buffers[3]));
    TRY(buffer_write(device, buffers[0], 0, a, a_bytes));
    TRY(buffer_write(device, buffers[1], 0, b, b_bytes));
    TRY(buffer_fill(device, buffers[2], 0, c_bytes, 0x7fc00000)); /* NaN: what is not written is noticed */
    check_trial_begins(device, name);
    gemm_emit(implementation, gemm, buffers[0], buffers[1], buffers[2], NULL, buffers[3], &list);
    TRY(launch_list_realise(&list, NULL, NULL));
    TRY(launch_list_enqueue(&list, 0, list.count, NULL));
    TRY(buffer_read(device, buffers[2], 0, c, c_bytes));
done:
    launch_list_free(&list);
    for (size_t i = 0; i < sizeof buffers / sizeof *buffers; i++) buffer_free(&buffers[i]);
    return status;
}

/* By GEMM_MATRIX or GEMM_PIPELINED, which would pass a product of this size on if it were not asked for a tile. */
struct trial {
    int implementation;
    enum compute_type compute;
};

static struct gemm product_of(const struct trial *trial)
{
    const bool pipelined = trial->implementation == GEMM_PIPELINED;
    return (struct gemm) {
        .m = M, .n = N, .k = pipelined ? K_PIPELINED : K, .compute = trial->compute, .splits = 1, .tile = pipelined
    };
}

/* As device->can.matrix has it. */
static tutti_status try_product(struct device *device, const char *name, const void *context)
{
    tutti_status status = TUTTI_OK;
    const struct trial *trial = context;
    const struct gemm gemm = product_of(trial);
    const size_t k = (size_t)gemm.k;
    float *a = memory_new(M * k, sizeof(float)), *b = memory_new(k * N, sizeof(float)),
          *c = memory_new(M * N, sizeof(float));
    if (!a || !b || !c) FAIL(TUTTI_NO_MEMORY, "not enough memory to check matrix instructions");
    const char *refusal = gemm_refusal(trial->implementation, &gemm, &device->can);
    if (refusal) FAIL(TUTTI_UNSUPPORTED, "%s", refusal);
    make_up(a, M * k, 1);
    make_up(b, k * N, 2);
    TRY(multiply(device, name, trial->implementation, &gemm, a, b, c));
    TRY(compare(gemm.k, a, b, c));
done:
    free(a);
    free(b);
    free(c);
    return status;
}

void matrix_emit_trial(enum compute_type compute, struct launch_list *list)
{
    const struct trial trials[] = { { GEMM_MATRIX, compute }, { GEMM_PIPELINED, compute } };
    for (size_t i = 0; i < sizeof trials / sizeof *trials; i++) {
        const struct gemm gemm = product_of(&trials[i]);
        if (!gemm_refusal(trials[i].implementation, &gemm, &list->device->can))
            gemm_emit(trials[i].implementation, &gemm, NULL, NULL, NULL, NULL, NULL, list);
    }
}

/* NULL: what device->can.matrix has is proven. */
static const char *prove(struct device *device, const char *name_of_form, const struct trial *trial)
{
    char name[64];
    snprintf(name, sizeof name, "matrix/%s/%s", name_of_form, types[trial->compute]);
    return check_trial(device, name, try_product, trial);
}

static void prove_pipelined(struct device *device, enum compute_type compute)
{
    struct matrix_ability *ability = &device->can.matrix[compute];
    ability->pipelined_refusal = "the device has no extension with copies beside arithmetic";
    if (compute == COMPUTE_FP32 || !device_has_extension(device->id, PIPELINED_EXTENSION)) return;
    ability->pipelined = true; /* for the trial */
    ability->pipelined_refusal = prove(device, "pipelined", &(struct trial) { GEMM_PIPELINED, compute });
    ability->pipelined = !ability->pipelined_refusal;
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
            ability->refusal = prove(device, c->name, &(struct trial) { GEMM_MATRIX, compute });
            if (ability->refusal) ability->form = MATRIX_NONE;
        }
        prove_pipelined(device, compute);
    }
}
