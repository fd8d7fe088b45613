/* k-fold evaluation: the training samples are divided into folds, and each fold is evaluated once. */
#include "data/data.h"

#include "base/memory.h"
#include "base/random.h"
#include "base/status.h"

#include <stdlib.h>

/* Samples in the order of their classes, and at random within each. */
struct place {
    int32_t label;
    uint32_t key;
    int64_t index;
};

static int compare(const void *a, const void *b)
{
    const struct place *x = a, *y = b;
    if (x->label != y->label) return x->label < y->label ? -1 : 1;
    if (x->key != y->key) return x->key < y->key ? -1 : 1;
    return x->index < y->index ? -1 : x->index > y->index;
}

static tutti_status check(const tutti_data_options *options, int64_t training)
{
    if (options->folds < 2 || options->fold < 0 || options->fold >= options->folds)
        return fail(TUTTI_INVALID, "fold %d of %d does not exist: folds are at least two, counted from 0",
            options->fold, options->folds);
    if (options->folds > training / 2)
        return fail(TUTTI_INVALID, "%d folds are too many for %lld samples: each fold needs at least two",
            options->folds, (long long)training);
    return TUTTI_OK;
}

/* Deals the samples to the folds like cards: no fold has two samples more than another one, of any class and in
 * all. */
tutti_status data_fold(struct tutti_data *data)
{
    const tutti_data_options *options = &data->options;
    const struct collection *collection = data->collection;
    int64_t training = 0, used = 0;
    const bool unlabelled = collection->info.classes == 0 && collection->info.target_dtype == TUTTI_DTYPE_I32;
    if (options->folds == 0 || unlabelled) return TUTTI_OK; /* a photograph belongs to no fold */
    for (int64_t i = 0; i < collection->samples; i++) training += data->part_of[i] == TUTTI_DATA_TRAIN;
    const tutti_status status = check(options, training);
    if (status != TUTTI_OK) return status;
    struct place *places = memory_new((size_t)training, sizeof(*places));
    if (!places) return TUTTI_NO_MEMORY;
    for (int64_t i = 0; i < collection->samples; i++) {
        if (data->part_of[i] != TUTTI_DATA_TRAIN) {
            data->part_of[i] = DATA_UNUSED;
            continue;
        }
        const uint32_t key = random_bits(options->seed, RANDOM_FOLDS, (uint64_t)used);
        places[used++] = (struct place) { collection->labels ? collection->labels[i] : 0, key, i };
    }
    qsort(places, (size_t)training, sizeof(*places), compare);
    for (int64_t i = options->fold; i < training; i += options->folds) data->part_of[places[i].index] = TUTTI_DATA_VAL;
    free(places);
    return TUTTI_OK;
}
