/* How a trainer treats devices that are suspect, lost or late: it waits no longer than it may, forgets no suspicion,
 * and never saves files that claim steps which they do not contain. */
#include "tests/faults/training.h"
#include "tests/feeds.h"

#include "base/clock.h"
#include "parallel/faults.h"
#include "parallel/rebalance.h"
#include "replica/run.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { EPOCHS = 2, LOST_STEP = 6, SMALL = 4 };

static void sleep_s(double seconds)
{
    const struct timespec time = { .tv_sec = (time_t)seconds, .tv_nsec = (long)(1e9 * (seconds - (long)seconds)) };
    nanosleep(&time, NULL);
}

/* ------------------------------------------------------------------------------------------------ checkpoints ---- */

struct observed {
    tutti_trainer *trainer;
    bool single; /* one device had the newest parameters when all were lost */
};

static int lose_all(void *user, const tutti_progress *progress)
{
    struct observed *observed = user;
    if (progress->total_steps != LOST_STEP || progress->end_of_epoch) return 0;
    observed->single = parameters_holder(observed->trainer->store) != NULL;
    layer->give(&(struct layer_order) { .kind = LAYER_LAUNCH, .at = 3, .action = LAYER_LOSE });
    return 0;
}

/* A training on one device, from the checkpoint if there is one, to the end. */
static tutti_status finish(const char *resume, struct outcome *outcome)
{
    tutti_status status = TUTTI_OK;
    struct session session = { 0 };
    const tutti_fitting fitting = { .no_shuffle = true, .epochs = EPOCHS, .resume = resume };
    TRY(session_open(&session, "0", NULL));
    TRY(build(&session, NULL, outcome));
    TRY(tutti_fit(session.trainer, FEED_PAIR(images, labels), STEPS * SAMPLES, &fitting));
    TRY(session_parameters(&session, outcome));
done:
    session_close(&session);
    return status;
}

/* One device trains alone and fails; then the other one fails while it replays the steps of the first: a reset that
 * takes all GPUs. */
static tutti_status fail_while_replaying(const char *name)
{
    tutti_status status = TUTTI_OK;
    const struct fault automatic = { .phase = PHASE_SINGLE };
    struct session session = { 0 };
    struct observed observed = { 0 };
    tutti_fitting fitting = { .no_shuffle = true, .epochs = EPOCHS, .save = name, .progress = lose_all };
    TRY(session_open(&session, "0,1", NULL));
    TRY(build(&session, &automatic, NULL));
    leave_single(&session, 0);
    observed.trainer = session.trainer;
    fitting.user = &observed;
    status = tutti_fit(session.trainer, FEED_PAIR(images, labels), STEPS * SAMPLES, &fitting);
    layer->give(NULL);
    if (!is_device_fault(status)) FAIL(TUTTI_INTERNAL, "the run without devices ended with status %d", status);
    if (!observed.single) FAIL(TUTTI_INTERNAL, "no device trained alone, so this test shows nothing");
    if (!strstr(status_message(), "the training since '") || !strstr(status_message(), "' was saved is lost"))
        FAIL(TUTTI_INTERNAL, "no step was to be replayed, so this test shows nothing: %s", status_message());
    status = TUTTI_OK;
done:
    session_close(&session);
    return status;
}

static const char *checkpoint_is_true(const char *name, struct outcome *found, struct outcome *wanted)
{
    if (finish(NULL, wanted) != TUTTI_OK) return status_message();
    if (fail_while_replaying(name) != TUTTI_OK) return status_message();
    if (finish(name, found) != TUTTI_OK) return status_message();
    return difference(found, wanted);
}

static void try_checkpoint(void)
{
    char folder[] = "/tmp/tutti-recovery-XXXXXX", name[64], command[64];
    struct outcome found = { .status = TUTTI_OK }, wanted = { .status = TUTTI_OK };
    if (!mkdtemp(folder)) abort();
    snprintf(name, sizeof(name), "%s/saved", folder);
    snprintf(command, sizeof(command), "rm -r '%s'", folder);
    expect("all devices fail while steps are replayed", checkpoint_is_true(name, &found, &wanted));
    if (system(command)) printf("cannot remove %s\n", folder);
    free(found.parameters);
    free(wanted.parameters);
}

