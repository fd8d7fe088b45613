#include "runtime/program_cache.h"

#include "base/file.h"
#include "base/memory.h"
#include "base/text.h"
#include "runtime/discover.h"
#include "runtime/kernels_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

/* The file: this header, then the driver's binary. */
struct header {
    char magic[8];
    uint32_t format, reserved;
    uint64_t bytes;      /* of the binary */
    XXH128_hash_t key;   /* the hash of everything below, so that a renamed file is recognised */
    XXH128_hash_t check; /* the hash of the binary: a cut or changed file must never reach the driver */
};
enum { CACHE_FORMAT = 1 };
static const char magic[8] = "TUTTICL";
static const size_t binary_limit = (size_t)256 << 20;

/* Appends what a binary or a verdict depends on besides the kernels: the device, everything that names its driver,
 * and the processor that Intel's runtime is told to compile for, whose instructions this one may not have. */
static void append_device(struct text *all, const struct device *device)
{
    const char *target = getenv("CL_CONFIG_CPU_TARGET_ARCH");
    char version[128] = "";
    (void)platform_text(
        device->platform, CL_PLATFORM_VERSION, version, sizeof(version)); /* without one: an empty text */
    text_append(all, "%d\n%s\n%s\n%s\n%s\n%s\n%s%s\n", CACHE_FORMAT, device->can.name, device->can.platform,
        device->can.driver, device->can.version, version, target ? target : "",
        device->can.unoptimised == UNOPTIMISED_ALL        ? "\nunoptimised"
            : device->can.unoptimised == UNOPTIMISED_NONE ? ""
                                                          : "\nproducts optimised");
}

/* False where there is no memory for it. */
static bool hash_of(struct text *all, XXH128_hash_t *hash)
{
    bool good = !all->failed && all->size > 0;
    if (good) *hash = XXH3_128bits(all->data, all->size);
    text_free(all);
    return good;
}

static bool hash_of_program(const struct device *device, const char *text, const char *options, XXH128_hash_t *hash)
{
    struct text all = { 0 };
    append_device(&all, device);
    text_append(&all, "%s\n%s", options, text);
    return hash_of(&all, hash);
}

static void hexadecimal(XXH128_hash_t hash, char key[33])
{
    snprintf(key, 33, "%016llx%016llx", (unsigned long long)hash.high64, (unsigned long long)hash.low64);
}

bool device_key(const struct device *device, char key[33])
{
    struct text all = { 0 };
    XXH128_hash_t hash;
    append_device(&all, device);
    text_append(&all, "%d %d\n", (int)device->can.class, device->can.vector_width);
    for (const struct kernel_text *kernel = kernel_texts; kernel->name; kernel++)
        text_append(
            &all, "%s %016llx\n", kernel->name, (unsigned long long)XXH3_64bits(kernel->text, strlen(kernel->text)));
    bool good = hash_of(&all, &hash);
    if (good) hexadecimal(hash, key);
    return good;
}

bool driver_key(const struct device *device, char key[33])
{
    struct text all = { 0 };
    XXH128_hash_t hash;
    append_device(&all, device);
    bool good = hash_of(&all, &hash);
    if (good) hexadecimal(hash, key);
    return good;
}

static bool in_use(const struct device *device)
{
    return device->runtime->cache_folder && !(device->quirks & QUIRK_KEEPS_CACHE);
}

static char *path_of(const struct device *device, XXH128_hash_t hash)
{
    char key[33];
    hexadecimal(hash, key);
    return memory_format("%s/%s.program", device->runtime->cache_folder, key);
}

static cl_program program_of(struct device *device, const unsigned char *binary, size_t size, const char *options)
{
    cl_int error = CL_SUCCESS, loaded = CL_SUCCESS;
    cl_program program = clCreateProgramWithBinary(device->context, 1, &device->id, &size, &binary, &loaded, &error);
    if (!program) return NULL;
    if (error == CL_SUCCESS && loaded == CL_SUCCESS &&
        clBuildProgram(program, 1, &device->id, options, NULL, NULL) == CL_SUCCESS)
        return program;
    clReleaseProgram(program);
    return NULL;
}

cl_program program_cache_load(struct device *device, const char *text, const char *options)
{
    if (!in_use(device)) return NULL;
    cl_program program = NULL;
    unsigned char *data = NULL;
    size_t size = 0;
    XXH128_hash_t hash;
    char *path = hash_of_program(device, text, options, &hash) ? path_of(device, hash) : NULL;
    if (!path || access(path, R_OK) != 0 || file_read_own(path, binary_limit, &data, &size) != TUTTI_OK) goto done;
    struct header header;
    bool good = size >= sizeof(header);
    if (good) memcpy(&header, data, sizeof(header));
    good = good && !memcmp(header.magic, magic, sizeof(magic)) && header.format == CACHE_FORMAT &&
        header.bytes == size - sizeof(header) && XXH128_isEqual(header.key, hash) &&
        XXH128_isEqual(header.check, XXH3_128bits(data + sizeof(header), size - sizeof(header)));
    if (good) program = program_of(device, data + sizeof(header), size - sizeof(header), options);
    if (!program) {
        log_info(&device->runtime->log,
            "the cached program '%s' is damaged or made by another driver: it is compiled again", path);
        unlink(path);
    }
done:
    free(data);
    free(path);
    return program;
}

void program_cache_save(struct device *device, const char *text, const char *options, cl_program program)
{
    if (!in_use(device)) return;
    const char *folder = device->runtime->cache_folder;
    size_t size = 0;
    unsigned char *data = NULL;
    struct header header = { .format = CACHE_FORMAT };
    char *path = hash_of_program(device, text, options, &header.key) ? path_of(device, header.key) : NULL;
    if (!path || clGetProgramInfo(program, CL_PROGRAM_BINARY_SIZES, sizeof(size), &size, NULL) != CL_SUCCESS) goto done;
    if (size == 0 || size > binary_limit || !(data = memory_new(sizeof(header) + size, 1))) goto done;
    unsigned char *binary = data + sizeof(header);
    if (clGetProgramInfo(program, CL_PROGRAM_BINARIES, sizeof(binary), &binary, NULL) != CL_SUCCESS) goto done;
    memcpy(header.magic, magic, sizeof(magic));
    header.bytes = size;
    header.check = XXH3_128bits(binary, size);
    memcpy(data, &header, sizeof(header));
    if (folder_make(folder) != TUTTI_OK || folder_check_own(folder) != TUTTI_OK ||
        file_write_own(path, data, sizeof(header) + size) != TUTTI_OK)
        log_info(&device->runtime->log, "a compiled program was not saved on disk: %s", status_message());
done:
    free(data);
    free(path);
}
