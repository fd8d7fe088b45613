/* The product that fits every device and every size: clkernels/gemm_plain.cl. */
#include "base/memory.h"
#include "runtime/gemm_implementations.h"

/* Elements of C that a work-item computes in each direction: EACH in the kernel. */
enum { EACH = 4 };

/* The side of a square work-group. */
static int64_t side_of(const struct capabilities *can)
{
    int64_t side = 8;
    while (side > 1 && (size_t)(side * side) > can->group_max) side /= 2;
    return side;
}

static const char *refusal(const struct gemm *gemm, const struct capabilities *can)
{
    (void)gemm, (void)can;
    return NULL;
}

static void emit(const struct gemm *gemm, const struct gemm_buffers *buffers, struct launch_list *list)
{
    const int64_t side = side_of(&list->device->can), tile = side * EACH;
    char options[256];
    struct launch *launch = launch_add(list, "gemm_plain", "gemm_plain", "-DSIDE=%d -DTA=%d -DTB=%d %s", (int)side,
        gemm->transpose_a, gemm->transpose_b, gemm_options(gemm, options, sizeof options));
    launch_buffer(launch, buffers->a);
    launch_buffer(launch, buffers->b);
    launch_buffer(launch, buffers->c);
    launch_buffer(launch, buffers->bias);
    launch_buffer(launch, buffers->added);
    launch_int(launch, gemm->m);
    launch_int(launch, gemm->n);
    launch_int(launch, gemm->k);
    launch_int(launch, gemm->lda);
    launch_int(launch, gemm->ldb);
    launch_int(launch, gemm->ldc);
    launch_long(launch, gemm->stride_a);
    launch_long(launch, gemm->stride_b);
    launch_long(launch, gemm->stride_c);
    launch_grid(launch, 3, (size_t)(divide_up(gemm->n, tile) * side), (size_t)(divide_up(gemm->m, tile) * side),
        (size_t)gemm->batch, (size_t)side, (size_t)side, 1);
    gemm_work(gemm, launch);
}

const struct gemm_implementation gemm_plain = { .name = "plain", .refusal = refusal, .emit = emit };
