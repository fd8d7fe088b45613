#include "runtime/check.h"

#include "base/memory.h"
#include "base/numbers.h"
#include "base/process.h"
#include "base/threads.h"
#include "runtime/launch.h"
#include "runtime/memory.h"
#include "runtime/store.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* ---- probes ---- */

enum { PROBE_ITEMS = 64 };

static float arithmetic_expected(const float *in, int i)
{
    float sum = 10; /* 1 + 2 + 3 + 4 */
    for (int j = 0; j < 4; j++) sum += 2 * in[(i + j) % PROBE_ITEMS];
    return fmaxf(sum, 0) + (float)((int)in[i] * 1000 / 7 % 13);
}

static float copy_expected(const float *in, int i)
{
    return in[i];
}

static float functions_expected(const float *in, int i)
{
    double x = ((double)in[i] + 1) / 64;
    return (float)(exp(x) + log(x) + sqrt(x) + 1 / (x + 1));
}

static float local_expected(const float *in, int i)
{
    float sum = 0;
    for (int j = 0; j < PROBE_ITEMS; j++) sum += in[j];
    return i == 0 ? sum : in[PROBE_ITEMS - 1 - i];
}

static const struct probe {
    const char *kernel, *what;
    float (*expected)(const float *in, int i);
    float tolerance; /* relative to 1 + |expected|; 0: exact, as all numbers are small integers */
    bool local;
} probes[] = {
    { "check_copy", "copies numbers", copy_expected, 0, false },
    { "check_arithmetic", "computes with small integers", arithmetic_expected, 0, false },
    { "check_functions", "computes exp, log and sqrt", functions_expected, 1e-5f, false },
    { "check_local", "uses local memory and barriers", local_expected, 0, true },
};

static tutti_status compare(const struct probe *probe, const struct device *device, const float *in, const float *out)
{
    for (int i = 0; i < PROBE_ITEMS; i++) {
        float expected = probe->expected(in, i);
        if (fabsf(out[i] - expected) <= probe->tolerance * (1 + fabsf(expected))) continue; /* false for NaN */
        return fail(TUTTI_WRONG_RESULT,
            "device %d, '%s' (driver %s), computes wrong numbers when it %s: element %d is %.9g, expected %.9g: update "
            "the driver, or exclude the device with TUTTI_DEVICES",
            device->index, device->can.name, device->can.driver, probe->what, i, (double)out[i], (double)expected);
    }
    return TUTTI_OK;
}

static tutti_status probe_run(struct device *device, const struct probe *probe, cl_mem in, cl_mem out)
{
    tutti_status status = TUTTI_OK;
    float sent[PROBE_ITEMS], got[PROBE_ITEMS];
    struct launch_list list;
    launch_list_init(&list, device);
    for (int i = 0; i < PROBE_ITEMS; i++) sent[i] = (float)(i * 37 % PROBE_ITEMS);
    struct launch *launch = launch_add(&list, "check", probe->kernel, "%s", "");
    launch_buffer(launch, in);
    launch_buffer(launch, out);
    if (probe->local) launch_local(launch, sizeof(sent));
    size_t group = device->can.group_max >= PROBE_ITEMS ? PROBE_ITEMS : 1;
    launch_grid(launch, 1, PROBE_ITEMS, 1, 1, group, 1, 1);
    TRY(buffer_write(device, in, 0, sent, sizeof(sent)));
    TRY(buffer_fill(device, out, 0, sizeof(got), 0x7fc00000)); /* NaN: what is not written is noticed */
    TRY(launch_list_realise(&list, NULL, NULL));
    TRY(launch_list_enqueue(&list, 0, 1, NULL));
    TRY(buffer_read(device, out, 0, got, sizeof(got)));
    TRY(compare(probe, device, sent, got));
done:
    launch_list_free(&list);
    return status;
}

tutti_status check_device(struct device *device)
{
    tutti_status status = TUTTI_OK;
    cl_mem in = NULL, out = NULL;
    TRY(buffer_new(device, PROBE_ITEMS * sizeof(float), &in));
    TRY(buffer_new(device, PROBE_ITEMS * sizeof(float), &out));
    for (size_t i = 0; i < sizeof(probes) / sizeof(probes[0]); i++) {
        /* A device without groups of that size has nothing for the tree to run on. */
        if (probes[i].local && device->can.group_max < PROBE_ITEMS) continue;
        TRY(probe_run(device, &probes[i], in, out));
    }
done:
    buffer_free(&in);
    buffer_free(&out);
    return status;
}

bool check_compiler(struct device *device)
{
    const char *text = "kernel void one(global float *out) { out[get_global_id(0)] = NUMBER; }";
    char options[64];
    cl_int error = CL_SUCCESS;
    number_print(options, sizeof(options), "-DNUMBER=%.9f", clock_seconds());
    cl_program program = clCreateProgramWithSource(device->context, 1, &text, NULL, &error);
    if (!program) return false;
    error = clBuildProgram(program, 1, &device->id, options, NULL, NULL);
    clReleaseProgram(program);
    return error == CL_SUCCESS;
}

