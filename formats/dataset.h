/* Labelled images in memory, from the formats that the command reads. */
#ifndef FORMATS_DATASET_H
#define FORMATS_DATASET_H

#include "tutti.h"

struct dataset {
    int64_t samples;
    int channels, height, width;
    int classes;           /* labels are 0 .. classes - 1; the same for the training and the test part */
    unsigned char *pixels; /* [samples][channels][height][width] */
    int32_t *labels;       /* [samples] */
    char name[64];         /* "digits", "IDX", "CIFAR-10" ... */
};

/* Where the samples are: "digits" (drawn from the seed, see digits.h; "./digits" would be a folder), else a folder with
 *   MNIST's files   train-images-idx3-ubyte, train-labels-idx1-ubyte, t10k-...; plain or .gz. Where there is only one
 *                   of the two pairs, its last fifth, at most 2,000 samples, is held out for the test
 *   CIFAR-10        data_batch_1.bin .. data_batch_5.bin, test_batch.bin
 *   CIFAR-100       train.bin, test.bin (the fine labels)
 * in it, or in the sub-folder that the published archives make. Both parts are freed by dataset_free(). */
tutti_status dataset_load(const char *where, uint64_t seed, struct dataset *train, struct dataset *test);
void dataset_free(struct dataset *dataset);

/* Room for the pixels and labels of `samples` images; name, classes and sizes are set, the contents zero. */
tutti_status dataset_new(
    struct dataset *dataset, const char *name, int64_t samples, int channels, int height, int width, int classes);
/* Moves the last `count` samples of `dataset` into `held`. */
tutti_status dataset_hold_out(struct dataset *dataset, int64_t count, struct dataset *held);

/* Pixels / 255 as floats [count][C][H][W], and labels, of the samples with the given numbers. The signature is that of
 * tutti_source's read(), `user` being the dataset. Non-zero: an index is out of range. */
int dataset_read(void *user, const int64_t *indices, int64_t count, float *inputs, void *targets);

#endif
