/* Automatic shares: tells balance.c the times of the steps, has plans made in the background (background.c) for the
 * division that it wants, and takes them into use between two steps, when all are ready. A device that is left out is
 * probed now and then: it does its old part once more, beside the others, on a copy of a batch and for nothing. */
#include "train/trainer.h"

#include "base/log.h"
#include "base/memory.h"
#include "base/text.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A probe may slow the others down by what it takes itself: so many times that must lie between two of them. */
#define PROBE_REST 100.0
/* Seconds that do, at least. */
#define PROBE_EARLIEST 0.05
/* What disturbs a machine, another process on its core or a lower clock, lasts for tens of milliseconds, and short
 * steps one after the other would all tell of the same. So their means are taken over this part of the training's time,
 * and over so many seconds at most: the first decisions come soon, later ones are better founded. */
#define TELLING_PART 0.01
#define MOST_TELLING 0.1
/* What the trials of devices alone have shown is looked at again after so many seconds, and whenever the training has
 * lasted so many times as long as at the last of them. */
#define FIRST_AGAIN 1.0
#define NEXT_AGAIN 2
/* Steps in a row of another size, after which the division is for that size: not the last batch of an epoch. */
enum { ODD_STEPS = 2 };

/* What the thread of a device reads during a probe. Each device has its own, because a thread that hangs may read it
 * later. */
struct probe {
    struct replica_work work;
    void *samples; /* copies */
    size_t bytes;
};

struct probing {
    struct replica *replica; /* NULL: none is running */
    struct probe *probes;    /* one for each device */
    int last;                /* device that was probed last */
    double next;             /* when, by clock_seconds() */
};

struct adaption {
    bool changing; /* plans for balance.wanted are being made */
    bool refused;  /* what a device needs to update itself could not be made: exchange with oneself does, too */
    int64_t odd;   /* another size that the last steps had, */
    int odd_steps; /* and how many */
    struct probing probing;
    double passed_s; /* that the training has taken so far, */
    double again_s;  /* and when devices are tried again */
    int untold;      /* steps with this division whose times balance.c has not been told, */
    double untold_s; /* what they took, */
    double *seconds; /* and each device's parts of them */
};

static void forget_times(tutti_trainer *trainer)
{
    struct adaption *adaption = trainer->adaption;
    adaption->untold = 0;
    adaption->untold_s = 0;
    memset(adaption->seconds, 0, (size_t)trainer->count * sizeof(*adaption->seconds));
}

static void set_shares(tutti_trainer *trainer)
{
    forget_times(trainer);
    for (int i = 0; i < trainer->count; i++) trainer->shares[i].weight = (double)trainer->balance.parts[i];
}

tutti_status adapt_open(tutti_trainer *trainer)
{
    tutti_status status = TUTTI_OK;
    int64_t *limits = memory_new((size_t)trainer->count, sizeof(*limits));
    trainer->adaption = memory_new(1, sizeof(*trainer->adaption));
    if (!limits || !trainer->adaption) {
        status = TUTTI_NO_MEMORY;
        goto done;
    }
    trainer->adaption->again_s = FIRST_AGAIN;
    trainer->adaption->seconds = memory_new((size_t)trainer->count, sizeof(double));
    trainer->adaption->probing.probes = memory_new((size_t)trainer->count, sizeof(struct probe));
    if (!trainer->adaption->seconds || !trainer->adaption->probing.probes) {
        status = TUTTI_NO_MEMORY;
        goto done;
    }
    for (int i = 0; i < trainer->count; i++)
        limits[i] = replica_is_lost(&trainer->replicas[i]) ? 0 : trainer->replicas[i].capacity;
    TRY(balance_init(&trainer->balance, trainer->count, trainer->part, limits));
    set_shares(trainer);
done:
    free(limits);
    return status;
}

void adapt_close(tutti_trainer *trainer)
{
    if (!trainer->adaption) return;
    struct probe *probes = trainer->adaption->probing.probes;
    balance_free(&trainer->balance);
    for (int i = 0; probes && i < trainer->count; i++) free(probes[i].samples);
    free(probes);
    free(trainer->adaption->seconds);
    free(trainer->adaption);
    trainer->adaption = NULL;
}

