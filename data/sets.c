/* Data sets that lie in memory: MNIST's IDX files, CIFAR's, and the drawn digits. Their images have bytes, and are read
 * as floats from 0 to 1. */
#include "data/collection.h"
#include "data/statistics.h"

#include "base/memory.h"
#include "base/status.h"
#include "formats/dataset_load.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_HELD_OUT = 2000 };

struct sets {
    struct collection collection;  /* first: they are one */
    struct dataset train, test;    /* samples of the collection, one after the other; test may be empty */
    size_t bytes;                  /* of a sample */
    char *text, **names;           /* of the classes */
    bool numbers, measure, random; /* labels are numbers to predict; training samples are augmented */
    struct augment augment;
};

static void free_sets(struct collection *collection)
{
    struct sets *sets = (struct sets *)collection;
    dataset_free(&sets->train);
    dataset_free(&sets->test);
    free(sets->text);
    free(sets->names);
    free(collection->parts);
    free(collection->labels);
    free(sets);
}

/* Finds the data set of a sample; *index becomes the sample's number there. */
static const struct dataset *find_set(const struct sets *sets, int64_t *index)
{
    if (*index < sets->train.samples) return &sets->train;
    *index -= sets->train.samples;
    return &sets->test;
}

static tutti_status read_sample(
    struct collection *collection, int64_t index, const struct draw *draw, void *sample, void *target)
{
    const struct sets *sets = (const struct sets *)collection;
    const int32_t *label = collection->labels ? &collection->labels[index] : NULL;
    const struct dataset *set = find_set(sets, &index);
    const unsigned char *pixels = set->pixels + (size_t)index * sets->bytes;
    const float number = (float)set->labels[index];
    memcpy(target, label ? (const void *)label : &number, sizeof(number));
    if (sets->random && draw->training)
        return augment_whole(&sets->augment, draw, pixels, false, &collection->info.shape, sample);
    memcpy(sample, pixels, sets->bytes);
    return TUTTI_OK;
}

static void name_sample(const struct collection *collection, int64_t index, char *text, size_t size)
{
    const struct sets *sets = (const struct sets *)collection;
    const char *part = index < sets->train.samples ? "training" : "test";
    (void)find_set(sets, &index);
    snprintf(text, size, "%s image %lld", part, (long long)index);
}

static tutti_status measure(struct collection *collection, const signed char *part)
{
    struct sets *sets = (struct sets *)collection;
    tutti_data_info *info = &collection->info;
    const size_t channels = (size_t)info->channels, plane = sets->bytes / channels;
    if (!sets->measure) return TUTTI_OK;
    int64_t(*counts)[256] = memory_new(channels, sizeof(*counts));
    if (!counts) return TUTTI_NO_MEMORY;
    for (int64_t i = 0; i < collection->samples; i++) {
        int64_t row = i;
        const struct dataset *set = find_set(sets, &row);
        const unsigned char *pixels = set->pixels + (size_t)row * sets->bytes;
        for (size_t k = 0; part[i] == TUTTI_DATA_TRAIN && k < sets->bytes; k++) counts[k / plane][pixels[k]]++;
    }
    for (size_t c = 0; c < channels; c++) statistics_of_bytes(counts[c], &info->mean[c], &info->std[c]);
    free(counts);
    return TUTTI_OK;
}

/* ------------------------------------------------------------------------------------------------- opening ---- */

/* One pair of IDX files: its last samples are the test, unless the caller says how many are held out. */
static tutti_status set_parts(struct sets *sets, const tutti_data_options *options)
{
    struct collection *collection = &sets->collection;
    const int64_t samples = sets->train.samples, fifth = samples / 5;
    const int64_t held = sets->test.samples || options->split > 0 ? 0
        : fifth > MOST_HELD_OUT                                   ? MOST_HELD_OUT
        : fifth < 1                                               ? 1
                                                                  : fifth;
    collection->samples = samples + sets->test.samples;
    collection->parts = memory_new((size_t)collection->samples, sizeof(*collection->parts));
    if (!collection->parts) return TUTTI_NO_MEMORY;
    memset(collection->parts, !sets->test.samples && !held ? PART_OPEN : TUTTI_DATA_TRAIN, (size_t)samples);
    memset(collection->parts + samples - held, TUTTI_DATA_TEST, (size_t)(held + sets->test.samples));
    return TUTTI_OK;
}

