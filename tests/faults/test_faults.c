/* Breaks one of two devices at every call that it makes in a step of a training, and expects the results of a run
 * that never had that device; prints a table of what was tried. test_builds.c does the same while a training is
 * built. */
#include "parallel/faults.h"
#include "parallel/rebalance.h"
#include "replica/run.h"
#include "tests/faults/training.h"
#include "tests/feeds.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Where a training began, so that one session serves many cases. */
struct snapshot {
    float *parameters, *states[OPTIMIZER_STATES];
    struct position position;
    int64_t capacity[2];
};

static void *copy_of(const void *data, size_t bytes)
{
    void *copy = malloc(bytes);
    if (!copy) abort();
    return memcpy(copy, data, bytes);
}

static struct snapshot snapshot_take(const struct session *session)
{
    const tutti_trainer *trainer = session->trainer;
    const size_t bytes = (size_t)trainer->network->trained_floats * sizeof(float);
    struct snapshot snapshot = {
        .parameters =
            copy_of(trainer->store->master.parameters, (size_t)trainer->network->total_floats * sizeof(float)),
        .position = trainer->state.position,
        .capacity = { trainer->replicas[0].capacity, trainer->replicas[1].capacity },
    };
    for (int i = 0; i < optimizer_states(&trainer->optimizer); i++)
        snapshot.states[i] = copy_of(trainer->store->master.states[i], bytes);
    return snapshot;
}

/* The devices were never really lost: the layer is. */
static void snapshot_restore(const struct snapshot *snapshot, struct session *session)
{
    tutti_trainer *trainer = session->trainer;
    memcpy(trainer->store->master.parameters, snapshot->parameters,
        (size_t)trainer->network->total_floats * sizeof(float));
    for (int i = 0; i < optimizer_states(&trainer->optimizer); i++)
        memcpy(trainer->store->master.states[i], snapshot->states[i],
            (size_t)trainer->network->trained_floats * sizeof(float));
    trainer->state.position = snapshot->position;
    for (int i = 0; i < trainer->count; i++) {
        revive(trainer, i);
        trainer->replicas[i].capacity = snapshot->capacity[i];
    }
    parameters_changed(trainer->store);
}

/* Two devices, whose trainers serve all broken steps of a phase. */
struct stage {
    struct session session;
    struct snapshot before;
    struct outcome wanted;
    /* If gradients are rounded, the sum of two devices differs from that of one. This is the expected outcome if the
     * device was lost in the step. */
    struct outcome without[2];
};
static struct stage stages[PHASES];

static void try_step(const struct fault *fault)
{
    struct outcome outcome = { .status = TUTTI_OK };
    struct stage *stage = &stages[fault->phase];
    struct session *session = &stage->session;
    snapshot_restore(&stage->before, session);
    outcome.status = train(session, fault, &outcome);
    const struct replica *victim = &session->trainer->replicas[fault->victim];
    const struct outcome *wanted = replica_is_lost(victim) ? &stage->without[fault->victim] : &stage->wanted;
    const char *text = outcome.status ? status_message() : difference(&outcome, wanted);
    const bool no_memory = column_of(&fault->order) == NO_MEMORY && outcome.broken > 0;
    if (!text && no_memory && (replica_is_lost(victim) || victim->capacity >= stage->before.capacity[fault->victim]))
        text = "the device was not kept with fewer samples at once";
    judge(fault, &outcome, text);
    free(outcome.parameters);
}

