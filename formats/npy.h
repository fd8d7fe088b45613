/* One array of NumPy's format, in memory: what a .npy file has, and each member of a .npz file. */
#ifndef FORMATS_NPY_H
#define FORMATS_NPY_H

#include "formats/npz.h"

/* Copies the array behind the header, from columns first and the other order of bytes, too; the caller frees
 * array->data. The name stays as it is. Messages name no file. Errors: TUTTI_FORMAT. */
tutti_status npy_decode(const unsigned char *bytes, size_t size, struct npz_array *array);
bool npy_is(const unsigned char *bytes, size_t size);

/* The header of an array, which its elements follow; bytes of these in *bytes. */
enum { NPY_HEADER = 320 };
tutti_status npy_header(
    const struct npz_array *array, unsigned char header[NPY_HEADER], size_t *header_bytes, size_t *bytes);

#endif
