#include "replica/clip.h"

#include "base/memory.h"
#include "replica/arena_launch.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

/* -------------------------------------------------------------------------------------------------- host ---- */

enum { RANGE = 1 << 16, LANES = 8 };

struct squares {
    const float *gradients;
    int64_t count;
    float unscale;
    double *sums; /* of each range */
};

/* Sums the squares of a range, in eight partial sums. */
static void sum_task(void *argument, int task)
{
    const struct squares *squares = argument;
    const int64_t begin = (int64_t)task * RANGE;
    const int64_t end = begin + RANGE < squares->count ? begin + RANGE : squares->count;
    double sums[LANES] = { 0 };
    for (int64_t i = begin; i < end; i++) {
        const double value = squares->unscale * squares->gradients[i];
        sums[i % LANES] += value * value;
    }
    for (int lane = 1; lane < LANES; lane++) sums[0] += sums[lane];
    squares->sums[task] = sums[0];
}

tutti_status clip_norm_of(const float *gradients, int64_t count, float unscale, struct thread_pool *pool, float *norm)
{
    const int tasks = (int)divide_up(count, RANGE);
    struct squares squares = { gradients, count, unscale, memory_new((size_t)tasks, sizeof(double)) };
    if (!squares.sums) return TUTTI_NO_MEMORY;
    thread_pool_run(pool, tasks, sum_task, &squares);
    double sum = 0;
    for (int i = 0; i < tasks; i++) sum += squares.sums[i];
    free(squares.sums);
    *norm = (float)sqrt(sum);
    return TUTTI_OK;
}

float clip_factor(const struct optimizer *optimizer, float norm)
{
    return norm + 1e-6f > optimizer->clip_norm ? optimizer->clip_norm / (norm + 1e-6f) : 1;
}

/* ------------------------------------------------------------------------------------------------- device ---- */

/* Adds a launch of `groups` tasks (CPU class), or of so many work-groups, whose size is a power of two. */
static struct launch *launch_groups(struct launch_list *list, const char *kernel, size_t groups)
{
    size_t group = 1;
    if (list->device->can.class == DEVICE_CPU) {
        struct launch *launch = launch_add(list, "clip", kernel, "%s", "");
        launch_tasks(launch, groups, 1, 1);
        return launch;
    }
    while (2 * group <= arena_group_size(list->device)) group *= 2;
    struct launch *launch = launch_add(list, "clip", kernel, "-DGROUP=%zu", group);
    launch_grid(launch, 1, groups * group, 1, 1, group, 1, 1);
    return launch;
}

void clip_emit_norm(const tutti_network *network, const struct optimizer_buffers *buffers, struct launch_list *list)
{
    const int64_t count = network->trained_floats, floats = 16 * divide_up(divide_up(count, CLIP_SUMS), 16);
    const int64_t groups = divide_up(count, floats);
    struct launch *squares = launch_groups(list, "gradient_squares", (size_t)groups);
    launch_buffer(squares, buffers->gradients);
    launch_buffer(squares, buffers->constants);
    launch_buffer(squares, buffers->norms);
    launch_long(squares, count);
    launch_int(squares, floats);
    launch_work(squares, 8 * (double)count, 4 * (double)count);
    struct launch *norm = launch_groups(list, "gradient_norm", 1);
    launch_buffer(norm, buffers->norms);
    launch_buffer(norm, buffers->constants);
    launch_int(norm, groups);
    launch_work(norm, 3 * (double)groups, 12 * (double)groups);
}

void clip_emit(const struct optimizer *optimizer, const struct optimizer_buffers *buffers, struct launch_list *list)
{
    struct launch *clip = launch_groups(list, "gradient_clip", 1);
    launch_buffer(clip, buffers->norms);
    launch_buffer(clip, buffers->constants);
    launch_float(clip, fminf(optimizer->clip_norm, FLT_MAX));
    launch_work(clip, 1, 4);
}