/* Breaks a call in the first step of a separate training: a call without resources may lack memory, once. */
static void try_touch(const struct fault *fault)
{
    struct outcome outcome = { .status = TUTTI_OK };
    struct session session = { .runtime = stages[PHASE_STEP].session.runtime };
    int64_t before_it = 0;
    reports = (struct reports) { 0 };
    outcome.status = build(&session, fault, &outcome);
    if (outcome.status == TUTTI_OK) {
        before_it = session.trainer->replicas[fault->victim].capacity;
        outcome.status = train(&session, fault, &outcome);
    }
    const char *text = outcome.status ? status_message() : difference(&outcome, &reference);
    const struct replica *victim = session.trainer ? &session.trainer->replicas[fault->victim] : NULL;
    if (!text && outcome.broken > 0 && fault->order.action == LAYER_FAIL &&
        (replica_is_lost(victim) || victim->capacity != before_it / 2))
        text = "the device was not kept with half as many samples at once";
    if (!text && fault->order.action == LAYER_LOSE && (reports.lost != 1 || reports.warnings > 2))
        text = "the device was not lost at the second failure";
    judge(fault, &outcome, text);
    free(outcome.parameters);
    session.runtime = NULL;
    session_close(&session);
}

static void try_single(const struct fault *fault)
{
    struct outcome outcome = { .status = TUTTI_OK };
    const bool clipping = fault->phase == PHASE_CLIPPING_SINGLE;
    struct session session = { .runtime = stages[PHASE_STEP].session.runtime, .clipping = clipping };
    const char *text = NULL;
    outcome.status = build(&session, fault, &outcome);
    if (outcome.status == TUTTI_OK) {
        leave_single(&session, fault->victim);
        outcome.status = train(&session, fault, &outcome);
    }
    text = outcome.status ? status_message()
                          : difference(&outcome, clipping ? &stages[PHASE_CLIPPING].wanted : &reference);
    if (!text && !session.trainer->works[fault->victim].update) text = "the device did not train alone";
    judge(fault, &outcome, text);
    free(outcome.parameters);
    if (session.trainer) revive(session.trainer, fault->victim);
    session.runtime = NULL;
    session_close(&session);
}

/* A device gets other, finite, parameters than it was sent. With the option, this is noticed: the device is lost, and
 * its step is retried. Without it, they enter the sum. */
static const char *wrong_parameters(int victim, bool check, struct outcome *outcome)
{
    const struct fault fault = {
        .phase = PHASE_APART, .victim = victim, .order = { .kind = LAYER_WRITE, .at = 1, .action = LAYER_FINITE }
    }; /* a step's first write is theirs */
    snapshot_restore(&stages[PHASE_APART].before, &stages[PHASE_APART].session);
    tutti_trainer *trainer = stages[PHASE_APART].session.trainer;
    trainer->options.advanced.check_replicas = check;
    outcome->status = train(&stages[PHASE_APART].session, &fault, outcome);
    trainer->options.advanced.check_replicas = false;
    if (outcome->status != TUTTI_OK) return status_message();
    if (outcome->broken != 1) return "the parameters were not made wrong";
    const char *text = difference(outcome, &reference);
    if (!check) return text ? NULL : "the wrong parameters did no harm, so this test shows nothing";
    if (!text && !replica_is_lost(&trainer->replicas[victim])) return "the device was not lost";
    return text;
}

static void try_wrong_parameters(int victim, bool check)
{
    struct outcome outcome = { .status = TUTTI_OK };
    expect(check ? "wrong parameters, with check" : "wrong parameters, without check",
        wrong_parameters(victim, check, &outcome));
    free(outcome.parameters);
}

/* Plans for other shares are begun. */
static tutti_status change(struct session *session, const struct fault *fault)
{
    struct outcome outcome = { .status = TUTTI_OK };
    const tutti_status status = build(session, fault, &outcome);
    if (status != TUTTI_OK) return status;
    struct balance *balance = &session->trainer->balance;
    balance->wanted[0] = SAMPLES / 4;
    balance->wanted[1] = SAMPLES - SAMPLES / 4;
    if (fault->order.action != LAYER_NONE) give(session, fault);
    rebalance_start(session->trainer);
    return TUTTI_OK;
}

static void await_millisecond(void)
{
    nanosleep(&(struct timespec) { .tv_nsec = 1000000 }, NULL);
}

static void await_plan(struct replica *replica)
{
    while (!background_is_done(replica)) await_millisecond();
}

