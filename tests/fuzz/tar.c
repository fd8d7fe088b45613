/* Tar archives: each file lies within the archive. */
#include "formats/tar.h"
#include "tests/fuzz/target.h"

#include <stdlib.h>
#include <string.h>

static size_t archive;

int LLVMFuzzerInitialize(int *count, char ***words)
{
    (void)count;
    (void)words;
    return 0;
}

static tutti_status visit(void *user, const struct tar_file *file)
{
    const uint8_t *data = user;
    static volatile unsigned char sum;
    if (file->offset < 0 || file->bytes < 0 || (uint64_t)file->offset > archive ||
        (uint64_t)file->bytes > archive - (uint64_t)file->offset || strlen(file->name) >= TAR_NAME_BYTES)
        abort();
    for (int64_t i = 0; i < file->bytes; i++) sum = (unsigned char)(sum + data[file->offset + i]);
    return TUTTI_OK;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    archive = size;
    if (tar_visit_bytes(data, size, "input", visit, (void *)(uintptr_t)data) != TUTTI_OK) check_message();
    return 0;
}