struct replica *adapt_alone(tutti_trainer *trainer)
{
    if (!trainer->adaption) return NULL;
    const int alone = balance_alone(&trainer->balance);
    struct replica *replica = alone < 0 ? NULL : &trainer->replicas[alone];
    return replica && update_is_made(replica) && !replica_is_lost(replica) ? replica : NULL;
}

/* -------------------------------------------------------------------------------------------------- changes ---- */

static void tell(const tutti_trainer *trainer)
{
    struct text text = { 0 };
    const struct balance *balance = &trainer->balance;
    for (int i = 0; i < trainer->count; i++) text_append(&text, "%s%lld", i ? "," : "", (long long)balance->parts[i]);
    char *shares = text_take(&text);
    log_info(&trainer->runtime->log, "step %lld: shares %s%s", (long long)trainer->course.position.steps,
        shares ? shares : "", balance->trying ? ", to see whether one device alone is faster" : "");
    free(shares);
    if (balance->trying) return;
    for (int i = 0; i < trainer->count; i++) {
        const struct device *device = trainer->replicas[i].device;
        if (balance->devices[i].without > 0)
            log_info(&trainer->runtime->log,
                "device %d, '%s', is left out: a step takes %.3f ms with it and %.3f ms without", device->index,
                device->can.name, 1e3 * balance->devices[i].with, 1e3 * balance->devices[i].without);
    }
}

/* A plan for a lost device is not waited for: tutti_trainer_free() frees it. A device whose plan hangs is lost. */
static tutti_status give_up_change(tutti_trainer *trainer)
{
    tutti_status status = TUTTI_OK;
    trainer->adaption->changing = false;
    for (int i = 0; i < trainer->count; i++) {
        struct replica *replica = &trainer->replicas[i];
        if (replica_is_lost(replica)) continue;
        const tutti_status made = background_free(replica);
        if (background_hangs(replica) && status == TUTTI_OK) status = trainer_lose(trainer, replica, made);
    }
    return status;
}

/* What the device takes from now on: less, if it is lost, or its memory was full and there are no micro-batches. */
static int64_t limit_of(const tutti_trainer *trainer, int device)
{
    const struct replica *replica = &trainer->replicas[device];
    const int64_t limit = trainer->balance.devices[device].limit;
    if (replica_is_lost(replica)) return 0;
    return trainer->options.whole_batch && replica->capacity < limit ? replica->capacity : limit;
}

tutti_status adapt_lost(tutti_trainer *trainer)
{
    tutti_status status = TUTTI_OK;
    if (!trainer->adaption) return TUTTI_OK; /* not all replicas are made yet, or shares are given */
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

void adapt_change(tutti_trainer *trainer)
{
    const struct balance *balance = &trainer->balance;
    bool alone = false;
    for (int i = 0; i < trainer->count; i++) alone |= balance->wanted[i] == balance->batch;
    trainer->adaption->changing = true;
    background_start_all(trainer, balance->wanted, alone);
}

bool adapt_is_changing(const tutti_trainer *trainer)
{
    return trainer->adaption && trainer->adaption->changing;
}

/* The failure of a plan for a larger part ends nothing: the device goes on with what it has. */
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
        log_info(&trainer->runtime->log, "device %d, '%s', keeps its share: %s", replica->device->index,
            replica->device->can.name, status_message());
        *ready = false;
        trainer->adaption->refused = balance->wanted[i] == balance->parts[i];
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
    trainer->adaption->changing = false;
    balance_adopt(balance);
    set_shares(trainer);
    struct replica *alone = adapt_alone(trainer);
    if (alone && parameters_holder(&trainer->store) != alone)
        holding_drop_parameters(&alone->holding); /* the optimizer's states are on the host */
    trainer->adaption->probing.next = 0;
    tell(trainer);
    return TUTTI_OK;
}

/* --------------------------------------------------------------------------------------------------- probes ---- */