/* Waits for the plans of both devices, for the victim's until its limit. Until then the usual limit of half an hour
 * holds, so that a busy machine loses no device earlier. */
static void await_end_of_patience(tutti_trainer *trainer, int victim)
{
    await_plan(&trainer->replicas[1 - victim]);
    trainer->watchdog.build_limit_s = 6;
    await_plan(&trainer->replicas[victim]);
}

/* A plan for other shares is never finished, while steps go on: its device is lost, and then the plan is not missed. */
static const char *hang_in_the_background(struct session *session, struct outcome *outcome)
{
    const struct fault fault = {
        .phase = PHASE_SINGLE, .victim = 1, .order = { .kind = LAYER_KERNEL, .at = 1, .action = LAYER_HANG_CALL }
    };
    reports = (struct reports) { 0 };
    outcome->status = change(session, &fault);
    if (outcome->status != TUTTI_OK) return status_message();
    tutti_trainer *trainer = session->trainer;
    struct replica *victim = &trainer->replicas[fault.victim];
    /* The first step makes kernels, too: on a busy machine it would hang in place of the plan. */
    while (layer->broken() == 0 && !background_is_done(victim)) await_millisecond();
    for (int step = 0; step < STEPS && outcome->status == TUTTI_OK; step++) {
        if (step == STEPS / 2) await_end_of_patience(trainer, fault.victim);
        if (replica_is_lost(victim) != (step > STEPS / 2)) return "the device was lost at another step";
        outcome->status = session_step(session, step, &outcome->losses[step]);
    }
    if (outcome->status == TUTTI_OK) outcome->status = session_parameters(session, outcome);
    if (outcome->status != TUTTI_OK) return status_message();
    if (layer->broken() != 1 || reports.lost != 1 || reports.warnings != 1)
        return "not one line about one device was told";
    return difference(outcome, &reference);
}

static void try_background(void)
{
    const struct fault none = { .phase = PHASE_SINGLE };
    struct outcome outcome = { .status = TUTTI_OK };
    struct session session = { .runtime = stages[PHASE_STEP].session.runtime };
    if (change(&session, &none) == TUTTI_OK) /* so that no plan is late because it has to be compiled */
        for (int i = 0; i < 2; i++) await_plan(&session.trainer->replicas[i]);
    session.runtime = NULL;
    session_close(&session);
    session = (struct session) { .runtime = stages[PHASE_STEP].session.runtime };
    expect("a hanging plan in the background", hang_in_the_background(&session, &outcome));
    layer->give(NULL); /* its thread may use what it was given, which is why that is not freed */
    free(outcome.parameters);
    session.runtime = NULL;
    session_close(&session);
}

/* A device that becomes ten times slower is not taken for one that hangs, and gets less to do. */
static const char *slow_device(struct session *session, struct outcome *outcome)
{
    enum { PATIENCE = 300 };
    struct fault fault = { .phase = PHASE_SINGLE, .victim = 1 };
    outcome->status = build(session, &fault, outcome);
    if (outcome->status != TUTTI_OK) return status_message();
    tutti_trainer *trainer = session->trainer;
    fault.order = (struct layer_order) { .kind = LAYER_ANY, .at = 1, .action = LAYER_SLOW, .factor = 10 };
    reports = (struct reports) { 0 };
    trainer->options.advanced.check_replicas = true;
    give(session, &fault);
    for (int step = 0; step < PATIENCE && outcome->status == TUTTI_OK; step++) {
        double loss;
        outcome->status = session_step(session, step % STEPS, &loss);
        if (outcome->status == TUTTI_OK && step < STEPS && !(fabs(loss - reference.losses[step]) < 1e-5))
            return "the first losses are others";
        if (trainer->balance.parts[1] < trainer->balance.parts[0] && !trainer->balance.trying) break;
    }
    if (outcome->status != TUTTI_OK) return status_message();
    if (reports.warnings > 0) return reports.last;
    return trainer->balance.parts[1] < trainer->balance.parts[0] ? NULL
                                                                 : "the slow device has as much to do as the other";
}

