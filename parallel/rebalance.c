/* Automatic shares: passes the times of steps to balance.c, builds plans for the division that balance.c wants in the
 * background (replica/background.c), and adopts them between two steps when all are ready. A device without samples is
 * probed from time to time: it computes its former part of a copied batch while the others train; the results are
 * dropped. */
#include "parallel/rebalance.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/text.h"
#include "parallel/background_all.h"
#include "parallel/faults.h"
#include "parallel/ranks_sum.h"
#include "parallel/repartition.h"
#include "parallel/trainer.h"
#include "replica/run.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A probe may delay the others by its own duration: between two probes lies this multiple of it, and at least
 * PROBE_EARLIEST seconds. */
#define PROBE_REST 100.0
#define PROBE_EARLIEST 0.05
/* Disturbances, such as another process or a lower clock, last for tens of milliseconds: several short steps would
 * measure the same one. So balance.c receives means over this part of the training's time so far, at most over
 * MOST_MEAN_S seconds: the first decisions come soon, later ones rest on more measurements. */
#define MEAN_PART 0.01
#define MOST_MEAN_S 0.1
/* The trials of single devices are repeated after FIRST_AGAIN seconds, and then whenever the training's duration has
 * grown by the factor NEXT_AGAIN. */
#define FIRST_AGAIN 1.0
#define NEXT_AGAIN 2
/* After so many consecutive steps of another size the batch is divided for that size. The last batch of an epoch alone
 * does not count. */
enum { ODD_STEPS = 2 };

/* Input of a device's thread during a probe. Each device has its own, because a thread that hangs may read it later. */
struct probe {
    struct replica_work work;
    struct arrays_memory samples; /* copies */
    bool succeeded;
};

struct probing {
    struct replica *replica; /* NULL: none is running */
    struct probe *probes;    /* one for each device */
    int last;                /* device that was probed last */
    double next;             /* when, by clock_seconds() */
};

struct rebalance {
    bool changing; /* plans for balance.wanted are being built */
    bool refused;  /* on-device update unavailable: fall back to the host exchange, even with one device */
    int64_t odd;   /* size of the last steps, if it differs from balance.batch */
    int odd_steps; /* number of these steps */
    struct probing probing;
    double passed_s;     /* duration of the training so far */
    double again_s;      /* single devices are tried again when passed_s exceeds it */
    int unreported;      /* steps with this division whose times balance.c has not received yet */
    double unreported_s; /* their duration */
    double *seconds;     /* their duration on each device */
};

static void reset_times(tutti_trainer *trainer)
{
    struct rebalance *rebalance = trainer->rebalance;
    rebalance->unreported = 0;
    rebalance->unreported_s = 0;
    memset(rebalance->seconds, 0, (size_t)trainer->count * sizeof(*rebalance->seconds));
}

static void set_shares(tutti_trainer *trainer)
{
    reset_times(trainer);
    for (int i = 0; i < trainer->count; i++)
        trainer->device_division.shares[i].weight = (double)trainer->balance.parts[i];
}

tutti_status rebalance_open(tutti_trainer *trainer)
{
    tutti_status status = TUTTI_OK;
    int64_t *limits = memory_new((size_t)trainer->count, sizeof(*limits));
    trainer->rebalance = memory_new(1, sizeof(*trainer->rebalance));
    if (!limits || !trainer->rebalance) {
        status = TUTTI_NO_MEMORY;
        goto done;
    }
    trainer->rebalance->again_s = FIRST_AGAIN;
    trainer->rebalance->seconds = memory_new((size_t)trainer->count, sizeof(double));
    trainer->rebalance->probing.probes = memory_new((size_t)trainer->count, sizeof(struct probe));
    if (!trainer->rebalance->seconds || !trainer->rebalance->probing.probes) {
        status = TUTTI_NO_MEMORY;
        goto done;
    }
    for (int i = 0; i < trainer->count; i++)
        limits[i] = replica_is_lost(&trainer->replicas[i]) ? 0 : trainer->replicas[i].capacity;
    TRY(balance_init(&trainer->balance, trainer->count, trainer->device_division.rank_batch, limits));
    set_shares(trainer);
done:
    free(limits);
    return status;
}

void rebalance_close(tutti_trainer *trainer)
{
    if (!trainer->rebalance) return;
    struct probe *probes = trainer->rebalance->probing.probes;
    balance_free(&trainer->balance);
    for (int i = 0; probes && i < trainer->count; i++) free(probes[i].samples.at);
    free(probes);
    free(trainer->rebalance->seconds);
    free(trainer->rebalance);
    trainer->rebalance = NULL;
}

