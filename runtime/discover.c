#include "runtime/discover.h"

#include "base/memory.h"
#include "base/text.h"

#include <ctype.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* cl_khr_device_uuid, which headers for OpenCL 1.2 need not know. */
enum { DEVICE_UUID = 0x106A, UUID_BYTES = 16 };

struct finding {
    const struct log *log;
    struct found_device *devices;
    size_t count, capacity;
    int sub_devices;
    char failure[320]; /* of the first platform that failed; else empty */
};

static pthread_mutex_t first_calls = PTHREAD_MUTEX_INITIALIZER;

void drivers_lock(void)
{
    pthread_mutex_lock(&first_calls);
}

void drivers_unlock(void)
{
    pthread_mutex_unlock(&first_calls);
}

static tutti_status sub_devices_wanted(int *count)
{
    const char *text = getenv("TUTTI_SUB_DEVICES");
    *count = 0;
    if (!text || !*text) return TUTTI_OK;
    char *end;
    long value = strtol(text, &end, 10);
    if (*end || value < 1 || value > 1024)
        return fail(TUTTI_INVALID,
            "TUTTI_SUB_DEVICES is '%s': set it to the number of parts of each CPU device, 1 to 1024, or unset it",
            text);
    *count = value > 1 ? (int)value : 0;
    return TUTTI_OK;
}

static tutti_status found_new(
    struct finding *finding, cl_platform_id platform, cl_device_id id, cl_device_type type, struct found_device **made)
{
    void *array = finding->devices;
    tutti_status status = memory_grow(&array, &finding->capacity, finding->count + 1, sizeof(*finding->devices));
    finding->devices = array;
    if (status != TUTTI_OK) return status;
    *made = &finding->devices[finding->count];
    **made = (struct found_device) { .index = (int)finding->count++, .platform = platform, .id = id, .type = type };
    return TUTTI_OK;
}

/* Keeps a device in the list, with the reason, where a query of it failed: other devices keep their numbers. Wrong
 * settings of the user (TUTTI_INVALID) are not the device's fault and are returned. */
static tutti_status set_faulty(struct found_device *device, tutti_status status)
{
    char *name = device->can.name;
    if (status == TUTTI_OK || status == TUTTI_INVALID) return status;
    if (!*name && (clGetDeviceInfo(device->id, CL_DEVICE_NAME, sizeof(device->can.name), name, NULL) || !*name))
        snprintf(name, sizeof(device->can.name), "unnamed device");
    device->aside = device->faulty = true;
    snprintf(device->note, sizeof(device->note), "%s", status_message());
    return TUTTI_OK;
}

static tutti_status add_faulty(
    struct finding *finding, cl_platform_id platform, cl_device_id id, cl_device_type type, tutti_status why)
{
    struct found_device *device;
    if (why == TUTTI_INVALID) return why;
    const tutti_status status = found_new(finding, platform, id, type, &device);
    return status == TUTTI_OK ? set_faulty(device, why) : status;
}

static tutti_status read_device(struct found_device *device)
{
    tutti_status status = capabilities_read(device->platform, device->id, 0, &device->can);
    if (status != TUTTI_OK) return set_faulty(device, status);
    cl_bool available = CL_TRUE, compiler = CL_TRUE;
    clGetDeviceInfo(device->id, CL_DEVICE_AVAILABLE, sizeof(available), &available, NULL);
    clGetDeviceInfo(device->id, CL_DEVICE_COMPILER_AVAILABLE, sizeof(compiler), &compiler, NULL);
    device->aside = !available || !compiler;
    if (device->aside)
        snprintf(device->note, sizeof(device->note), "%s: used only if selected",
            available ? "its driver has no compiler" : "its driver reports that it is not available");
    return TUTTI_OK;
}

static tutti_status add_device(struct finding *finding, cl_platform_id platform, cl_device_id id, cl_device_type type)
{
    struct found_device *device;
    const tutti_status status = found_new(finding, platform, id, type, &device);
    return status == TUTTI_OK ? read_device(device) : status;
}

