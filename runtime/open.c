/* The public functions of runtimes, devices, statuses and versions. */
#include "base/file.h"
#include "base/memory.h"
#include "base/options.h"
#include "base/threads.h"
#include "runtime/builder.h"
#include "runtime/check.h"
#include "runtime/device.h"
#include "runtime/discover.h"
#include "runtime/forked.h"
#include "runtime/gemm.h"
#include "runtime/matrix.h"
#include "runtime/peak.h"
#include "runtime/program.h"
#include "runtime/shuffle.h"
#include "runtime/store.h"
#include "runtime/tuning.h"
#include "runtime/verdicts.h"
#include "tutti_inspect.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TEXT_OF(value) #value
#define TEXT(value) TEXT_OF(value)

const char *tutti_version(void)
{
    return TEXT(TUTTI_VERSION_MAJOR) "." TEXT(TUTTI_VERSION_MINOR) "." TEXT(TUTTI_VERSION_PATCH);
}

const char *tutti_status_name(tutti_status status)
{
    switch (status) {
#define NAME(name, number, sentence) \
    case TUTTI_##name: return "TUTTI_" #name;
        TUTTI_STATUS_TABLE(NAME)
#undef NAME
    }
    return "TUTTI_UNKNOWN";
}

const char *tutti_status_text(tutti_status status)
{
    switch (status) {
#define SENTENCE(name, number, sentence) \
    case TUTTI_##name: return sentence;
        TUTTI_STATUS_TABLE(SENTENCE)
#undef SENTENCE
    }
    return "a status that this version does not know";
}

const char *tutti_message(const tutti_runtime *runtime)
{
    (void)runtime;
    return status_message();
}

tutti_status tutti_last_status(void)
{
    return status_last();
}

tutti_status tutti_fail(tutti_status status, const char *text)
{
    status_set(status, text && *text ? text : tutti_status_text(status));
    return status;
}

static const char *environment(const char *name)
{
    const char *value = getenv(name);
    return value && *value ? value : NULL;
}

/* NULL where there is none. */
static tutti_status cache_folder_find(const char *wanted, char **folder)
{
    const char *tutti = environment("TUTTI_CACHE_DIR"), *cache = environment("XDG_CACHE_HOME"),
               *home = environment("HOME");
    *folder = NULL;
    if (wanted && !*wanted) return TUTTI_OK;
    if (wanted)
        *folder = memory_copy_text(wanted);
    else if (tutti)
        *folder = memory_copy_text(tutti);
    else if (cache)
        *folder = memory_format("%s/tutti", cache);
    else if (home)
        *folder = memory_format("%s/.cache/tutti", home);
    else
        return TUTTI_OK;
    return *folder ? TUTTI_OK : TUTTI_NO_MEMORY;
}

/* Gives up a cache folder that others may write to: a program in it could be anybody's. */
static void cache_folder_check(struct tutti_runtime *runtime)
{
    const char *folder = runtime->cache_folder;
    if (!folder || access(folder, F_OK) != 0 || folder_check_own(folder) == TUTTI_OK) return; /* it is made later */
    log_warn(&runtime->log, "the cache folder is not used: %s", status_message());
    free(runtime->cache_folder);
    runtime->cache_folder = NULL;
}

static tutti_status options_check(const tutti_runtime_options *options)
{
    if (options->threads < 0)
        return fail(TUTTI_INVALID, "%d threads are impossible: pass a positive number, or 0 for one per processor",
            options->threads);
    if (options->log_level < TUTTI_LOG_DEFAULT || options->log_level > TUTTI_LOG_DEBUG)
        return fail(TUTTI_INVALID, "log level %d does not exist: pass one of tutti_log_level", (int)options->log_level);
    return TUTTI_OK;
}

/* Closes a device and frees all that is kept for it; takes a zeroed one. */
static void close_one(struct device *device)
{
    programs_free(device);
    stores_free(device);
    tuning_free(device);
    drivers_lock();
    device_close(device);
    drivers_unlock();
}

static tutti_status open_one(struct device *device, const struct found_device *found)
{
    tutti_status status;
    if (found->faulty) return fail(TUTTI_DEVICE, "%s", found->note);
    drivers_lock();
    status = device_open(device, found);
    drivers_unlock();
    if (status != TUTTI_OK) return status;
    TRY(programs_new(device));
    if (device->can.class == DEVICE_GPU) shuffle_prove(device);
    matrix_prove(device);
done:
    if (status != TUTTI_OK) close_one(device);
    return status;
}

static void device_log(const struct device *device)
{
    const struct capabilities *can = &device->can;
    log_info(&device->runtime->log, "device %d: %s (%s, %s), class %s, %d units, vectors of %d floats", device->index,
        can->name, can->platform, can->driver, can->class == DEVICE_CPU ? "cpu" : "gpu", can->units, can->vector_width);
}