static struct replica *automatic_sole_replica(tutti_trainer *trainer)
{
    if (!trainer->rebalance) return NULL;
    const int sole = balance_sole_device(&trainer->balance);
    struct replica *replica = sole < 0 ? NULL : &trainer->replicas[sole];
    return replica && device_update_is_made(replica) && !replica_is_lost(replica) ? replica : NULL;
}

struct replica *trainer_sole_replica(tutti_trainer *trainer)
{
    if (ranks_sum_mode(trainer)) return NULL;
    if (!trainer->options.automatic) return trainer->options.exchange ? NULL : &trainer->replicas[0];
    struct replica *sole = automatic_sole_replica(trainer);
    return sole && membership_is_present(&trainer->members, sole->number) ? sole : NULL;
}

/* -------------------------------------------------------------------------------------------------- changes ---- */

static void log_shares(const tutti_trainer *trainer)
{
    struct text text = { 0 };
    const struct balance *balance = &trainer->balance;
    for (int i = 0; i < trainer->count; i++) text_append(&text, "%s%lld", i ? "," : "", (long long)balance->parts[i]);
    char *shares = text_take(&text);
    log_info(&trainer->network->runtime->log, "step %lld: shares %s%s", (long long)trainer->state.position.steps,
        shares ? shares : "", balance->trying ? ", to see whether one device alone is faster" : "");
    free(shares);
    if (balance->trying) return;
    for (int i = 0; i < trainer->count; i++) {
        const struct device *device = trainer->replicas[i].device;
        if (balance->devices[i].without > 0)
            log_info(&trainer->network->runtime->log,
                "device %d, '%s', is left out: a step takes %.3f ms with it and %.3f ms without", device->index,
                device->can.name, 1e3 * balance->devices[i].with, 1e3 * balance->devices[i].without);
    }
}

/* Does not wait for the plan of a lost device: tutti_trainer_free() frees it. A device whose plan hangs is lost. */
static tutti_status give_up_change(tutti_trainer *trainer)
{
    tutti_status status = TUTTI_OK;
    trainer->rebalance->changing = false;
    for (int i = 0; i < trainer->count; i++) {
        struct replica *replica = &trainer->replicas[i];
        if (replica_is_lost(replica)) continue;
        const tutti_status made = background_free(replica);
        if (background_hangs(replica) && status == TUTTI_OK) status = trainer_lose(trainer, replica, made);
    }
    return status;
}

/* The most samples of the device: fewer if it is lost, or if its memory was full and micro-batches are impossible. */
static int64_t limit_of(const tutti_trainer *trainer, int device)
{
    const struct replica *replica = &trainer->replicas[device];
    const int64_t limit = trainer->balance.devices[device].limit;
    if (replica_is_lost(replica)) return 0;
    return trainer->options.whole_batch && replica->capacity < limit ? replica->capacity : limit;
}

tutti_status rebalance_lost(tutti_trainer *trainer)
{
    tutti_status status = TUTTI_OK;
    if (!trainer->rebalance) return TUTTI_OK; /* not all replicas are made yet, or shares are given */
    for (int i = 0; i < trainer->count; i++) {
        const int64_t limit = limit_of(trainer, i);
        if (limit == trainer->balance.devices[i].limit) continue;
        TRY(give_up_change(trainer));
        TRY(balance_limit(&trainer->balance, i, limit));
        set_shares(trainer);
    }
done:
    return status;
}

void rebalance_start(tutti_trainer *trainer)
{
    const struct balance *balance = &trainer->balance;
    bool sole = false;
    for (int i = 0; i < trainer->count; i++) sole |= balance->wanted[i] == balance->batch;
    trainer->rebalance->changing = true;
    background_start_all(trainer, balance->wanted, sole);
}

bool rebalance_is_changing(const tutti_trainer *trainer)
{
    return trainer->rebalance && trainer->rebalance->changing;
}

/* If a plan for a larger part fails, the device keeps its present plan. */
static tutti_status check_plans(tutti_trainer *trainer, bool *ready)
{
    tutti_status status = TUTTI_OK;
    struct balance *balance = &trainer->balance;
    *ready = true;
    for (int i = 0; i < trainer->count && *ready; i++) {
        struct replica *replica = &trainer->replicas[i];
        if (balance->wanted[i] == 0) continue;
        const tutti_status made = background_wait(replica);
        if (made == TUTTI_OK) continue;
        if (background_hangs(replica)) {
            *ready = false;
            return trainer_lose(trainer, replica, made);
        }
        log_info(&trainer->network->runtime->log, "device %d, '%s', keeps its share: %s", replica->device->index,
            replica->device->can.name, status_message());
        *ready = false;
        trainer->rebalance->refused = balance->wanted[i] == balance->parts[i];
        TRY(balance_limit(balance, i, balance->parts[i] > 0 ? balance->parts[i] : 1));
    }
done:
    return status;
}

