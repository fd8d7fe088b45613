/* Arrays of NumPy: a sample is a row. Bytes in two or three dimensions are images. */
#include "data/arrays.h"

#include "base/memory.h"
#include "base/status.h"
#include "base/text.h"
#include "data/pictures.h"

#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { AT_ONCE = 4096, MOST_MEASURED = 2000, FEW_CHANNELS = 4 };

struct arrays {
    struct collection collection; /* first: they are one */
    struct array_pairs pairs;
    int64_t begins[ARRAYS_SLOTS + 1]; /* of the samples of each slot */
    enum npz_type type;
    size_t row, elements; /* bytes and numbers of a sample */
    struct array_targets targets;
    struct array_inputs standardised; /* of samples that are not images */
    bool images, channels_last;
    bool chosen; /* by tutti_data_options.layout */
    char (*class_names)[12];
    const char **class_list;
    struct array_classes classes; /* where they are not 0, 1, 2 and so on */
    bool measure, random;         /* training samples are augmented */
    struct augment augment;
};

static void free_arrays(struct collection *collection)
{
    struct arrays *arrays = (struct arrays *)collection;
    array_pairs_close(&arrays->pairs);
    standards_free(&arrays->targets.standards);
    standards_free(&arrays->standardised.standards);
    free(arrays->class_names);
    free(arrays->class_list);
    array_classes_free(&arrays->classes);
    free(collection->parts);
    free(collection->labels);
    free(arrays);
}

static int slot_of(const struct arrays *arrays, int64_t index)
{
    int slot = 0;
    while (index >= arrays->begins[slot + 1]) slot++;
    return slot;
}

static void name_sample(const struct collection *collection, int64_t index, char *text, size_t size)
{
    const struct arrays *arrays = (const struct arrays *)collection;
    const int slot = slot_of(arrays, index);
    snprintf(text, size, "%s[%" PRId64 "]", arrays->pairs.inputs[slot].name, index - arrays->begins[slot]);
}

/* ------------------------------------------------------------------------------------------------- samples ---- */

/* [height][width][channels] to [channels][height][width] */
static void copy_channels(const struct arrays *arrays, const unsigned char *from, unsigned char *to)
{
    const size_t channels = (size_t)arrays->collection.info.shape.sizes[0], pixels = arrays->elements / channels;
    for (size_t c = 0; c < channels; c++)
        for (size_t i = 0; i < pixels; i++) to[c * pixels + i] = from[i * channels + c];
}

static tutti_status read_input(const struct arrays *arrays, int slot, int64_t row, void *sample)
{
    const struct array_rows *inputs = &arrays->pairs.inputs[slot];
    if (arrays->images && !arrays->channels_last) return array_rows_read(inputs, row, 1, sample);
    void *memory = malloc(arrays->row);
    if (!memory) return fail(TUTTI_NO_MEMORY, "no memory for the %zu bytes of a sample", arrays->row);
    bool finite = true;
    tutti_status status = array_rows_read(inputs, row, 1, memory);
    if (status == TUTTI_OK && arrays->images)
        copy_channels(arrays, memory, sample);
    else if (status == TUTTI_OK && arrays->standardised.standards.count > 0)
        status = array_inputs_apply(&arrays->standardised, arrays->type, memory, sample, &finite);
    else if (status == TUTTI_OK)
        finite = array_to_floats(arrays->type, memory, arrays->elements, sample);
    if (status == TUTTI_OK && !finite)
        status = fail(TUTTI_FORMAT, "%s[%" PRId64 "] has numbers that are not finite", inputs->name, row);
    free(memory);
    return status;
}

static tutti_status read_drawn(
    const struct arrays *arrays, int slot, int64_t row, const struct draw *draw, unsigned char *sample)
{
    unsigned char *memory = memory_new(arrays->row, 1);
    if (!memory) return TUTTI_NO_MEMORY;
    tutti_status status = array_rows_read(&arrays->pairs.inputs[slot], row, 1, memory);
    if (status == TUTTI_OK)
        status = augment_whole(
            &arrays->augment, draw, memory, arrays->channels_last, &arrays->collection.info.shape, sample);
    free(memory);
    return status;
}

