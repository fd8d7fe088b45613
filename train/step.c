/* The step. A batch is divided over the replicas (shares.c), each runs its part (run.c), their gradients are summed
 * (exchange.c) and the master copy is updated (optimizer.c); with one device the update is part of its run. A replica
 * that fails is lost: the whole step is done again by the others from the same samples and parameters, because nothing
 * is updated before every part has succeeded and the losses are finite. */
#include "train/trainer.h"

#include "base/invariant.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/threads.h"
#include "layers/layers.h"
#include "train/sync_ranks.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

/* The replica that does the whole step and updates itself; NULL where gradients are exchanged. */
static struct replica *alone_of(tutti_trainer *trainer)
{
    if (world_sums(trainer)) return NULL;
    if (!trainer->automatic) return trainer->exchange ? NULL : &trainer->replicas[0];
    struct replica *alone = adapt_alone(trainer);
    return alone && !alone->suspect ? alone : NULL;
}

static tutti_status redo_lost(tutti_trainer *trainer);

static tutti_status divide(tutti_trainer *trainer, const struct replica_work *work)
{
    const tutti_status status = adapt_lost(trainer);
    return status == TUTTI_OK ? trainer_divide(trainer, work->mode, work->samples, trainer->parts) : status;
}

/* Who does how much of `work`; the newest parameters are on the host if some of them needs it. */
static tutti_status prepare(tutti_trainer *trainer, const struct replica_work *work)
{
    tutti_status status = TUTTI_OK;
    bool wanted = false;
    TRY(redo_lost(trainer));
    TRY(divide(trainer, work));
    for (int i = 0; i < trainer->count; i++)
        wanted |= trainer->parts[i] > 0 && parameters_holder(&trainer->store) != &trainer->replicas[i];
    if (!wanted) return TUTTI_OK;
    TRY(trainer_fetch(trainer));
    TRY(divide(trainer, work)); /* a device may be lost now */
done:
    return status;
}

/* One try at running `work` on all replicas. *again: one was lost, and others are left to do it all again. */
static tutti_status run_once(tutti_trainer *trainer, const struct replica_work *work, bool *again)
{
    tutti_status status = TUTTI_OK, exchanged = TUTTI_OK;
    int64_t first = 0;
    *again = trainer->not_finite = false;
    TRY(prepare(trainer, work));
    meetings_begin(trainer, work->whole);
    const struct replica *alone = work->mode == PLAN_TRAIN ? alone_of(trainer) : NULL;
    const bool check = trainer->experts.check_replicas && work->mode == PLAN_TRAIN && !alone;
    /* One of as many samples is divided in the same way, unless shares change. */
    const bool same_size = work->mode == PLAN_TRAIN && trainer->next.samples == work->samples;
    const uint64_t checksum =
        check ? parameters_checksum(trainer->network, parameters_master(&trainer->store).parameters) : 0;
    for (int i = 0; i < trainer->count; i++) {
        if (trainer->parts[i] == 0) continue;
        trainer->works[i] = *work;
        trainer->works[i].supply = parameters_supply(&trainer->store, &trainer->replicas[i]);
        trainer->works[i].check = check;
        trainer->works[i].checksum = checksum;
        trainer->works[i].first = first;
        trainer->works[i].samples = trainer->parts[i];
        trainer->works[i].update = alone != NULL;
        if (same_size) trainer->works[i].next = trainer->next;
        trainer->replicas[i].not_finite = false;
        trainer->works[i].meets = trainer->whole_batch && trainer->parts[i] < work->whole;
        first += trainer->parts[i];
        INVARIANT(!trainer->replicas[i].lost && !trainer->replicas[i].suspect);
        worker_start(&trainer->replicas[i].worker, replica_run, &trainer->works[i]);
    }
    INVARIANT(first == work->samples);
    if (!alone && work->mode == PLAN_TRAIN) exchanged = exchange_run(trainer, &work->constants);
    if (alone && trainer->journal) journal_take_ahead(trainer);
    for (int i = 0; i < trainer->count; i++) {
        if (trainer->parts[i] == 0) continue;
        const tutti_status one = worker_wait(&trainer->replicas[i].worker);
        replica_forget(&trainer->replicas[i]);
        if (one == TUTTI_OK) {
            trainer->not_finite |= trainer->works[i].not_finite;
            continue;
        }
        *again = true;
        if (meetings_interrupted(&trainer->meetings, i)) continue;
        if (status == TUTTI_OK) status = trainer_shrink_or_lose(trainer, &trainer->replicas[i], one);
    }
    if (status == TUTTI_OK) status = exchanged;
done:
    return status;
}

