/* The readers of files with arrays: .npy, .npz, safetensors, and IDX. The first byte chooses one, the others are the
 * file. */
#include "formats/idx.h"
#include "formats/npz.h"
#include "formats/safetensors.h"
#include "tests/fuzz/target.h"

#include <stdlib.h>

int LLVMFuzzerInitialize(int *count, char ***words)
{
    (void)count;
    (void)words;
    input_open();
    return 0;
}

/* Reads all bytes, which must be there. */
static void touch(const void *data, size_t bytes)
{
    static volatile unsigned char sum;
    for (size_t i = 0; i < bytes; i++) sum = (unsigned char)(sum + ((const unsigned char *)data)[i]);
}

static tutti_status read_npz(const char *path)
{
    struct npz *file = NULL;
    const tutti_status status = npz_open(path, &file);
    for (int i = 0; status == TUTTI_OK && i < npz_count(file); i++) {
        const struct npz_array *array = npz_at(file, i);
        if (!npz_find(file, array->name)) abort();
        touch(array->data, array->bytes);
    }
    npz_close(file);
    return status;
}

static tutti_status read_safetensors(const char *path)
{
    struct safetensors *file = NULL;
    const tutti_status status = safetensors_open(path, &file);
    for (int i = 0; status == TUTTI_OK && i < safetensors_count(file); i++) {
        const struct safetensors_tensor *tensor = safetensors_at(file, i);
        if (safetensors_find(file, tensor->name) != tensor) abort();
        touch(tensor->data, tensor->bytes);
    }
    if (status == TUTTI_OK) (void)safetensors_metadata(file, "format");
    safetensors_close(file);
    return status;
}

static tutti_status read_idx(const char *path, int rank)
{
    struct idx idx = { 0 };
    const tutti_status status = idx_read(path, rank, &idx);
    if (status != TUTTI_OK) return status;
    touch(idx.data, idx.bytes);
    idx_free(&idx);
    return status;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0) return 0;
    const char *path = input_path(data + 1, size - 1);
    const tutti_status status = data[0] == 'z' ? read_npz(path)
        : data[0] == 's'                       ? read_safetensors(path)
                                               : read_idx(path, data[0] & 1 ? 1 : 3);
    if (status != TUTTI_OK) check_message();
    return 0;
}
