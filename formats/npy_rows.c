#include "formats/npy_rows.h"

#include "base/memory.h"
#include "base/status.h"
#include "formats/npy.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Bytes that are read to find the header: far more than arrays of numbers need. */
enum { HEAD = 1 << 16 };

struct npy_rows {
    char *path;
    int descriptor;
    struct npz_array array;
    struct npy_layout layout;
    size_t row; /* bytes */
};

static tutti_status read_header(struct npy_rows *rows)
{
    struct stat info;
    size_t got;
    tutti_status status = TUTTI_NO_MEMORY;
    unsigned char *head = memory_new(HEAD, 1);
    if (!head) return status;
    if (fstat(rows->descriptor, &info) != 0) FAIL(TUTTI_FILE, "cannot read '%s': %s", rows->path, strerror(errno));
    if (!S_ISREG(info.st_mode)) FAIL(TUTTI_FILE, "cannot read '%s': it is not a file", rows->path);
    TRY(file_read_at(rows->descriptor, rows->path, 0, head, HEAD, &got));
    status = npy_describe(head, got, (uint64_t)info.st_size, &rows->array, &rows->layout);
    if (status != TUTTI_OK) status = status_context(status, "%s", rows->path);
done:
    free(head);
    return status;
}

/* Reads the array into memory, in the order that rows have. */
static tutti_status read_columns(struct npy_rows *rows)
{
    unsigned char *bytes = NULL;
    size_t size;
    tutti_status status = file_read(rows->path, SIZE_MAX / 2, &bytes, &size);
    if (status != TUTTI_OK) return status;
    status = npy_decode(bytes, size, &rows->array);
    free(bytes);
    return status == TUTTI_OK ? status : status_context(status, "%s", rows->path);
}

tutti_status npy_rows_open(const char *path, struct npy_rows **opened)
{
    tutti_status status = TUTTI_NO_MEMORY;
    struct npy_rows *rows = memory_new(1, sizeof *rows);
    *opened = NULL;
    if (!rows) return status;
    rows->descriptor = -1;
    rows->path = memory_copy_text(path);
    if (!rows->path) goto done;
    rows->array.name = "";
    rows->descriptor = open(path, O_RDONLY | O_CLOEXEC);
    if (rows->descriptor < 0) FAIL(TUTTI_FILE, "cannot read '%s': %s", path, strerror(errno));
    TRY(read_header(rows));
    if (rows->layout.columns_first) TRY(read_columns(rows));
    const int64_t first = rows->array.rank > 0 ? rows->array.sizes[0] : 1;
    rows->row = first > 0 ? rows->array.bytes / (size_t)first : 0;
    *opened = rows;
    return TUTTI_OK;
done:
    npy_rows_close(rows);
    return status;
}

void npy_rows_close(struct npy_rows *rows)
{
    if (!rows) return;
    if (rows->descriptor >= 0) close(rows->descriptor);
    free(rows->array.data);
    free(rows->path);
    free(rows);
}

const struct npz_array *npy_rows_array(const struct npy_rows *rows)
{
    return &rows->array;
}

tutti_status npy_rows_read(const struct npy_rows *rows, int64_t first, int64_t count, void *elements)
{
    const size_t bytes = (size_t)count * rows->row, from = (size_t)first * rows->row;
    size_t got;
    if (rows->array.data) {
        memcpy(elements, (const char *)rows->array.data + from, bytes);
        return TUTTI_OK;
    }
    const tutti_status status =
        file_read_at(rows->descriptor, rows->path, rows->layout.begin + from, elements, bytes, &got);
    if (status != TUTTI_OK) return status;
    if (got < bytes) return fail(TUTTI_FILE, "'%s' has become shorter while it was read", rows->path);
    if (rows->layout.swapped) npy_swap(rows->array.type, elements, bytes);
    return TUTTI_OK;
}
