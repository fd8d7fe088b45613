/* The exchange of gradients: of several devices, or of one if ranks sum its gradients or the caller keeps them
 * (backward.c). Each replica's gradients arrive on the host in ranges of their arena, in its own order. The arena is
 * cut into blocks. A block is summed over the replicas when all of them have delivered it and threads are free, in the
 * order of the replicas, so the result does not depend on that of arrival. Loss kernels multiply each gradient by
 * gradient_weight, 1 / (samples of the whole step), so a plain sum is the weighted mean, whatever the shares.
 *
 * If CPU devices occupy all cores, reduction starts when the first of them finishes; earlier, reduction threads would
 * compete with compute. Parts are whole samples, so one device finishes first, and then has spare time. If ranks sum
 * gradients, reduction starts at once (threads_for_sums()).
 *
 * This pass also updates the block's parameters, while other blocks are still on their way. It writes to the
 * next copy of the parameters and the optimizer's states, and to the memory of devices that share the host's. The next
 * copy becomes the master copy (parameters_commit) when the last block is done and all losses are known. If a device
 * fails before that, or a loss is not finite, the master copy has not changed, and devices that share memory get it
 * again, since replica_end_attempt() has invalidated theirs.
 *
 * If ranks sum gradients, blocks go into an all-reduce instead (ranks_sum.c), and the update follows the vote. If
 * gradients are clipped, the sums are kept, and the update follows when their norm is known (commit.c). If the caller
 * keeps them (backward.c), no update follows here. */
#include "parallel/exchange.h"

#include "base/bf16.h"
#include "base/floats.h"
#include "base/memory.h"
#include "parallel/ranks_sum.h"
#include "parallel/step.h"
#include "parallel/trainer.h"

#include <math.h>
#include <stdalign.h>
#include <stdlib.h>
#include <string.h>

enum {
    CHUNK = OPTIMIZER_CHUNK, /* floats of a block that are processed at once, in the first-level cache */
    TURN = 16                /* blocks of a thread, a millisecond or two, between checks for events */
};
/* Size from which on arenas do not stay in a cache until the next step. */
#define STREAM_BYTES ((size_t)16 << 20)

struct exchange {
    tutti_trainer *trainer;
    struct ranks *ranks; /* NULL: there are no other ranks, or they do not sum gradients */
    float *sums;         /* without other ranks: where sums go that are kept; NULL: they update at once */
    struct host_update update;
    struct optimizer_arrays master, next; /* of the parameter store */
    bool stream;
    int64_t blocks;
    bool *listed, *summed;
    int64_t *ready; /* blocks that all replicas have delivered, in the order of discovery: `taken` are done */
    int64_t ready_count, taken, turn_end;
    atomic_llong next_ready; /* in `ready`, of a turn */
    atomic_uint largest;     /* bits of the largest sum */
};

static int64_t block_end(const struct exchange *exchange, int64_t block)
{
    const int64_t total = exchange->trainer->network->total_floats;
    const int64_t end = (block + 1) * EXCHANGE_BLOCK;
    return end < total ? end : total;
}

/* Returns the length of the overlap of a bucket and a range; *first: where it begins. */
static int64_t overlap(const struct bucket_delivery *delivery, int64_t begin, int64_t end, int64_t *first)
{
    *first = delivery->first > begin ? delivery->first : begin;
    const int64_t last = delivery->first + delivery->count < end ? delivery->first + delivery->count : end;
    return last > *first ? last - *first : 0;
}

/* Returns whether a replica has delivered a block. A replica that has ended has delivered everything. */
static bool has_block(const struct exchange *exchange, const struct replica *replica, int64_t block)
{
    if (worker_is_idle_locked(&replica->worker)) return true;
    const int64_t begin = block * EXCHANGE_BLOCK, end = block_end(exchange, block);
    int64_t covered = 0, first;
    for (size_t i = 0; i < replica->gradients.arrived; i++)
        covered += overlap(&replica->gradients.deliveries[i], begin, end, &first);
    return covered == end - begin;
}