/* Splits a device into equal parts. *units becomes its number of compute units; if these are fewer than wanted,
 * nothing is split, and the caller reports it. */
static tutti_status split(cl_device_id id, cl_uint wanted, cl_uint *units, cl_device_id **parts, cl_uint *made)
{
    tutti_status status = TUTTI_OK;
    *units = wanted;
    CL_TRY(clGetDeviceInfo(id, CL_DEVICE_MAX_COMPUTE_UNITS, sizeof(*units), units, NULL),
        "counting a device's compute units");
    if (*units < wanted) return TUTTI_OK;
    const cl_device_partition_property properties[] = { CL_DEVICE_PARTITION_EQUALLY,
        (cl_device_partition_property)(*units / wanted), 0 };
    CL_TRY(clCreateSubDevices(id, properties, 0, NULL, made), "splitting a device into %u", wanted);
    *parts = memory_new(*made, sizeof(**parts));
    if (!*parts) return TUTTI_NO_MEMORY;
    CL_TRY(clCreateSubDevices(id, properties, *made, *parts, NULL), "splitting a device into %u", wanted);
done:
    if (status != TUTTI_OK) *made = 0;
    return status;
}

/* Adds equal parts of a device by compute units; a remainder stays unused. */
static tutti_status add_sub_devices(
    struct finding *finding, cl_platform_id platform, cl_device_id id, cl_device_type type)
{
    cl_uint units, made = 0, kept = 0;
    cl_device_id *parts = NULL;
    const cl_uint wanted = (cl_uint)finding->sub_devices;
    tutti_status status = split(id, wanted, &units, &parts, &made);
    if (units < wanted)
        return fail(TUTTI_NO_DEVICE,
            "TUTTI_SUB_DEVICES asks for %u parts of a device with %u compute units: ask for at most %u", wanted, units,
            units);
    if (status != TUTTI_OK) status = add_faulty(finding, platform, id, type, status);
    for (; kept < made && kept < wanted && status == TUTTI_OK; kept++)
        status = add_device(finding, platform, parts[kept], type);
    for (; parts && kept < made; kept++) clReleaseDevice(parts[kept]);
    free(parts);
    return status;
}

static tutti_status add_any(struct finding *finding, cl_platform_id platform, cl_device_id id)
{
    tutti_status status = TUTTI_OK;
    cl_device_type type = 0;
    CL_TRY(clGetDeviceInfo(id, CL_DEVICE_TYPE, sizeof(type), &type, NULL), "asking for a device's type");
    if (type & CL_DEVICE_TYPE_CUSTOM) return TUTTI_OK; /* runs no OpenCL C */
    if (finding->sub_devices && (type & CL_DEVICE_TYPE_CPU)) return add_sub_devices(finding, platform, id, type);
    return add_device(finding, platform, id, type);
done:
    return add_faulty(finding, platform, id, type, status);
}

static tutti_status list_devices(cl_platform_id platform, cl_device_id **ids, cl_uint *count)
{
    tutti_status status = TUTTI_OK;
    *ids = NULL;
    *count = 0;
    const cl_int error = clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 0, NULL, count);
    if (error == CL_DEVICE_NOT_FOUND) *count = 0; /* a driver without its device, as Mesa's often: no error */
    if (error == CL_DEVICE_NOT_FOUND || (error == CL_SUCCESS && *count == 0)) return TUTTI_OK;
    CL_TRY(error, "counting its devices");
    *ids = memory_new(*count, sizeof(**ids));
    if (!*ids) return TUTTI_NO_MEMORY;
    CL_TRY(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, *count, *ids, NULL), "listing its devices");
done:
    return status;
}