/* Reads floats as for evaluation, then changes them. */
static tutti_status read_changed(
    const struct arrays *arrays, int slot, int64_t row, const struct draw *draw, float *numbers)
{
    const int64_t *sizes = arrays->collection.info.shape.sizes;
    const tutti_status status = read_input(arrays, slot, row, numbers);
    if (status != TUTTI_OK) return status;
    if (arrays->collection.augments == AUGMENT_GRIDS)
        augment_grid(&arrays->augment, draw, sizes[0], (int)sizes[1], (int)sizes[2], numbers);
    return augment_noise(&arrays->augment, draw, arrays->elements, numbers);
}

static tutti_status read_training(
    const struct arrays *arrays, int slot, int64_t row, const struct draw *draw, void *sample)
{
    return arrays->images ? read_drawn(arrays, slot, row, draw, sample) : read_changed(arrays, slot, row, draw, sample);
}

static tutti_status read_sample(
    struct collection *collection, int64_t index, const struct draw *draw, void *sample, void *target)
{
    const struct arrays *arrays = (const struct arrays *)collection;
    const int slot = slot_of(arrays, index);
    const int64_t row = index - arrays->begins[slot];
    const tutti_status status = arrays->random && draw->training ? read_training(arrays, slot, row, draw, sample)
                                                                 : read_input(arrays, slot, row, sample);
    if (status != TUTTI_OK) return status;
    if (!collection->labels) return array_targets_read(&arrays->targets, &arrays->pairs.targets[slot], row, target);
    memcpy(target, &collection->labels[index], sizeof *collection->labels);
    return TUTTI_OK;
}

/* Measures the mean and the deviation of each channel's bytes in training samples, evenly spaced ones if there are
 * many. */
static tutti_status measure_bytes(struct arrays *arrays, const signed char *part)
{
    struct collection *collection = &arrays->collection;
    const size_t channels = (size_t)collection->info.channels;
    int64_t training = 0, seen = 0, (*counts)[256];
    tutti_status status = TUTTI_NO_MEMORY;
    unsigned char *sample = memory_new(arrays->elements, 1);
    counts = memory_new(channels, sizeof *counts);
    if (!sample || !counts) goto done;
    for (int64_t i = 0; i < collection->samples; i++) training += part[i] == TUTTI_DATA_TRAIN;
    const int64_t step = 1 + training / MOST_MEASURED;
    for (int64_t i = 0; i < collection->samples; i++) {
        if (part[i] != TUTTI_DATA_TRAIN || seen++ % step) continue;
        const int slot = slot_of(arrays, i);
        TRY(read_input(arrays, slot, i - arrays->begins[slot], sample));
        for (size_t k = 0; k < arrays->elements; k++) counts[k / (arrays->elements / channels)][sample[k]]++;
    }
    for (size_t c = 0; c < channels; c++)
        statistics_of_bytes(counts[c], &collection->info.mean[c], &collection->info.std[c]);
    status = TUTTI_OK;
done:
    free(sample);
    free(counts);
    return status;
}

static tutti_status measure(struct collection *collection, const signed char *part)
{
    struct arrays *arrays = (struct arrays *)collection;
    tutti_status status = arrays->images && arrays->measure ? measure_bytes(arrays, part) : TUTTI_OK;
    if (status == TUTTI_OK)
        status = array_inputs_measure(&arrays->standardised, arrays->pairs.inputs, arrays->begins, part);
    if (status != TUTTI_OK) return status;
    return array_targets_measure(&arrays->targets, arrays->pairs.targets, arrays->begins, part);
}

/* Means and deviations of numbers, and whether they are bytes that are divided by 255; describe.c does the same for
 * images. */
