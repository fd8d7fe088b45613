#include "parallel/ranks_sum.h"

#include "base/bf16.h"
#include "base/memory.h"
#include "parallel/exchange.h"
#include "parallel/ranks_division.h"
#include "parallel/ranks_notes.h"
#include "parallel/step.h"
#include "parallel/sync_ranks.h"
#include "parallel/trainer.h"

#include <float.h>
#include <math.h>
#include <string.h>

enum { SEGMENT_BLOCKS = SEGMENT_FLOATS / EXCHANGE_BLOCK };

bool ranks_sum_mode(const struct tutti_trainer *trainer)
{
    return trainer->ranks && trainer->ranks->average.every == 0;
}

void ranks_begin_attempt(struct tutti_trainer *trainer)
{
    trainer->ranks->buffers.blocks_left = divide_up(trainer->network->total_floats, EXCHANGE_BLOCK);
    sync_ranks_begin(trainer);
}

void ranks_set_sums(struct tutti_trainer *trainer, int64_t first, int64_t count, const float *sums)
{
    struct ranks *ranks = trainer->ranks;
    const int64_t rounded = ranks->buffers.receive_bf16 ? network_trained_in(trainer->network, first, count) : 0;
    for (int64_t i = 0; i < rounded; i++) ranks->buffers.send_bf16[first + i] = bf16_from_float(sums[i]);
    memcpy(ranks->buffers.send + first + rounded, sums + rounded, (size_t)(count - rounded) * sizeof(float));
}

/* Starts the all-reduce of a range. A failure here occurs again where the sums are waited for. */
static void start_range(struct tutti_trainer *trainer, int64_t begin, int64_t end)
{
    struct ranks *ranks = trainer->ranks;
    const int64_t rounded = ranks->buffers.receive_bf16 ? network_trained_in(trainer->network, begin, end - begin) : 0;
    const int64_t middle = begin + rounded;
    if (middle > begin)
        (void)comm_start_all_reduce_bf16(
            ranks->comm, ranks->buffers.send_bf16 + begin, ranks->buffers.receive_bf16 + begin, middle - begin);
    float *const sums = parameters_gradients(trainer->store);
    if (end > middle)
        (void)comm_start_all_reduce(ranks->comm, ranks->buffers.send + middle, sums + middle, end - middle);
}

static void widen(void *argument, int task)
{
    struct tutti_trainer *trainer = argument;
    const int64_t begin = (int64_t)task * EXCHANGE_BLOCK;
    const int64_t count = network_trained_in(trainer->network, begin, EXCHANGE_BLOCK);
    float *const gradients = parameters_gradients(trainer->store);
    for (int64_t i = begin; i < begin + count; i++)
        gradients[i] = bf16_to_float(trainer->ranks->buffers.receive_bf16[i]);
}

void ranks_start_all_reduce(struct tutti_trainer *trainer, const bool *summed)
{
    struct ranks *ranks = trainer->ranks;
    const int64_t total = trainer->network->total_floats;
    while (ranks->buffers.blocks_left > 0) {
        const int64_t last = ranks->buffers.blocks_left, first = last > SEGMENT_BLOCKS ? last - SEGMENT_BLOCKS : 0;
        for (int64_t block = first; summed && block < last; block++)
            if (!summed[block]) return;
        const int64_t begin = first * EXCHANGE_BLOCK;
        const int64_t end = last * EXCHANGE_BLOCK < total ? last * EXCHANGE_BLOCK : total;
        start_range(trainer, begin, end);
        ranks->buffers.blocks_left = first;
    }
}

tutti_status ranks_end_attempt(
    struct tutti_trainer *trainer, const struct vote *vote, enum verdict *all, struct step_result *result)
{
    tutti_status status = TUTTI_OK;
    struct ranks *ranks = trainer->ranks;
    struct rank_note total;
    ranks_start_all_reduce(trainer, NULL); /* the others wait for all blocks, even invalid ones */
    const tutti_status waited = comm_wait_all_reduces(ranks->comm);
    if (waited != TUTTI_OK && !vote_fails(vote)) return waited;
    if (ranks->buffers.receive_bf16)
        thread_pool_run(
            trainer->pool, (int)divide_up(trainer->network->trained_floats, EXCHANGE_BLOCK), widen, trainer);
    ranks->mine.not_finite = result->not_finite;
    ranks->mine.largest = result->largest;
    ranks->mine.samples = result->totals.samples;
    ranks->mine.metrics = result->totals.metrics;
    ranks->mine.seconds = ranks->seconds;
    ranks->mine.divides = ranks->division.wanted;
    ranks->mine.repartition = (int32_t)ranks->division.repartition.state;
    TRY(ranks_exchange_notes(trainer, vote));
    ranks_add_notes(ranks, &total);
    *all = (enum verdict)total.says;
    if (*all == VOTE_RETRY) return TUTTI_OK; /* the next vote announces the division again */
    result->not_finite = total.not_finite;
    result->largest = (float)fmin(total.largest, FLT_MAX);
    result->totals.metrics = total.metrics;
    if (ranks->division.automatic) TRY(ranks_take_division(trainer));
    ranks->division.wanted = false;
done:
    return status;
}