/* ------------------------------------------------------------------------------------------------- background ---- */

/* Plans for other shares are being made, and that of device 1 hangs. */
static tutti_status begin_hanging_plan(struct session *session)
{
    tutti_status status = TUTTI_OK;
    const struct fault fault = {
        .phase = PHASE_SINGLE, .victim = 1, .order = { .kind = LAYER_ANY, .at = 1, .action = LAYER_HANG_CALL }
    };
    reports = (struct reports) { 0 };
    *session = (struct session) { 0 };
    TRY(session_open(session, "0,1", NULL));
    TRY(build(session, &fault, NULL));
    TRY(tutti_train_step(session->trainer, FEED_PAIR(images, labels), SMALL, NULL)); /* makes plans for that size */
    session->trainer->balance.wanted[0] = SAMPLES / 4;
    session->trainer->balance.wanted[1] = SAMPLES - SAMPLES / 4;
    give(session, &fault);
    rebalance_start(session->trainer);
    for (int i = 0; i < 1000 && layer->broken() == 0; i++) sleep_s(0.01);
    if (layer->broken() == 0) FAIL(TUTTI_INTERNAL, "no plan hangs, so this test shows nothing");
done:
    return status;
}

static void *let_go(void *seconds)
{
    sleep_s(*(double *)seconds);
    layer->give(NULL);
    return NULL;
}

/* The plan hangs for a second, the call is made meanwhile. */
static const char *during_hanging_plan(const char *(*call)(struct session *session))
{
    struct session session;
    double seconds = 1;
    pthread_t thread;
    if (begin_hanging_plan(&session) != TUTTI_OK) return status_message();
    if (pthread_create(&thread, NULL, let_go, &seconds)) return "no thread";
    const char *text = call(&session);
    pthread_join(thread, NULL);
    session_close(&session);
    return text;
}

/* Its own thread waits for the plan longer than a step may take. */
static const char *step_of_another_size(struct session *session)
{
    tutti_trainer *trainer = session->trainer;
    trainer->watchdog.step_limit_s = HANG_LIMIT_S;
    trainer->watchdog.build_limit_s = 30;
    trainer->replicas[1].ran[PLAN_TRAIN] = true; /* else its first step may take as long as a plan */
    if (tutti_train_step(trainer, FEED_PAIR(images, labels), SAMPLES - 2, NULL) != TUTTI_OK) return status_message();
    return reports.lost ? reports.last : NULL;
}

static const char *shrinking(struct session *session)
{
    const double start = clock_seconds();
    if (!replica_shrink(&session->trainer->replicas[1])) return "it could not shrink";
    return clock_seconds() - start < 0.5 ? NULL : "the caller waited for the plan";
}

static int plans_of_more(const struct replica *replica, int64_t samples)
{
    int count = 0;
    for (int i = 0; i < PLAN_CACHE_PLANS; i++)
        count += replica->plans.plans[i].plan && replica->plans.plans[i].plan->options.sizes.samples > samples;
    return count;
}

/* The device's own thread frees plans that have become too large, because a driver may hang in it. */
static const char *shrinking_frees_later(void)
{
    struct session session = { 0 };
    double loss;
    if (session_open(&session, "0,1", NULL) || build(&session, NULL, NULL)) return status_message();
    struct replica *replica = &session.trainer->replicas[1];
    tutti_status status = session_step(&session, 0, &loss);
    if (!replica_shrink(replica)) return "it could not shrink";
    replica->capacity = 1;
    const int before = plans_of_more(replica, 1);
    if (status == TUTTI_OK) status = session_step(&session, 1, &loss);
    const int after = plans_of_more(replica, 1);
    session_close(&session);
    if (status != TUTTI_OK) return status_message();
    return before == 0 ? "the caller's thread freed a plan" : after > 0 ? "a plan that is too large was kept" : NULL;
}

