/* The readers of files with arrays: .npy as a whole and by rows, .npz, safetensors, IDX, and data made of .npz. The
 * first byte chooses one, the others are the file. */
#include "data/collection.h"
#include "formats/idx.h"
#include "formats/npy_rows.h"
#include "formats/safetensors.h"
#include "tests/fuzz/target.h"

#include <stdlib.h>

static char data_path[512];

int LLVMFuzzerInitialize(int *count, char ***words)
{
    (void)count;
    (void)words;
    input_open();
    input_link("input.npz", data_path, sizeof data_path);
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

/* The last row first, then all of them. */
static tutti_status read_npy(const char *path)
{
    struct npy_rows *file = NULL;
    tutti_status status = npy_rows_open(path, &file);
    if (status != TUTTI_OK) return status;
    const struct npz_array *array = npy_rows_array(file);
    const int64_t rows = array->rank > 0 ? array->sizes[0] : 1;
    void *elements = malloc(array->bytes + 1);
    if (!elements) abort();
    if (rows > 0) status = npy_rows_read(file, rows - 1, 1, elements);
    if (status == TUTTI_OK) status = npy_rows_read(file, 0, rows, elements);
    touch(elements, array->bytes);
    free(elements);
    npy_rows_close(file);
    return status;
}

static size_t bytes_of(tutti_dtype dtype, const tutti_shape *shape)
{
    size_t bytes = tutti_dtype_bytes(dtype);
    for (int i = 0; i < shape->rank; i++) bytes *= (size_t)shape->sizes[i];
    return bytes;
}

/* All samples train, and are read. */
static tutti_status read_data(void)
{
    struct collection *data = NULL;
    const tutti_status status = arrays_open(data_path, &(tutti_data_options) { .size = 0 }, &data);
    if (status != TUTTI_OK) return status;
    signed char *part = calloc((size_t)data->samples, 1);
    void *sample = malloc(bytes_of(data->info.dtype, &data->info.shape));
    void *target = malloc(bytes_of(data->info.target_dtype, &data->info.target_shape));
    if (!part || !sample || !target || data->fit(data, part) != TUTTI_OK) abort();
    for (int64_t i = 0; i < data->samples; i++) {
        const tutti_status read = data->read(data, i, NULL, sample, target);
        if (read != TUTTI_OK && read != TUTTI_FORMAT) abort();
        if (data->labels && (data->labels[i] < 0 || data->labels[i] >= data->info.classes)) abort();
    }
    free(part);
    free(sample);
    free(target);
    data->free(data);
    return TUTTI_OK;
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
        : data[0] == 'r'                       ? read_npy(path)
        : data[0] == 'd'                       ? read_data()
                                               : read_idx(path, data[0] & 1 ? 1 : 3);
    if (status != TUTTI_OK) check_message();
    return 0;
}