/* A job of the replica. */
static tutti_status run_probe(struct replica *replica, void *argument)
{
    const tutti_status status = replica_run(replica, argument);
    const tutti_status released = gradient_way(replica)->release(replica);
    replica_forget(replica); /* its gradients are not those of a step */
    return status == TUTTI_OK ? released : status;
}

static tutti_status end_probe(tutti_trainer *trainer)
{
    struct probing *probing = &trainer->adaption->probing;
    struct replica *replica = probing->replica;
    if (!replica || worker_is_busy(&replica->worker)) return TUTTI_OK;
    probing->replica = NULL;
    if (replica_is_lost(replica)) return TUTTI_OK;
    holding_drop_parameters(&replica->holding);
    const tutti_status status = worker_wait(&replica->worker);
    if (status != TUTTI_OK) return trainer_lose(trainer, replica, status);
    const int device = replica->number;
    const struct replica_work *work = &probing->probes[device].work;
    const double seconds = work->result.seconds + replica->parameters_s;
    balance_probed(&trainer->balance, device, work->samples, seconds);
    probing->next = clock_seconds() + fmax(PROBE_EARLIEST, PROBE_REST * seconds);
    return TUTTI_OK;
}

/* The part that a device had when it last worked with others, if its plan is still there; else 0. */
static int64_t probe_samples(tutti_trainer *trainer, int device)
{
    const struct speed *speed = &trainer->balance.devices[device].speed;
    const struct speed_size *last = NULL;
    for (int i = 0; i < SPEED_SIZES; i++) {
        const struct speed_size *size = &speed->sizes[SPEED_TOGETHER][i];
        if (size->samples > 0 && size->samples <= trainer->replicas[device].capacity &&
            plan_cache_find(&trainer->replicas[device].plans,
                (struct plan_key) { PLAN_TRAIN, { size->samples, trainer->last.length } }) &&
            (!last || size->used > last->used))
            last = size;
    }
    return last ? last->samples : 0;
}

static tutti_status copy_samples(const tutti_trainer *trainer, struct probe *probe, const struct replica_work *work)
{
    const size_t bytes =
        arrays_bytes(&trainer->feeds.arrays, (struct bound_sizes) { probe->work.samples, work->feeds.length });
    if (probe->bytes < bytes) {
        free(probe->samples);
        probe->bytes = 0;
        probe->samples = memory_new(bytes, 1);
        if (!probe->samples) return TUTTI_NO_MEMORY;
        probe->bytes = bytes;
    }
    probe->work.feeds = arrays_pack(&trainer->feeds.arrays, &work->feeds, probe->work.samples, probe->samples);
    return TUTTI_OK;
}

static tutti_status start_probe(tutti_trainer *trainer, int device, int64_t samples, const struct replica_work *work)
{
    struct probing *probing = &trainer->adaption->probing;
    struct probe *probe = &probing->probes[device];
    probe->work = *work;
    probe->work.samples = samples;
    probe->work.probe = true;
    probe->work.gives_outputs = false;
    probing->last = device;
    const tutti_status status = copy_samples(trainer, probe, work);
    if (status != TUTTI_OK) return status;
    probing->replica = &trainer->replicas[device];
    worker_start(&probing->replica->worker, run_probe, &probe->work);
    return TUTTI_OK;
}

/* The next of those that are left out, in turns. */
static tutti_status probe_next(tutti_trainer *trainer, const struct replica_work *work)
{
    struct probing *probing = &trainer->adaption->probing;
    const struct balance *balance = &trainer->balance;
    if (probing->replica || !balance->settled || clock_seconds() < probing->next) return TUTTI_OK;
    for (int i = 1; i <= trainer->count; i++) {
        const int device = (probing->last + i) % trainer->count;
        if (balance->parts[device] > 0 || replica_is_lost(&trainer->replicas[device])) continue;
        const int64_t samples = probe_samples(trainer, device);
        if (samples == 0 || samples > work->samples) continue;
        const double expected = speed_time(&balance->devices[device].speed, SPEED_TOGETHER, samples);
        if (probing->next > 0) return start_probe(trainer, device, samples, work);
        probing->next = clock_seconds() + fmax(PROBE_EARLIEST, PROBE_REST * expected); /* the first rests, too */
        break;
    }
    return TUTTI_OK;
}