/* Neither the step nor the end wait for the plan of a device that is lost. */
static const char *lost_with_its_plan(void)
{
    struct session session;
    double loss;
    if (begin_hanging_plan(&session) != TUTTI_OK) return status_message();
    session.trainer->watchdog.build_limit_s = 15;
    membership_lose(&session.trainer->members, 1);
    const double start = clock_seconds();
    const tutti_status status = session_step(&session, 0, &loss);
    const double step_s = clock_seconds() - start;
    session_close(&session);
    const double closed_s = clock_seconds() - start - step_s;
    layer->give(NULL);
    if (status != TUTTI_OK) return status_message();
    if (step_s > 10) return "the step waited for the plan of a lost device";
    return closed_s < 10 ? NULL : "tutti_trainer_free() waited for the plan of a lost device";
}

/* Steps of another size end the change of shares while its plan hangs. */
static const char *change_given_up(void)
{
    struct session session;
    if (begin_hanging_plan(&session) != TUTTI_OK) return status_message();
    tutti_trainer *trainer = session.trainer;
    trainer->watchdog.build_limit_s = 3;
    tutti_status status = TUTTI_OK;
    for (int step = 0; step < 3 && status == TUTTI_OK; step++)
        status = tutti_train_step(trainer, FEED_PAIR(images, labels), SMALL, NULL);
    const bool lost = replica_is_lost(&trainer->replicas[1]);
    session_close(&session);
    layer->give(NULL);
    if (status != TUTTI_OK) return status_message();
    return lost && reports.lost == 1 ? NULL : "the device whose plan hangs was not lost";
}

static tutti_status hang(struct replica *replica, void *seconds)
{
    worker_allow(&replica->worker, HANG_LIMIT_S);
    sleep_s(*(double *)seconds);
    return TUTTI_OK;
}

static const char *hanging_probe(void)
{
    static double seconds = 4;
    const struct fault automatic = { .phase = PHASE_SINGLE };
    struct session session = { 0 };
    if (session_open(&session, "0,1", NULL) || build(&session, &automatic, NULL)) return status_message();
    worker_start(&session.trainer->replicas[1].worker, hang, &seconds);
    const double start = clock_seconds();
    session_close(&session);
    return clock_seconds() - start < seconds / 2 ? NULL : "tutti_trainer_free() waited for the probe";
}

/* The samples that the device's probe reads; NULL before one was begun. */
static const struct replica_work *probe_of(const struct session *session, int device)
{
    const tutti_trainer *trainer = session->trainer;
    const struct replica_work *work = trainer->replicas[device].worker.argument;
    return work && work != &trainer->works[device] && work->probe ? work : NULL;
}

/* Steps of device 0 alone, until another device is probed and, if its probe hangs, given up. */
static tutti_status step_until_probed(struct session *session, int device, bool hangs)
{
    tutti_status status = TUTTI_OK;
    tutti_trainer *trainer = session->trainer;
    double loss;
    const double start = clock_seconds();
    for (int step = 0; clock_seconds() - start < STEP_LIMIT_S; step++) {
        if (!rebalance_is_changing(trainer)) trainer->balance.settled = true;
        trainer->balance.cold = 2; /* no time counts, so the division stays */
        TRY(session_step(session, step % STEPS, &loss));
        if (probe_of(session, device) && (!hangs || replica_is_lost(&trainer->replicas[device]))) return TUTTI_OK;
    }
    FAIL(TUTTI_INTERNAL, "device %d was not probed, so this test shows nothing", device);
done:
    return status;
}

/* A device hangs before it reads the samples of its probe, and reads them after another one was probed and all was
 * closed. */
