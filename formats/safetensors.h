/* Safetensors files: named arrays after a JSON header. https://github.com/huggingface/safetensors, section "Format".
 *
 *   8 bytes   N, the length of the header, little endian
 *   N bytes   the header, one JSON object:
 *                 {
 *                     "name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]},
 *                     ...
 *                     "__metadata__": {"key": "text", ...}
 *                 }
 *   the rest  the arrays, little endian, row-major, without gaps
 *
 * data_offsets are the first byte of an array and the byte after its last, counted from the end of the header. */
#ifndef FORMATS_SAFETENSORS_H
#define FORMATS_SAFETENSORS_H

#include "base/file.h"

#define SAFETENSORS_MAX_RANK 8

enum safetensors_type {
    SAFETENSORS_BOOL,
    SAFETENSORS_U8,
    SAFETENSORS_I8,
    SAFETENSORS_U16,
    SAFETENSORS_I16,
    SAFETENSORS_F16,
    SAFETENSORS_BF16,
    SAFETENSORS_U32,
    SAFETENSORS_I32,
    SAFETENSORS_F32,
    SAFETENSORS_U64,
    SAFETENSORS_I64,
    SAFETENSORS_F64,
    SAFETENSORS_OTHER, /* in files that are read: one that this reader does not know, such as F8_E4M3 */
};

struct safetensors_tensor {
    const char *name;
    enum safetensors_type type;
    const char *dtype; /* set by reading: the type as the file has it, "F32" */
    int rank;          /* 0: a scalar */
    int64_t sizes[SAFETENSORS_MAX_RANK];
    const void *data; /* in a file that was read it may be unaligned: copy it with memcpy */
    size_t bytes;     /* set by reading; writing ignores it and computes the size from type and sizes */
    /* Writing calls it where `data` is NULL, to make the data in memory that it frees afterwards. */
    void (*make)(const struct safetensors_tensor *tensor, void *data);
    const void *made_of; /* for `make` */
};
/* Returns the data, or makes them in *memory, which the caller frees; NULL without memory. */
const void *safetensors_data(const struct safetensors_tensor *tensor, void **memory);
size_t safetensors_type_size(enum safetensors_type type); /* bytes of one element; of SAFETENSORS_OTHER 0 */
/* Whether the elements are floats that safetensors_floats() reads: F64, F32, F16 or BF16. */
bool safetensors_has_floats(const struct safetensors_tensor *tensor);
/* Converts all elements of an array that was read and has floats; F64 is rounded to the nearest. */
void safetensors_floats(const struct safetensors_tensor *tensor, float *values);
/* The same for `count` elements from `first` on. */
void safetensors_some_floats(const struct safetensors_tensor *tensor, size_t first, size_t count, float *values);

struct safetensors_metadata {
    const char *key, *value;
};

/* Reads a whole file into memory and checks all of it. Errors: TUTTI_FORMAT if the header is invalid, or if the arrays
 * overlap, leave gaps, or do not end where the file ends; TUTTI_FILE if the file cannot be read. */
struct safetensors;
tutti_status safetensors_open(const char *path, struct safetensors **file);
void safetensors_close(struct safetensors *file); /* frees names and data, too; accepts NULL */
int safetensors_count(const struct safetensors *file);
/* Return the array at a position, 0 to count - 1 in the order of the data, or of a name. NULL if there is none. The
 * result is valid until safetensors_close(). */
const struct safetensors_tensor *safetensors_at(const struct safetensors *file, int position);
const struct safetensors_tensor *safetensors_find(const struct safetensors *file, const char *name);
/* Returns the value of a key of "__metadata__", NULL if there is none. Valid until safetensors_close(). */
const char *safetensors_metadata(const struct safetensors *file, const char *key);
/* Returns the key after this one in the order of the file, the first one for NULL; NULL at the end. */
const char *safetensors_metadata_key(const struct safetensors *file, const char *before);

/* Writes header and data into an open atomic file. The caller flushes and commits it; so it can write and flush two
 * files that belong together before it commits the first. Arrays are ordered by the size of their elements, largest
 * first, then as given, so every array is aligned to its elements. */
tutti_status safetensors_write(struct atomic_file *file, const struct safetensors_tensor *tensors, int count,
    const struct safetensors_metadata *metadata, int metadata_count);
/* Writes a whole file: opens, writes and commits an atomic file. */
tutti_status safetensors_save(const char *path, const struct safetensors_tensor *tensors, int count,
    const struct safetensors_metadata *metadata, int metadata_count);

#endif