static void add_results(const tutti_trainer *trainer, struct replica_work *sums)
{
    for (int i = 0; i < trainer->count; i++) {
        if (trainer->parts[i] == 0) continue;
        tally_add(&sums->tally, &trainer->works[i].tally);
    }
}

/* Runs the work until it succeeds on the replicas that are left; adds up their results. */
static tutti_status run_all(tutti_trainer *trainer, const struct replica_work *work, struct replica_work *sums)
{
    tutti_status status = TUTTI_OK;
    bool again = true;
    while (again) {
        TRY(run_once(trainer, work, &again));
        if (!again && work->mode == PLAN_TRAIN && trainer->exchange) TRY(faults_check(trainer, &again));
    }
    add_results(trainer, sums);
done:
    return status;
}

/* Each rank's gradients are finite; their sum may not be. It is looked at only where it can be: all ranks have the same
 * bytes, and find the same. */
static bool sums_overflow(const tutti_trainer *trainer)
{
    if (trainer->not_finite || trainer->largest < FLT_MAX / 2) return false;
    return exchange_not_finite(parameters_gradients(&trainer->store), trainer->network->total_floats);
}

/* The same, over all ranks: gradients are summed while they arrive, and where a rank has to do its part again, all sum
 * again. The status is this rank's so far. */
static tutti_status run_ranks(
    tutti_trainer *trainer, tutti_status status, const struct replica_work *work, struct replica_work *sums)
{
    bool mine = true, again = true;
    struct replica_work own = { 0 };
    while (again) {
        world_try(trainer);
        if (mine && status == TUTTI_OK) {
            const double start = clock_seconds();
            mine = false;
            own = (struct replica_work) { .samples = work->samples };
            status = run_once(trainer, work, &mine);
            if (status == TUTTI_OK && !mine) status = faults_check(trainer, &mine);
            if (status == TUTTI_OK && !mine) add_results(trainer, &own);
            trainer->world->seconds = clock_seconds() - start - rounds_waited(trainer);
        }
        status = rounds_end(trainer, status, mine);
        again = mine;
        *sums = own;
        const tutti_status voted = world_vote(trainer, status, &again, sums);
        if (voted != TUTTI_OK) return voted;
        mine |= again && trainer->world->rounds; /* those who do it again need this rank's numbers, too */
    }
    trainer->not_finite |= sums_overflow(trainer);
    return TUTTI_OK;
}

/* All parts of the step have succeeded; where losses are scaled too much, it updates nothing. */
static void update(tutti_trainer *trainer, const struct step_constants *constants)
{
    const struct optimizer_step step = { &trainer->optimizer, trainer->network, constants };
    struct replica *alone = alone_of(trainer);
    for (int i = 0; i < trainer->count; i++) gradients_note_step(&trainer->replicas[i].port, trainer->parts[i] > 0);
    trainer->unscale = constants->unscale;
    trainer->stepped = true;
    if (trainer->not_finite) return;
    parameters_updated(&trainer->store, alone);
    if (alone) { /* it has updated itself */
        holding_updated(&alone->holding, &trainer->store, true);
    } else if (world_sums(trainer)) {
        const struct optimizer_arrays master = parameters_master(&trainer->store);
        optimizer_update(&step, trainer->pool, master.parameters, parameters_gradients(&trainer->store), master.states);
    } else {
        exchange_adopt(trainer);
    }
    if (!trainer->exchange) parameters_drop(&trainer->store);
}

static tutti_status redo_next(tutti_trainer *trainer)
{
    tutti_status status = TUTTI_OK;
    const struct replica_work work = journal_next(trainer);
    struct replica_work sums = { 0 };
    const bool repeats = trainer->repeats;
    trainer->repeats = true;
    status = run_all(trainer, &work, &sums);
    trainer->repeats = repeats;
    TRY(status);
    if (!isfinite(sums.tally.loss) || trainer->not_finite)
        FAIL(TUTTI_NOT_FINITE,
            "a step was finite on a device that is now lost, but is not on the others: see 'tutti devices --check'");
    update(trainer, &work.constants);
    TRY(journal_note(trainer, &work, 0));
done:
    return status;
}

/* Repeats the steps of a device that trained alone and was lost since. They are not counted in `position`. Another
 * device may be lost in one of them, and then some are repeated a third time on the way. A failure leaves the rest in
 * the journal: nothing is saved or trained from these parameters before they are repeated. */
static tutti_status redo_lost(tutti_trainer *trainer)
{
    tutti_status status = TUTTI_OK;
    for (size_t left = journal_claim(trainer); left > 0;) {
        status = redo_next(trainer);
        if (status == TUTTI_OK) {
            left--;
            status = redo_lost(trainer);
        }
        if (status == TUTTI_OK) continue;
        journal_return(trainer, left);
        break;
    }
    return status;
}