static void try_slow(void)
{
    struct outcome outcome = { .status = TUTTI_OK };
    struct session session = { .runtime = stages[PHASE_STEP].session.runtime };
    expect("a slow device", slow_device(&session, &outcome));
    layer->give(NULL);
    session.runtime = NULL;
    session_close(&session);
}

/* All devices fail for good in a step: the result of the steps before is saved, and another run continues from it. */
static int lose_all(void *user, const tutti_progress *progress)
{
    (void)user;
    if (progress->total_steps == BROKEN_STEP)
        layer->give(&(struct layer_order) { .kind = LAYER_LAUNCH, .at = 3, .action = LAYER_LOSE });
    return 0;
}

static tutti_status save_and_resume(const char *name, struct outcome *outcome)
{
    tutti_status status = TUTTI_OK;
    struct session later = { 0 };
    tutti_fitting fitting = { .no_shuffle = true, .save = name, .progress = lose_all };
    snapshot_restore(&stages[PHASE_STEP].before, &stages[PHASE_STEP].session);
    status = tutti_fit(stages[PHASE_STEP].session.trainer, FEED_PAIR(images, labels), STEPS * SAMPLES, &fitting);
    layer->give(NULL);
    if (!is_device_fault(status)) FAIL(TUTTI_INTERNAL, "the run without devices ended with status %d", status);
    if (!strstr(status_message(), ", saved after step 1:"))
        FAIL(TUTTI_INTERNAL, "the message does not tell of the checkpoint: %s", status_message());
    fitting = (tutti_fitting) { .no_shuffle = true, .resume = name };
    TRY(session_open(&later, "0", NULL));
    TRY(build(&later, NULL, outcome));
    TRY(tutti_fit(later.trainer, FEED_PAIR(images, labels), STEPS * SAMPLES, &fitting));
    memcpy(outcome->losses, reference.losses, sizeof(outcome->losses)); /* tutti_fit gives their mean alone */
    TRY(session_parameters(&later, outcome));
done:
    session_close(&later);
    return status;
}

static void try_no_device_left(void)
{
    char folder[] = "/tmp/tutti-faults-XXXXXX", name[64], command[64];
    struct outcome outcome = { .status = TUTTI_OK };
    if (!mkdtemp(folder)) abort();
    snprintf(name, sizeof(name), "%s/saved", folder);
    snprintf(command, sizeof(command), "rm -r '%s'", folder);
    expect("no device left", save_and_resume(name, &outcome) ? status_message() : difference(&outcome, &reference));
    if (system(command)) printf("cannot remove %s\n", folder);
    free(outcome.parameters);
}

/* ------------------------------------------------------------------------------------------------------ main ---- */

/* Two devices, which are trained without faults first. */
static tutti_status make_stage(enum phase phase, const struct outcome *wanted)
{
    tutti_status status = TUTTI_OK;
    struct stage *stage = &stages[phase];
    struct session *session = &stage->session;
    TRY(session_open(session, "0,1", NULL));
    session->norm = phase == PHASE_SYNC;
    session->clipping = phase == PHASE_CLIPPING;
    session->wire = phase == PHASE_WIRE ? TUTTI_BF16 : TUTTI_FP32;
    session->ahead = phase == PHASE_AHEAD;
    const bool apart = phase == PHASE_APART || phase == PHASE_WIRE || phase == PHASE_AHEAD;
    for (int i = 0; i < 2; i++) session->runtime->devices[i].can.unified &= !apart;
    TRY(build(session, NULL, &stage->wanted));
    stage->before = snapshot_take(session);
    TRY(train(session, NULL, &stage->wanted));
    if (!wanted) goto done;
    const char *text = difference(&stage->wanted, wanted);
    if (text) FAIL(TUTTI_INTERNAL, "without faults: %s", text);
    stage->wanted = stage->without[0] = stage->without[1] = *wanted;
done:
    return status;
}

