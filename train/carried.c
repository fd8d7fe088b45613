#include "train/carried.h"

#include "base/memory.h"
#include "parallel/division.h"
#include "parallel/faults.h"
#include "parallel/trainer.h"
#include "train/checks.h"
#include "tutti_sequences.h"

#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------------------------------------- compile ---- */

static int output_of(const struct objective *objective, tutti_tensor tensor)
{
    for (int i = 0; i < objective->output_count; i++)
        if (objective->outputs[i] == tensor.id) return i;
    return -1;
}

/* Returns the number of an input among the feeds, which begin with the network's inputs in their order; or -1. */
static int feed_of(const tutti_network *network, tutti_tensor input)
{
    tutti_tensor found;
    for (int i = 0; i < PLAN_MAX_FEEDS && tutti_network_input(network, i, &found) == TUTTI_OK; i++)
        if (found.id == input.id) return i;
    return -1;
}

static tutti_status check_pair(const tutti_trainer *trainer, const tutti_carry *carry, int number)
{
    tutti_shape from = { 0 }, to = { 0 };
    const struct graph *graph = &trainer->network->graph;
    const struct value *input = graph_at(graph, carry->input.id);
    if (input->type != TYPE_F32)
        return fail(TUTTI_INVALID, "the input of carries[%d] is not float32, as outputs are", number);
    (void)tutti_shape_of(trainer->network, carry->output, &from);
    (void)tutti_shape_of(trainer->network, carry->input, &to);
    bool same = from.rank == to.rank, sequences = false;
    for (int i = 0; i < from.rank && same; i++) {
        same = from.sizes[i] == to.sizes[i];
        sequences |= from.sizes[i] == TUTTI_SEQUENCE;
    }
    if (!same) return fail(TUTTI_SHAPE, "the output and the input of carries[%d] have different shapes", number);
    if (sequences)
        return fail(
            TUTTI_SHAPE, "carries[%d] has TUTTI_SEQUENCE in its shape: state has the same size in each call", number);
    return TUTTI_OK;
}

static tutti_status add(tutti_trainer *trainer, const tutti_carry *carry, int number)
{
    tutti_status status = TUTTI_OK;
    struct carry_list *list = &trainer->options.carries;
    const int output = output_of(&trainer->objective, carry->output);
    const int feed = feed_of(trainer->network, carry->input);
    if (output < 0)
        FAIL(TUTTI_INVALID,
            "the output of carries[%d] is not an output of this trainer: name it in tutti_training.outputs", number);
    if (feed < 0) FAIL(TUTTI_INVALID, "the input of carries[%d] is not an input of this network", number);
    if (carried_find(list, feed) >= 0)
        FAIL(TUTTI_INVALID, "carries[%d] is to an input to which another output is carried", number);
    TRY(check_pair(trainer, carry, number));
    trainer->objective.carried[output] = feed + 1;
    list->items[list->count].output = output;
    list->items[list->count].feed = feed;
    list->items[list->count++].bytes = arrays_sample_bytes(&trainer->outputs, output, 1);
    trainer->feeds.feeds[feed].carried = true;
done:
    return status;
}

tutti_status carried_read(tutti_trainer *trainer, const tutti_training *training)
{
    tutti_status status = TUTTI_OK;
    if (training->carry_count == 0) return TUTTI_OK;
    if (training->carry_count < 0 || training->carry_count > PLAN_MAX_FEEDS)
        FAIL(TUTTI_INVALID, "carry_count is %d: it must be from 0 to %d", training->carry_count, PLAN_MAX_FEEDS);
    if (!training->carries)
        FAIL(TUTTI_INVALID, "tutti_training.carries is NULL, but carry_count is %d: pass that many pairs",
            training->carry_count);
    if (trainer->options.evaluates)
        FAIL(TUTTI_INVALID,
            "a trainer with a loss carries no state: compile another one with TUTTI_LOSS_NONE and "
            "tutti_training.parameters_of");
    for (int i = 0; i < training->carry_count; i++) TRY(add(trainer, &training->carries[i], i));
done:
    return status;
}

static int largest_share(const tutti_trainer *trainer)
{
    int largest = 0;
    const struct share *shares = trainer->device_division.shares;
    for (int i = 1; i < trainer->count; i++)
        if (shares[i].weight > shares[largest].weight) largest = i;
    return largest;
}

