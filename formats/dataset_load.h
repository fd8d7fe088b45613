/* Data sets by name or folder, from the formats that the command reads. */
#ifndef FORMATS_DATASET_LOAD_H
#define FORMATS_DATASET_LOAD_H

#include "formats/dataset.h"

/* Whether dataset_load() has something to say about it: "digits", or a folder with one of the files below. */
bool dataset_is_known(const char *where);

/* Where the samples are: "digits" (drawn from the seed, see digits.h; "./digits" would be a folder), else a folder with
 *   MNIST's files   train-images-idx3-ubyte, train-labels-idx1-ubyte, t10k-...; plain or .gz. Where there is only one
 *                   of the two pairs, it is `train`, and `test` has no samples. classes.txt may name the classes
 *   CIFAR-10        data_batch_1.bin .. data_batch_5.bin, test_batch.bin; names in batches.meta.txt
 *   CIFAR-100       train.bin, test.bin (the fine labels); names in fine_label_names.txt
 * in it, or in the sub-folder that the published archives make. `train` has the names. Both parts are freed by
 * dataset_free(). */
tutti_status dataset_load(const char *where, uint64_t seed, struct dataset *train, struct dataset *test);

#endif