/* The file's names, or numbers. */
static tutti_status name_classes(struct sets *sets, const char *path)
{
    const int classes = sets->train.classes;
    int named = 0;
    char *rest, *line;
    sets->text = memory_copy_text(sets->train.class_names ? sets->train.class_names : "");
    sets->names = memory_new((size_t)classes, sizeof(*sets->names));
    if (!sets->text || !sets->names) return TUTTI_NO_MEMORY;
    for (line = strtok_r(sets->text, "\r\n", &rest); line; line = strtok_r(NULL, "\r\n", &rest), named++)
        if (named < classes) sets->names[named] = line;
    if (named != classes && sets->train.class_names)
        return fail(TUTTI_FORMAT, "%s: the file with the names of classes has %d, but the labels %d classes", path,
            named, classes);
    return TUTTI_OK;
}

static tutti_status number_classes(struct sets *sets)
{
    enum { DIGITS = 12 };
    const int classes = sets->train.classes;
    free(sets->text);
    sets->text = memory_new((size_t)classes, DIGITS);
    if (!sets->text) return TUTTI_NO_MEMORY;
    for (int i = 0; i < classes; i++) {
        sets->names[i] = sets->text + (size_t)i * DIGITS;
        snprintf(sets->names[i], DIGITS, "%d", i);
    }
    return TUTTI_OK;
}

static tutti_status set_classes(struct sets *sets, const char *path)
{
    tutti_status status;
    struct collection *collection = &sets->collection;
    tutti_data_info *info = &collection->info;
    info->target_dtype = sets->numbers ? TUTTI_DTYPE_F32 : TUTTI_DTYPE_I32;
    if (sets->numbers) {
        info->target_shape = (tutti_shape) { .rank = 1, .sizes = { 1 } };
        return TUTTI_OK;
    }
    TRY(name_classes(sets, path));
    if (!sets->train.class_names) TRY(number_classes(sets));
    collection->labels = memory_new((size_t)collection->samples, sizeof(*collection->labels));
    if (!collection->labels) FAIL(TUTTI_NO_MEMORY, "no memory for the labels");
    memcpy(collection->labels, sets->train.labels, (size_t)sets->train.samples * sizeof(*collection->labels));
    if (sets->test.samples)
        memcpy(collection->labels + sets->train.samples, sets->test.labels,
            (size_t)sets->test.samples * sizeof(*collection->labels));
    info->classes = sets->train.classes;
    info->class_names = (const char *const *)sets->names;
done:
    return status;
}

static tutti_status load(struct sets *sets, const char *path, const tutti_data_options *options)
{
    tutti_status status;
    struct collection *collection = &sets->collection;
    tutti_data_info *info = &collection->info;
    const struct dataset *train = &sets->train;
    TRY(dataset_load(path, 0, &sets->train, &sets->test));
    sets->bytes = (size_t)train->channels * (size_t)train->height * (size_t)train->width;
    info->kind = train->name;
    info->dtype = TUTTI_DTYPE_U8;
    info->shape = (tutti_shape) { .rank = 3, .sizes = { train->channels, train->height, train->width } };
    info->channels = train->channels;
    TRY(statistics_read_images(
        options->normalise ? options->normalise : "none", info->channels, info->mean, info->std, &sets->measure));
    TRY(augment_parse(options->augment, AUGMENT_IMAGES, &sets->augment));
    sets->random = augment_is_random(&sets->augment);
    TRY(set_parts(sets, options));
    TRY(set_classes(sets, path));
    collection->floats = true;
    collection->read = read_sample;
    collection->name = name_sample;
    collection->fit = measure;
done:
    return status;
}

tutti_status sets_open(const char *path, const tutti_data_options *options, struct collection **made)
{
    if (!dataset_is_known(path)) return TUTTI_OK;
    struct sets *sets = memory_new(1, sizeof(*sets));
    if (!sets) return TUTTI_NO_MEMORY;
    sets->collection.free = free_sets;
    sets->numbers = options->numbers;
    const tutti_status status = load(sets, path, options);
    if (status == TUTTI_OK)
        *made = &sets->collection;
    else
        free_sets(&sets->collection);
    return status;
}