void carried_choose_device(tutti_trainer *trainer)
{
    const int chosen = largest_share(trainer);
    for (int i = 0; trainer->options.carries.count > 0 && i < trainer->count; i++)
        trainer->device_division.shares[i].weight = i == chosen;
}

/* --------------------------------------------------------------------------------------------------- calls ---- */

static struct replica *holder(const tutti_trainer *trainer)
{
    return &trainer->replicas[largest_share(trainer)];
}

tutti_status carried_check(const tutti_trainer *trainer, int64_t samples)
{
    if (trainer->options.carries.count == 0) return TUTTI_OK;
    const int64_t begun = holder(trainer)->carried.samples, most = trainer->options.batch;
    if (begun > 0 && samples != begun)
        return fail(TUTTI_INVALID,
            "the state is of %lld samples, but the call has %lld: call tutti_reset_carried() before others",
            (long long)begun, (long long)samples);
    if (samples > most)
        return fail(TUTTI_INVALID,
            "the call has %lld samples: a trainer that carries state takes at most tutti_training.batch, %lld",
            (long long)samples, (long long)most);
    return TUTTI_OK;
}

tutti_status tutti_reset_carried(tutti_trainer *trainer)
{
    tutti_status status;
    TRY(trainer_check(trainer, false, 1));
    if (trainer->options.carries.count == 0)
        FAIL(TUTTI_INVALID, "this trainer carries nothing: set tutti_training.carries");
    carried_reset(holder(trainer));
    if (!replica_is_lost(holder(trainer))) goto done;
    for (int i = 0; i < trainer->count; i++)
        trainer->device_division.shares[i].weight = membership_is_present(&trainer->members, i);
    carried_choose_device(trainer);
    if (replica_is_lost(holder(trainer))) FAIL(TUTTI_DEVICE_LOST, "no device is left to carry the state");
    carried_reset(holder(trainer));
done:
    return status;
}

/* Runs carried_access() on the device that has the state. `to` or `from`: the caller's. */
static tutti_status access_state(
    tutti_trainer *trainer, tutti_tensor input, float *to, const float *from, int64_t samples)
{
    tutti_status status;
    struct carried_access *access = NULL;
    TRY(trainer_check(trainer, false, samples));
    if (!to && !from) FAIL(TUTTI_INVALID, "the array for the state is NULL: pass one");
    const struct carry_list *list = &trainer->options.carries;
    const int feed = feed_of(trainer->network, input), item = feed < 0 ? -1 : carried_find(list, feed);
    if (item < 0) FAIL(TUTTI_INVALID, "tensor %d is not an input of tutti_training.carries", input.id);
    struct replica *replica = holder(trainer);
    TRY(carried_check(trainer, samples));
    if (to && replica->carried.samples == 0)
        FAIL(TUTTI_INVALID, "the state has not begun: tutti_infer() or tutti_set_carried() begins it");
    if (replica_is_lost(replica)) FAIL(TUTTI_DEVICE_LOST, "the device that has the state is lost, and so is the state");
    const size_t bytes = (size_t)samples * list->items[item].bytes;
    access = memory_new(1, sizeof(*access) + bytes);
    if (!access) return TUTTI_NO_MEMORY;
    *access = (struct carried_access) { .item = item, .samples = samples, .writes = from != NULL, .bytes = bytes };
    if (from) memcpy(access->values, from, bytes);
    worker_start(&replica->worker, carried_access, access);
    status = worker_wait(&replica->worker);
    if (worker_is_abandoned(&replica->worker)) access = NULL; /* the device may still read or write it */
    if (status == TUTTI_OK && to) memcpy(to, access->values, bytes);
    if (status != TUTTI_OK) (void)trainer_lose(trainer, replica, status); /* others do not have the state */
done:
    free(access);
    return status;
}

tutti_status tutti_set_carried(tutti_trainer *trainer, tutti_tensor input, const float *values, int64_t samples)
{
    return access_state(trainer, input, NULL, values, samples);
}

tutti_status tutti_get_carried(tutti_trainer *trainer, tutti_tensor input, float *values, int64_t samples)
{
    return access_state(trainer, input, values, NULL, samples);
}