/* The step that will be broken, and those after it, by the other device alone. */
static tutti_status train_without(struct stage *stage, int victim)
{
    tutti_status status = TUTTI_OK;
    struct outcome *outcome = &stage->without[victim];
    snapshot_restore(&stage->before, &stage->session);
    for (int step = 0; step < STEPS; step++) {
        if (step == BROKEN_STEP) membership_lose(&stage->session.trainer->members, victim);
        TRY(session_step(&stage->session, step, &outcome->losses[step]));
    }
    TRY(session_parameters(&stage->session, outcome));
    const char *text = difference(outcome, &stage->wanted);
    if (!text) FAIL(TUTTI_INTERNAL, "rounded gradients give what others give, so they were not rounded");
done:
    return status;
}

/* The runs that never had the second device, and the sessions of two that the cases share. */
static tutti_status prepare(void)
{
    tutti_status status = TUTTI_OK;
    struct outcome norm = { .status = TUTTI_OK }, clipping = { .status = TUTTI_OK };
    TRY(reference_make());
    TRY(outcome_single(&(struct session) { .norm = true }, &norm));
    TRY(outcome_single(&(struct session) { .clipping = true }, &clipping));
    TRY(make_stage(PHASE_STEP, &reference));
    TRY(make_stage(PHASE_APART, &reference));
    TRY(make_stage(PHASE_AHEAD, &reference));
    TRY(make_stage(PHASE_SYNC, &norm));
    TRY(make_stage(PHASE_CLIPPING, &clipping));
    TRY(make_stage(PHASE_WIRE, NULL));
    for (int victim = 0; victim < 2; victim++) TRY(train_without(&stages[PHASE_WIRE], victim));
done:
    return status;
}

static void try_kind(enum phase phase, int victim, enum layer_action action, cl_int code)
{
    const struct fault fault = { .phase = phase, .victim = victim, .order = { .action = action, .code = code } };
    const bool single = phase == PHASE_SINGLE || phase == PHASE_CLIPPING_SINGLE;
    const long most = phase == PHASE_AHEAD ? 7 /* all but launches, which are those of PHASE_APART */
        : phase == PHASE_CLIPPING && action == LAYER_HANG_CALL ? 4 /* of each kind, as of other steps */
                                                               : LONG_MAX;
    try_all(phase == PHASE_TOUCH ? try_touch : single ? try_single : try_step, fault, most);
}

