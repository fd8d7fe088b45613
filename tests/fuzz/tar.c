/* Tar archives: each file lies within the archive; and shards as data, with the classes in KEY.cls and KEY.json. */
#include "formats/tar.h"
#include "data/collection.h"
#include "tests/fuzz/target.h"

#include <stdlib.h>
#include <string.h>

static size_t archive;
static char path[512];

int LLVMFuzzerInitialize(int *count, char ***words)
{
    (void)count;
    (void)words;
    input_open();
    input_link("input.tar", path, sizeof path);
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

static tutti_status read_classes(void)
{
    struct collection *shard = NULL;
    char name[64];
    const tutti_status status = tar_open(path, &(tutti_data_options) { .size = 0 }, &shard);
    if (status != TUTTI_OK || !shard) return status;
    for (int64_t i = 0; i < shard->samples; i++) {
        if (shard->labels[i] < 0 || shard->labels[i] >= shard->info.classes) abort();
        shard->name(shard, i, name, sizeof name);
    }
    for (int i = 0; i < shard->info.classes; i++)
        if (!shard->info.class_names[i]) abort();
    shard->free(shard);
    return TUTTI_OK;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    archive = size;
    (void)input_path(data, size);
    if (tar_visit_bytes(data, size, "input", visit, (void *)(uintptr_t)data) != TUTTI_OK) check_message();
    if (read_classes() != TUTTI_OK) check_message();
    return 0;
}
