/* Breaks one of two devices at every call that it makes while a training is built, programs and first checks
 * included, with caches full and empty, and while devices are opened; expects the results of a run that never had
 * that device, and no more than a line about it.
 *
 *   test_builds        all but the next
 *   test_builds cold   with nothing in the driver's cache, which is a folder that is emptied every time */
#include "tests/faults/training.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct session pair;            /* its runtime has all programs */
static struct outcome clipping_wanted; /* of PHASE_CLIPPING_BUILD */
static char root[] = "/tmp/tutti-builds-XXXXXX";
static char warm[64], kept[64], first[64]; /* caches of this library */
static char driver[64];                    /* the driver's, where it has to be cold */

static void empty(const char *folder)
{
    char command[128];
    snprintf(command, sizeof(command), "rm -rf '%s'/*", folder);
    if (system(command)) printf("cannot empty %s\n", folder);
}

static const char *cache_of(enum phase phase)
{
    return phase == PHASE_WARM ? warm : phase == PHASE_KEPT ? kept : first;
}

/* Whether the log did not report what happened. */
static const char *misled(const struct fault *fault, const struct outcome *outcome)
{
    const struct layer_order *order = &fault->order;
    const bool wrong = order->action == LAYER_FINITE;
    if (outcome->broken == 0) return NULL;
    if (wrong && reports.set_aside != 1) return "the wrong kernel was not set aside";
    if (wrong && reports.lost > 0) return "a device was lost for a wrong kernel";
    if (reports.lines > 0) return "a warning has several lines";
    if (reports.lost + reports.left_out + reports.halved > 1 || reports.set_aside > 1 ||
        reports.warnings > reports.lost + reports.left_out + reports.halved + reports.set_aside)
        return "more was told than one device lost or given less, and one kernel set aside";
    if (order->action == LAYER_REFUSE && order->kind == LAYER_BUILD &&
        (reports.warnings == 0 || !strstr(reports.last, LAYER_LOG)))
        return "the compiler's error was not told";
    if (is_hang(fault) && reports.lost != 1) return "the device that hangs was not lost";
    return NULL;
}

static void finish(const struct fault *fault, struct session *session, struct outcome *outcome)
{
    if (outcome->status == TUTTI_OK) outcome->status = train(session, fault, outcome);
    const char *text = outcome->status
        ? status_message()
        : difference(outcome, fault->phase == PHASE_CLIPPING_BUILD ? &clipping_wanted : &reference);
    judge(fault, outcome, text ? text : misled(fault, outcome));
    free(outcome->parameters);
    for (int i = 0; session->trainer && i < session->trainer->count; i++) revive(session->trainer, i);
}

static void try_build(const struct fault *fault)
{
    struct outcome outcome = { .status = TUTTI_OK };
    struct session session = { .runtime = pair.runtime, .clipping = fault->phase == PHASE_CLIPPING_BUILD };
    reports = (struct reports) { 0 };
    outcome.status = build(&session, fault, &outcome);
    finish(fault, &session, &outcome);
    session.runtime = NULL;
    session_close(&session);
}

/* In a runtime of its own. */
static void try_programs(const struct fault *fault)
{
    struct outcome outcome = { .status = TUTTI_OK };
    struct session session;
    if (fault->phase == PHASE_FIRST || fault->phase == PHASE_COLD) empty(first);
    if (fault->phase == PHASE_COLD) empty(driver);
    outcome.status = session_open(&session, "0,1", cache_of(fault->phase));
    if (outcome.status == TUTTI_OK) {
        for (int i = 0; fault->phase == PHASE_KEPT && i < session.runtime->count; i++)
            session.runtime->devices[i].quirks = 0; /* as of a driver without a cache of its own */
        reports = (struct reports) { 0 };
        outcome.status = build(&session, fault, &outcome);
    }
    finish(fault, &session, &outcome);
    session_close(&session);
}

static void try_open(const struct fault *fault)
{
    struct outcome outcome = { .status = TUTTI_OK };
    struct session session = { .runtime = NULL };
    reports = (struct reports) { 0 };
    give(&pair, fault); /* the device is the same in every runtime */
    outcome.status = session_open(&session, "0,1", NULL);
    take_counts();
    outcome.broken = layer->broken();
    layer->give(NULL);
    if (outcome.status == TUTTI_OK) outcome.status = build(&session, NULL, &outcome);
    if (outcome.status == TUTTI_OK && outcome.broken > 0 && session.runtime->count != 1)
        outcome.status = fail(TUTTI_INTERNAL, "%d devices were opened", session.runtime->count);
    finish(fault, &session, &outcome);
    session_close(&session);
}