static int describe(const struct collection *collection, json_t *object)
{
    const struct arrays *arrays = (const struct arrays *)collection;
    const struct standards *standards = &arrays->standardised.standards;
    json_t *mean = standards->count ? json_array() : NULL, *std = standards->count ? json_array() : NULL;
    int failed = 0;
    for (int i = 0; i < standards->count; i++) {
        failed |= json_array_append_new(mean, json_real(standards->mean[i]));
        failed |= json_array_append_new(std, json_real(standards->std[i]));
    }
    if (arrays->chosen)
        failed |= json_object_set_new(object, "layout", json_string(arrays->channels_last ? "nhwc" : "nchw"));
    if (mean) failed |= json_object_set_new(object, "mean", mean);
    if (std) failed |= json_object_set_new(object, "std", std);
    if (!arrays->images && arrays->type == NPZ_U8) failed |= json_object_set_new(object, "bytes", json_true());
    return failed;
}

/* ------------------------------------------------------------------------------------------------- opening ---- */

static bool has_few_channels_last(const struct npz_array *x)
{
    return x->rank == 4 && x->sizes[3] <= FEW_CHANNELS && x->sizes[1] > FEW_CHANNELS;
}

/* Sets whether the last axis has the channels: the options say so, or, of bytes, the sizes. */
static tutti_status set_layout(
    struct arrays *arrays, const char *path, const struct npz_array *x, const tutti_data_options *options)
{
    const char *layout = options->layout, *name = arrays->pairs.inputs[slot_of(arrays, 0)].name;
    if (layout && strcmp(layout, "nchw") != 0 && strcmp(layout, "nhwc") != 0)
        return fail(TUTTI_INVALID, "layouts are nchw and nhwc, not '%s'", text_printable(layout).text);
    if (layout && !strcmp(layout, "nhwc") && x->rank != 4)
        return fail(TUTTI_INVALID, "%s: '%s' has samples of %d axes: layouts are for three, such as [n, h, w, c]", path,
            name, x->rank - 1);
    arrays->chosen = layout != NULL;
    arrays->channels_last = layout ? !strcmp(layout, "nhwc") : x->type == NPZ_U8 && has_few_channels_last(x);
    if (!layout && x->type != NPZ_U8 && has_few_channels_last(x) && x->sizes[2] > FEW_CHANNELS)
        data_note(options,
            "%s: '%s' looks like [n, h, w, c], channels last as Keras has them, but is read as [n, c, h, w]: give "
            "--layout nhwc (or nchw, if it is that)",
            path, name);
    return TUTTI_OK;
}

/* [samples, height, width], with channels after the samples or at the end. */
static bool set_images(struct arrays *arrays, const struct npz_array *x, tutti_shape *shape)
{
    if (x->type != NPZ_U8 || (x->rank != 3 && x->rank != 4)) return false;
    const int height = x->rank == 3 || arrays->channels_last ? 1 : 2;
    const int64_t channels = x->rank == 3 ? 1 : x->sizes[arrays->channels_last ? 3 : 1];
    *shape = (tutti_shape) { .rank = 3, .sizes = { channels, x->sizes[height], x->sizes[height + 1] } };
    return channels <= DATA_MAX_CHANNELS;
}

static tutti_status set_input(struct arrays *arrays, const char *path, const struct npz_array *x)
{
    tutti_data_info *info = &arrays->collection.info;
    arrays->type = x->type;
    arrays->row = x->bytes / (size_t)x->sizes[0];
    arrays->elements = arrays->row / npz_type_size(x->type);
    arrays->images = set_images(arrays, x, &info->shape);
    info->dtype = arrays->images ? TUTTI_DTYPE_U8 : TUTTI_DTYPE_F32;
    if (x->rank > TUTTI_MAX_RANK)
        return fail(
            TUTTI_FORMAT, "%s: samples of %d axes: there are at most %d", path, x->rank - 1, TUTTI_MAX_RANK - 1);
    if (arrays->images) info->channels = (int)info->shape.sizes[0];
    if (arrays->images) return TUTTI_OK;
    info->shape = (tutti_shape) { .rank = x->rank > 1 ? x->rank - 1 : 1, .sizes = { 1 } };
    for (int i = 1; i < x->rank; i++) info->shape.sizes[i - 1] = x->sizes[i];
    if (!arrays->channels_last) return TUTTI_OK;
    info->shape = (tutti_shape) { .rank = 3, .sizes = { x->sizes[3], x->sizes[1], x->sizes[2] } };
    for (int slot = 0; slot < ARRAYS_SLOTS; slot++) arrays->pairs.inputs[slot].channels_last = true;
    return TUTTI_OK;
}

