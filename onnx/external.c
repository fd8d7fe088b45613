#include "onnx/external.h"

#include "base/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Values of the entries of external_data. */
struct data_range {
    const char *location;
    uint64_t offset, length;
    bool has_length;
};

static bool read_decimal(const char *text, uint64_t *number)
{
    char *end = NULL;
    if (*text < '0' || *text > '9') return false;
    errno = 0;
    *number = strtoull(text, &end, 10);
    return !errno && !*end;
}

static tutti_status read_entries(const Onnx__TensorProto *tensor, struct data_range *range)
{
    for (size_t i = 0; i < tensor->n_external_data; i++) {
        const Onnx__StringStringEntryProto *entry = tensor->external_data[i];
        if (!entry->key || !entry->value) continue;
        if (!proto_is_plain(entry->key) || !proto_is_plain(entry->value))
            return fail(TUTTI_FORMAT,
                "tensor %s: the location of its external data is not UTF-8, or has control characters",
                proto_text(tensor->name));
        const bool offset = !strcmp(entry->key, "offset"), length = !strcmp(entry->key, "length");
        if (!strcmp(entry->key, "location")) range->location = entry->value;
        if (length) range->has_length = true;
        if ((offset || length) && !read_decimal(entry->value, offset ? &range->offset : &range->length))
            return fail(TUTTI_FORMAT, "tensor %s: the %s of its external data is '%s', which is not a number",
                proto_text(tensor->name), entry->key, entry->value);
    }
    if (range->location && *range->location) return TUTTI_OK;
    return fail(TUTTI_FORMAT, "tensor %s: its external data have no location", proto_text(tensor->name));
}

/* Opens one part of a path in a folder, without following a link. */
static int open_part(int folder, const char *part, size_t length, bool last)
{
    char name[256];
    if (length >= sizeof name) {
        errno = ENAMETOOLONG;
        return -1;
    }
    memcpy(name, part, length);
    name[length] = '\0';
    return openat(folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | (last ? 0 : O_DIRECTORY));
}

/* Opens the file part by part of its path. -1: errno says why; EPERM: the path leads out of the folder. */
static int open_within(const char *folder, const char *location)
{
    const char *part = location;
    int at = open(folder, O_RDONLY | O_CLOEXEC | O_DIRECTORY);
    while (at >= 0) {
        const size_t length = strcspn(part, "/");
        const bool last = part[length] == '\0', outside = length == 0 || (length == 2 && !memcmp(part, "..", 2));
        if (outside) errno = EPERM;
        const int below = outside ? -1 : open_part(at, part, length, last), reason = errno;
        close(at);
        errno = reason;
        if (last) return below;
        at = below;
        part += length + 1;
    }
    return -1;
}

static tutti_status open_external(const Onnx__TensorProto *tensor, const char *folder, const char *location, int *file)
{
    *file = open_within(folder, location);
    if (*file >= 0) return TUTTI_OK;
    const char *name = proto_text(tensor->name);
    if (errno == EPERM)
        return fail(TUTTI_FORMAT,
            "tensor %s: its external data are in '%s': only paths within the model's folder are read", name, location);
    return fail(TUTTI_FILE, "tensor %s: its external data cannot be read from '%s' in %s: %s%s", name, location, folder,
        strerror(errno), errno == ELOOP ? ": links are not followed" : "");
}

static tutti_status read_range(int file, uint64_t offset, unsigned char *data, size_t bytes)
{
    for (size_t done = 0; done < bytes;) {
        const ssize_t got = pread(file, data + done, bytes - done, (off_t)(offset + done));
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0)
            return fail(
                TUTTI_FILE, "it cannot be read: %s", got < 0 ? strerror(errno) : "the file became shorter meanwhile");
        done += (size_t)got;
    }
    return TUTTI_OK;
}

/* Called before memory for the elements is allocated, so that no file can request more elements than it has. */
static tutti_status check_range(const Onnx__TensorProto *tensor, const struct data_range *range, int file, size_t bytes)
{
    struct stat about;
    if (fstat(file, &about) != 0 || !S_ISREG(about.st_mode))
        return fail(TUTTI_FILE, "tensor %s: '%s', with its external data, is not a file", proto_text(tensor->name),
            range->location);
    if (range->has_length && range->length != bytes)
        return fail(TUTTI_FORMAT, "tensor %s: its external data have %llu bytes, but its shape and type need %zu",
            proto_text(tensor->name), (unsigned long long)range->length, bytes);
    const uint64_t size = (uint64_t)about.st_size;
    if (range->offset <= size && bytes <= size - range->offset) return TUTTI_OK;
    return fail(TUTTI_FORMAT, "tensor %s: it needs %zu bytes from byte %llu on of '%s', which has %llu",
        proto_text(tensor->name), bytes, (unsigned long long)range->offset, range->location, (unsigned long long)size);
}

tutti_status external_read(const Onnx__TensorProto *tensor, const char *folder, size_t bytes, unsigned char **data)
{
    tutti_status status = TUTTI_OK;
    struct data_range range = { 0 };
    int file = -1;
    *data = NULL;
    TRY(read_entries(tensor, &range));
    TRY(open_external(tensor, folder, range.location, &file));
    TRY(check_range(tensor, &range, file, bytes));
    *data = memory_new(bytes ? bytes : 1, 1);
    if (!*data) {
        status = TUTTI_NO_MEMORY;
        goto done;
    }
    status = read_range(file, range.offset, *data, bytes);
    if (status != TUTTI_OK) status_context(status, "tensor %s: %s", proto_text(tensor->name), range.location);
done:
    if (file >= 0) close(file);
    if (status != TUTTI_OK) {
        free(*data);
        *data = NULL;
    }
    return status;
}