/* ---- what implementations were checked, and which failed ---- */

enum { TRIAL_SECONDS = 120 };
static const char passed[] = "passed", failed[] = "failed ", trying[] = "trying ";

static bool begins(const char *text, const char *beginning)
{
    return !strncmp(text, beginning, strlen(beginning));
}

/* Tells from a marker, "TIME PROCESS", whether the trial that began then goes on: it does while its process lives.
 * For a process on another host only the time tells: a trial is given up after TRIAL_SECONDS, and hosts' clocks
 * differ. */
static bool trial_goes_on(const char *text)
{
    long long begun = 0;
    int length = 0;
    if (sscanf(text, "%lld %n", &begun, &length) != 1 || length == 0) return false;
    const enum process_state state = process_state(text + length);
    return state == PROCESS_LIVES || (state == PROCESS_ELSEWHERE && llabs(time(NULL) - begun) < 5 * TRIAL_SECONDS);
}

const char *blacklist_reason(struct device *device, const char *implementation)
{
    const char *verdict = store_get(device, STORE_CHECKS, implementation);
    if (verdict && begins(verdict, failed)) return verdict + strlen(failed);
    if (!verdict || !begins(verdict, trying) || trial_goes_on(verdict + strlen(trying))) return NULL;
    return "its check was started and did not end";
}

void blacklist_list(
    struct device *device, void (*each)(void *user, const char *implementation, const char *reason), void *user)
{
    const char *name, *verdict;
    for (size_t at = 0; store_next(device, STORE_CHECKS, &at, &name, &verdict);) {
        const char *reason = blacklist_reason(device, name);
        if (reason) each(user, name, reason);
    }
}

static void note(struct device *device, const char *what, const char *verdict, const char *more)
{
    char *text = memory_format("%s%s", verdict, more);
    if (!text) return;
    store_set(device, STORE_CHECKS, what, text);
    store_save(device, STORE_CHECKS);
    free(text);
}

void check_failed(struct device *device, const char *what, const char *reason)
{
    note(device, what, failed, reason && *reason ? reason : "it failed its check");
}

void blacklist_add(struct device *device, const char *implementation, const char *reason)
{
    check_failed(device, implementation, reason);
    const char *kept = blacklist_reason(device, implementation);
    if (!kept) return;
    log_warn(&device->runtime->log, "kernels '%s' are not used on device %d, '%s': %s", implementation, device->index,
        device->can.name, kept);
}

bool check_is_decided(struct device *device, const char *implementation)
{
    const char *verdict = store_get(device, STORE_CHECKS, implementation);
    return verdict && (!strcmp(verdict, passed) || blacklist_reason(device, implementation));
}

void check_passed(struct device *device, const char *implementation)
{
    const char *verdict = store_get(device, STORE_CHECKS, implementation);
    if (!verdict || strcmp(verdict, passed)) note(device, implementation, passed, "");
}

/* Keeps a verdict or a marker that another process has saved: a verdict is worth more than a marker, and one marker
 * is enough. */
void check_trial_begins(struct device *device, const char *name)
{
    char process[PROCESS_TEXT], text[PROCESS_TEXT + 32];
    process_describe(process);
    snprintf(text, sizeof(text), "%s%lld %s", trying, (long long)time(NULL), process);
    store_offer(device, STORE_CHECKS, name, text);
    store_save(device, STORE_CHECKS);
}

/* Removes the marker of this process. */
static void remove_verdict(struct device *device, const char *name)
{
    char process[PROCESS_TEXT];
    process_describe(process);
    store_reload(device, STORE_CHECKS);
    const char *text = store_get(device, STORE_CHECKS, name);
    if (!text || !begins(text, trying) || !strstr(text, process)) return;
    store_set(device, STORE_CHECKS, name, NULL);
    store_save(device, STORE_CHECKS);
}

/* Learns what another process has found out since the store was read. If that process has ended, its last save
 * counts, so the store is read again after its end was seen. */
static void learn_of_others(struct device *device, const char *name)
{
    const char *verdict = store_get(device, STORE_CHECKS, name);
    if (!verdict || begins(verdict, trying)) store_reload(device, STORE_CHECKS);
    verdict = store_get(device, STORE_CHECKS, name);
    if (verdict && begins(verdict, trying) && !trial_goes_on(verdict + strlen(trying)))
        store_reload(device, STORE_CHECKS);
}

const char *check_trial(struct device *device, const char *name, trial_function *try, const void *context)
{
    learn_of_others(device, name);
    if (!check_is_decided(device, name)) {
        const double patience = wait_patience(TRIAL_SECONDS);
        const tutti_status status = try(device, name, context);
        (void)wait_patience(patience);
        if (status == TUTTI_OK)
            check_passed(device, name);
        else if (status != TUTTI_NO_MEMORY && status != TUTTI_DEVICE_MEMORY)
            check_failed(device, name, status_message());
        else /* tried another time, then */
            remove_verdict(device, name);
    }
    const char *reason = blacklist_reason(device, name);
    return reason || check_is_decided(device, name) ? reason : "there was not enough memory to check it";
}
