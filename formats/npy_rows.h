/* Parts of a .npy file: the samples of an array that may be larger than memory. */
#ifndef FORMATS_NPY_ROWS_H
#define FORMATS_NPY_ROWS_H

#include "formats/npz.h"

/* Opens a file and checks its header. An array with the first index changing fastest is read as a whole. Errors: as
 * npz_open(); messages begin with the path. */
struct npy_rows;
tutti_status npy_rows_open(const char *path, struct npy_rows **rows);
void npy_rows_close(struct npy_rows *rows);                          /* accepts NULL */
const struct npz_array *npy_rows_array(const struct npy_rows *rows); /* without data */
/* Reads the part of `count` indexes of the first axis from `first` on, which must be there, in the machine's order of
 * bytes. Several threads may read at a time. Errors: TUTTI_FILE. */
tutti_status npy_rows_read(const struct npy_rows *rows, int64_t first, int64_t count, void *elements);

#endif
