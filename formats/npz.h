/* NumPy's files: .npy has one array, .npz is a ZIP file of these, one for each name.
 * https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html */
#ifndef FORMATS_NPZ_H
#define FORMATS_NPZ_H

#include "base/file.h"

#define NPZ_MAX_RANK 8

enum npz_type {
    NPZ_BOOL,
    NPZ_I8,
    NPZ_U8,
    NPZ_I16,
    NPZ_U16,
    NPZ_F16,
    NPZ_I32,
    NPZ_U32,
    NPZ_F32,
    NPZ_I64,
    NPZ_U64,
    NPZ_F64,
};
const char *npz_type_name(enum npz_type type); /* NumPy's: "float32" */
size_t npz_type_size(enum npz_type type);      /* bytes of an element */

struct npz_array {
    const char *name; /* without ".npy"; "" in a .npy file */
    enum npz_type type;
    /* Characters of each text, which has one more axis of as many U8 (bytes) or U32 (Unicode); 0: numbers. */
    int text;
    int rank; /* 0: a scalar */
    int64_t sizes[NPZ_MAX_RANK];
    void *data; /* row-major, in the machine's order of bytes */
    size_t bytes;
};

/* An element as a number; as an integer, without what int64 has no room for. */
double npz_number(const struct npz_array *array, size_t element);
int64_t npz_integer(const struct npz_array *array, size_t element);

/* Reads a .npy or .npz file, told apart by their content, and checks all of it. Errors: TUTTI_FORMAT if it is damaged
 * or has arrays of other types, as of Python's objects; TUTTI_FILE if it cannot be read. */
struct npz;
tutti_status npz_open(const char *path, struct npz **file);
tutti_status npz_open_with_texts(const char *path, struct npz **file); /* arrays of texts, too */
void npz_close(struct npz *file);                                      /* frees names and data, too; accepts NULL */
int npz_count(const struct npz *file);
/* Return the array at a position, 0 to count - 1, or of a name; NULL if there is none. Valid until npz_close(). */
const struct npz_array *npz_at(const struct npz *file, int position);
const struct npz_array *npz_find(const struct npz *file, const char *name);

/* Writes arrays into a .npz file, or one array into a .npy file if the path ends so; `bytes` is ignored. */
tutti_status npz_save(const char *path, const struct npz_array *arrays, int count);

#endif
