/* The exchange of gradients between several devices. Each replica's gradients arrive on the host in ranges of their
 * arena, in its own order; the arena is cut into blocks, and a block is summed over the replicas as soon as all of them
 * have it, always in the replicas' order: the result does not depend on who was first. Losses scale every gradient by
 * 1 / (samples of the whole step), so a plain sum is the weighted mean, whatever the shares.
 *
 * In the same pass the block's parameters are updated, while the rest is still on its way: into second copies of the
 * parameters and the optimizer's states, and into the memory of devices that share the host's. The copies change places
 * (exchange_adopt) when the last block is done and all losses are known; until then a device may fail, or a loss turn
 * out not to be finite, and nothing has happened.
 *
 * Where other ranks' sums are to be added, blocks leave for them instead (world.c), and the update follows the vote. */
#include "train/trainer.h"

#include "base/bf16.h"
#include "base/memory.h"

#include <math.h>
#include <stdalign.h>
#include <stdlib.h>
#include <string.h>

/* Floats of a block that are worked on at once: they stay in a core's first cache, with all that belongs to them. */
enum { PIECE = 1024 };
/* Arenas that no cache holds until the next step. */
#define STREAM_BYTES ((size_t)16 << 20)

struct exchange {
    tutti_trainer *trainer;
    struct world *world; /* other ranks, whose sums are added; NULL: there are none */
    struct optimizer_step step;
    bool stream;
    int64_t blocks;
    bool *summed;
    int64_t *ready; /* blocks to be summed now */
    int ready_count;
    atomic_uint largest; /* bits of the largest sum */
};

static int64_t block_end(const struct exchange *exchange, int64_t block)
{
    const int64_t total = exchange->trainer->network->total_floats;
    const int64_t end = (block + 1) * EXCHANGE_BLOCK;
    return end < total ? end : total;
}

/* Where a range that arrived and a block overlap. */
static int64_t overlap(const struct arrival *arrival, int64_t begin, int64_t end, int64_t *first)
{
    *first = arrival->first > begin ? arrival->first : begin;
    const int64_t last = arrival->first + arrival->count < end ? arrival->first + arrival->count : end;
    return last > *first ? last - *first : 0;
}

/* A replica that is done has no more to come: what did not arrive has no gradient. */
static bool has_block(const struct exchange *exchange, const struct replica *replica, int64_t block)
{
    if (!replica->busy) return true;
    const int64_t begin = block * EXCHANGE_BLOCK, end = block_end(exchange, block);
    int64_t covered = 0, first;
    for (size_t i = 0; i < replica->arrived; i++) covered += overlap(&replica->arrivals[i], begin, end, &first);
    return covered == end - begin;
}

enum { INFINITE = 0x7f800000 };

/* The bits of the largest magnitude, which vectors find at the speed of memory. */
static uint32_t largest_of(const float *values, int64_t count)
{
    uint32_t largest = 0;
    for (int64_t i = 0; i < count; i++) {
        uint32_t bits;
        memcpy(&bits, &values[i], sizeof(bits));
        bits &= 0x7fffffffu;
        largest = bits > largest ? bits : largest;
    }
    return largest;
}

bool exchange_not_finite(const float *values, int64_t count)
{
    return largest_of(values, count) >= INFINITE;
}

static void note_largest(struct exchange *exchange, uint32_t largest)
{
    unsigned known = atomic_load(&exchange->largest);
    while (known < largest && !atomic_compare_exchange_weak(&exchange->largest, &known, largest)) continue;
}

/* Whose gradients were not finite; looked at only where a sum is not. */
static void find_not_finite(const tutti_trainer *trainer)
{
    for (int r = 0; r < trainer->count; r++) {
        struct replica *replica = &trainer->replicas[r];
        for (size_t i = 0; i < replica->arrival_count && trainer->parts[r] > 0; i++) {
            const struct arrival *arrival = &replica->arrivals[i];
            if (arrival->data) replica->not_finite |= exchange_not_finite(arrival->data, arrival->count);
            for (int64_t j = 0; arrival->half && j < arrival->count; j++)
                replica->not_finite |= !isfinite(bf16_to_float(arrival->half[j]));
        }
    }
}

static void add(const struct arrival *arrival, int64_t skip, int64_t count, float *restrict sums)
{
    const float *restrict data = arrival->data ? arrival->data + skip : NULL;
    const uint16_t *restrict half = arrival->half ? arrival->half + skip : NULL;
    for (int64_t i = 0; data && i < count; i++) sums[i] += data[i];
    for (int64_t i = 0; half && i < count; i++) sums[i] += bf16_to_float(half[i]);
}

/* All that overlap the piece have arrived, and no more are added once one has. */
static void sum_piece(const struct exchange *exchange, int64_t begin, int64_t end, float *sums)
{
    const tutti_trainer *trainer = exchange->trainer;
    memset(sums, 0, (size_t)(end - begin) * sizeof(float));
    for (int r = 0; r < trainer->count; r++) {
        const struct replica *replica = &trainer->replicas[r];
        for (size_t i = 0; i < replica->arrival_count && trainer->parts[r] > 0; i++) {
            int64_t first;
            const struct arrival *arrival = &replica->arrivals[i];
            const int64_t count = overlap(arrival, begin, end, &first);
            add(arrival, first - arrival->first, count, sums + (first - begin));
        }
    }
}

static void put(const struct exchange *exchange, float *restrict to, const float *restrict from, int64_t count)
{
    if (exchange->stream)
        memory_stream(to, from, count);
    else
        memcpy(to, from, (size_t)count * sizeof(float));
}