static const char *probe_reads_late(void)
{
    const struct fault fault = {
        .phase = PHASE_SINGLE, .victim = 1, .order = { .kind = LAYER_WRITE, .at = 1, .action = LAYER_HANG_DEVICE }
    };
    struct session session = { 0 };
    double loss, times[] = { 1e-3, 1e-3, 1e-3 };
    tutti_status status = session_open(&session, "0,1,2", NULL);
    if (status != TUTTI_OK) return status_message();
    session.runtime->devices[1].host_cpu = false; /* the driver copies samples, which AddressSanitizer sees */
    status = build(&session, &(struct fault) { .phase = PHASE_SINGLE }, NULL);
    if (status == TUTTI_OK) status = session_step(&session, 0, &loss);
    if (status != TUTTI_OK) return status_message();
    session.trainer->balance.cold = 0;
    balance_add(&session.trainer->balance, times, times[0]);
    leave_single(&session, 0);
    session.trainer->watchdog.step_limit_s = HANG_LIMIT_S;
    give(&session, &fault);
    status = step_until_probed(&session, 1, true);
    if (status == TUTTI_OK) status = step_until_probed(&session, 2, false);
    if (status != TUTTI_OK) return status_message();
    const struct replica_work *late = probe_of(&session, 1), *now = probe_of(&session, 2);
    const bool shared = late == now || late->input.feeds.at[0] == now->input.feeds.at[0];
    session_close(&session);
    layer->give(NULL);
    sleep_s(0.5);
    return shared ? "the next probe changes what the hanging device reads" : NULL;
}

/* A probe fails, and the device then works because the other is lost: the probe has shown no time. */
static const char *probe_fails_before_other_work(void)
{
    const struct fault fault = { .victim = 1, .order = { .kind = LAYER_LAUNCH, .at = 1, .action = LAYER_FAIL } };
    struct session session = { 0 };
    double loss, times[] = { 1e-3, 1e-3 };
    tutti_status status = session_open(&session, "0,1", NULL);
    if (status == TUTTI_OK) status = build(&session, &(struct fault) { .phase = PHASE_SINGLE }, NULL);
    if (status == TUTTI_OK) status = session_step(&session, 0, &loss);
    if (status != TUTTI_OK) return status_message();
    const struct speed *speed = &session.trainer->balance.devices[1].speed;
    session.trainer->balance.cold = 0;
    balance_add(&session.trainer->balance, times, times[0]);
    leave_single(&session, 0);
    give(&session, &fault);
    status = step_until_probed(&session, 1, false);
    const double before = speed->scale;
    if (status == TUTTI_OK)
        status = trainer_lose(session.trainer, &session.trainer->replicas[0], fail(TUTTI_DEVICE_LOST, "a test"));
    if (status == TUTTI_OK)
        status = tutti_evaluate(session.trainer, FEED_PAIR(images, labels), SAMPLES, &(tutti_metrics) { 0 });
    const long broken = layer->broken();
    layer->give(NULL);
    if (status == TUTTI_OK) status = session_step(&session, 1, &loss);
    const double after = speed->scale;
    const bool lost = replica_is_lost(&session.trainer->replicas[1]);
    session_close(&session);
    if (status != TUTTI_OK) return status_message();
    if (broken != 1) return "the probe did not fail, so this test shows nothing";
    return lost ? "the device was lost" : after < before / 2 ? "a probe that failed was timed" : NULL;
}

/* The caller's limit holds without a step, too: a device hangs in the second evaluation. */
static const char *evaluation_hangs(void)
{
    const struct fault fault = { .victim = 1, .order = { .kind = LAYER_LAUNCH, .at = 1, .action = LAYER_HANG_DEVICE } };
    struct session session = { 0 };
    tutti_metrics first = { 0 }, second = { 0 };
    reports = (struct reports) { 0 };
    if (session_open(&session, "0,1", NULL) || build(&session, NULL, NULL)) return status_message();
    session.trainer->watchdog.step_limit_s = HANG_LIMIT_S;
    tutti_status status = tutti_evaluate(session.trainer, FEED_PAIR(images, labels), SAMPLES, &first);
    give(&session, &fault);
    if (status == TUTTI_OK) status = tutti_evaluate(session.trainer, FEED_PAIR(images, labels), SAMPLES, &second);
    const bool lost = replica_is_lost(&session.trainer->replicas[1]);
    session_close(&session);
    layer->give(NULL);
    sleep_s(0.5);
    if (status != TUTTI_OK) return status_message();
    if (!(fabs(first.loss - second.loss) < 1e-5)) return "the loss is another one";
    return lost && reports.lost == 1 ? NULL : "the device that hangs was not lost";
}