static tutti_status adopt(tutti_trainer *trainer)
{
    bool ready;
    struct replica *failed = NULL;
    struct balance *balance = &trainer->balance;
    tutti_status status = check_plans(trainer, &ready);
    if (status == TUTTI_OK && ready) status = background_adopt_all(trainer, balance->wanted, &failed);
    if (failed) status = trainer_shrink_or_lose(trainer, failed, status);
    if (status != TUTTI_OK || !ready || failed) {
        const tutti_status given_up = give_up_change(trainer);
        return status == TUTTI_OK ? given_up : status;
    }
    trainer->rebalance->changing = false;
    balance_adopt(balance);
    set_shares(trainer);
    struct replica *sole = automatic_sole_replica(trainer);
    if (sole && parameters_holder(trainer->store) != sole)
        versions_invalidate_parameters(&sole->versions); /* the optimizer's states are on the host */
    trainer->rebalance->probing.next = 0;
    log_shares(trainer);
    return TUTTI_OK;
}

/* --------------------------------------------------------------------------------------------------- probes ---- */

/* A job of the replica. */
static tutti_status run_probe(struct replica *replica, void *argument)
{
    struct probe *probe = argument;
    const tutti_status status = replica_run(replica, &probe->work);
    const tutti_status unmapped = gradients_unmap(replica);
    replica_end_attempt(replica); /* its gradients are not those of a step */
    probe->succeeded = status == TUTTI_OK && unmapped == TUTTI_OK;
    return status == TUTTI_OK ? unmapped : status;
}

static tutti_status end_probe(tutti_trainer *trainer)
{
    struct probing *probing = &trainer->rebalance->probing;
    struct replica *replica = probing->replica;
    if (!replica || worker_is_busy(&replica->worker)) return TUTTI_OK;
    probing->replica = NULL;
    if (replica_is_lost(replica)) return TUTTI_OK;
    versions_invalidate_parameters(&replica->versions);
    const tutti_status status = worker_wait(&replica->worker);
    if (status != TUTTI_OK) return trainer_lose(trainer, replica, status);
    const struct probe *probe = &probing->probes[replica->number];
    const double seconds = probe->work.result.seconds + replica->parameters_s;
    /* If it failed, and the device has done other work since, the next probe shows its time. */
    if (probe->succeeded) balance_probed(&trainer->balance, replica->number, probe->work.samples, seconds);
    probing->next = clock_seconds() + fmax(PROBE_EARLIEST, PROBE_REST * seconds);
    return TUTTI_OK;
}

/* The number of samples that the device had when it last trained with others, if its plan is still cached; else 0. */
static int64_t probe_samples(tutti_trainer *trainer, int device)
{
    const struct speed *speed = &trainer->balance.devices[device].speed;
    const struct speed_size *last = NULL;
    for (int i = 0; i < SPEED_SIZES; i++) {
        const struct speed_size *size = &speed->sizes[SPEED_TOGETHER][i];
        if (size->samples > 0 && size->samples <= trainer->replicas[device].capacity &&
            plan_cache_find(&trainer->replicas[device].plans,
                (struct plan_key) { PLAN_TRAIN, { size->samples, trainer->feeds.length } }) &&
            (!last || size->used > last->used))
            last = size;
    }
    return last ? last->samples : 0;
}

static tutti_status start_probe(tutti_trainer *trainer, int device, int64_t samples, const struct step_input *input)
{
    struct probing *probing = &trainer->rebalance->probing;
    struct probe *probe = &probing->probes[device];
    const struct array_list *list = &trainer->feeds.arrays;
    probe->work = (struct replica_work) { .input = *input, .samples = samples, .probe = true };
    probe->work.input.gives_outputs = false;
    probe->succeeded = false;
    probing->last = device;
    const tutti_status status =
        arrays_reserve(list, (struct bound_sizes) { samples, input->feeds.length }, false, &probe->samples);
    if (status != TUTTI_OK) return status;
    probe->work.input.feeds = arrays_pack(list, &input->feeds, samples, probe->samples.at);
    probing->replica = &trainer->replicas[device];
    worker_start(&probing->replica->worker, run_probe, probe);
    return TUTTI_OK;
}

