#include "formats/idx.h"

#include "base/memory.h"
#include "base/status.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#define UNSIGNED_BYTE 8
/* Bytes that are read at once. A header that lies costs at most so much before the lie is found. */
#define CHUNK ((size_t)1 << 20)
#define LIMIT ((size_t)1 << 34)

/* Reads up to `size` bytes; *got is less only at the file's end. gzread gives plain files through unchanged. */
static tutti_status read_bytes(gzFile file, const char *path, unsigned char *bytes, size_t size, size_t *got)
{
    *got = 0;
    while (*got < size) {
        size_t part = size - *got < CHUNK ? size - *got : CHUNK;
        int count = gzread(file, bytes + *got, (unsigned)part);
        if (count < 0) {
            int code;
            const char *text = gzerror(file, &code);
            if (code == Z_ERRNO) return fail(TUTTI_FILE, "cannot read %s: %s", path, strerror(errno));
            return fail(
                TUTTI_FORMAT, "%s: damaged gzip data: %s", path, code == Z_BUF_ERROR ? "the file is truncated" : text);
        }
        if (count == 0) break;
        *got += (size_t)count;
    }
    return TUTTI_OK;
}

static tutti_status read_header(gzFile file, const char *path, int rank, struct idx *idx)
{
    unsigned char magic[4], sizes[4 * IDX_MAX_RANK];
    size_t got;
    tutti_status status = read_bytes(file, path, magic, sizeof(magic), &got);
    if (status != TUTTI_OK) return status;
    if (got < sizeof(magic) || magic[0] != 0 || magic[1] != 0)
        return fail(TUTTI_FORMAT, "%s: this is not an IDX file: it does not begin with two zero bytes", path);
    if (magic[2] != UNSIGNED_BYTE)
        return fail(
            TUTTI_FORMAT, "%s: elements have type 0x%02x: only unsigned bytes (0x08) can be read", path, magic[2]);
    if (magic[3] != rank)
        return fail(
            TUTTI_FORMAT, "%s: %d dimensions found, %d expected (images have 3, labels 1)", path, magic[3], rank);
    status = read_bytes(file, path, sizes, 4 * (size_t)rank, &got);
    if (status != TUTTI_OK) return status;
    if (got < 4 * (size_t)rank) return fail(TUTTI_FORMAT, "%s: the file ends within its header: it is truncated", path);
    idx->rank = rank;
    idx->bytes = 1;
    for (int i = 0; i < rank; i++) {
        const unsigned char *b = sizes + 4 * i;
        idx->sizes[i] = (int64_t)((uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3]);
        if (idx->sizes[i] == 0) return fail(TUTTI_FORMAT, "%s: dimension %d has size 0: the file is damaged", path, i);
        if (!size_multiply(idx->bytes, (size_t)idx->sizes[i], &idx->bytes) || idx->bytes > LIMIT)
            return fail(
                TUTTI_FORMAT, "%s: the header announces more than %zu bytes of data: the file is damaged", path, LIMIT);
    }
    return TUTTI_OK;
}

/* Asks for one byte more than the header promises: it shows a file that is too long, and makes zlib look at the end of
 * a gzip file, without which a cut check sum goes unnoticed. */
static tutti_status read_data(gzFile file, const char *path, struct idx *idx)
{
    size_t capacity = 0, filled = 0, got;
    while (filled == capacity && filled <= idx->bytes) {
        capacity = filled < CHUNK ? CHUNK : 2 * filled;
        if (capacity > idx->bytes + 1) capacity = idx->bytes + 1;
        unsigned char *grown = realloc(idx->data, capacity);
        if (!grown) return fail(TUTTI_NO_MEMORY, "%s: no memory for %zu bytes", path, capacity);
        idx->data = grown;
        tutti_status status = read_bytes(file, path, idx->data + filled, capacity - filled, &got);
        if (status != TUTTI_OK) return status;
        filled += got;
    }
    if (filled < idx->bytes)
        return fail(TUTTI_FORMAT, "%s: %zu bytes of data found, %zu expected from the header: the file is truncated",
            path, filled, idx->bytes);
    if (filled > idx->bytes)
        return fail(TUTTI_FORMAT,
            "%s: the file has more data than the %zu bytes expected from its header: it is damaged", path, idx->bytes);
    return TUTTI_OK;
}

tutti_status idx_read(const char *path, int rank, struct idx *idx)
{
    tutti_status status = TUTTI_OK;
    memset(idx, 0, sizeof(*idx));
    if (rank < 1 || rank > IDX_MAX_RANK)
        return fail(
            TUTTI_INVALID, "IDX files of %d dimensions cannot be read: 1 to %d are possible", rank, IDX_MAX_RANK);
    errno = 0;
    gzFile file = gzopen(path, "rb");
    if (!file) return fail(TUTTI_FILE, "cannot open %s: %s", path, errno ? strerror(errno) : "no memory");
    TRY(read_header(file, path, rank, idx));
    TRY(read_data(file, path, idx));
done:
    /* A gzip file whose last bytes, the check sum, are missing is found out only here. */
    if (gzclose_r(file) == Z_BUF_ERROR && status == TUTTI_OK)
        status = fail(TUTTI_FORMAT, "%s: damaged gzip data: the file is truncated", path);
    if (status != TUTTI_OK) idx_free(idx);
    return status;
}

void idx_free(struct idx *idx)
{
    free(idx->data);
    memset(idx, 0, sizeof(*idx));
}