/* ------------------------------------------------------------------------------------------------ losing them ---- */

/* The device that retries the step of a suspect is lost itself. */
static const char *only_a_suspect_is_left(struct session *session)
{
    double loss;
    tutti_trainer *trainer = session->trainer;
    membership_suspect(&trainer->members, 0);
    if (trainer_lose(trainer, &trainer->replicas[1], fail(TUTTI_DEVICE_LOST, "a test"))) return status_message();
    return session_step(session, 0, &loss) == TUTTI_OK ? NULL : status_message();
}

static const char *last_one_hangs(struct session *session)
{
    tutti_trainer *trainer = session->trainer;
    trainer->replicas[0].worker.abandoned = true;
    for (int i = 0; i < 2; i++)
        if (trainer_lose(trainer, &trainer->replicas[0], fail(TUTTI_DEVICE_LOST, "a test")) != TUTTI_DEVICE_LOST)
            return "a trainer without a device goes on";
    trainer->replicas[0].worker.abandoned = false;
    return reports.warnings == 1 ? NULL : reports.last;
}

static void try_losing(void)
{
    struct session session = { 0 };
    reports = (struct reports) { 0 };
    if (session_open(&session, "0,1", NULL) || build(&session, NULL, NULL)) {
        expect("two devices", status_message());
        return;
    }
    expect("only a suspect is left", only_a_suspect_is_left(&session));
    expect("the last device hangs, twice", last_one_hangs(&session));
    session_close(&session);
}

/* A launch cannot be given the buffer of the samples; with `forever`, not even the previous one again. In the next
 * step there is no buffer to lend them in, so they are copied. A step that fails is tried again. */
static const char *lending_fails(bool forever)
{
    static char text[256];
    struct session session = { 0 };
    struct outcome outcome = { 0 };
    tutti_status status = TUTTI_OK;
    layer->give(NULL);
    TRY(session_open(&session, "0", NULL));
    TRY(build(&session, NULL, &outcome));
    for (int step = 0; step < STEPS; step++) {
        struct layer_order order = { .kind = LAYER_ARGUMENT, .at = 2, .action = forever ? LAYER_REFUSE : LAYER_FAIL };
        if (step == BROKEN_STEP + 1)
            order = (struct layer_order) { .kind = LAYER_ALLOCATE, .at = 1, .action = LAYER_FAIL };
        if (step == BROKEN_STEP || step == BROKEN_STEP + 1) layer->give(&order);
        status = session_step(&session, step, &outcome.losses[step]);
        outcome.broken += layer->broken();
        layer->give(NULL);
        if (status != TUTTI_OK && step == BROKEN_STEP) status = session_step(&session, step, &outcome.losses[step]);
        TRY(status);
    }
    TRY(session_parameters(&session, &outcome));
    if (outcome.broken < 2) FAIL(TUTTI_INTERNAL, "%ld calls were broken, so this test shows nothing", outcome.broken);
done:
    session_close(&session);
    snprintf(text, sizeof(text), "%s", status == TUTTI_OK ? "" : status_message());
    const char *different = status == TUTTI_OK ? difference(&outcome, &reference) : text;
    free(outcome.parameters);
    return different;
}

/* The launches of a step of the only device. */
static long count_launches(void)
{
    struct session session = { 0 };
    double loss;
    tutti_status status = session_open(&session, "0", NULL);
    if (status == TUTTI_OK) status = build(&session, NULL, NULL);
    if (status == TUTTI_OK) status = session_step(&session, 0, &loss);
    layer->give(&(struct layer_order) { .kind = LAYER_LAUNCH, .at = 1, .action = LAYER_NONE });
    if (status == TUTTI_OK) status = session_step(&session, 1, &loss);
    const long launches = layer->calls(LAYER_LAUNCH);
    layer->give(NULL);
    session_close(&session);
    return status == TUTTI_OK ? launches : 0;
}

