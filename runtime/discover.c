#include "runtime/discover.h"

#include "base/memory.h"
#include "base/text.h"

#include <ctype.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* cl_khr_device_uuid, which headers for OpenCL 1.2 need not know. */
enum { DEVICE_UUID = 0x106A, UUID_BYTES = 16 };

struct finding {
    struct found_device *devices;
    size_t count, capacity;
    int platforms, sub_devices;
};

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

static tutti_status add_device(struct finding *finding, cl_platform_id platform, cl_device_id id, cl_device_type type)
{
    void *array = finding->devices;
    tutti_status status = memory_grow(&array, &finding->capacity, finding->count + 1, sizeof(*finding->devices));
    finding->devices = array;
    if (status != TUTTI_OK) return status;
    struct found_device *device = &finding->devices[finding->count];
    *device = (struct found_device) { .index = (int)finding->count, .platform = platform, .id = id, .type = type };
    status = capabilities_read(platform, id, 0, &device->can);
    if (status != TUTTI_OK) return status;
    cl_bool available = CL_TRUE, compiler = CL_TRUE;
    clGetDeviceInfo(id, CL_DEVICE_AVAILABLE, sizeof(available), &available, NULL);
    clGetDeviceInfo(id, CL_DEVICE_COMPILER_AVAILABLE, sizeof(compiler), &compiler, NULL);
    device->aside = !available || !compiler;
    if (device->aside)
        snprintf(device->note, sizeof(device->note), "%s: used only if selected",
            available ? "its driver has no compiler" : "its driver reports that it is not available");
    finding->count++;
    return TUTTI_OK;
}

/* Equal parts by compute units; a remainder stays unused. */
static tutti_status add_sub_devices(
    struct finding *finding, cl_platform_id platform, cl_device_id id, cl_device_type type)
{
    tutti_status status = TUTTI_OK;
    cl_uint units = 0, made = 0, kept = 0;
    cl_device_id *parts = NULL;
    cl_uint wanted = (cl_uint)finding->sub_devices;
    CL_TRY(clGetDeviceInfo(id, CL_DEVICE_MAX_COMPUTE_UNITS, sizeof(units), &units, NULL),
        "counting a device's compute units");
    if (units < wanted)
        FAIL(TUTTI_NO_DEVICE,
            "TUTTI_SUB_DEVICES asks for %u parts of a device with %u compute units: ask for at most %u", wanted, units,
            units);
    const cl_device_partition_property properties[] = { CL_DEVICE_PARTITION_EQUALLY,
        (cl_device_partition_property)(units / wanted), 0 };
    CL_TRY(clCreateSubDevices(id, properties, 0, NULL, &made), "splitting a device into %u", wanted);
    parts = memory_new(made, sizeof(*parts));
    if (!parts) return TUTTI_NO_MEMORY;
    CL_TRY(clCreateSubDevices(id, properties, made, parts, NULL), "splitting a device into %u", wanted);
    for (; kept < made && kept < wanted; kept++) TRY(add_device(finding, platform, parts[kept], type));
done:
    for (; parts && kept < made; kept++) clReleaseDevice(parts[kept]);
    free(parts);
    return status;
}

static tutti_status add_platform(struct finding *finding, cl_platform_id platform)
{
    tutti_status status = TUTTI_OK;
    cl_uint count = 0;
    cl_device_id *ids = NULL;
    cl_int error = clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 0, NULL, &count);
    if (error != CL_SUCCESS || count == 0) return TUTTI_OK; /* a driver without its device, as Mesa's often: no error */
    ids = memory_new(count, sizeof(*ids));
    if (!ids) return TUTTI_NO_MEMORY;
    CL_TRY(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, count, ids, NULL), "listing a platform's devices");
    for (cl_uint i = 0; i < count; i++) {
        cl_device_type type = 0;
        CL_TRY(clGetDeviceInfo(ids[i], CL_DEVICE_TYPE, sizeof(type), &type, NULL), "asking for a device's type");
        if (type & CL_DEVICE_TYPE_CUSTOM) continue; /* runs no OpenCL C */
        bool split = finding->sub_devices && (type & CL_DEVICE_TYPE_CPU);
        TRY((split ? add_sub_devices : add_device)(finding, platform, ids[i], type));
    }
done:
    free(ids);
    return status;
}

/* The same hardware, offered by two platforms. A machine's CPUs are one device to OpenCL, so two platforms' CPUs are
 * the same; other devices are recognised by their identity where drivers tell it. */
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

/* Of two drivers for the same hardware, the one with the wider vectors is kept, then the first. */
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

tutti_status discover(struct found_device **found, int *count)
{
    tutti_status status = TUTTI_OK;
    struct finding finding = { 0 };
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
    for (int i = 0; found && i < count; i++) clReleaseDevice(found[i].id); /* of a whole device: does nothing */
    free(found);
}

static bool contains(const char *text, const char *part)
{
    return strcasestr(text, part) != NULL;
}

/* Marks what one part of a choice names; how many that are. */
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
        bool match = all || gpu || cpu ? kind && !found[i].aside : named;
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

/* Every GPU and accelerator, and where there is none, the CPU. */
static void choose_default(struct found_device *found, int count)
{
    bool any = choose_part(found, count, "gpu") > 0 || choose_part(found, count, "cpu") > 0;
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