static void try_kind(enum phase phase, enum layer_action action, cl_int code, long most)
{
    const struct fault fault = { .phase = phase, .victim = 1, .order = { .action = action, .code = code } };
    try_all(phase == PHASE_BUILD || phase == PHASE_CLIPPING_BUILD ? try_build
            : phase == PHASE_OPEN                                 ? try_open
                                                                  : try_programs,
        fault, most);
}

/* A build takes a second or more, so only some calls of each kind are broken, evenly spaced. */
struct tries {
    enum phase phase;
    enum layer_kind kind;
    enum layer_action action;
    cl_int code;
    long most;
};

static void try_some(const struct tries *tries, const long *calls)
{
    const long wanted = tests_are_few() ? (tries->most + 1) / 2 : tries->most;
    const long count = calls[tries->kind], most = count < wanted ? count : wanted;
    struct fault fault = { .phase = tries->phase, .victim = 1 };
    for (long i = 0; i < most; i++) {
        fault.order = (struct layer_order) { .kind = tries->kind,
            .at = 1 + (most > 1 ? i * (count - 1) / (most - 1) : 0),
            .action = tries->action,
            .code = tries->code };
        try_programs(&fault);
    }
}

static void try_each(const struct tries *tries, size_t count)
{
    enum phase phase = PHASES;
    long calls[LAYER_KIND_COUNT + 1];
    for (size_t i = 0; i < count; i++) {
        const struct fault none = { .phase = tries[i].phase, .victim = 1, .order = { .kind = LAYER_ANY } };
        const int times = none.phase == PHASE_WARM || none.phase == PHASE_KEPT ? 2 : 1; /* the first fills caches */
        for (int time = 0; time < times && none.phase != phase; time++) try_programs(&none);
        if (phase != PHASES && phase != none.phase) print_table(phase);
        phase = none.phase;
        if (i == 0 || tries[i - 1].phase != phase) memcpy(calls, counted, sizeof(calls));
        try_some(&tries[i], calls);
    }
}

/* Launches of a first use compute wrong numbers once. They are those of the first device, which finds no verdicts by
 * the other. The checks come first; then kernels are warmed up. */
static void try_wrong_kernels(long most)
{
    struct fault fault = { .phase = PHASE_FIRST, .victim = 0, .order = { .kind = LAYER_ANY } };
    try_programs(&fault);
    const long checks = counted[LAYER_LAUNCH] / 3;
    expect("kernels are checked at first", checks >= most ? NULL : "too few launches");
    for (long i = 0; i < most; i++) {
        fault.order =
            (struct layer_order) { .kind = LAYER_LAUNCH, .at = 1 + i * checks / most, .action = LAYER_FINITE };
        try_programs(&fault);
    }
}

static tutti_status prepare(void)
{
    tutti_status status = TUTTI_OK;
    struct outcome outcome = { .status = TUTTI_OK };
    TRY(reference_make());
    TRY(outcome_single(&(struct session) { .clipping = true }, &clipping_wanted));
    TRY(session_open(&pair, "0,1", NULL));
    TRY(build(&pair, NULL, &outcome));
done:
    return status;
}

static void try_calls(void)
{
    try_kind(PHASE_BUILD, LAYER_FAIL, CL_OUT_OF_RESOURCES, LONG_MAX);
    try_kind(PHASE_BUILD, LAYER_LOSE, CL_DEVICE_NOT_AVAILABLE, LONG_MAX);
    try_kind(PHASE_BUILD, LAYER_FAIL, CL_MEM_OBJECT_ALLOCATION_FAILURE, LONG_MAX);
    try_kind(PHASE_BUILD, LAYER_HANG_CALL, 0, 1);
    try_kind(PHASE_CLIPPING_BUILD, LAYER_FAIL, CL_OUT_OF_RESOURCES, 10);
    try_kind(PHASE_CLIPPING_BUILD, LAYER_LOSE, CL_DEVICE_NOT_AVAILABLE, 5);
    try_kind(PHASE_OPEN, LAYER_FAIL, CL_OUT_OF_RESOURCES, LONG_MAX);
    try_kind(PHASE_OPEN, LAYER_LOSE, CL_DEVICE_NOT_AVAILABLE, LONG_MAX);
    print_table(PHASE_BUILD);
    print_table(PHASE_CLIPPING_BUILD);
    print_table(PHASE_OPEN);
}