/* From the only device there is. */
static tutti_status fetch_only(tutti_trainer *trainer)
{
    tutti_status status = TUTTI_OK;
    struct parameter_store *store = &trainer->store;
    TRY(parameters_make_parameters(store));
    TRY(parameters_make_states(store));
    const struct optimizer_arrays master = parameters_master(store);
    status = replica_read(parameters_holder(store), &master);
done:
    return status;
}

tutti_status trainer_fetch(tutti_trainer *trainer)
{
    tutti_status status = TUTTI_OK;
    struct replica *replica;
    TRY(redo_lost(trainer));
    while ((replica = parameters_holder(&trainer->store))) {
        if (holding_is_torn(&replica->holding))
            FAIL(TUTTI_DEVICE_LOST,
                "device %d, '%s', failed while it updated the parameters: they may be from two different steps",
                replica->device->index, replica->device->can.name);
        status = trainer->journal ? journal_copy(trainer) : fetch_only(trainer);
        if (status == TUTTI_OK) break;
        TRY(trainer_lose(trainer, replica, status)); /* others do its last steps again */
        TRY(redo_lost(trainer));
    }
    parameters_fetched(&trainer->store);
done:
    return status;
}

/* Parameters of all ranks become their mean. */
static tutti_status average(tutti_trainer *trainer, tutti_status status, struct replica_work *sums)
{
    if (status == TUTTI_OK) status = trainer_fetch(trainer);
    if (status == TUTTI_OK) status = parameters_make_states(&trainer->store);
    return world_average(trainer, status, sums);
}

tutti_status trainer_settle(tutti_trainer *trainer, struct replica_work *sums)
{
    *sums = (struct replica_work) { 0 };
    if (!world_averages(trainer) || trainer->world->steps == 0) return TUTTI_OK;
    return average(trainer, TUTTI_OK, sums);
}

static void traffic_add(struct traffic *sum, const struct traffic *more)
{
    sum->bytes += more->bytes;
    sum->seconds += more->seconds;
    sum->beside += more->beside;
}

/* What the devices did in the step: what it took beyond a device's own part, that device was idle. */
static void note_times(tutti_trainer *trainer, double seconds)
{
    trainer->timed_steps++;
    trainer->step_s += seconds;
    for (int i = 0; i < trainer->count; i++) {
        struct replica_report *report = &trainer->replicas[i].report;
        const struct replica_work work = trainer->parts[i] > 0 ? trainer->works[i] : (struct replica_work) { 0 };
        const double busy = fmin(work.seconds, seconds);
        const double beside = work.sent.beside + work.received.beside;
        const double transfer = fmin(work.sent.seconds + work.received.seconds - beside, busy);
        report->compute_s += busy - transfer;
        report->transfer_s += transfer;
        report->idle_s += seconds - busy;
        traffic_add(&report->sent, &work.sent);
        traffic_add(&report->received, &work.received);
    }
}

/* Of the step, on all ranks that sum their gradients. */
static int64_t samples_of(const tutti_trainer *trainer, const struct batch *batch)
{
    return world_averages(trainer) ? batch->samples : batch->whole;
}

static bool batch_is_same(const struct batch *a, const struct batch *b)
{
    return a->samples == b->samples && arrays_equal(&a->feeds, &b->feeds);
}

void trainer_announce(tutti_trainer *trainer, const struct batch *next)
{
    trainer->next = *next;
    trainer->next.number = ++trainer->announced;
}

static void note_scale(tutti_trainer *trainer)
{
    struct loss_scale *loss_scale = &trainer->loss_scale;
    if (!trainer->not_finite) {
        loss_scale_updated(loss_scale);
        return;
    }
    loss_scale_skipped(loss_scale);
    if (world_sums(trainer) && trainer->world->hosts->rank > 0) return; /* they all do the same */
    log_warn(&trainer->runtime->log,
        "step %lld updated nothing, because its gradients overflow; losses are scaled by %.0f instead of %.0f from now "
        "on",
        (long long)trainer->position.steps, loss_scale->scale, 2 * loss_scale->scale);
}