static void note_largest(struct exchange *exchange, uint32_t largest)
{
    unsigned known = atomic_load(&exchange->largest);
    while (known < largest && !atomic_compare_exchange_weak(&exchange->largest, &known, largest)) continue;
}

/* Finds the replicas whose gradients were not finite; called only if a sum is not. */
static void find_not_finite(const tutti_trainer *trainer)
{
    for (int r = 0; r < trainer->count; r++) {
        const struct replica_gradients *gradients = &trainer->replicas[r].gradients;
        struct replica_work *work = &trainer->works[r];
        if (trainer->device_division.parts[r] == 0) continue;
        for (size_t i = 0; i < gradients->delivery_count; i++) {
            const struct bucket_delivery *delivery = &gradients->deliveries[i];
            if (delivery->data) work->result.not_finite |= floats_not_finite(delivery->data, delivery->count);
            for (int64_t j = 0; delivery->bf16 && j < delivery->count; j++)
                work->result.not_finite |= !isfinite(bf16_to_float(delivery->bf16[j]));
        }
    }
}

/* Returns a replica's gradients of a chunk: in place, if one bucket has them all as floats; else copied to
 * `assembled`, with zeros where it has none. All deliveries that overlap the chunk are complete. The array does not
 * move: gradients_await() marks the first delivery complete only after all launches, and so all deliveries, were
 * enqueued. */
static const float *gradients_of(const struct replica *replica, int64_t begin, int64_t end, float *restrict assembled)
{
    memset(assembled, 0, (size_t)(end - begin) * sizeof(float));
    for (size_t i = 0; i < replica->gradients.delivery_count; i++) {
        int64_t first;
        const struct bucket_delivery *delivery = &replica->gradients.deliveries[i];
        const int64_t count = overlap(delivery, begin, end, &first), skip = first - delivery->first;
        if (count == 0) continue;
        if (delivery->data && count == end - begin) return delivery->data + skip;
        if (delivery->data) memcpy(assembled + (first - begin), delivery->data + skip, (size_t)count * sizeof(float));
        for (int64_t j = 0; !delivery->data && j < count; j++)
            assembled[first - begin + j] = bf16_to_float(delivery->bf16[skip + j]);
    }
    return assembled;
}

/* Adds two addends in one pass, which takes half of the time of two passes. Returns the bits of the largest
 * magnitude. */
static uint32_t add_two(const float *restrict a, const float *restrict b, int64_t count, float *restrict sums)
{
    uint32_t largest = 0;
    for (int64_t i = 0; i < count; i++) {
        sums[i] = sums[i] + a[i] + b[i];
        const uint32_t bits = float_magnitude_bits(sums[i]);
        largest = bits > largest ? bits : largest;
    }
    return largest;
}

/* Sums a chunk in the order of the replicas. Returns the bits of the largest magnitude. */
static uint32_t sum_chunk(const struct exchange *exchange, int64_t begin, int64_t end, float *sums)
{
    static const float nothing[CHUNK];
    const tutti_trainer *trainer = exchange->trainer;
    alignas(64) float assembled[2][CHUNK];
    const float *addends[2];
    int count = 0;
    uint32_t largest = 0;
    memset(sums, 0, (size_t)(end - begin) * sizeof(float));
    for (int r = 0; r < trainer->count; r++) {
        if (trainer->device_division.parts[r] == 0) continue;
        addends[count] = gradients_of(&trainer->replicas[r], begin, end, assembled[count]);
        if (++count < 2) continue;
        largest = add_two(addends[0], addends[1], end - begin, sums);
        count = 0;
    }
    return count == 0 ? largest : add_two(addends[0], nothing, end - begin, sums);
}

static void write_range(const struct exchange *exchange, float *restrict to, const float *restrict from, int64_t count)
{
    if (exchange->stream)
        memory_stream(to, from, count);
    else
        memcpy(to, from, (size_t)count * sizeof(float));
}

