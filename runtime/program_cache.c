#include "runtime/program_cache.h"

#include "base/file.h"
#include "base/memory.h"

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

static void add_text(XXH3_state_t *state, const char *text)
{
    XXH3_128bits_update(state, text, strlen(text) + 1);
}

static void add_device(XXH3_state_t *state, const struct device *device)
{
    char version[128] = "";
    if (clGetPlatformInfo(device->platform, CL_PLATFORM_VERSION, sizeof(version), version, NULL) != CL_SUCCESS)
        version[0] = '\0';
    version[sizeof(version) - 1] = '\0';
    add_text(state, device->can.name);
    add_text(state, device->can.platform);
    add_text(state, device->can.driver);
    add_text(state, device->can.version);
    add_text(state, version);
}

static XXH128_hash_t hash_of(const struct device *device, const char *text, const char *options)
{
    const XXH128_hash_t none = { 0, 0 };
    const uint32_t format = CACHE_FORMAT;
    XXH3_state_t *state = XXH3_createState();
    if (!state) return none;
    XXH3_128bits_reset(state);
    XXH3_128bits_update(state, &format, sizeof(format));
    add_device(state, device);
    if (text) add_text(state, text);
    if (options) add_text(state, options);
    XXH128_hash_t hash = XXH3_128bits_digest(state);
    XXH3_freeState(state);
    return hash;
}

static void hexadecimal(XXH128_hash_t hash, char key[33])
{
    snprintf(key, 33, "%016llx%016llx", (unsigned long long)hash.high64, (unsigned long long)hash.low64);
}

void device_key(const struct device *device, char key[33])
{
    hexadecimal(hash_of(device, NULL, NULL), key);
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
    const XXH128_hash_t hash = hash_of(device, text, options);
    char *path = path_of(device, hash);
    if (!path || access(path, R_OK) != 0 || file_read(path, binary_limit, &data, &size) != TUTTI_OK) goto done;
    struct header header;
    bool good = size >= sizeof(header);
    if (good) memcpy(&header, data, sizeof(header));
    good = good && !memcmp(header.magic, magic, sizeof(magic)) && header.format == CACHE_FORMAT &&
        header.bytes == size - sizeof(header) && XXH128_isEqual(header.key, hash) &&
        XXH128_isEqual(header.check, XXH3_128bits(data + sizeof(header), size - sizeof(header)));
    if (good) program = program_of(device, data + sizeof(header), size - sizeof(header), options);
    if (!program) {
        log_info(
            &device->runtime->log, "the cached program '%s' is broken or of another driver: it is built anew", path);
        unlink(path);
    }
done:
    free(data);
    free(path);
    return program;
}

static tutti_status write_file(const char *path, const struct header *header, const unsigned char *binary)
{
    struct atomic_file *file = NULL;
    tutti_status status = atomic_file_open(&file, path);
    if (status != TUTTI_OK) return status;
    status = atomic_file_write(file, header, sizeof(*header));
    if (status == TUTTI_OK) status = atomic_file_write(file, binary, (size_t)header->bytes);
    if (status == TUTTI_OK) return atomic_file_commit(file);
    atomic_file_abandon(file);
    return status;
}

void program_cache_save(struct device *device, const char *text, const char *options, cl_program program)
{
    if (!in_use(device)) return;
    size_t size = 0;
    unsigned char *binary = NULL;
    struct header header = { .format = CACHE_FORMAT, .key = hash_of(device, text, options) };
    char *path = path_of(device, header.key);
    if (!path || clGetProgramInfo(program, CL_PROGRAM_BINARY_SIZES, sizeof(size), &size, NULL) != CL_SUCCESS) goto done;
    if (size == 0 || size > binary_limit || !(binary = memory_new(size, 1))) goto done;
    if (clGetProgramInfo(program, CL_PROGRAM_BINARIES, sizeof(binary), &binary, NULL) != CL_SUCCESS) goto done;
    memcpy(header.magic, magic, sizeof(magic));
    header.bytes = size;
    header.check = XXH3_128bits(binary, size);
    if (folder_make(device->runtime->cache_folder) != TUTTI_OK || write_file(path, &header, binary) != TUTTI_OK)
        log_info(&device->runtime->log, "a program is not kept on disk: %s", status_message());
done:
    free(binary);
    free(path);
}