static void try_warm(void)
{
    static const struct tries tries[] = {
        { PHASE_WARM, LAYER_PROGRAM, LAYER_FAIL, CL_OUT_OF_HOST_MEMORY, 5 },
        { PHASE_WARM, LAYER_PROGRAM, LAYER_LOSE, CL_DEVICE_NOT_AVAILABLE, 3 },
        { PHASE_WARM, LAYER_PROGRAM, LAYER_HANG_CALL, 0, 1 },
        { PHASE_WARM, LAYER_BUILD, LAYER_FAIL, CL_BUILD_PROGRAM_FAILURE, 3 },
        { PHASE_WARM, LAYER_BUILD, LAYER_REFUSE, CL_BUILD_PROGRAM_FAILURE, 8 },
        { PHASE_WARM, LAYER_BUILD, LAYER_LOSE, CL_DEVICE_NOT_AVAILABLE, 3 },
        { PHASE_WARM, LAYER_BUILD, LAYER_HANG_CALL, 0, 1 },
        { PHASE_WARM, LAYER_KERNEL, LAYER_FAIL, CL_OUT_OF_RESOURCES, 3 },
        { PHASE_WARM, LAYER_KERNEL, LAYER_HANG_CALL, 0, 1 },
        { PHASE_WARM, LAYER_QUERY, LAYER_FAIL, CL_OUT_OF_RESOURCES, 3 },
        { PHASE_KEPT, LAYER_PROGRAM, LAYER_FAIL, CL_INVALID_BINARY, 4 },
        { PHASE_KEPT, LAYER_PROGRAM, LAYER_LOSE, CL_DEVICE_NOT_AVAILABLE, 2 },
        { PHASE_KEPT, LAYER_BUILD, LAYER_FAIL, CL_BUILD_PROGRAM_FAILURE, 4 },
        { PHASE_KEPT, LAYER_BUILD, LAYER_REFUSE, CL_BUILD_PROGRAM_FAILURE, 2 },
        { PHASE_FIRST, LAYER_PROGRAM, LAYER_FAIL, CL_OUT_OF_RESOURCES, 2 },
        { PHASE_FIRST, LAYER_BUILD, LAYER_REFUSE, CL_BUILD_PROGRAM_FAILURE, 3 },
        { PHASE_FIRST, LAYER_KERNEL, LAYER_FAIL, CL_OUT_OF_RESOURCES, 2 },
        { PHASE_FIRST, LAYER_LAUNCH, LAYER_FAIL, CL_OUT_OF_RESOURCES, 2 },
        { PHASE_FIRST, LAYER_LAUNCH, LAYER_LOSE, CL_DEVICE_NOT_AVAILABLE, 2 },
    };
    try_each(tries, sizeof(tries) / sizeof(*tries));
    try_wrong_kernels(4);
    print_table(PHASE_FIRST);
}

static void try_cold(void)
{
    static const struct tries tries[] = {
        { PHASE_COLD, LAYER_BUILD, LAYER_REFUSE, CL_BUILD_PROGRAM_FAILURE, 1 },
        { PHASE_COLD, LAYER_LAUNCH, LAYER_LOSE, CL_DEVICE_NOT_AVAILABLE, 1 },
    };
    try_each(tries, sizeof(tries) / sizeof(*tries));
    print_table(PHASE_COLD);
}

int main(int count, char **words)
{
    const bool cold = count > 1 && !strcmp(words[1], "cold");
    char command[64];
    if (!mkdtemp(root)) abort();
    snprintf(warm, sizeof(warm), "%s/warm", root);
    snprintf(kept, sizeof(kept), "%s/kept", root);
    snprintf(first, sizeof(first), "%s/first", root);
    snprintf(driver, sizeof(driver), "%s/driver", root);
    if (cold) setenv("POCL_CACHE_DIR", driver, 1); /* read at the first call of OpenCL */
    if (!tests_begin()) return 1;
    if (prepare() != TUTTI_OK) {
        printf("%s\n0 passed, 1 failed\n", status_message());
        return 1;
    }
    if (cold)
        try_cold();
    else {
        try_calls();
        try_warm();
    }
    session_close(&pair);
    snprintf(command, sizeof(command), "rm -rf '%s'", root);
    if (system(command)) printf("cannot remove %s\n", root);
    return tests_end();
}