/* Where devices share the host's memory. */
static void put_on_devices(const struct exchange *exchange, int64_t begin, int64_t count, const float *parameters)
{
    const tutti_trainer *trainer = exchange->trainer;
    for (int r = 0; r < trainer->count; r++) {
        const struct replica *replica = &trainer->replicas[r];
        for (size_t i = 0; i < replica->arrival_count && trainer->parts[r] > 0; i++) {
            int64_t first;
            const struct arrival *arrival = &replica->arrivals[i];
            const int64_t here = overlap(arrival, begin, begin + count, &first);
            if (arrival->parameters && here > 0)
                put(exchange, arrival->parameters + (first - arrival->first), parameters + (first - begin), here);
        }
    }
}

static void update_piece(const struct exchange *exchange, int64_t first, int64_t count, const float *sums)
{
    const tutti_trainer *trainer = exchange->trainer;
    const int64_t left = trainer->network->trained_floats - first, trained = left < count ? left : count;
    alignas(64) float parameters[PIECE], kept[OPTIMIZER_STATES][PIECE];
    memcpy(parameters, trainer->parameters + first, (size_t)count * sizeof(float));
    for (int i = 0; i < OPTIMIZER_STATES && trained > 0; i++)
        if (trainer->states[i]) memcpy(kept[i], trainer->states[i] + first, (size_t)trained * sizeof(float));
    optimizer_update_range(&exchange->step, first, count, parameters, sums, (float *[]) { kept[0], kept[1] });
    put(exchange, trainer->next_parameters + first, parameters, count);
    for (int i = 0; i < OPTIMIZER_STATES && trained > 0; i++)
        if (trainer->states[i]) put(exchange, trainer->next_states[i] + first, kept[i], trained);
    put_on_devices(exchange, first, count, parameters);
}

static void work_on_block(void *argument, int task)
{
    struct exchange *exchange = argument;
    const int64_t block = exchange->ready[task], end = block_end(exchange, block);
    alignas(64) float sums[PIECE];
    uint32_t largest = 0;
    for (int64_t first = block * EXCHANGE_BLOCK; first < end; first += PIECE) {
        const int64_t count = end - first < PIECE ? end - first : PIECE;
        sum_piece(exchange, first, first + count, sums);
        const uint32_t here = largest_of(sums, count);
        largest = here > largest ? here : largest;
        if (exchange->world)
            world_put(exchange->trainer, first, count, sums);
        else
            update_piece(exchange, first, count, sums);
    }
    memory_streamed();
    note_largest(exchange, largest);
}

/* Under the lock. True while some replica still works. */
static bool find_ready(struct exchange *exchange, bool *failed)
{
    const tutti_trainer *trainer = exchange->trainer;
    bool working = false;
    for (int r = 0; r < trainer->count; r++) {
        if (trainer->parts[r] == 0) continue;
        const struct replica *replica = &trainer->replicas[r];
        const bool works = replica->busy && !replica->abandoned;
        working |= works;
        *failed |= !works && replica->status != TUTTI_OK;
    }
    exchange->ready_count = 0;
    for (int64_t block = 0; block < exchange->blocks && !*failed; block++) {
        bool ready = !exchange->summed[block];
        for (int r = 0; r < trainer->count && ready; r++)
            ready = trainer->parts[r] == 0 || has_block(exchange, &trainer->replicas[r], block);
        if (!ready) continue;
        exchange->ready[exchange->ready_count++] = block;
        exchange->summed[block] = true;
    }
    return working;
}

tutti_status exchange_run(tutti_trainer *trainer, const struct step_constants *constants)
{
    tutti_status status = TUTTI_OK;
    struct world *world = world_sums(trainer) ? trainer->world : NULL;
    struct exchange exchange = { .trainer = trainer,
        .world = world,
        .step = { &trainer->optimizer, trainer->network, constants },
        .stream = (size_t)trainer->network->total_floats * sizeof(float) >= STREAM_BYTES,
        .blocks = divide_up(trainer->network->total_floats, EXCHANGE_BLOCK) };
    exchange.summed = memory_new((size_t)exchange.blocks, sizeof(*exchange.summed));
    exchange.ready = memory_new((size_t)exchange.blocks, sizeof(*exchange.ready));
    if (!exchange.summed || !exchange.ready) status = TUTTI_NO_MEMORY;
    bool failed = status != TUTTI_OK;
    for (int r = 0; r < trainer->count; r++) trainer->replicas[r].not_finite = false;
    pthread_mutex_lock(&trainer->lock);
    while (true) {
        const bool working = find_ready(&exchange, &failed);
        if (exchange.ready_count > 0) {
            pthread_mutex_unlock(&trainer->lock);
            thread_pool_run(trainer->pool, exchange.ready_count, work_on_block, &exchange);
            if (world) world_leave(trainer, exchange.summed);
            pthread_mutex_lock(&trainer->lock);
            continue;
        }
        if (!working) break;
        watch_wait(trainer);
    }
    pthread_mutex_unlock(&trainer->lock);
    const uint32_t largest = atomic_load(&exchange.largest);
    memcpy(&trainer->largest, &largest, sizeof(largest));
    trainer->not_finite = largest >= INFINITE;
    if (trainer->not_finite && !failed) find_not_finite(trainer);
    free(exchange.summed);
    free(exchange.ready);
    return status;
}

static void swap(float **a, float **b)
{
    float *const c = *a;
    *a = *b;
    *b = c;
}

void exchange_adopt(tutti_trainer *trainer)
{
    swap(&trainer->parameters, &trainer->next_parameters);
    for (int i = 0; i < OPTIMIZER_STATES; i++) swap(&trainer->states[i], &trainer->next_states[i]);
    for (int r = 0; r < trainer->count; r++)
        if (trainer->parts[r] > 0 && trainer->replicas[r].exposed) trainer->replicas[r].version = trainer->version;
}
