/* Products with a small batch through a large layer, on CPU-class devices: clkernels/gemm_skinny.cl. */
#include "clkernels/arguments/gemm_skinny.h"
#include "base/memory.h"
#include "runtime/gemm_implementations.h"

enum {
    SMALL_MOST = 8, /* largest small size: beyond, the packed product is faster */
    DEEP = 8,       /* rows of B for each pass over a strip */
    STRIP_MOST = 512,
    STRIP_LEAST = 64,
    TASKS_PER_UNIT = 8,
    STREAM_BYTES = 24 << 20, /* outputs of more are written around the caches */
};

enum form { FORM_NONE, FORM_DOT, FORM_ROWS, FORM_OUTER };

static enum form form_of(const struct gemm *gemm)
{
    if (gemm->transpose_a) return gemm->transpose_b ? FORM_NONE : FORM_OUTER;
    return gemm->transpose_b ? FORM_DOT : FORM_ROWS;
}

static int64_t small_of(const struct gemm *gemm)
{
    return gemm->transpose_a ? gemm->k : gemm->m;
}

static const char *refusal(const struct gemm *gemm, const struct capabilities *can)
{
    if (can->class != DEVICE_CPU) return "it needs a CPU-class device";
    if (!gemm_is_small(gemm)) return "a size of the product is larger than 2^30";
    if (gemm->batch != 1) return "it computes one product, not a batch of products";
    if (form_of(gemm) == FORM_NONE) return "both matrices are transposed";
    if (form_of(gemm) == FORM_OUTER && gemm->stored != GEMM_FLOATS) return "it reads a few rows that are floats only";
    if (small_of(gemm) > SMALL_MOST) return "the batch has more than 8 samples";
    if (form_of(gemm) == FORM_ROWS && can->local_bytes < 3 * sizeof(float) * STRIP_MOST * SMALL_MOST)
        return "the device's local memory is too small for a strip of the output";
    return NULL;
}

static size_t workspace(const struct gemm *gemm, const struct capabilities *can)
{
    (void)can;
    return form_of(gemm) == FORM_ROWS ? sizeof(float) * (size_t)gemm->k * (size_t)gemm->m : 0;
}

static int64_t tasks_of(const struct launch_list *list)
{
    return (int64_t)TASKS_PER_UNIT * (list->device->can.units > 0 ? list->device->can.units : 1);
}

/* Returns the columns of a strip: long strips read B in long runs, shorter ones give every unit some. */
static int strip_of(const struct gemm *gemm, const struct launch_list *list)
{
    int strip = STRIP_MOST;
    while (strip > STRIP_LEAST && divide_up(gemm->n, strip) < tasks_of(list) / 2) strip /= 2;
    return strip;
}

/* Returns the rows or columns of a task, a multiple of `unit`. */
static int64_t part(int64_t total, int64_t unit, const struct launch_list *list)
{
    const int64_t tasks = tasks_of(list);
    return divide_up(divide_up(total, tasks), unit) * unit;
}

static struct launch *add(const struct gemm *gemm, const char *kernel, struct launch_list *list)
{
    char options[256];
    return launch_add(list, "gemm_skinny", kernel, "-DFORM=%d -DSMALL=%d -DSTRIP=%d -DDEEP=%d %s", (int)form_of(gemm),
        (int)small_of(gemm), strip_of(gemm, list), DEEP, gemm_options(gemm, options, sizeof options));
}

ARGUMENTS(dot, DOT_ARGUMENTS)

static void emit_dot(const struct gemm *gemm, const struct gemm_buffers *buffers, struct launch_list *list)
{
    const int64_t columns = part(gemm->n, 3, list);
    struct launch *launch = add(gemm, "gemm_skinny_dot", list);
    ARGUMENTS_SET(launch, dot, .A = buffers->a, GEMM_BUFFERS_VALUES(buffers), .n = gemm->n, .k = gemm->k,
        .lda = gemm->a.ld, .ldb = gemm->b.ld, .ldc = gemm->c.ld, .columns = columns);
    launch_tasks(launch, (size_t)divide_up(gemm->n, columns), 1, 1);
    gemm_work(gemm, launch);
}

ARGUMENTS(rows, ROWS_ARGUMENTS)

static void emit_rows(const struct gemm *gemm, const struct gemm_buffers *buffers, struct launch_list *list)
{
    struct launch *launch = add(gemm, "gemm_skinny_transpose", list);
    launch_buffer(launch, buffers->a);
    launch_buffer(launch, buffers->workspace);
    launch_int(launch, gemm->k);
    launch_int(launch, gemm->a.ld);
    launch_tasks(launch, (size_t)divide_up(gemm->k, 256), 1, 1);

    launch = add(gemm, "gemm_skinny_rows", list);
    ARGUMENTS_SET(launch, rows, .transposed = buffers->workspace, GEMM_BUFFERS_VALUES(buffers), .n = gemm->n,
        .k = gemm->k, .ldb = gemm->b.ld, .ldc = gemm->c.ld);
    launch_tasks(launch, (size_t)divide_up(gemm->n, strip_of(gemm, list)), 1, 1);
    gemm_work(gemm, launch);
}

ARGUMENTS(outer, OUTER_ARGUMENTS)

static void emit_outer(const struct gemm *gemm, const struct gemm_buffers *buffers, struct launch_list *list)
{
    const int64_t rows = part(gemm->m, 2, list);
    struct launch *launch = add(gemm, "gemm_skinny_outer", list);
    ARGUMENTS_SET(launch, outer, .A = buffers->a, GEMM_BUFFERS_VALUES(buffers), .m = gemm->m, .n = gemm->n,
        .lda = gemm->a.ld, .ldb = gemm->b.ld, .ldc = gemm->c.ld, .rows = rows,
        .stream = !gemm->accumulate && (size_t)gemm->m * (size_t)gemm->n * sizeof(float) > STREAM_BYTES);
    launch_tasks(launch, (size_t)divide_up(gemm->m, rows), 1, 1);
    gemm_work(gemm, launch);
}

static void emit(const struct gemm *gemm, const struct gemm_buffers *buffers, struct launch_list *list)
{
    switch (form_of(gemm)) {
    case FORM_DOT: emit_dot(gemm, buffers, list); break;
    case FORM_ROWS: emit_rows(gemm, buffers, list); break;
    default: emit_outer(gemm, buffers, list); break;
    }
}

const struct gemm_implementation gemm_skinny = {
    .refusal = refusal,
    .workspace = workspace,
    .emit = emit,
    .takes_stored = true,
};
