/* The binary versions of CIFAR-10 and CIFAR-100 (www.cs.toronto.edu/~kriz/cifar.html): records without any header.
 *
 *   CIFAR-10   1 byte label,                          3072 bytes pixels [3][32][32], red first
 *   CIFAR-100  1 byte coarse label, 1 byte fine label, 3072 bytes pixels */
#ifndef FORMATS_CIFAR_H
#define FORMATS_CIFAR_H

#include "formats/dataset.h"

/* The training part of CIFAR-10 is five files, so `count` paths are read one after another into one dataset. */
tutti_status cifar10_read(const char *const *paths, int count, struct dataset *dataset);
/* The fine labels (100 classes) are kept. */
tutti_status cifar100_read(const char *path, struct dataset *dataset);

#endif