int main(void)
{
    if (!tests_begin()) return 1;
    if (prepare() != TUTTI_OK) {
        printf("%s\n0 passed, 1 failed\n", status_message());
        return 1;
    }
    for (int victim = 0; victim < 2; victim++) {
        try_kind(PHASE_STEP, victim, LAYER_FAIL, CL_INVALID_COMMAND_QUEUE);
        try_kind(PHASE_STEP, victim, LAYER_FAIL, CL_OUT_OF_RESOURCES);
        try_kind(PHASE_STEP, victim, LAYER_LOSE, CL_DEVICE_NOT_AVAILABLE);
        try_kind(PHASE_STEP, victim, LAYER_NAN, 0);
    }
    try_kind(PHASE_STEP, 1, LAYER_FAIL, CL_MEM_OBJECT_ALLOCATION_FAILURE);
    for (int victim = 0; victim < 2; victim++) {
        try_kind(PHASE_APART, victim, LAYER_FAIL, CL_OUT_OF_RESOURCES);
        try_kind(PHASE_APART, victim, LAYER_NAN, 0);
    }
    try_kind(PHASE_APART, 1, LAYER_LOSE, CL_DEVICE_NOT_AVAILABLE);
    try_kind(PHASE_APART, 1, LAYER_FAIL, CL_MEM_OBJECT_ALLOCATION_FAILURE);
    try_kind(PHASE_APART, 0, LAYER_HANG_CALL, 0);
    try_kind(PHASE_APART, 1, LAYER_HANG_DEVICE, 0);
    try_kind(PHASE_STEP, 1, LAYER_HANG_CALL, 0);
    try_kind(PHASE_STEP, 1, LAYER_HANG_DEVICE, 0);
    try_kind(PHASE_WIRE, 1, LAYER_FAIL, CL_OUT_OF_RESOURCES);
    try_kind(PHASE_WIRE, 0, LAYER_LOSE, CL_DEVICE_NOT_AVAILABLE);
    try_kind(PHASE_WIRE, 1, LAYER_NAN, 0);
    try_kind(PHASE_AHEAD, 1, LAYER_FAIL, CL_OUT_OF_RESOURCES);
    try_kind(PHASE_AHEAD, 1, LAYER_LOSE, CL_DEVICE_NOT_AVAILABLE);
    try_kind(PHASE_AHEAD, 0, LAYER_NAN, 0);
    try_kind(PHASE_AHEAD, 0, LAYER_HANG_CALL, 0);
    try_kind(PHASE_AHEAD, 1, LAYER_HANG_DEVICE, 0);
    try_kind(PHASE_SYNC, 0, LAYER_FAIL, CL_OUT_OF_RESOURCES);
    try_kind(PHASE_SYNC, 1, LAYER_LOSE, CL_DEVICE_NOT_AVAILABLE);
    try_kind(PHASE_SYNC, 1, LAYER_NAN, 0);
    try_kind(PHASE_SYNC, 1, LAYER_HANG_CALL, 0);
    try_kind(PHASE_CLIPPING, 0, LAYER_FAIL, CL_OUT_OF_RESOURCES);
    try_kind(PHASE_CLIPPING, 1, LAYER_LOSE, CL_DEVICE_NOT_AVAILABLE);
    try_kind(PHASE_CLIPPING, 1, LAYER_NAN, 0);
    try_kind(PHASE_CLIPPING, 1, LAYER_HANG_CALL, 0);
    try_kind(PHASE_TOUCH, 1, LAYER_FAIL, CL_OUT_OF_RESOURCES);
    try_kind(PHASE_TOUCH, 1, LAYER_LOSE, CL_OUT_OF_RESOURCES);
    try_kind(PHASE_SINGLE, 0, LAYER_FAIL, CL_INVALID_COMMAND_QUEUE);
    try_kind(PHASE_SINGLE, 0, LAYER_FAIL, CL_MEM_OBJECT_ALLOCATION_FAILURE);
    try_kind(PHASE_SINGLE, 1, LAYER_LOSE, CL_DEVICE_NOT_AVAILABLE);
    try_kind(PHASE_SINGLE, 0, LAYER_NAN, 0);
    try_kind(PHASE_SINGLE, 0, LAYER_HANG_CALL, 0);
    try_kind(PHASE_SINGLE, 1, LAYER_HANG_DEVICE, 0);
    try_kind(PHASE_CLIPPING_SINGLE, 0, LAYER_FAIL, CL_OUT_OF_RESOURCES);
    try_kind(PHASE_CLIPPING_SINGLE, 1, LAYER_LOSE, CL_DEVICE_NOT_AVAILABLE);
    try_kind(PHASE_CLIPPING_SINGLE, 0, LAYER_NAN, 0);
    for (int victim = 0; victim < 2; victim++) {
        try_wrong_parameters(victim, true);
        try_wrong_parameters(victim, false);
    }
    try_no_device_left();
    try_slow();
    try_background();
    print_table(PHASE_STEP);
    print_table(PHASE_APART);
    print_table(PHASE_WIRE);
    print_table(PHASE_AHEAD);
    print_table(PHASE_SYNC);
    print_table(PHASE_CLIPPING);
    print_table(PHASE_TOUCH);
    print_table(PHASE_SINGLE);
    print_table(PHASE_CLIPPING_SINGLE);
    for (int phase = 0; phase < PHASES; phase++) session_close(&stages[phase].session);
    return tests_end();
}
