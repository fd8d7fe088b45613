#include "runtime/matrix.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/random.h"
#include "runtime/gemm.h"
#include "runtime/memory.h"
#include "runtime/processor.h"
#include "runtime/tile.h"
#include "runtime/verdicts.h"

/* Candidates in the order in which they are tried, each with the extension that makes it worth a trial. Extensions
 * that tell a chip's properties exist in one vendor's drivers only: what the chip can do shows when their compilers
 * take the instruction. */
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

/* Sizes are odd and larger than a tile; a pipeline gets more steps than it has under way at a time. Numbers are small
 * integers, whose sums are exact in every type. */
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

static tutti_status multiply(struct device *device, const char *name, const struct gemm_implementation *implementation,
    const struct gemm *gemm, const float *a, const float *b, float *c)
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

/* A trial of "matrix", "pipelined" or "bf16". The last two would refuse a product of this size if they were
 * not asked for a tile. */
struct trial {
    const struct gemm_implementation *implementation;
    enum compute_type compute;
};

static struct gemm product_of(const struct trial *trial)
{
    const bool packs = trial->implementation != &gemm_matrix;
    return (struct gemm) {
        .m = M, .n = N, .k = packs ? K_PIPELINED : K, .compute = trial->compute, .splits = 1, .tile = packs
    };
}

/* Compares a product by the form that device->can.matrix or can.bf16 has with the host's. */
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
    const struct trial trials[] = { { &gemm_matrix, compute }, { &gemm_pipelined, compute } };
    for (size_t i = 0; i < sizeof trials / sizeof *trials; i++) {
        const struct gemm gemm = product_of(&trials[i]);
        if (!gemm_refusal(trials[i].implementation, &gemm, &list->device->can))
            gemm_emit(trials[i].implementation, &gemm, NULL, NULL, NULL, NULL, NULL, list);
    }
}

/* ---- bf16 dot products ---- */

const char *bf16_refusal(const struct capabilities *can, enum compute_type compute)
{
    const struct bf16_ability *ability = &can->bf16[compute];
    if (can->class != DEVICE_CPU) return "only CPU-class devices compute bf16 dot products";
    if (ability->form) return NULL;
    if (compute == COMPUTE_FP16) return "numbers of half precision are not made of bfloat16 numbers";
    return ability->refusal ? ability->refusal : "no such product passed its check on this device";
}

int bf16_terms(enum compute_type compute)
{
    static const int parts[COMPUTE_TYPES] = { [COMPUTE_FP32] = 3, [COMPUTE_TF32] = 2, [COMPUTE_BF16] = 1 };
    return parts[compute];
}

int64_t bf16_unit_lines(enum bf16_form form)
{
    return form == BF16_PLAIN ? 16 : 32;
}

/* With three parts, equal terms are right within 1e-6. With fewer, their rounding is the larger error. The products
 * that are made in one step depth by depth (runtime/gemm_bf16.c) want multiples of 12 / parts. */
int64_t bf16_chain(enum compute_type compute, enum bf16_form form)
{
    static const int64_t tiles[] = { 0, 960, 96, 16 }, dots[] = { 0, 120, 24, 4 };
    return (form == BF16_DOTS ? dots : tiles)[bf16_terms(compute)];
}

enum { FASTER_SIZE = 512, FASTER_RUNS = 4 };

/* Measures a square product: the least seconds of some runs. */
static tutti_status measure(
    struct device *device, const struct gemm_implementation *implementation, const struct gemm *gemm, double *seconds)
{
    const size_t bytes = sizeof(float) * FASTER_SIZE * FASTER_SIZE,
                 workspace = gemm_workspace(implementation, gemm, &device->can);
    tutti_status status = TUTTI_OK;
    cl_mem buffers[4] = { 0 };
    struct launch_list list;
    launch_list_init(&list, device);
    for (int i = 0; i < 3; i++) {
        TRY(buffer_new(device, bytes, &buffers[i]));
        TRY(buffer_fill(device, buffers[i], 0, bytes, 0x3f800000)); /* 1 */
    }
    if (workspace) TRY(buffer_new(device, workspace, &buffers[3]));
    gemm_emit(implementation, gemm, buffers[0], buffers[1], buffers[2], NULL, buffers[3], &list);
    TRY(launch_list_realise(&list, NULL, NULL));
    for (int i = 0; i < FASTER_RUNS; i++) {
        const double begin = clock_seconds();
        TRY(launch_list_enqueue(&list, 0, list.count, NULL));
        TRY(device_wait(device));
        const double took = clock_seconds() - begin;
        if (i == 0 || took < *seconds) *seconds = took;
    }
done:
    launch_list_free(&list);
    for (size_t i = 0; i < sizeof buffers / sizeof *buffers; i++) buffer_free(&buffers[i]);
    return status;
}

/* Tries the product, and fails if multiply-adds of floats are faster: they may be as fast as products of three
 * parts. */
