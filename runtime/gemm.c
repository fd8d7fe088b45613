#include "runtime/gemm_implementations.h"

#include "base/memory.h"
#include "base/numbers.h"
#include "clkernels/arguments/gemm_finish.h"

#include <limits.h>

static struct gemm filled(const struct gemm *from)
{
    struct gemm gemm = *from;
    if (gemm.batch == 0) gemm.batch = 1;
    if (gemm.a.ld == 0) gemm.a.ld = gemm.transpose_a ? gemm.m : gemm.k;
    if (gemm.b.ld == 0) gemm.b.ld = gemm.transpose_b ? gemm.k : gemm.n;
    if (gemm.c.ld == 0) gemm.c.ld = gemm.n;
    return gemm;
}

const char *gemm_refusal(
    const struct gemm_implementation *implementation, const struct gemm *gemm, const struct capabilities *can)
{
    const struct gemm full = filled(gemm);
    if (gemm->stored != GEMM_FLOATS && !implementation->takes_stored) return "it reads weights that are floats only";
    if (gemm->stored != GEMM_FLOATS && gemm->b.stride) return "it reads one stored matrix, not several";
    return implementation->refusal(&full, can);
}

struct gemm_design gemm_design(
    const struct gemm_implementation *implementation, const struct gemm *gemm, const struct capabilities *can)
{
    const struct gemm full = filled(gemm);
    return implementation->design ? implementation->design(&full, can) : (struct gemm_design) { 0 };
}

size_t gemm_workspace(
    const struct gemm_implementation *implementation, const struct gemm *gemm, const struct capabilities *can)
{
    const struct gemm full = filled(gemm);
    return implementation->workspace ? implementation->workspace(&full, can) : 0;
}

void gemm_emit(const struct gemm_implementation *implementation, const struct gemm *gemm, cl_mem a, cl_mem b, cl_mem c,
    cl_mem bias, cl_mem workspace, struct launch_list *list)
{
    const struct gemm full = filled(gemm);
    const struct gemm_buffers buffers = {
        .a = a,
        .b = b,
        .c = c,
        .bias = full.bias ? bias : a,
        .added = full.accumulate && full.add ? full.add : c,
        .workspace = workspace,
    };
    implementation->emit(&full, &buffers, list);
}

bool gemm_has_room(const struct gemm *gemm, const struct capabilities *can, int64_t parts)
{
    const double bytes = (double)parts * (double)gemm->m * (double)gemm->n * (double)gemm->batch * sizeof(float);
    return bytes <= (double)can->allocation_max / 4;
}

int64_t gemm_fewest_parts(const struct gemm *gemm, const struct capabilities *can)
{
    int64_t parts = 1;
    if (gemm->splits) return gemm->splits;
    while (gemm->k > GEMM_LONGEST_PART * parts && gemm_has_room(gemm, can, 2 * parts)) parts *= 2;
    return parts;
}

struct gemm_sums gemm_sums_of(const struct gemm *gemm, const struct gemm_buffers *buffers, int64_t parts)
{
    const int64_t stride_part = gemm->batch * gemm->m * gemm->n;
    if (parts > 1) return (struct gemm_sums) { buffers->workspace, parts, gemm->n, gemm->m * gemm->n, stride_part };
    return (struct gemm_sums) { buffers->c, 1, gemm->c.ld, gemm->c.stride, stride_part };
}

bool gemm_in_fours(int64_t length, int64_t from, int64_t ld, int64_t stride, int64_t batch)
{
    return length % 4 == 0 && from % 4 == 0 && ld % 4 == 0 && (batch == 1 || stride % 4 == 0);
}

bool gemm_is_small(const struct gemm *gemm)
{
    const int64_t sizes[] = { gemm->m, gemm->n, gemm->k, gemm->a.ld, gemm->b.ld, gemm->c.ld };
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        if (sizes[i] > INT_MAX / 2) return false;
    return true;
}

const char *gemm_options(const struct gemm *gemm, char *buffer, size_t size)
{
    buffer[0] = '\0';
    number_append(buffer, size, "-DBIAS=%d -DACCUMULATE=%d %s", gemm->bias, gemm->accumulate,
        gemm->activation ? gemm->activation : "");
    if (gemm->stored != GEMM_FLOATS) number_append(buffer, size, " -DSTORED=%d", (int)gemm->stored);
    return buffer;
}

struct gemm_finish gemm_finish_of(const struct gemm *gemm, const struct gemm_buffers *buffers)
{
    struct gemm_finish finish = { .bias = gemm->bias ? buffers->bias : NULL };
    finish.added = gemm->mask ? gemm->mask : gemm->accumulate ? buffers->added : NULL;
    const char *options = gemm->mask ? gemm->masking : gemm->activation;
    number_append(finish.options, sizeof finish.options, " %s", options ? options : "");
    return finish;
}

ARGUMENTS(finish, FINISH_ARGUMENTS)

void gemm_emit_finish(
    const struct gemm *gemm, const struct gemm_sums *sums, cl_mem c, cl_mem bias, struct launch_list *list)
{
    const struct gemm_buffers buffers = { .c = c, .bias = bias, .added = gemm->add ? gemm->add : c };
    const struct gemm_finish finish = gemm_finish_of(gemm, &buffers);
    const size_t group = list->device->can.group_max < 128 ? list->device->can.group_max : 128;
    struct launch *launch = launch_add(list, "gemm_finish", "gemm_finish", "%s", finish.options);
    ARGUMENTS_SET(launch, finish, .parts = sums->buffer, .bias = finish.bias, .added = finish.added, .C = c,
        .count = sums->parts, .n = gemm->n, .ld = sums->ld, .ldc = gemm->c.ld, .stride = sums->stride,
        .stride_part = sums->stride_part, .stride_c = gemm->c.stride, .from_c = gemm->c.from);
    launch_grid(launch, 3, size_round_up((size_t)gemm->n, group), (size_t)gemm->m, (size_t)gemm->batch, group, 1, 1);
    const double results = (double)gemm->m * (double)gemm->n * (double)gemm->batch, parts = (double)sums->parts;
    launch_work(launch, (parts - 1) * results, 4 * results * (parts + 1 + (finish.added != NULL)));
}

void gemm_work(const struct gemm *gemm, struct launch *launch)
{
    double m = (double)gemm->m, n = (double)gemm->n, k = (double)gemm->k, batch = (double)gemm->batch;
    static const double sizes[] = { [GEMM_FLOATS] = 1, [GEMM_BF16] = 0.5, [GEMM_INT8] = 0.265625 };
    double floats =
        batch * (m * k + k * n * sizes[gemm->stored] + m * n * (gemm->accumulate ? 2 : 1)) + (gemm->bias ? n : 0);
    launch_work(launch, 2 * batch * m * n * k, 4 * floats);
}
