/* The CPU class's kernels: attention_cpu.cl. */
#include "base/memory.h"
#include "base/numbers.h"
#include "layers/attention/arguments/attention.h"
#include "layers/attention/attention.h"
#include "layers/elementwise.h"
#include "runtime/arguments.h"

#include <limits.h>
#include <stdio.h>

ARGUMENTS(forward, ATTENTION_ARGUMENTS)
ARGUMENTS(backward, ATTENTION_GRADIENT_ARGUMENTS)
ARGUMENTS(blocks, BLOCKS_ARGUMENTS)

enum {
    TILE_ROWS = 6,
    QUERIES = 192,         /* of a task: keys and values are packed once for all of them */
    QUERIES_BACKWARD = 48, /* of which the scores of a block are in local memory */
    KEYS = 128,            /* of a block */
    KEYS_LEAST = 32,
};

struct blocks {
    int64_t rows, keys;
    size_t bytes; /* of local memory: scratch_floats() */
};

static int64_t padded(int64_t count, int64_t to)
{
    return divide_up(count, to) * to;
}

/* Returns the floats of local memory, as attention_cpu.cl divides it. */
static int64_t scratch_floats(const struct problem *problem, bool backward, int64_t rows, int64_t keys)
{
    const struct attention_sizes z = attention_sizes(problem);
    const int64_t v = problem->device->vector_width, q = padded(z.width, v), o = padded(z.width_v, v);
    const int64_t common = keys + 128 + v; /* FACTORS, edge */
    if (!backward) return rows * (q + o + 2) + keys * (z.width + o + TILE_ROWS) + common;
    const int64_t sums = padded(keys, TILE_ROWS) * (q + o), scores = 2 * rows * keys + TILE_ROWS;
    return keys * (z.width + z.width_v + q) + sums + rows * (2 * q + o + 1) + scores + rows / TILE_ROWS + common;
}

static struct blocks blocks_of(const struct problem *problem, bool backward)
{
    const struct attention_sizes z = attention_sizes(problem);
    const int64_t v = problem->device->vector_width;
    struct blocks blocks = { .rows = backward ? QUERIES_BACKWARD : QUERIES, .keys = KEYS };
    blocks.rows = padded(divide_up(z.length, divide_up(z.length, blocks.rows)), TILE_ROWS);
    while (blocks.keys > KEYS_LEAST && blocks.keys / 2 >= z.keys) blocks.keys /= 2;
    blocks.keys = padded(blocks.keys, v);
    for (;;) {
        blocks.bytes = (size_t)scratch_floats(problem, backward, blocks.rows, blocks.keys) * sizeof(float);
        if (blocks.bytes <= problem->device->local_bytes || blocks.keys <= KEYS_LEAST) return blocks;
        blocks.keys /= 2;
    }
}

const char *attention_blocks_refusal(const struct problem *problem)
{
    const struct attention_sizes z = attention_sizes(problem);
    const char *reason = fits_cpu_class(problem);
    if (reason) return reason;
    if (problem->compute != COMPUTE_FP32) return "products of rounded operands are faster";
    if (z.length < TILE_ROWS) return "products read keys once for so few queries";
    if (z.length * z.heads * (z.width + z.width_v) > INT_MAX / 2 ||
        z.keys * z.heads * (z.width + z.width_v) > INT_MAX / 2)
        return "the heads of a sample are too large";
    /* Both, so that a network whose forward node this takes has its gradient here, too. */
    for (int backward = 0; backward < 2; backward++)
        if (blocks_of(problem, backward).bytes > problem->device->local_bytes)
            return "local memory has no room for 32 keys";
    return NULL;
}

static void emit(const struct problem *problem, const struct operands *operands, struct launch_list *list)
{
    const struct attention_sizes z = attention_sizes(problem);
    const struct dropping drop = attention_dropping(problem, &z);
    const bool backward = attention_is_gradient(problem);
    const struct blocks blocks = blocks_of(problem, backward);
    char options[ATTENTION_OPTIONS];
    struct launch *launch = launch_add(list, "attention_cpu",
        backward ? "attention_blocks_gradient" : "attention_blocks", "-DMR=%d -DNV=%d %s", TILE_ROWS,
        problem->device->vector_width >= 16 ? 4 : 2, attention_options(problem, options));
    if (backward)
        ARGUMENTS_SET(
            launch, backward, ATTENTION_GRADIENT_VALUES(operands), ATTENTION_VALUES(operands, z, drop, problem->node));
    else
        ARGUMENTS_SET(
            launch, forward, ATTENTION_FORWARD_VALUES(operands), ATTENTION_VALUES(operands, z, drop, problem->node));
    ARGUMENTS_SET(launch, blocks, .scratch = blocks.bytes, .rows = blocks.rows, .block = blocks.keys);
    launch_tasks(launch, backward ? 1 : (size_t)divide_up(z.length, blocks.rows), (size_t)(z.samples * z.heads), 1);
    launch_work(launch, attention_flops(problem), attention_bytes(problem));
}

const struct implementation attention_blocks = {
    .name = "blocks",
    .fits = attention_blocks_refusal,
    .emit = emit,
};
