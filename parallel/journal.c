/* While one of several devices has the sole replica (rebalance.c), it has the only copy of the newest parameters. So
 * that a failure does not lose them, the host keeps a copy that is some steps older, and the batches of these steps:
 * the other devices replay them, and get the same parameters. The copy is renewed so rarely that it costs 1/400 of the
 * time. Announced batches are copied while the device computes, and it reads the copies. */
#include "parallel/journal.h"

#include "base/clock.h"
#include "base/floats.h"
#include "base/memory.h"
#include "parallel/faults.h"
#include "parallel/trainer.h"

#include <stdlib.h>
#include <string.h>

/* Time between two copies, as a multiple of the time of one; most bytes of batches: with more, it is renewed
 * sooner. */
#define REST 400.0
#define MOST_BYTES ((size_t)256 << 20)

struct entry {
    struct step_input input;
    struct arrays_memory samples; /* copies */
    uint64_t number;              /* of the announced batch that was copied ahead of its step; 0: none */
};

struct journal {
    /* The steps that lead from the host's parameters to the newest ones; the first `done` of them have been done. */
    struct entry *entries; /* all but `count` of the `room` are spare */
    size_t count, room, done, bytes;
    size_t missing;  /* further steps to replay before the parameters are those of the trainer's position */
    double copy_s;   /* what the last copy took */
    double passed_s; /* since then */
    /* Receives the parameters the next time, so that the host's are valid until all have arrived; NULL: not made yet.
     * If a device hangs while it writes there, it is never freed. */
    struct optimizer_arrays *copy;
};

tutti_status journal_open(tutti_trainer *trainer)
{
    trainer->journal = memory_new(1, sizeof(*trainer->journal));
    return trainer->journal ? TUTTI_OK : TUTTI_NO_MEMORY;
}

void journal_free(tutti_trainer *trainer)
{
    struct journal *journal = trainer->journal;
    if (!journal) return;
    for (size_t i = 0; i < journal->room; i++) free(journal->entries[i].samples.at);
    free(journal->entries);
    if (journal->copy) parameters_copy_free(journal->copy);
    free(journal->copy);
    free(journal);
    trainer->journal = NULL;
}

/* ------------------------------------------------------------------------------------------------- entries ---- */

/* The first `count` entries become spare. */
static void drop(struct journal *journal, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const struct entry entry = journal->entries[0];
        journal->bytes -= entry.samples.bytes;
        memmove(journal->entries, journal->entries + 1, (journal->room - 1) * sizeof(entry));
        journal->entries[journal->room - 1] = entry;
    }
    journal->count -= count;
    journal->done = journal->done > count ? journal->done - count : 0;
}

/* Copies samples to the entry with this index. */
static tutti_status copy_samples(tutti_trainer *trainer, size_t index, const struct arrays *feeds, int64_t samples)
{
    tutti_status status = TUTTI_OK;
    struct journal *journal = trainer->journal;
    const struct array_list *list = &trainer->feeds.arrays;
    const struct bound_sizes sizes = { samples, feeds->length };
    void *array = journal->entries;
    TRY(memory_grow(&array, &journal->room, index + 1, sizeof(*journal->entries)));
    journal->entries = array;
    struct entry *entry = &journal->entries[index];
    entry->number = 0;
    TRY(arrays_reserve(list, sizes, samples_may_be_read(trainer), &entry->samples));
    (void)arrays_pack(list, feeds, samples, entry->samples.at);
done:
    return status;
}

/* Copies samples to the entry after the last, which journal_note() adds. The step reads the copies. */
tutti_status journal_take(tutti_trainer *trainer, struct step_input *input)
{
    tutti_status status = TUTTI_OK;
    struct journal *journal = trainer->journal;
    const size_t index = journal->count;
    const bool ahead = input->number > 0 && index < journal->room && journal->entries[index].number == input->number;
    if (!ahead) TRY(copy_samples(trainer, index, &input->feeds, input->samples));
    struct entry *entry = &journal->entries[index];
    entry->number = 0;
    const struct bound_sizes sizes = { input->samples, input->feeds.length };
    input->feeds = arrays_at(&trainer->feeds.arrays, entry->samples.at, sizes);
    input->journaled = true;
    entry->input = *input;
    entry->input.gives_outputs = false; /* where they went may be gone when the step is replayed */
done:
    return status;
}