/* A platform that cannot list its devices is left out. */
static tutti_status add_platform(struct finding *finding, cl_platform_id platform)
{
    cl_uint count = 0;
    cl_device_id *ids = NULL;
    tutti_status status = list_devices(platform, &ids, &count);
    if (status != TUTTI_OK) {
        char reason[200], name[100] = "";
        snprintf(reason, sizeof(reason), "%s", status_message());
        if (platform_text(platform, CL_PLATFORM_NAME, name, sizeof(name)) != TUTTI_OK || !*name)
            snprintf(name, sizeof(name), "without a name");
        log_warn(finding->log, "the OpenCL platform '%s' is left out: %s", name, reason);
        if (!*finding->failure)
            snprintf(finding->failure, sizeof(finding->failure), "the platform '%s' failed: %s", name, reason);
        count = 0;
        status = TUTTI_OK;
    }
    for (cl_uint i = 0; i < count && status == TUTTI_OK; i++) status = add_any(finding, platform, ids[i]);
    free(ids);
    return status;
}

/* Tells whether two platforms offer the same hardware. A machine's CPUs are one device to OpenCL, so two platforms'
 * CPUs are the same; other devices are recognised by their identity where drivers tell it. */
static bool same_hardware(const struct found_device *a, const struct found_device *b)
{
    if (a->platform == b->platform) return false; /* several devices of one platform are several */
    if ((a->type & CL_DEVICE_TYPE_CPU) && (b->type & CL_DEVICE_TYPE_CPU)) return true;
    unsigned char first[UUID_BYTES], second[UUID_BYTES];
    static const unsigned char none[UUID_BYTES];
    return clGetDeviceInfo(a->id, DEVICE_UUID, UUID_BYTES, first, NULL) == CL_SUCCESS &&
        clGetDeviceInfo(b->id, DEVICE_UUID, UUID_BYTES, second, NULL) == CL_SUCCESS &&
        !memcmp(first, second, UUID_BYTES) && memcmp(first, none, UUID_BYTES);
}

/* Keeps one of two drivers for the same hardware: the one with the wider vectors, else the first one. */
static void mark_duplicates(struct found_device *found, int count)
{
    for (int i = 0; i < count; i++) {
        for (int j = 0; j < count && !found[i].aside; j++) {
            if (i == j || found[j].aside || !same_hardware(&found[i], &found[j])) continue;
            int narrower = found[i].can.vector_width - found[j].can.vector_width;
            if (narrower > 0 || (narrower == 0 && i < j)) continue;
            found[i].aside = true;
            snprintf(found[i].note, sizeof(found[i].note), "same %s as device %d: used only if selected",
                found[i].type & CL_DEVICE_TYPE_CPU ? "CPU" : "hardware", j);
        }
    }
}

tutti_status discover(const struct log *log, struct found_device **found, int *count)
{
    tutti_status status = TUTTI_OK;
    struct finding finding = { .log = log };
    cl_platform_id *platforms = NULL;
    cl_uint platform_count = 0;
    TRY(sub_devices_wanted(&finding.sub_devices));
    cl_int error = clGetPlatformIDs(0, NULL, &platform_count);
    if (error == CL_SUCCESS && platform_count == 0) error = -1001; /* loaders differ in how they say it */
    CL_TRY(error, "looking for OpenCL platforms");
    platforms = memory_new(platform_count, sizeof(*platforms));
    if (!platforms) return TUTTI_NO_MEMORY;
    CL_TRY(clGetPlatformIDs(platform_count, platforms, NULL), "listing the OpenCL platforms");
    for (cl_uint i = 0; i < platform_count; i++) TRY(add_platform(&finding, platforms[i]));
    if (finding.count == 0 && *finding.failure)
        FAIL(TUTTI_NO_PLATFORM, "no OpenCL device was found: %s: reinstall or remove this driver", finding.failure);
    if (finding.count == 0)
        FAIL(TUTTI_NO_PLATFORM,
            "no OpenCL device was found: the %u installed platform%s none: install your device's driver, or for the "
            "CPU 'apt-get install pocl-opencl-icd'",
            platform_count, platform_count == 1 ? " offers" : "s offer");
    mark_duplicates(finding.devices, (int)finding.count);
    *found = finding.devices;
    *count = (int)finding.count;
done:
    free(platforms);
    if (status != TUTTI_OK) discover_free(finding.devices, (int)finding.count);
    return status;
}

