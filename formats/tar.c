#include "formats/tar.h"

#include "base/memory.h"
#include "base/status.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BLOCK = 512, PAX_MAX_BYTES = 1 << 20 };

struct tar {
    const char *path;
    int file;                   /* or -1: */
    const unsigned char *bytes; /* in memory */
    int64_t size, position;
    char name[TAR_NAME_BYTES]; /* of the next file, where a header before it says so; else empty */
    int64_t next_bytes;        /* likewise the bytes of the next file; else -1 */
};

static tutti_status damaged(const struct tar *tar, const char *what)
{
    return fail(
        TUTTI_FORMAT, "%s: not a tar archive, or damaged, at byte %lld: %s", tar->path, (long long)tar->position, what);
}

static tutti_status read_at(const struct tar *tar, int64_t offset, void *to, size_t bytes)
{
    if (offset > tar->size || (int64_t)bytes > tar->size - offset) return damaged(tar, "it ends early");
    if (tar->bytes) {
        memcpy(to, tar->bytes + offset, bytes);
        return TUTTI_OK;
    }
    for (size_t done = 0; done < bytes;) {
        const ssize_t got = pread(tar->file, (char *)to + done, bytes - done, (off_t)(offset + (int64_t)done));
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return fail(TUTTI_FILE, "%s: cannot be read: %s", tar->path, strerror(errno));
        if (got == 0) return damaged(tar, "it ends early");
        done += (size_t)got;
    }
    return TUTTI_OK;
}

/* Octal digits, perhaps amid spaces; or GNU's binary number, whose first byte has its highest bit set. -1: neither. */
static int64_t number_of(const unsigned char *field, int bytes)
{
    int64_t value = 0;
    int i = 0;
    if (field[0] & 0x80) {
        if (field[0] & 0x40) return -1;
        for (value = field[0] & 0x3f, i = 1; i < bytes; i++) {
            if (value > (INT64_MAX >> 8)) return -1;
            value = value << 8 | field[i];
        }
        return value;
    }
    while (i < bytes && field[i] == ' ') i++;
    for (; i < bytes && field[i] >= '0' && field[i] <= '7'; i++) {
        if (value > (INT64_MAX >> 3)) return -1;
        value = value << 3 | (field[i] - '0');
    }
    for (; i < bytes; i++)
        if (field[i] != ' ' && field[i] != '\0') return -1;
    return value;
}

static bool is_zero(const unsigned char *header)
{
    for (int i = 0; i < BLOCK; i++)
        if (header[i]) return false;
    return true;
}

static bool checksum_holds(const unsigned char *header)
{
    int64_t sum = 0;
    for (int i = 0; i < BLOCK; i++) sum += i >= 148 && i < 156 ? ' ' : header[i];
    return number_of(header + 148, 8) == sum;
}

/* Returns the length of a field that ends with a zero, or is full. */
static size_t field_length(const unsigned char *field, size_t most)
{
    const unsigned char *end = memchr(field, 0, most);
    return end ? (size_t)(end - field) : most;
}

/* prefix/name of ustar, name alone of older archives. */
static void header_name(const unsigned char *header, char *name)
{
    size_t used = 0;
    if (!memcmp(header + 257, "ustar\0", 6) && header[345]) { /* GNU's own kind has "ustar " and no prefix */
        used = field_length(header + 345, 155);
        memcpy(name, header + 345, used);
        name[used++] = '/';
    }
    const size_t length = field_length(header, 100);
    memcpy(name + used, header, length);
    name[used + length] = '\0';
}

static tutti_status read_long_name(struct tar *tar, int64_t bytes)
{
    if (bytes < 1 || bytes > TAR_NAME_BYTES - 1) return damaged(tar, "a name is too long");
    const tutti_status status = read_at(tar, tar->position + BLOCK, tar->name, (size_t)bytes);
    tar->name[bytes] = '\0';
    return status;
}