void journal_take_ahead(tutti_trainer *trainer)
{
    struct journal *journal = trainer->journal;
    const struct batch *next = &trainer->lookahead.next;
    const size_t index = journal->count + 1; /* after that of the step at hand */
    if (next->number == 0 || next->samples == 0) return;
    if (index < journal->room && journal->entries[index].number == next->number) return;
    if (copy_samples(trainer, index, &next->feeds, next->samples) == TUTTI_OK)
        journal->entries[index].number = next->number;
}

/* -------------------------------------------------------------------------------------------------- copies ---- */

/* NULL: the host has no memory left. */
static struct optimizer_arrays *copy_new(const tutti_trainer *trainer)
{
    struct optimizer_arrays *copy = memory_new(1, sizeof(*copy));
    if (!copy) return NULL;
    *copy = parameters_copy_new(trainer->store);
    if (copy->parameters) return copy;
    free(copy);
    return NULL;
}

/* A job of the replica. */
static tutti_status read_all(struct replica *replica, void *argument)
{
    replica_allow_step(replica, replica->setup->batch);
    return replica_read(replica, argument);
}

/* A device updates its parameters only from finite gradients, so parameters that are not finite prove that it is
 * faulty. */
static tutti_status check_copy(const tutti_trainer *trainer, const struct replica *replica)
{
    const struct optimizer_arrays *copy = trainer->journal->copy;
    const tutti_network *network = trainer->network;
    bool bad = floats_not_finite(copy->parameters, network->total_floats);
    for (int i = 0; i < OPTIMIZER_STATES; i++)
        bad |= copy->states[i] && floats_not_finite(copy->states[i], network->trained_floats);
    if (!bad) return TUTTI_OK;
    return fail(TUTTI_WRONG_RESULT,
        "the parameters or optimizer states of device %d, '%s', are not finite, although its losses and gradients "
        "were: see 'tutti devices --check'",
        replica->device->index, replica->device->can.name);
}

tutti_status journal_copy(tutti_trainer *trainer)
{
    struct journal *journal = trainer->journal;
    struct replica *replica = parameters_holder(trainer->store);
    const double start = clock_seconds();
    const bool touched = journal->copy != NULL; /* else this copy takes longer than later ones */
    if (!touched) journal->copy = copy_new(trainer);
    struct optimizer_arrays *copy = journal->copy;
    if (!copy) return TUTTI_NO_MEMORY;
    worker_start(&replica->worker, read_all, copy);
    tutti_status status = worker_wait(&replica->worker);
    if (worker_is_abandoned(&replica->worker)) journal->copy = NULL; /* it may still write there */
    if (status == TUTTI_OK) status = check_copy(trainer, replica);
    if (status != TUTTI_OK) return status;
    parameters_swap(trainer->store, copy);
    drop(journal, journal->count);
    journal->copy_s = touched ? clock_seconds() - start : 0;
    journal->passed_s = 0;
    return TUTTI_OK;
}

tutti_status journal_note(tutti_trainer *trainer, const struct step_input *input, double seconds)
{
    struct journal *journal = trainer->journal;
    if (!journal) return TUTTI_OK; /* the only device, or given shares */
    struct replica *holder = parameters_holder(trainer->store);
    if (!holder || membership_left(&trainer->members) == 1) { /* the host has them, or nobody could use them */
        drop(journal, journal->count < journal->done + 1 ? journal->count : journal->done + 1);
        return TUTTI_OK;
    }
    journal->passed_s += seconds;
    if (journal->done < journal->count) { /* it was replayed */
        journal->done++;
        return TUTTI_OK;
    }
    if (input->journaled) {
        journal->bytes += journal->entries[journal->count].samples.bytes;
        journal->done = ++journal->count;
        if (journal->bytes < MOST_BYTES && journal->passed_s < REST * journal->copy_s) return TUTTI_OK;
    }
    const tutti_status status = journal_copy(trainer);
    return status == TUTTI_OK ? TUTTI_OK : trainer_lose(trainer, holder, status);
}

bool journal_lacks_steps(const tutti_trainer *trainer)
{
    return trainer->journal && (trainer->journal->missing > 0 || parameters_are_lost(trainer->store));
}

size_t journal_claim(tutti_trainer *trainer)
{
    struct journal *journal = trainer->journal;
    if (!journal) return 0;
    size_t left = journal->missing;
    journal->missing = 0;
    if (!parameters_claim(trainer->store)) return left;
    left += journal->done;
    journal->done = 0;
    return left;
}

void journal_return(tutti_trainer *trainer, size_t left)
{
    trainer->journal->missing += left;
}

struct step_input journal_next(const tutti_trainer *trainer)
{
    return trainer->journal->entries[trainer->journal->done].input;
}