void discover_free(struct found_device *found, int count)
{
    for (int i = 0; found && i < count; i++) clReleaseDevice(found[i].id); /* this does nothing for a whole device */
    free(found);
}

static bool contains(const char *text, const char *part)
{
    return strcasestr(text, part) != NULL;
}

/* Marks the devices that one part of a choice names, and returns how many there are. */
static int choose_part(struct found_device *found, int count, const char *part)
{
    bool all = !strcasecmp(part, "all"), gpu = !strcasecmp(part, "gpu"), cpu = !strcasecmp(part, "cpu");
    int matches = 0;
    char *end;
    long index = strtol(part, &end, 10);
    if (isdigit((unsigned char)part[0]) && !*end) { /* a number is an index, even where it is a part of some name */
        if (index >= count) return 0;
        found[index].chosen = true;
        return 1;
    }
    for (int i = 0; i < count; i++) {
        const struct capabilities *can = &found[i].can;
        bool named = contains(can->name, part) || contains(can->platform, part);
        bool kind = all || (gpu && can->class == DEVICE_GPU) || (cpu && can->class == DEVICE_CPU);
        bool match = all || gpu || cpu ? kind && (!found[i].aside || found[i].faulty) : named;
        if (match) found[i].chosen = true;
        matches += match;
    }
    return matches;
}

static tutti_status refuse_part(const struct found_device *found, int count, const char *choice, const char *part)
{
    struct text list = { 0 };
    for (int i = 0; i < count; i++)
        text_append(&list, "%s%d '%s' (%s, %s)", i ? ", " : "", i, found[i].can.name, found[i].can.platform,
            found[i].can.class == DEVICE_CPU ? "cpu" : "gpu");
    tutti_status status = fail(TUTTI_NO_DEVICE,
        "no device matches '%s' in '%s': there %s %s: choose by index, a part of a name, all, gpu or cpu", part, choice,
        count == 1 ? "is" : "are", list.data ? list.data : "other devices");
    text_free(&list);
    return status;
}

/* Chooses every GPU and accelerator or, where there is none, the CPU. */
static void choose_default(struct found_device *found, int count)
{
    bool any = choose_part(found, count, "gpu") > 0 || choose_part(found, count, "cpu") > 0;
    for (int i = 0; i < count; i++) found[i].chosen |= found[i].faulty; /* it is not known what it is */
    for (int i = 0; any && i < count; i++)
        if (!found[i].chosen && !found[i].aside)
            snprintf(found[i].note, sizeof(found[i].note),
                "a CPU in a machine with GPUs: used only if selected, also by 'all'");
}

tutti_status discover_choose(struct found_device *found, int count, const char *choice)
{
    if (!choice || !*choice) choice = getenv("TUTTI_DEVICES");
    for (int i = 0; i < count; i++) found[i].chosen = false;
    if (!choice || !*choice) {
        choose_default(found, count);
        return TUTTI_OK;
    }
    char *copy = memory_copy_text(choice);
    if (!copy) return TUTTI_NO_MEMORY;
    tutti_status status = TUTTI_OK;
    int parts = 0;
    char *rest = copy;
    for (char *part; status == TUTTI_OK && (part = strtok_r(rest, ",", &rest));) {
        while (isspace((unsigned char)*part)) part++;
        for (size_t length = strlen(part); length > 0 && isspace((unsigned char)part[length - 1]);)
            part[--length] = '\0';
        if (!*part) continue;
        parts++;
        if (choose_part(found, count, part) == 0) status = refuse_part(found, count, choice, part);
    }
    if (status == TUTTI_OK && parts == 0) status = refuse_part(found, count, choice, "");
    free(copy);
    return status;
}
