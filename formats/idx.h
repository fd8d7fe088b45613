/* IDX files, the format of MNIST and Fashion-MNIST (yann.lecun.com/exdb/mnist, "The IDX file format"), plain or gzip.
 *
 *   2 bytes  zero
 *   1 byte   type of the elements: 8 for unsigned bytes, the only one read here
 *   1 byte   number of dimensions
 *   4 bytes  each dimension, big endian
 *   the rest the elements, row-major */
#ifndef FORMATS_IDX_H
#define FORMATS_IDX_H

#include "tutti.h"

#define IDX_MAX_RANK 4

struct idx {
    int rank;
    int64_t sizes[IDX_MAX_RANK];
    unsigned char *data;
    size_t bytes;
};

/* Reads a file of unsigned bytes with the rank given. Whatever is cut, longer than it says or of another kind is
 * refused with TUTTI_FORMAT. Memory grows with what is read, not with what the header claims. */
tutti_status idx_read(const char *path, int rank, struct idx *idx);
void idx_free(struct idx *idx);

#endif