/* ---------------------------------------------------------------------------------------------------- steps ---- */

/* The last batch of an epoch may be smaller; when such steps follow each other, this is the batch now. */
static tutti_status follow_batch(tutti_trainer *trainer, int64_t samples)
{
    tutti_status status = TUTTI_OK;
    struct adaption *adaption = trainer->adaption;
    const int64_t *prepared = coming_parts(trainer, samples);
    if (samples != trainer->balance.batch && prepared) {
        balance_take(&trainer->balance, samples, prepared);
        set_shares(trainer);
        tell(trainer);
    }
    if (samples == trainer->balance.batch || samples == 0) {
        adaption->odd_steps = 0;
        return TUTTI_OK;
    }
    adaption->odd_steps = adaption->odd == samples ? adaption->odd_steps + 1 : 1;
    adaption->odd = samples;
    if (adaption->odd_steps < ODD_STEPS) return TUTTI_OK;
    TRY(give_up_change(trainer));
    TRY(balance_resize(&trainer->balance, samples));
    set_shares(trainer);
    tell(trainer);
done:
    return status;
}

tutti_status adapt_before(tutti_trainer *trainer, int64_t samples)
{
    tutti_status status = TUTTI_OK;
    TRY(end_probe(trainer));
    TRY(adapt_lost(trainer));
    TRY(follow_batch(trainer, samples));
    if (trainer->adaption->changing && background_all_done(trainer)) TRY(adopt(trainer));
done:
    return status;
}

/* A device is the only one because others were lost: it still has to learn to update itself. */
static bool alone_without_update(const tutti_trainer *trainer)
{
    const int alone = balance_alone(&trainer->balance);
    return alone >= 0 && !update_is_made(&trainer->replicas[alone]) && !trainer->adaption->refused;
}

/* The means of the last steps, once they tell something. */
static bool tell_times(tutti_trainer *trainer, double seconds)
{
    struct adaption *adaption = trainer->adaption;
    adaption->untold++;
    adaption->untold_s += seconds;
    adaption->passed_s += seconds;
    for (int i = 0; i < trainer->count; i++)
        adaption->seconds[i] += trainer->parts[i] > 0 ? trainer->works[i].result.seconds : 0;
    if (adaption->untold_s < fmin(MOST_TELLING, TELLING_PART * adaption->passed_s)) return false;
    for (int i = 0; i < trainer->count; i++) adaption->seconds[i] /= adaption->untold;
    balance_add(&trainer->balance, adaption->seconds, adaption->untold_s / adaption->untold);
    forget_times(trainer);
    if (trainer->balance.trying) {
        adaption->again_s = fmax(FIRST_AGAIN, NEXT_AGAIN * adaption->passed_s);
    } else if (trainer->balance.settled && adaption->passed_s > adaption->again_s) {
        balance_try_again(&trainer->balance);
        adaption->again_s = NEXT_AGAIN * adaption->passed_s;
    }
    return true;
}

tutti_status adapt_after(tutti_trainer *trainer, const struct replica_work *work, double seconds)
{
    struct balance *balance = &trainer->balance;
    if (work->samples != balance->batch) return TUTTI_OK;
    for (int i = 0; i < trainer->count; i++)
        if (trainer->parts[i] != balance->parts[i]) return TUTTI_OK; /* a device was lost in this step */
    /* Making plans slows a CPU down: such times tell nothing. */
    if (trainer->adaption->changing || coming_holds(trainer)) return TUTTI_OK;
    if (alone_without_update(trainer)) {
        memcpy(balance->wanted, balance->parts, (size_t)balance->count * sizeof(*balance->parts));
        adapt_change(trainer);
        return TUTTI_OK;
    }
    if (tell_times(trainer, seconds) && balance_decide(balance)) {
        adapt_change(trainer);
        return TUTTI_OK;
    }
    return probe_next(trainer, work);
}