/* Reads the labels of a slot; *most becomes the largest label. *plain is false if one is not a number of a class. */
static tutti_status read_labels(struct arrays *arrays, int slot, int32_t *most, bool *plain)
{
    const struct array_rows *from = &arrays->pairs.targets[slot];
    const int64_t samples = from->array->sizes[0];
    int32_t *labels = arrays->collection.labels + arrays->begins[slot];
    tutti_status status = TUTTI_OK;
    *plain = from->array->text == 0;
    void *memory = malloc(AT_ONCE * npz_type_size(from->array->type));
    if (!memory) return fail(TUTTI_NO_MEMORY, "no memory for labels");
    for (int64_t first = 0; first < samples && *plain; first += AT_ONCE) {
        const int64_t count = samples - first < AT_ONCE ? samples - first : AT_ONCE;
        TRY(array_rows_read(from, first, count, memory));
        *plain = array_to_labels(from->array->type, memory, (size_t)count, ARRAYS_CLASSES - 1, labels + first);
        for (int64_t i = 0; i < count && *plain; i++)
            if (labels[first + i] > *most) *most = labels[first + i];
    }
done:
    free(memory);
    return status;
}

static tutti_status set_named_classes(struct arrays *arrays, const char *path, const tutti_data_options *options)
{
    tutti_data_info *info = &arrays->collection.info;
    const tutti_status status =
        array_classes_read(&arrays->classes, arrays->pairs.targets, arrays->begins, arrays->collection.labels);
    if (status != TUTTI_OK) return status_context(status, "%s", path);
    info->classes = (int)arrays->classes.count;
    info->class_names = arrays->classes.names;
    info->target_dtype = TUTTI_DTYPE_I32;
    data_note(options, "%s: the %d classes have the names of their labels, '%s' to '%s'", path, info->classes,
        text_printable(info->class_names[0]).text, text_printable(info->class_names[info->classes - 1]).text);
    return TUTTI_OK;
}

static tutti_status set_classes(struct arrays *arrays, const char *path, const tutti_data_options *options)
{
    struct collection *collection = &arrays->collection;
    int32_t most = 0;
    bool plain = true;
    collection->labels = memory_new((size_t)collection->samples, sizeof *collection->labels);
    if (!collection->labels) return TUTTI_NO_MEMORY;
    for (int slot = 0; slot < ARRAYS_SLOTS; slot++) {
        if (!arrays->pairs.targets[slot].name) continue;
        const tutti_status status = read_labels(arrays, slot, &most, &plain);
        if (status != TUTTI_OK) return status;
        if (!plain) return set_named_classes(arrays, path, options);
    }
    arrays->class_names = memory_new((size_t)most + 1, sizeof *arrays->class_names);
    arrays->class_list = memory_new((size_t)most + 1, sizeof *arrays->class_list);
    if (!arrays->class_names || !arrays->class_list) return TUTTI_NO_MEMORY;
    for (int32_t i = 0; i <= most; i++) {
        snprintf(arrays->class_names[i], sizeof *arrays->class_names, "%d", (int)i);
        arrays->class_list[i] = arrays->class_names[i];
    }
    collection->info.classes = (int)most + 1;
    collection->info.class_names = arrays->class_list;
    collection->info.target_dtype = TUTTI_DTYPE_I32;
    return TUTTI_OK;
}

static tutti_status set_targets(
    struct arrays *arrays, const char *path, const struct array_rows *targets, const tutti_data_options *options)
{
    const struct npz_array *y = targets->array;
    const size_t size = npz_type_size(y->type) * (size_t)(y->text > 0 ? y->text : 1);
    const size_t elements = y->bytes / (size_t)y->sizes[0] / size;
    if (y->type == NPZ_F16 || y->type == NPZ_F32 || y->type == NPZ_F64)
        return array_targets_open(&arrays->targets, y, options, &arrays->collection.info);
    if (elements > 1)
        return fail(TUTTI_FORMAT,
            "%s: '%s' has %zu labels for a sample: a class is one integer or text, and numbers to predict are floats",
            path, targets->name, elements);
    return set_classes(arrays, path, options);
}

