/* One array of NumPy's format, in memory: what a .npy file has, and each member of a .npz file. */
#ifndef FORMATS_NPY_H
#define FORMATS_NPY_H

#include "formats/npz.h"

/* Copies the array after the header, also if its first index changes fastest or it has the other order of bytes. The
 * caller frees array->data. The name stays as it is. Messages name no file. Errors: TUTTI_FORMAT. */
tutti_status npy_decode(const unsigned char *bytes, size_t size, struct npz_array *array);
bool npy_is(const unsigned char *bytes, size_t size);

/* Where the elements lie in a file, and how. */
struct npy_layout {
    size_t begin;       /* bytes before the first element */
    bool columns_first; /* the first index changes fastest */
    bool swapped;       /* in the other order of bytes */
};
/* Reads the header of a file of `size` bytes, of which the first `available` are there. The array gets type, shape and
 * bytes, but no data. Errors: TUTTI_FORMAT, also where the shape does not fit the file. */
tutti_status npy_describe(
    const unsigned char *bytes, size_t available, uint64_t size, struct npz_array *array, struct npy_layout *layout);
/* Turns elements from one order of bytes to the other. */
void npy_swap(enum npz_type type, void *elements, size_t bytes);

/* Writes the header of an array, which its elements follow. *bytes becomes the number of their bytes. */
enum { NPY_HEADER = 320 };
tutti_status npy_header(
    const struct npz_array *array, unsigned char header[NPY_HEADER], size_t *header_bytes, size_t *bytes);

#endif