/* Writes new parameters to devices that share the host's memory. */
static void write_to_devices(const struct exchange *exchange, int64_t begin, int64_t count, const float *parameters)
{
    const tutti_trainer *trainer = exchange->trainer;
    for (int r = 0; r < trainer->count; r++) {
        const struct replica *replica = &trainer->replicas[r];
        if (trainer->device_division.parts[r] == 0)
            continue; /* it may have been given up, and its thread may come back */
        for (size_t i = 0; i < replica->gradients.delivery_count; i++) {
            int64_t first;
            const struct bucket_delivery *delivery = &replica->gradients.deliveries[i];
            const int64_t here = overlap(delivery, begin, begin + count, &first);
            if (delivery->parameters && here > 0)
                write_range(
                    exchange, delivery->parameters + (first - delivery->first), parameters + (first - begin), here);
        }
    }
}

static void update_next(const struct exchange *exchange, int64_t first, int64_t count, const float *sums)
{
    struct optimizer_chunk chunk;
    const int64_t trained = optimizer_update_chunk(&exchange->update, first, count, &exchange->master, sums, &chunk);
    write_range(exchange, exchange->next.parameters + first, chunk.parameters, count);
    for (int i = 0; i < OPTIMIZER_STATES && exchange->master.states[i] && trained > 0; i++)
        write_range(exchange, exchange->next.states[i] + first, chunk.states[i], trained);
    write_to_devices(exchange, first, count, chunk.parameters);
}

static void work_on_block(struct exchange *exchange, int64_t block)
{
    const int64_t end = block_end(exchange, block);
    alignas(64) float sums[CHUNK];
    uint32_t largest = 0;
    for (int64_t first = block * EXCHANGE_BLOCK; first < end; first += CHUNK) {
        const int64_t count = end - first < CHUNK ? end - first : CHUNK;
        const uint32_t here = sum_chunk(exchange, first, first + count, sums);
        largest = here > largest ? here : largest;
        if (exchange->ranks)
            ranks_set_sums(exchange->trainer, first, count, sums);
        else if (exchange->sums)
            memcpy(exchange->sums + first, sums, (size_t)count * sizeof(float));
        else
            update_next(exchange, first, count, sums);
    }
    note_largest(exchange, largest);
    exchange->summed[block] = true;
}

static void work_on_blocks(void *argument, int thread)
{
    (void)thread;
    struct exchange *exchange = argument;
    int64_t i;
    while ((i = atomic_fetch_add(&exchange->next_ready, 1)) < exchange->turn_end)
        work_on_block(exchange, exchange->ready[i]);
    memory_streamed();
}

static void take_turn(struct exchange *exchange, int threads)
{
    const int64_t left = exchange->ready_count - exchange->taken, most = (int64_t)threads * TURN;
    exchange->turn_end = exchange->taken + (left < most ? left : most);
    atomic_store(&exchange->next_ready, exchange->taken);
    thread_pool_run(exchange->trainer->pool, threads, work_on_blocks, exchange);
    exchange->taken = exchange->turn_end;
    if (exchange->ranks) ranks_start_all_reduce(exchange->trainer, exchange->summed);
}

/* Under the lock. Returns the number of threads for sums: none while CPU devices compute on every core, because the
 * sums would compete with them; when one of several has finished, its cores. With other ranks, all threads, so that
 * no rank waits longer than needed. */
static int threads_for_sums(const struct exchange *exchange)
{
    const tutti_trainer *trainer = exchange->trainer;
    const int threads = thread_pool_size(trainer->pool);
    int devices = 0, computing = 0, units = 0;
    for (int r = 0; r < trainer->count; r++) {
        const struct replica *replica = &trainer->replicas[r];
        if (trainer->device_division.parts[r] == 0 || !replica->device->host_cpu) continue;
        devices++;
        if (!worker_is_busy_locked(&replica->worker) || !gradients_are_expected(&replica->gradients)) continue;
        computing++;
        units += replica->device->can.units;
    }
    if (exchange->ranks || computing == 0) return threads;
    const int unused = threads - units, left = (int)divide_up((int64_t)threads * (devices - computing), devices);
    return unused > left ? unused : left;
}

