/* Safetensors files: named arrays behind a JSON header (https://github.com/huggingface/safetensors, "Format").
 *
 *   8 bytes  N, the header's length, little endian
 *   N bytes  JSON: {"name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}, ..., "__metadata__": {"key":
 * "text"}} the rest the arrays, little endian, row-major, without gaps; offsets count from the end of the header */
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
};
const char *safetensors_type_name(enum safetensors_type type); /* "F32" */
size_t safetensors_type_size(enum safetensors_type type);      /* bytes of one element */

struct safetensors_tensor {
    const char *name;
    enum safetensors_type type;
    int rank; /* 0: a scalar */
    int64_t sizes[SAFETENSORS_MAX_RANK];
    const void *data; /* of a file that was read: perhaps not aligned, copy it by memcpy */
    size_t bytes;     /* set by reading; the writer computes it from type and sizes and ignores this member */
};

struct safetensors_metadata {
    const char *key, *value;
};

/* Reads the whole file into memory and checks all of it: a file that is cut, too long, overlapping or otherwise not
 * what it claims to be is refused with TUTTI_FORMAT. */
struct safetensors;
tutti_status safetensors_open(const char *path, struct safetensors **file);
void safetensors_close(struct safetensors *file); /* takes NULL; frees names and data */
int safetensors_count(const struct safetensors *file);
/* By position in the order of the data, 0 .. count - 1; by name: NULL where there is none. Valid until close. */
const struct safetensors_tensor *safetensors_at(const struct safetensors *file, int position);
const struct safetensors_tensor *safetensors_find(const struct safetensors *file, const char *name);
/* A value of "__metadata__"; NULL where there is none. */
const char *safetensors_metadata(const struct safetensors *file, const char *key);

/* Writes header and data into an open atomic file, which the caller flushes and commits: two files that belong together
 * are both written and flushed before the first of them is committed. Arrays of larger elements come first, else in the
 * order given, so that every array is aligned to its elements. */
tutti_status safetensors_write(struct atomic_file *file, const struct safetensors_tensor *tensors, int count,
    const struct safetensors_metadata *metadata, int metadata_count);
/* One whole file: open, write, commit. */
tutti_status safetensors_save(const char *path, const struct safetensors_tensor *tensors, int count,
    const struct safetensors_metadata *metadata, int metadata_count);

#endif