/* A device that fails at once is left out, as one that fails later is. */
static tutti_status devices_open(
    struct tutti_runtime *runtime, const struct found_device *found, int count, size_t memory_limit)
{
    tutti_status failed = TUTTI_OK;
    runtime->devices = memory_new((size_t)count, sizeof(*runtime->devices));
    if (!runtime->devices) return TUTTI_NO_MEMORY;
    for (int i = 0; i < count; i++) {
        if (!found[i].chosen) continue;
        struct device *device = &runtime->devices[runtime->count];
        *device = (struct device) { .runtime = runtime };
        const tutti_status status = open_one(device, &found[i]);
        if (status == TUTTI_NO_MEMORY) return status;
        if (status != TUTTI_OK) {
            log_warn(
                &runtime->log, "device %d, '%s', is left out: %s", found[i].index, found[i].can.name, status_message());
            failed = status;
            continue;
        }
        runtime->count++;
        struct capabilities *can = &device->can;
        if (memory_limit && memory_limit < can->memory_bytes) can->memory_bytes = memory_limit;
        if (can->allocation_max > can->memory_bytes) can->allocation_max = can->memory_bytes;
        device_log(device);
    }
    if (runtime->count > 0 || failed != TUTTI_OK) return runtime->count > 0 ? TUTTI_OK : failed; /* with its message */
    return fail(TUTTI_NO_DEVICE, "no device is used by default: choose one with TUTTI_DEVICES, see tutti devices");
}

/* Lists the devices of the machine and marks those that are chosen. */
static tutti_status find_devices(const struct log *log, const char *choice, struct found_device **found, int *count)
{
    tutti_status status = forked_begin();
    if (status != TUTTI_OK) return status;
    drivers_lock();
    status = discover(log, found, count);
    drivers_unlock();
    return status == TUTTI_OK ? discover_choose(*found, *count, choice) : status;
}

static atomic_int open_runtimes;

tutti_runtime *tutti_open(const tutti_runtime_options *given)
{
    tutti_runtime_options read;
    const tutti_runtime_options *options = &read;
    tutti_status status = TUTTI_OK;
    struct found_device *found = NULL;
    int count = 0;
    if (OPTIONS_READ(&read, given, tutti_runtime_options) != TUTTI_OK) return NULL;
    struct tutti_runtime *runtime = memory_new(1, sizeof(*runtime));
    if (!runtime) return NULL;
    atomic_fetch_add(&open_runtimes, 1);
    TRY(options_check(options));
    log_init(&runtime->log, options->log_level, options->log, options->log_user);
    runtime->threads = options->threads ? options->threads : processor_count();
    TRY(cache_folder_find(options->cache_folder, &runtime->cache_folder));
    cache_folder_check(runtime);
    TRY(tuning_open(runtime, options->tuning));
    TRY(find_devices(&runtime->log, options->devices, &found, &count));
    builder_keep(runtime, true); /* until the first network is compiled */
    TRY(devices_open(runtime, found, count, options->memory_limit));
done:
    discover_free(found, count);
    if (status == TUTTI_OK) return runtime;
    tutti_close(runtime);
    return NULL;
}

void tutti_close(tutti_runtime *runtime)
{
    if (!runtime || is_forked()) return;
    bool held = false;
    builder_close(runtime);
    for (int i = 0; i < runtime->count; i++) {
        held |= runtime->devices[i].abandoned;
        if (!runtime->devices[i].abandoned) close_one(&runtime->devices[i]);
    }
    if (atomic_fetch_sub(&open_runtimes, 1) == 1 && !held) gemm_forget_programs();
    if (held) { /* a thread that is stuck in a driver may come back to what is left, but not to the caller's log */
        log_silence(&runtime->log);
        return;
    }
    free(runtime->devices);
    free(runtime->cache_folder);
    free(runtime->tuning);
    free(runtime);
}

static tutti_device_info info_of(int index, const struct capabilities *can, bool chosen, const char *note)
{
    return (tutti_device_info) { .index = index,
        .name = can->name,
        .platform = can->platform,
        .driver = can->driver,
        .device_class = can->class == DEVICE_CPU ? "cpu" : "gpu",
        .compute_units = can->units,
        .vector_width = can->vector_width,
        .memory_bytes = can->memory_bytes,
        .local_bytes = can->local_bytes,
        .allocation_bytes = can->allocation_max,
        .half = can->half,
        .subgroups = can->subgroups,
        .chosen = chosen,
        .note = note };
}

/* One block: the infos, then the found devices, which hold the strings. */
static tutti_device_info *list_new(const struct found_device *found, int count)
{
    size_t head = size_round_up((size_t)count * sizeof(tutti_device_info), 64);
    char *block = memory_new(1, head + (size_t)count * sizeof(*found));
    if (!block) return NULL;
    tutti_device_info *list = (tutti_device_info *)(void *)block;
    struct found_device *kept = (struct found_device *)(void *)(block + head);
    memcpy(kept, found, (size_t)count * sizeof(*found));
    for (int i = 0; i < count; i++)
        list[i] = info_of(kept[i].index, &kept[i].can, kept[i].chosen && !kept[i].faulty, kept[i].note);
    return list;
}

