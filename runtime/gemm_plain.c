/* The product that fits every device and every size: clkernels/gemm_plain.cl. */
#include "clkernels/arguments/gemm_plain.h"
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

ARGUMENTS(plain, PLAIN_ARGUMENTS)

static void emit(const struct gemm *gemm, const struct gemm_buffers *buffers, struct launch_list *list)
{
    const int64_t side = side_of(&list->device->can), tile = side * EACH;
    char options[256];
    struct launch *launch =
        launch_add(list, "gemm_plain", "gemm_plain", "-DSIDE=%d -DTA=%d -DTB=%d -DLONG=%d %s", (int)side,
            gemm->transpose_a, gemm->transpose_b, gemm->k >= GEMM_LONG, gemm_options(gemm, options, sizeof options));
    ARGUMENTS_SET(launch, plain, .A = buffers->a, GEMM_BUFFERS_VALUES(buffers), GEMM_SIZES_VALUES(gemm));
    launch_grid(launch, 3, (size_t)(divide_up(gemm->n, tile) * side), (size_t)(divide_up(gemm->m, tile) * side),
        (size_t)gemm->batch, (size_t)side, (size_t)side, 1);
    gemm_work(gemm, launch);
}

const struct gemm_implementation gemm_plain = { .refusal = refusal, .emit = emit };
