#include "runtime/check.h"

#include "base/file.h"
#include "base/memory.h"
#include "base/text.h"
#include "base/threads.h"
#include "runtime/launch.h"
#include "runtime/memory.h"
#include "runtime/program_cache.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
            "device %d, '%s' (driver %s), gives wrong numbers when it %s: element %d is %.9g and should be %.9g: "
            "update the driver, or "
            "leave the device out with TUTTI_DEVICES",
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
    snprintf(options, sizeof(options), "-DNUMBER=%.9f", clock_seconds());
    cl_program program = clCreateProgramWithSource(device->context, 1, &text, NULL, &error);
    if (!program) return false;
    error = clBuildProgram(program, 1, &device->id, options, NULL, NULL);
    clReleaseProgram(program);
    return error == CL_SUCCESS;
}

/* ---- what implementations were checked, and which failed ---- */

struct check_entry {
    char *name;
    char *reason; /* why the implementation failed; NULL: it did not */
    bool passed;
};

struct checks {
    char *path; /* NULL: remembered in this process only */
    struct check_entry *entries;
    size_t count, capacity;
};

static struct check_entry *entry_of(struct checks *checks, const char *name)
{
    for (size_t i = 0; i < checks->count; i++)
        if (!strcmp(checks->entries[i].name, name)) return &checks->entries[i];
    void *array = checks->entries;
    if (memory_grow(&array, &checks->capacity, checks->count + 1, sizeof(*checks->entries)) != TUTTI_OK) return NULL;
    checks->entries = array;
    struct check_entry *entry = &checks->entries[checks->count];
    *entry = (struct check_entry) { .name = memory_copy_text(name) };
    if (!entry->name) return NULL;
    checks->count++;
    return entry;
}

static void mark(struct check_entry *entry, bool passed, const char *reason)
{
    char *copy = reason ? memory_copy_text(reason) : NULL; /* before the older one goes: it may be the same text */
    free(entry->reason);
    entry->passed = passed;
    entry->reason = copy;
    for (char *c = copy; c && *c; c++)
        if (*c == '\n' || *c == '\r') *c = ' '; /* one line of the file each */
}

/* A line: "passed NAME" or "failed NAME REASON". Others are comments, or of another version, and are dropped. */
static void line_read(struct checks *checks, char *line)
{
    char *rest = line;
    const char *verdict = strtok_r(rest, " ", &rest), *name = strtok_r(rest, " ", &rest);
    if (!verdict || !name) return;
    bool passed = !strcmp(verdict, "passed"), failed = !strcmp(verdict, "failed");
    struct check_entry *entry = passed || failed ? entry_of(checks, name) : NULL;
    if (entry) mark(entry, passed, passed ? NULL : rest && *rest ? rest : "it failed its check");
}

static void file_load(struct checks *checks)
{
    enum { MOST = 1 << 20 };
    unsigned char *data = NULL;
    size_t size = 0;
    if (file_read(checks->path, MOST, &data, &size) != TUTTI_OK) return;
    char *text = memory_format("%.*s", (int)size, (char *)data);
    char *rest = text;
    for (char *line; text && (line = strtok_r(rest, "\n", &rest));) line_read(checks, line);
    free(text);
    free(data);
}

static struct checks *checks_of(struct device *device)
{
    if (device->checks) return device->checks;
    struct checks *checks = memory_new(1, sizeof(*checks));
    if (!checks) return NULL;
    device->checks = checks;
    if (!device->runtime->cache_folder) return checks;
    char key[33];
    if (device_key(device, key)) checks->path = memory_format("%s/%s.checks", device->runtime->cache_folder, key);
    if (checks->path) file_load(checks);
    return checks;
}

static void file_save(struct device *device)
{
    struct checks *checks = device->checks;
    struct text text = { 0 };
    if (!checks->path) return;
    char *message =
        memory_copy_text(status_message()); /* of the failure that is noted here, perhaps: it stays the last */
    text_append(&text, "# Kernel implementations on '%s', driver %s. Remove this file to have all checked again.\n",
        device->can.name, device->can.driver);
    for (size_t i = 0; i < checks->count; i++) {
        const struct check_entry *entry = &checks->entries[i];
        if (entry->passed) text_append(&text, "passed %s\n", entry->name);
        if (entry->reason) text_append(&text, "failed %s %s\n", entry->name, entry->reason);
    }
    if (text.failed || folder_make(device->runtime->cache_folder) != TUTTI_OK ||
        file_write(checks->path, text.data, text.size) != TUTTI_OK)
        log_info(&device->runtime->log, "the results of kernel checks are not kept on disk: %s", status_message());
    if (message) status_set_message(message);
    free(message);
    text_free(&text);
}

/* NULL: nothing is known of it. */
static const struct check_entry *known(struct device *device, const char *name)
{
    const struct checks *checks = checks_of(device);
    for (size_t i = 0; checks && i < checks->count; i++)
        if (!strcmp(checks->entries[i].name, name)) return &checks->entries[i];
    return NULL;
}

const char *blacklist_reason(struct device *device, const char *implementation)
{
    const struct check_entry *entry = known(device, implementation);
    return entry ? entry->reason : NULL;
}

void check_failed(struct device *device, const char *what, const char *reason)
{
    struct checks *checks = checks_of(device);
    struct check_entry *entry = checks ? entry_of(checks, what) : NULL;
    if (!entry) return;
    mark(entry, false, reason && *reason ? reason : "it failed its check");
    file_save(device);
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
    const struct check_entry *entry = known(device, implementation);
    return entry && (entry->passed || entry->reason);
}

void check_passed(struct device *device, const char *implementation)
{
    struct checks *checks = checks_of(device);
    struct check_entry *entry = checks ? entry_of(checks, implementation) : NULL;
    if (!entry || entry->passed) return;
    mark(entry, true, NULL);
    file_save(device);
}

void check_trial_begins(struct device *device, const char *name)
{
    check_failed(device, name, "its trial was begun and did not end");
}

#define TRIAL_SECONDS 120.0

const char *check_trial(struct device *device, const char *name, trial_function *try, const void *context)
{
    if (!check_is_decided(device, name)) {
        const double patience = device->patience;
        device->patience = TRIAL_SECONDS;
        const tutti_status status = try(device, name, context);
        device->patience = patience;
        if (status == TUTTI_OK)
            check_passed(device, name);
        else if (status != TUTTI_NO_MEMORY && status != TUTTI_DEVICE_MEMORY) /* tried another time, then */
            check_failed(device, name, status_message());
    }
    const char *reason = blacklist_reason(device, name);
    return reason || check_is_decided(device, name) ? reason : "there was no memory to try it";
}

void checks_free(struct device *device)
{
    struct checks *checks = device->checks;
    if (!checks) return;
    for (size_t i = 0; i < checks->count; i++) {
        free(checks->entries[i].name);
        free(checks->entries[i].reason);
    }
    free(checks->entries);
    free(checks->path);
    free(checks);
    device->checks = NULL;
}