/* Probes the devices without samples in turns. */
static tutti_status probe_next(tutti_trainer *trainer, const struct step_input *input)
{
    struct probing *probing = &trainer->rebalance->probing;
    const struct balance *balance = &trainer->balance;
    if (probing->replica || !balance->settled || clock_seconds() < probing->next) return TUTTI_OK;
    for (int i = 1; i <= trainer->count; i++) {
        const int device = (probing->last + i) % trainer->count;
        if (balance->parts[device] > 0 || replica_is_lost(&trainer->replicas[device])) continue;
        const int64_t samples = probe_samples(trainer, device);
        if (samples == 0 || samples > input->samples) continue;
        const double expected = speed_time(&balance->devices[device].speed, SPEED_TOGETHER, samples);
        if (probing->next > 0) return start_probe(trainer, device, samples, input);
        probing->next = clock_seconds() + fmax(PROBE_EARLIEST, PROBE_REST * expected); /* before the first probe, too */
        break;
    }
    return TUTTI_OK;
}

/* ---------------------------------------------------------------------------------------------------- steps ---- */

/* Divides for another size if several steps had it: the last batch of an epoch alone may be smaller. */
static tutti_status follow_batch(tutti_trainer *trainer, int64_t samples)
{
    tutti_status status = TUTTI_OK;
    struct rebalance *rebalance = trainer->rebalance;
    const int64_t *prepared = repartition_parts(trainer, samples);
    if (samples != trainer->balance.batch && prepared) {
        balance_take(&trainer->balance, samples, prepared);
        set_shares(trainer);
        log_shares(trainer);
    }
    if (samples == trainer->balance.batch || samples == 0) {
        rebalance->odd_steps = 0;
        return TUTTI_OK;
    }
    rebalance->odd_steps = rebalance->odd == samples ? rebalance->odd_steps + 1 : 1;
    rebalance->odd = samples;
    if (rebalance->odd_steps < ODD_STEPS) return TUTTI_OK;
    TRY(give_up_change(trainer));
    TRY(balance_resize(&trainer->balance, samples));
    set_shares(trainer);
    log_shares(trainer);
done:
    return status;
}

tutti_status rebalance_before_step(tutti_trainer *trainer, int64_t samples)
{
    tutti_status status = TUTTI_OK;
    TRY(end_probe(trainer));
    TRY(rebalance_lost(trainer));
    TRY(follow_batch(trainer, samples));
    if (trainer->rebalance->changing && background_all_done(trainer)) TRY(adopt(trainer));
done:
    return status;
}

/* One device is left because the others were lost, and its on-device update is not built yet. */
static bool sole_replica_lacks_update(const tutti_trainer *trainer)
{
    const int sole = balance_sole_device(&trainer->balance);
    return sole >= 0 && !device_update_is_made(&trainer->replicas[sole]) && !trainer->rebalance->refused;
}

/* Passes mean times to balance.c once they cover enough time; returns whether it did. */
static bool report_times(tutti_trainer *trainer, double seconds)
{
    struct rebalance *rebalance = trainer->rebalance;
    rebalance->unreported++;
    rebalance->unreported_s += seconds;
    rebalance->passed_s += seconds;
    for (int i = 0; i < trainer->count; i++)
        rebalance->seconds[i] += trainer->device_division.parts[i] > 0 ? trainer->works[i].result.seconds : 0;
    if (rebalance->unreported_s < fmin(MOST_MEAN_S, MEAN_PART * rebalance->passed_s)) return false;
    for (int i = 0; i < trainer->count; i++) rebalance->seconds[i] /= rebalance->unreported;
    balance_add(&trainer->balance, rebalance->seconds, rebalance->unreported_s / rebalance->unreported);
    reset_times(trainer);
    if (trainer->balance.trying) {
        rebalance->again_s = fmax(FIRST_AGAIN, NEXT_AGAIN * rebalance->passed_s);
    } else if (trainer->balance.settled && rebalance->passed_s > rebalance->again_s) {
        balance_try_again(&trainer->balance);
        rebalance->again_s = NEXT_AGAIN * rebalance->passed_s;
    }
    return true;
}

tutti_status rebalance_after_step(tutti_trainer *trainer, const struct step_input *input, double seconds)
{
    struct balance *balance = &trainer->balance;
    if (input->samples != balance->batch) return TUTTI_OK;
    for (int i = 0; i < trainer->count; i++)
        if (trainer->device_division.parts[i] != balance->parts[i])
            return TUTTI_OK; /* a device was lost in this step */
    /* Building plans slows a CPU down: ignore these times. */
    if (trainer->rebalance->changing || repartition_keeps_shares(trainer)) return TUTTI_OK;
    if (sole_replica_lacks_update(trainer)) {
        memcpy(balance->wanted, balance->parts, (size_t)balance->count * sizeof(*balance->parts));
        rebalance_start(trainer);
        return TUTTI_OK;
    }
    if (report_times(trainer, seconds) && balance_decide(balance)) {
        rebalance_start(trainer);
        return TUTTI_OK;
    }
    return probe_next(trainer, input);
}