tutti_status tutti_devices_list(const tutti_runtime_options *options, tutti_device_info **list, int *count)
{
    tutti_status status = TUTTI_OK;
    struct found_device *found = NULL;
    int found_count = 0;
    if (!list || !count)
        return fail(TUTTI_INVALID, "tutti_devices_list() got NULL for the list or the count: pass pointers to both");
    *list = NULL;
    *count = 0;
    tutti_runtime_options read;
    struct log log;
    TRY(OPTIONS_READ(&read, options, tutti_runtime_options));
    log_init(&log, read.log_level, read.log, read.log_user);
    status = find_devices(&log, read.devices, &found, &found_count);
    if (status == TUTTI_NO_PLATFORM) return TUTTI_OK; /* an empty list; the message says why */
    if (status != TUTTI_OK) goto done;
    *list = list_new(found, found_count);
    if (*list)
        *count = found_count;
    else
        status = TUTTI_NO_MEMORY;
done:
    discover_free(found, found_count);
    return status;
}

void tutti_devices_free(tutti_device_info *list)
{
    free(list);
}

int tutti_device_count(const tutti_runtime *runtime)
{
    return runtime ? runtime->count : 0;
}

static tutti_status position_check(const tutti_runtime *runtime, int position)
{
    if (!runtime) return fail(TUTTI_INVALID, "the runtime is NULL: call tutti_open() and check its result");
    if (position < 0 || position >= runtime->count)
        return fail(TUTTI_NO_DEVICE, "no device is open at position %d: %d %s open, counted from 0", position,
            runtime->count, runtime->count == 1 ? "is" : "are");
    return TUTTI_OK;
}

tutti_status tutti_device_get(const tutti_runtime *runtime, int position, tutti_device_info *info)
{
    tutti_status status = position_check(runtime, position);
    if (status != TUTTI_OK) return status;
    if (!info) return fail(TUTTI_INVALID, "tutti_device_get() got NULL for the information: pass a pointer to it");
    *info = info_of(runtime->devices[position].index, &runtime->devices[position].can, true, "");
    return TUTTI_OK;
}

tutti_status tutti_device_check(tutti_runtime *runtime, int position)
{
    tutti_status status = position_check(runtime, position);
    if (status == TUTTI_OK) status = forked_check();
    return status == TUTTI_OK ? check_device(&runtime->devices[position]) : status;
}

static const char *bf16_name(enum bf16_form form)
{
    static const char *const names[BF16_FORMS] = {
        [BF16_TILES] = "tiles", [BF16_DOTS] = "dots", [BF16_PLAIN] = "plain"
    };
    return names[form];
}

tutti_status tutti_device_bf16(
    const tutti_runtime *runtime, int position, tutti_precision precision, const char **form, const char **refusal)
{
    static const enum compute_type types[] = { [TUTTI_FP32] = COMPUTE_FP32,
        [TUTTI_TF32] = COMPUTE_TF32,
        [TUTTI_BF16] = COMPUTE_BF16,
        [TUTTI_FP16] = COMPUTE_FP16 };
    const tutti_status status = position_check(runtime, position);
    if (status != TUTTI_OK) return status;
    if (!form || !refusal)
        return fail(TUTTI_INVALID, "tutti_device_bf16() got NULL for the form or the refusal: pass pointers to both");
    if (precision < TUTTI_FP32 || precision > TUTTI_FP16)
        return fail(TUTTI_INVALID, "precision %d does not exist: pass one of tutti_precision", (int)precision);
    const enum compute_type compute = types[precision];
    const struct capabilities *can = &runtime->devices[position].can;
    *refusal = bf16_refusal(can, compute);
    *form = *refusal ? NULL : bf16_name(can->bf16[compute].form);
    return TUTTI_OK;
}

tutti_status tutti_device_refusals(const tutti_runtime *runtime, int position,
    void (*each)(void *user, const char *kernels, const char *reason), void *user)
{
    const tutti_status status = position_check(runtime, position);
    if (status != TUTTI_OK) return status;
    if (!each) return fail(TUTTI_INVALID, "tutti_device_refusals() got NULL for the function: pass one");
    blacklist_list(&runtime->devices[position], each, user);
    return TUTTI_OK;
}

tutti_status tutti_device_measure(tutti_runtime *runtime, int position, tutti_device_peaks *peaks)
{
    tutti_status status = TUTTI_OK;
    struct peak peak;
    TRY(position_check(runtime, position));
    TRY(forked_check());
    if (!peaks) FAIL(TUTTI_INVALID, "tutti_device_measure() got NULL for the peaks: pass a pointer to them");
    tutti_device_peaks known = { 0 };
    TRY(peak_measure(&runtime->devices[position], &peak));
    TRY(peak_measure_bf16(&runtime->devices[position], &known.bf16_flops));
    known.flops = peak.flops;
    known.bytes = peak.bytes;
    TRY(RESULT_WRITE(peaks, &known, tutti_device_peaks));
done:
    return status;
}