/* This rank's part of the step; on all ranks it is the whole of it where gradients are summed. */
static tutti_status run_step(tutti_trainer *trainer, tutti_status status, const struct batch *batch,
    const struct step_constants *constants, struct replica_work *sums)
{
    struct replica_work work = { .mode = PLAN_TRAIN,
        .feeds = batch->feeds,
        .samples = batch->samples,
        .whole = samples_of(trainer, batch),
        .before = batch->first,
        .number = batch_is_same(batch, &trainer->expected) ? trainer->expected.number : 0,
        .constants = *constants };
    if (batch->outputs) work.outputs = *batch->outputs;
    work.gives_outputs = batch->outputs != NULL;
    bool updated = false;
    if (status == TUTTI_OK) status = feeds_check(&trainer->feeds, &batch->feeds, batch->samples);
    if (status == TUTTI_OK && trainer->world) status = coming_go_on(trainer, adapt_is_changing(trainer));
    if (status == TUTTI_OK && trainer->automatic) status = adapt_before(trainer, batch->samples);
    const double start = clock_seconds();
    if (status == TUTTI_OK && batch->samples > 0 && trainer->journal && alone_of(trainer))
        TRY(journal_take(trainer, &work));
    if (world_sums(trainer))
        TRY(run_ranks(trainer, status, &work, sums));
    else if (status == TUTTI_OK && batch->samples > 0)
        TRY(run_all(trainer, &work, sums));
    else if (status == TUTTI_OK)
        trainer->position.steps++; /* no sample for this rank, which averages with the others later */
    if (status != TUTTI_OK || (batch->samples == 0 && world_averages(trainer))) return status;
    if (!isfinite(sums->tally.loss) || (trainer->not_finite && !loss_scale_can_fall(&trainer->loss_scale)))
        FAIL(TUTTI_NOT_FINITE,
            "the %s %s at step %lld: nothing was updated; lower the learning rate (%g) or look for "
            "NaN in the data",
            isfinite(sums->tally.loss) ? "gradients are" : "loss is",
            isnan(sums->tally.loss)          ? "NaN"
                : isfinite(sums->tally.loss) ? "not finite"
                                             : "infinite",
            (long long)trainer->position.steps + 1, trainer->optimizer.learning_rate);
    update(trainer, constants);
    updated = true;
    trainer->position.steps++;
    note_scale(trainer);
    if (!trainer->not_finite) TRY(journal_note(trainer, &work, clock_seconds() - start));
    TRY(redo_lost(trainer));
    const double seconds = clock_seconds() - start;
    note_times(trainer, seconds);
    if (world_sums(trainer)) world_stepped(trainer, seconds);
    if (trainer->automatic) TRY(adapt_after(trainer, &work, world_sums(trainer) ? trainer->world->seconds : seconds));
done:
    /* Of what fails after the vote the other ranks know nothing: they end when they hear no more of this one. */
    if (status != TUTTI_OK && updated && world_sums(trainer)) trainer->world->hosts->broken = true;
    return status;
}

tutti_status trainer_step(
    tutti_trainer *trainer, tutti_status status, const struct batch *batch, struct replica_work *sums)
{
    const uint64_t step = (uint64_t)trainer->position.steps;
    const int64_t samples = samples_of(trainer, batch);
    struct step_constants constants = { .seed_low = (uint32_t)trainer->seed,
        .seed_high = (uint32_t)(trainer->seed >> 32),
        .step_low = (uint32_t)step,
        .step_high = (uint32_t)(step >> 32),
        .loss_scale = samples > 0 ? (float)(1.0 / (double)samples) : 0 };
    optimizer_constants(&trainer->optimizer, trainer->position.steps - trainer->loss_scale.skipped, &constants);
    loss_scale_constants(&trainer->loss_scale, &constants);
    *sums = (struct replica_work) { 0 };
    const double start = clock_seconds();
    status = run_step(trainer, status, batch, &constants, sums);
    faults_forget(trainer);
    if (world_averages(trainer)) {
        trainer->world->seconds = clock_seconds() - start;
        world_local_step(trainer, batch, sums);
        if (status != TUTTI_OK || trainer->world->steps >= trainer->world->average_every)
            status = average(trainer, status, sums);
    }
    sums->samples = batch->whole;
    trainer->expected = trainer->next;
    trainer->next = (struct batch) { 0 };
    return status;
}

tutti_status trainer_forward(tutti_trainer *trainer, enum plan_mode mode, const struct arrays *feeds, int64_t samples,
    struct replica_work *sums, const struct arrays *outputs)
{
    tutti_status status = TUTTI_OK;
    if (mode != PLAN_INFER) TRY(feeds_check(&trainer->feeds, feeds, samples));
    for (int64_t done_samples = 0; done_samples < samples;) {
        const int64_t left = samples - done_samples;
        struct replica_work work = { .mode = mode, .samples = left < trainer->part ? left : trainer->part };
        work.feeds = arrays_from(&trainer->feeds.arrays, feeds, done_samples);
        if (outputs) work.outputs = arrays_from(&trainer->outputs, outputs, done_samples);
        work.gives_outputs = outputs != NULL;
        work.constants.loss_scale = (float)(1.0 / (double)work.samples);
        TRY(run_all(trainer, &work, sums));
        done_samples += work.samples;
    }
done:
    return status;
}