/* The last launch of a step fails: the only device may have updated some of its parameters. The host has those before
 * the first step, which can be tried again; later ones only the device had, and the training is resumed. */
static const char *update_fails(int broken, const char *name)
{
    static char text[256];
    struct session session = { 0 };
    struct outcome outcome = { 0 };
    double loss;
    bool refused = false;
    tutti_status status = TUTTI_OK, missing;
    const struct fault fault = { .order = { .kind = LAYER_LAUNCH, .at = count_launches(), .action = LAYER_FAIL } };
    TRY(session_open(&session, "0", NULL));
    TRY(build(&session, NULL, &outcome));
    for (int step = 0; step < STEPS; step++) {
        if (step == broken - 1) TRY(tutti_save(session.trainer, name));
        if (step == broken) {
            give(&session, &fault);
            status = session_step(&session, step, &loss);
            layer->give(NULL);
            if (status == TUTTI_OK) FAIL(TUTTI_INTERNAL, "no launch failed, so this test shows nothing");
        }
        status = session_step(&session, step, &outcome.losses[step]);
        if (step == broken && status == TUTTI_DEVICE_LOST && strstr(status_message(), "two different steps")) {
            refused = true;
            missing = tutti_resume(session.trainer, "/nowhere/missing");
            if (missing != TUTTI_FILE) FAIL(TUTTI_INTERNAL, "resumed without a file: %d", missing);
            status = session_step(&session, step, &outcome.losses[step]);
            if (status != TUTTI_DEVICE_LOST) FAIL(TUTTI_INTERNAL, "a step began after nothing was resumed");
            TRY(tutti_resume(session.trainer, name));
            TRY(session_step(&session, step - 1, &outcome.losses[step - 1]));
            status = session_step(&session, step, &outcome.losses[step]);
        }
        TRY(status);
    }
    if (refused != (broken > 0))
        FAIL(TUTTI_INTERNAL, refused ? "the first step was not tried again" : "a step began with such parameters");
    status = session_parameters(&session, &outcome);
done:
    session_close(&session);
    snprintf(text, sizeof(text), "%s", status == TUTTI_OK ? "" : status_message());
    const char *different = status != TUTTI_OK ? text : difference(&outcome, &reference);
    free(outcome.parameters);
    return different;
}

static void try_lending(void)
{
    expect("a run on one device", reference_make() == TUTTI_OK ? NULL : status_message());
    expect("samples cannot be lent", lending_fails(false));
    expect("samples can neither be lent nor taken back", lending_fails(true));
    char folder[] = "/tmp/tutti-recovery-XXXXXX", name[64], command[64];
    if (!mkdtemp(folder)) abort();
    snprintf(name, sizeof(name), "%s/saved", folder);
    snprintf(command, sizeof(command), "rm -r '%s'", folder);
    expect("the first update of the only device fails", update_fails(0, name));
    expect("a later update of the only device fails", update_fails(2, name));
    if (system(command)) printf("cannot remove %s\n", folder);
}

int main(void)
{
    if (!tests_begin()) return 1;
    try_checkpoint();
    expect("a step waits for a plan in the background", during_hanging_plan(step_of_another_size));
    expect("shrinking while a plan hangs", during_hanging_plan(shrinking));
    expect("plans are freed after shrinking", shrinking_frees_later());
    expect("a plan of a lost device hangs", lost_with_its_plan());
    expect("a change of shares is given up while a plan hangs", change_given_up());
    expect("a probe hangs at the end", hanging_probe());
    expect("a probe hangs and reads its samples late", probe_reads_late());
    expect("a probe fails before other work", probe_fails_before_other_work());
    expect("a device hangs in an evaluation", evaluation_hangs());
    try_losing();
    try_lending();
    return tests_end();
}