static tutti_status set_parts(struct arrays *arrays)
{
    struct collection *collection = &arrays->collection;
    const struct array_rows *inputs = arrays->pairs.inputs;
    const bool open = !inputs[2].name && !inputs[3].name;
    for (int slot = 0; slot < ARRAYS_SLOTS; slot++)
        arrays->begins[slot + 1] = arrays->begins[slot] + (inputs[slot].name ? inputs[slot].array->sizes[0] : 0);
    collection->samples = arrays->begins[ARRAYS_SLOTS];
    collection->parts = memory_new((size_t)collection->samples, 1);
    if (!collection->parts) return TUTTI_NO_MEMORY;
    for (int slot = 0; slot < ARRAYS_SLOTS; slot++)
        for (int64_t i = arrays->begins[slot]; i < arrays->begins[slot + 1]; i++)
            collection->parts[i] = (signed char)(open ? PART_OPEN : slot - 1);
    return TUTTI_OK;
}

static enum augment_kind kind_of(const struct arrays *arrays)
{
    const tutti_shape *shape = &arrays->collection.info.shape;
    if (arrays->images) return AUGMENT_IMAGES;
    if (shape->rank != 3) return AUGMENT_NUMBERS;
    return shape->sizes[1] <= AUGMENT_MAX_SIDE && shape->sizes[2] <= AUGMENT_MAX_SIDE ? AUGMENT_GRIDS : AUGMENT_NUMBERS;
}

static tutti_status set_augment(struct arrays *arrays, const char *path, const tutti_data_options *options)
{
    const tutti_shape *shape = &arrays->collection.info.shape;
    arrays->collection.augments = kind_of(arrays);
    const tutti_status status = augment_parse(options->augment, arrays->collection.augments, &arrays->augment);
    arrays->random = augment_is_random(&arrays->augment);
    if (status != TUTTI_OK || !arrays->random || !arrays->images) return status;
    if (shape->sizes[0] != 1 && shape->sizes[0] != 3)
        return fail(
            TUTTI_INVALID, "%s: images of 1 and 3 channels are augmented, not of %d", path, (int)shape->sizes[0]);
    if (shape->sizes[1] > AUGMENT_MAX_SIDE || shape->sizes[2] > AUGMENT_MAX_SIDE)
        return fail(TUTTI_INVALID, "%s: images are too large to be augmented", path);
    return TUTTI_OK;
}

static tutti_status finish(struct arrays *arrays, const char *path, const tutti_data_options *options)
{
    struct collection *collection = &arrays->collection;
    tutti_data_info *info = &collection->info;
    tutti_status status = TUTTI_OK;
    int slot = 0;
    while (!arrays->pairs.inputs[slot].name) slot++;
    TRY(set_parts(arrays));
    TRY(set_layout(arrays, path, arrays->pairs.inputs[slot].array, options));
    TRY(set_input(arrays, path, arrays->pairs.inputs[slot].array));
    TRY(set_targets(arrays, path, &arrays->pairs.targets[slot], options));
    TRY(set_augment(arrays, path, options));
    if (arrays->images)
        TRY(statistics_read(options->normalise, info->channels, info->mean, info->std, &arrays->measure));
    else
        TRY(array_inputs_open(&arrays->standardised, &info->shape, arrays->elements, options->normalise));
    info->kind = "arrays";
    collection->read = read_sample;
    collection->name = name_sample;
    collection->fit = measure;
    collection->describe = describe;
done:
    return status;
}

tutti_status arrays_open(const char *path, const tutti_data_options *options, struct collection **made)
{
    bool found = false;
    *made = NULL;
    struct arrays *arrays = memory_new(1, sizeof *arrays);
    if (!arrays) return TUTTI_NO_MEMORY;
    arrays->collection.free = free_arrays;
    tutti_status status = array_pairs_open(path, &arrays->pairs, &found);
    if (status == TUTTI_OK && found) status = finish(arrays, path, options);
    if (status == TUTTI_OK && found)
        *made = &arrays->collection;
    else
        free_arrays(&arrays->collection);
    return status;
}
