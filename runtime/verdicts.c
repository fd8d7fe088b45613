#include "runtime/verdicts.h"

#include "base/memory.h"
#include "base/process.h"
#include "runtime/store.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

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