/* Under the lock. Lists the blocks that have become ready. Returns whether some replica still works. */
static bool find_ready(struct exchange *exchange, bool *failed)
{
    const tutti_trainer *trainer = exchange->trainer;
    bool working = false;
    for (int r = 0; r < trainer->count; r++) {
        if (trainer->device_division.parts[r] == 0) continue;
        working |= worker_is_busy_locked(&trainer->replicas[r].worker);
        *failed |= worker_failed_locked(&trainer->replicas[r].worker);
    }
    for (int64_t block = 0; block < exchange->blocks && !*failed; block++) {
        bool ready = !exchange->listed[block];
        for (int r = 0; r < trainer->count && ready; r++)
            ready = trainer->device_division.parts[r] == 0 || has_block(exchange, &trainer->replicas[r], block);
        if (!ready) continue;
        exchange->ready[exchange->ready_count++] = block;
        exchange->listed[block] = true;
    }
    return working;
}

/* Sums blocks as they arrive. Returns true when all are done; false when some replica has failed and the others have
 * finished. */
static bool sum_as_they_arrive(struct exchange *exchange, bool failed)
{
    tutti_trainer *trainer = exchange->trainer;
    watchdog_lock(&trainer->watchdog);
    while (true) {
        const bool working = find_ready(exchange, &failed);
        const int threads = !failed && exchange->taken < exchange->ready_count ? threads_for_sums(exchange) : 0;
        if (threads > 0) {
            watchdog_unlock(&trainer->watchdog);
            take_turn(exchange, threads);
            watchdog_lock(&trainer->watchdog);
        } else if (working) {
            watchdog_wait(&trainer->watchdog);
        } else {
            break;
        }
    }
    watchdog_unlock(&trainer->watchdog);
    return !failed;
}

bool trainer_updates_from_sums(const tutti_trainer *trainer)
{
    return ranks_sum_mode(trainer) || (trainer->options.exchange && trainer->optimizer.clip_norm > 0);
}

/* Returns where the sums over devices go if they are kept. Those for an all-reduce go to ranks_set_sums(). */
static float *sums_to(const tutti_trainer *trainer, const struct step *step)
{
    if (ranks_sum_mode(trainer)) return NULL;
    if (step->kept) return step->kept;
    return step->result.update == UPDATE_FROM_SUMS ? parameters_gradients(trainer->store) : NULL;
}

tutti_status exchange_run(tutti_trainer *trainer, struct step *step)
{
    tutti_status status = TUTTI_OK;
    struct exchange exchange = { .trainer = trainer,
        .ranks = ranks_sum_mode(trainer) ? trainer->ranks : NULL,
        .sums = sums_to(trainer, step),
        .update = { &trainer->optimizer, trainer->network, &step->input.constants, NULL },
        .master = parameters_master(trainer->store),
        .next = parameters_next(trainer->store),
        .stream = (size_t)trainer->network->total_floats * sizeof(float) >= STREAM_BYTES,
        .blocks = divide_up(trainer->network->total_floats, EXCHANGE_BLOCK) };
    exchange.listed = memory_new((size_t)exchange.blocks, sizeof(*exchange.listed));
    exchange.summed = memory_new((size_t)exchange.blocks, sizeof(*exchange.summed));
    exchange.ready = memory_new((size_t)exchange.blocks, sizeof(*exchange.ready));
    if (!exchange.listed || !exchange.summed || !exchange.ready) status = TUTTI_NO_MEMORY;
    const bool all = sum_as_they_arrive(&exchange, status != TUTTI_OK);
    const uint32_t largest = atomic_load(&exchange.largest);
    memcpy(&step->result.largest, &largest, sizeof(largest));
    step->result.not_finite = largest >= FLOAT_INFINITE;
    if (step->result.not_finite && all) find_not_finite(trainer);
    free(exchange.listed);
    free(exchange.summed);
    free(exchange.ready);
    return status;
}

void exchange_mark_devices(tutti_trainer *trainer)
{
    for (int r = 0; r < trainer->count; r++)
        if (trainer->device_division.parts[r] > 0 && gradients_mapped_parameters(&trainer->replicas[r].gradients))
            versions_updated(&trainer->replicas[r].versions, parameters_version(trainer->store), false);
}
