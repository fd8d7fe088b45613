/* Initial values of parameters. A value depends on the seed, the parameter's number and its own position only;
 * constants are not counted. */
#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "base/random.h"
#include "base/threads.h"
#include "graph/network.h"
#include "graph/parameter_storage.h"
#include "graph/stored.h"
#include "runtime/device.h"

/* He: He, Zhang, Ren, Sun: Delving deep into rectifiers, ICCV 2015. Glorot: Glorot, Bengio: Understanding the
 * difficulty of training deep feedforward neural networks, AISTATS 2010. DEFAULT is Kaiming uniform with a = sqrt(5),
 * which is uniform within 1 / sqrt(fan_in), for weights and biases alike. */
static void distribution(const struct parameter *p, bool *normal, double *scale)
{
    double in = (double)(p->fan_in > 0 ? p->fan_in : 1), out = (double)(p->fan_out > 0 ? p->fan_out : 1);
    *normal = false;
    *scale = 0;
    switch (p->init) {
    case TUTTI_INIT_DEFAULT: *scale = 1 / sqrt(in); break;
    case TUTTI_INIT_HE_UNIFORM: *scale = sqrt(6 / in); break;
    case TUTTI_INIT_GLOROT_UNIFORM: *scale = sqrt(6 / (in + out)); break;
    case TUTTI_INIT_HE_NORMAL: *normal = true, *scale = sqrt(2 / in); break;
    case TUTTI_INIT_HE_NORMAL_FAN_OUT: *normal = true, *scale = sqrt(2 / out); break;
    case TUTTI_INIT_GLOROT_NORMAL: *normal = true, *scale = sqrt(2 / (in + out)); break;
    case TUTTI_INIT_NORMAL: *normal = true, *scale = p->init_scale != 0 ? p->init_scale : 0.01; break;
    case TUTTI_INIT_ZEROS: break;
    }
}

struct work {
    const tutti_network *network;
    uint64_t seed;
    const struct parameter_arenas *arenas;
};

/* Floats of the arena that one task fills; VGG-16 has 138 million of them. */
enum { CHUNK = 1 << 18 };

/* Writes elements first .. last - 1 of a parameter to values[0] and following. */
static void make_values(
    const struct work *work, const struct parameter *p, uint32_t number, int64_t first, int64_t last, float *values)
{
    bool normal;
    double scale;
    distribution(p, &normal, &scale);
    const uint32_t stream = (uint32_t)RANDOM_WEIGHTS + number;
    if (p->values) {
        memcpy(values, p->values + first, (size_t)(last - first) * sizeof(float));
        return;
    }
    if (normal) random_normals(work->seed, stream, (uint64_t)first, (size_t)(last - first), values);
    for (int64_t i = 0; i < last - first; i++) {
        if (p->init == TUTTI_INIT_ZEROS)
            values[i] = p->init_constant;
        else if (normal)
            values[i] = (float)(scale * values[i]);
        else
            values[i] = (float)(scale * (2 * (double)random_uniform(work->seed, stream, (uint64_t)(first + i)) - 1));
    }
}

static bool is_stored(const struct parameter *p)
{
    return parameter_type(p) == TYPE_BF16 || parameter_type(p) == TYPE_INT8;
}

/* Fills the chunk of one arena that begins at `start`. */
static void fill_range(const struct work *work, bool frozen, int64_t start)
{
    float *arena = frozen ? work->arenas->frozen : work->arenas->parameters;
    const int64_t floats = frozen ? work->network->frozen_floats : work->network->total_floats, end = start + CHUNK;
    for (int64_t i = start; i < end && i < floats; i++) arena[i] = 0;
    uint32_t number = 0;
    for (size_t n = 0; n < work->network->parameter_count; n++) {
        const struct parameter *p = &work->network->parameters[n];
        const uint32_t own = number;
        number += p->kind != PARAMETER_CONSTANT;
        if (parameter_is_fixed(p) != frozen || is_stored(p)) continue;
        const int64_t first = start > p->offset ? start - p->offset : 0;
        const int64_t last = end - p->offset < p->elements ? end - p->offset : p->elements;
        if (first < last) make_values(work, p, own, first, last, parameter_in(p, work->arenas) + first);
    }
}

static void fill_chunk(void *argument, int task)
{
    const struct work *work = argument;
    const int chunks = (int)divide_up(work->network->total_floats, CHUNK);
    fill_range(work, task >= chunks, (int64_t)(task < chunks ? task : task - chunks) * CHUNK);
}

/* A parameter that is stored in fewer bits; each task fills `rows` rows. */
struct stored_work {
    const struct work *work;
    const struct parameter *parameter;
    uint32_t number;
    int64_t rows;
};

static void fill_rows(void *argument, int task)
{
    const struct stored_work *stored = argument;
    const struct parameter *p = stored->parameter;
    enum { PART = 64 * STORED_BLOCK };
    const int64_t row = parameter_row(p), first = task * stored->rows, end = first + stored->rows;
    for (int64_t r = first; r < end && r < parameter_rows(p); r++)
        for (int64_t i = 0; i < row; i += PART) {
            float values[PART];
            const int64_t count = row - i < PART ? row - i : PART;
            make_values(stored->work, p, stored->number, r * row + i, r * row + i + count, values);
            parameter_set_part(p, stored->work->arenas, r, i, count, values);
        }
}

static void fill_stored(const struct work *work, struct thread_pool *pool)
{
    uint32_t number = 0;
    for (size_t n = 0; n < work->network->parameter_count; n++) {
        const struct parameter *p = &work->network->parameters[n];
        const uint32_t own = number;
        number += p->kind != PARAMETER_CONSTANT;
        if (!is_stored(p)) continue;
        enum { TASKS = 64 };
        const int64_t tasks = parameter_rows(p) < TASKS ? parameter_rows(p) : TASKS;
        struct stored_work stored = { work, p, own, divide_up(parameter_rows(p), tasks) };
        thread_pool_run(pool, (int)tasks, fill_rows, &stored);
    }
}

tutti_status network_initialise(const tutti_network *network, uint64_t seed, const struct parameter_arenas *arenas)
{
    struct thread_pool *pool = NULL;
    tutti_status status = thread_pool_new(&pool, network->runtime->threads);
    if (status != TUTTI_OK) return status;
    struct work work = { network, seed, arenas };
    const int64_t chunks = divide_up(network->total_floats, CHUNK) + divide_up(network->frozen_floats, CHUNK);
    thread_pool_run(pool, (int)chunks, fill_chunk, &work);
    fill_stored(&work, pool);
    thread_pool_free(pool);
    return TUTTI_OK;
}

float *parameter_in(const struct parameter *parameter, const struct parameter_arenas *arenas)
{
    return (parameter_is_fixed(parameter) ? arenas->frozen : arenas->parameters) + parameter->offset;
}