static tutti_status try_faster(struct device *device, const char *name, const void *context)
{
    const struct gemm gemm = { .m = FASTER_SIZE, .n = FASTER_SIZE, .k = FASTER_SIZE, .compute = COMPUTE_FP32 };
    double by_parts = 0, by_floats = 0;
    tutti_status status = TUTTI_OK;
    TRY(try_product(device, name, context));
    TRY(measure(device, &gemm_bf16, &gemm, &by_parts));
    TRY(measure(device, &gemm_packed, &gemm, &by_floats));
    if (by_parts > by_floats)
        FAIL(TUTTI_UNSUPPORTED, "products of three bfloat16 parts took %.2f ms, of floats %.2f", 1e3 * by_parts,
            1e3 * by_floats);
done:
    return status;
}

/* Candidates in the order of choice. */
static const struct bf16_candidate {
    enum bf16_form form;
    const char *name;
    const char *(*refusal)(void);
    bool takes[COMPUTE_TYPES]; /* what they are fast enough for */
} bf16_candidates[] = {
    { BF16_TILES, "tiles", processor_tiles_refusal,
        { [COMPUTE_FP32] = true, [COMPUTE_TF32] = true, [COMPUTE_BF16] = true } },
    { BF16_DOTS, "dots", processor_dots_refusal, { [COMPUTE_BF16] = true } },
};

static void prove_bf16_of(struct device *device, enum compute_type compute)
{
    struct bf16_ability *ability = &device->can.bf16[compute];
    ability->refusal = device->host_cpu ? "the processor has no instructions for this --precision"
                                        : "the device is not the processor of the host";
    for (size_t i = 0; i < sizeof bf16_candidates / sizeof *bf16_candidates && !ability->form; i++) {
        const struct bf16_candidate *c = &bf16_candidates[i];
        if (!device->host_cpu || !c->takes[compute]) continue;
        ability->refusal = c->refusal();
        if (ability->refusal) continue;
        char name[64];
        snprintf(name, sizeof name, "bf16/%s/%s", c->name, types[compute]);
        ability->form = c->form; /* for the trial */
        ability->refusal = check_trial(
            device, name, compute == COMPUTE_FP32 ? try_faster : try_product, &(struct trial) { &gemm_bf16, compute });
        if (ability->refusal) ability->form = BF16_NONE;
    }
}

static void prove_bf16(struct device *device)
{
    const char *forced = getenv("TUTTI_BF16_DOTS");
    const bool plain = forced && !strcmp(forced, "plain"), off = forced && !strcmp(forced, "off");
    if (forced && *forced && !plain && !off)
        log_warn(&device->runtime->log, "TUTTI_BF16_DOTS is '%s' and is ignored: set it to plain or off, or unset it",
            forced);
    for (enum compute_type compute = COMPUTE_FP32; compute <= COMPUTE_BF16; compute++) {
        struct bf16_ability *ability = &device->can.bf16[compute];
        if (device->can.vector_width != 16)
            ability->refusal = "the device's vectors have fewer than 16 floats";
        else if (off)
            ability->refusal = "TUTTI_BF16_DOTS is off";
        else if (plain)
            ability->form = BF16_PLAIN;
        else
            prove_bf16_of(device, compute);
    }
}

/* ---- matrix instructions ---- */

/* Returns NULL if the form that device->can.matrix has is proven, else why it is not. */
static const char *prove(struct device *device, const char *name_of_form, const struct trial *trial)
{
    char name[64];
    snprintf(name, sizeof name, "matrix/%s/%s", name_of_form, types[trial->compute]);
    return check_trial(device, name, try_product, trial);
}

static void prove_pipelined(struct device *device, enum compute_type compute)
{
    struct matrix_ability *ability = &device->can.matrix[compute];
    ability->pipelined_refusal = "the device has no extension with copies in parallel with arithmetic";
    if (compute == COMPUTE_FP32 || !device_has_extension(device->id, PIPELINED_EXTENSION)) return;
    ability->pipelined = true; /* for the trial */
    ability->pipelined_refusal = prove(device, "pipelined", &(struct trial) { &gemm_pipelined, compute });
    ability->pipelined = !ability->pipelined_refusal;
}

static void prove_matrices(struct device *device)
{
    for (enum compute_type compute = 0; compute < COMPUTE_TYPES; compute++) {
        struct matrix_ability *ability = &device->can.matrix[compute];
        ability->refusal = "the device has no extension with matrix instructions for this --precision";
        for (const struct candidate *c = candidates; c < candidates + CANDIDATES && !ability->form; c++) {
            const struct tile *list[TILES];
            if (tile_list(c->form, compute, list) == 0 || !device_has_extension(device->id, c->extension)) continue;
            ability->form = c->form;
            ability->refusal = prove(device, c->name, &(struct trial) { &gemm_matrix, compute });
            if (ability->refusal) ability->form = MATRIX_NONE;
        }
        prove_pipelined(device, compute);
    }
}

void matrix_prove(struct device *device)
{
    if (device->can.class == DEVICE_GPU)
        prove_matrices(device);
    else
        prove_bf16(device);
}