/* Reads records "LENGTH KEY=VALUE\n", one after another; LENGTH counts the whole record. */
static tutti_status read_records(struct tar *tar, const char *text, size_t bytes)
{
    for (size_t at = 0; at < bytes;) {
        size_t length = 0, head = 0;
        while (head < 8 && at + head < bytes && text[at + head] >= '0' && text[at + head] <= '9')
            length = length * 10 + (size_t)(text[at + head++] - '0');
        if (head == 0 || at + head >= bytes || text[at + head] != ' ' || length < head + 4 || length > bytes - at ||
            text[at + length - 1] != '\n')
            return damaged(tar, "a pax record is malformed");
        const char *key = text + at + head + 1, *end = text + at + length - 1;
        const char *value = memchr(key, '=', (size_t)(end - key));
        if (!value) return damaged(tar, "a pax record is malformed");
        const size_t key_bytes = (size_t)(value++ - key), value_bytes = (size_t)(end - value);
        if (key_bytes == 4 && !memcmp(key, "path", 4)) {
            if (value_bytes >= TAR_NAME_BYTES) return damaged(tar, "a name is too long");
            memcpy(tar->name, value, value_bytes);
            tar->name[value_bytes] = '\0';
        } else if (key_bytes == 4 && !memcmp(key, "size", 4)) {
            int64_t size = 0;
            for (const char *digit = value; digit < end; digit++) {
                if (*digit < '0' || *digit > '9' || size > INT64_MAX / 16) return damaged(tar, "a pax size is wrong");
                size = size * 10 + (*digit - '0');
            }
            tar->next_bytes = size;
        }
        at += length;
    }
    return TUTTI_OK;
}

static tutti_status read_pax(struct tar *tar, int64_t bytes)
{
    if (bytes > PAX_MAX_BYTES) return damaged(tar, "a pax header is too large");
    char *text = memory_new((size_t)bytes + 1, 1);
    if (!text) return TUTTI_NO_MEMORY;
    tutti_status status = read_at(tar, tar->position + BLOCK, text, (size_t)bytes);
    if (status == TUTTI_OK) status = read_records(tar, text, (size_t)bytes);
    free(text);
    return status;
}

/* Visits what stands after a header, and goes on to the next header. */
static tutti_status visit_entry(struct tar *tar, const unsigned char *header,
    tutti_status (*visit)(void *user, const struct tar_file *file), void *user)
{
    tutti_status status = TUTTI_OK;
    const unsigned char kind = header[156];
    const bool describes = kind == 'L' || kind == 'K' || kind == 'x' || kind == 'g';
    int64_t bytes = number_of(header + 124, 12);
    if (!describes && tar->next_bytes >= 0) bytes = tar->next_bytes;
    if (bytes < 0 || bytes > tar->size - tar->position - BLOCK) return damaged(tar, "a size is wrong");
    if (kind == 'L') status = read_long_name(tar, bytes);
    if (kind == 'x') status = read_pax(tar, bytes);
    if (status == TUTTI_OK && (kind == '0' || kind == '\0' || kind == '7')) {
        if (!tar->name[0]) header_name(header, tar->name);
        status = visit(user, &(struct tar_file) { .name = tar->name, .offset = tar->position + BLOCK, .bytes = bytes });
    }
    if (!describes) {
        tar->name[0] = '\0';
        tar->next_bytes = -1;
    }
    const int64_t padded = bytes % BLOCK ? bytes + BLOCK - bytes % BLOCK : bytes;
    tar->position += BLOCK + padded;
    return status;
}

static tutti_status visit_all(
    struct tar *tar, tutti_status (*visit)(void *user, const struct tar_file *file), void *user)
{
    unsigned char header[BLOCK];
    tar->next_bytes = -1;
    if (tar->size < BLOCK) return damaged(tar, "it is too short");
    while (tar->position <= tar->size - BLOCK) {
        tutti_status status = read_at(tar, tar->position, header, BLOCK);
        if (status != TUTTI_OK) return status;
        if (is_zero(header)) return TUTTI_OK;
        if (!checksum_holds(header)) return damaged(tar, "the checksum of a header is wrong");
        status = visit_entry(tar, header, visit, user);
        if (status != TUTTI_OK) return status;
    }
    return TUTTI_OK;
}

tutti_status tar_visit_bytes(const void *bytes, size_t count, const char *name,
    tutti_status (*visit)(void *user, const struct tar_file *file), void *user)
{
    struct tar tar = { .path = name, .file = -1, .bytes = bytes, .size = (int64_t)count };
    return visit_all(&tar, visit, user);
}

tutti_status tar_visit(const char *path, tutti_status (*visit)(void *user, const struct tar_file *file), void *user)
{
    tutti_status status = TUTTI_OK;
    struct stat found;
    const int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (file < 0) return fail(TUTTI_FILE, "%s: cannot be opened: %s", path, strerror(errno));
    if (fstat(file, &found) != 0 || !S_ISREG(found.st_mode)) FAIL(TUTTI_FILE, "%s: this is not a file", path);
    struct tar tar = { .path = path, .file = file, .size = (int64_t)found.st_size };
    status = visit_all(&tar, visit, user);
done:
    close(file);
    return status;
}
