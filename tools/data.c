#include "tools/data.h"

#include "base/status.h"
#include "formats/dataset_load.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LINE_TRAINING = 1000, LINE_TEST = 200, LINE_STRIDE = 7919 };

/* Points spread over 0 <= x < 1: the golden ratio's multiples, whose fractions are never crowded. */
static int read_line(void *user, const int64_t *indices, int64_t count, const tutti_buffer *buffers, int buffer_count)
{
    const struct samples *samples = user;
    float *inputs = buffers[0].data, *values = buffers[1].data;
    (void)buffer_count;
    for (int64_t i = 0; i < count; i++) {
        if (indices[i] < 0 || indices[i] >= samples->count) return 1;
        double turns = (double)(samples->first + indices[i]) * 0.6180339887498949;
        inputs[i] = (float)(turns - (double)(int64_t)turns);
        values[i] = 3 * inputs[i] + 2;
    }
    return 0;
}

static int read_images(void *user, const int64_t *indices, int64_t count, const tutti_buffer *buffers, int buffer_count)
{
    struct samples *samples = user;
    void *targets = buffers[1].data;
    (void)buffer_count;
    const int failed = dataset_read(&samples->images, indices, count, buffers[0].data, targets);
    if (failed || !samples->numbers) return failed;
    for (int64_t i = 0; i < count; i++) { /* the labels become floats in their own place */
        int32_t label;
        memcpy(&label, (char *)targets + i * (int64_t)sizeof(label), sizeof(label));
        float value = (float)label;
        memcpy((char *)targets + i * (int64_t)sizeof(label), &value, sizeof(value));
    }
    return 0;
}

static void make_source(struct samples *samples, bool numbers)
{
    bool line = !samples->images.pixels;
    if (!line) samples->count = samples->images.samples;
    samples->numbers = numbers;
    samples->source =
        (tutti_source) { .samples = samples->count, .read = line ? read_line : read_images, .user = samples };
}

/* What a training looks at comes first: val, or test. */
static tutti_status load_own(struct data *data, const char *where, const struct own_options *own)
{
    const tutti_status status = own_open(where, own, &data->own, &data->info);
    if (status != TUTTI_OK) return status;
    const tutti_source *train = tutti_data_source(data->own, TUTTI_DATA_TRAIN);
    if (train) data->train = (struct samples) { .count = train->samples, .part = TUTTI_DATA_TRAIN, .source = *train };
    if (!data_part(data, "val")) (void)data_part(data, "test");
    data->classes = data->info.classes;
    data->numbers = data->info.classes == 0;
    snprintf(data->name, sizeof(data->name), "%s", data->info.kind);
    return TUTTI_OK;
}

struct samples *data_part(struct data *data, const char *part)
{
    tutti_data_part own = strcmp(part, "val") ? TUTTI_DATA_TEST : TUTTI_DATA_VAL;
    if (!strcmp(part, "train")) return data->train.count > 0 ? &data->train : NULL;
    if (!data->own) return &data->test;
    if (!tutti_data_source(data->own, own)) own = TUTTI_DATA_VAL;
    const tutti_source *source = tutti_data_source(data->own, own);
    if (!source) return NULL;
    data->test = (struct samples) { .count = source->samples, .part = own, .source = *source };
    return &data->test;
}

tutti_status data_load(struct data *data, const char *where, bool numbers, const struct own_options *own)
{
    memset(data, 0, sizeof(*data));
    if (!dataset_is_known(where) && strcmp(where, "line")) return load_own(data, where, own);
    data->numbers = numbers;
    if (!strcmp(where, "line")) {
        if (!numbers)
            return fail(TUTTI_INVALID, "\"line\" has no classes: use it with the linear model, or other data");
        data->train.count = LINE_TRAINING;
        data->test.count = LINE_TEST;
        data->test.first = LINE_STRIDE;
        data->channels = data->height = data->width = data->classes = 1;
        snprintf(data->name, sizeof(data->name), "line");
    } else {
        tutti_status status = dataset_load(where, 0, &data->train.images, &data->test.images);
        if (status != TUTTI_OK) return status;
        const struct dataset *images = &data->train.images;
        data->channels = images->channels;
        data->height = images->height;
        data->width = images->width;
        data->classes = images->classes;
        snprintf(data->name, sizeof(data->name), "%s", images->name);
    }
    make_source(&data->train, numbers);
    make_source(&data->test, numbers);
    return TUTTI_OK;
}

tutti_shape data_shape(const struct data *data)
{
    if (data->own) return data->info.shape;
    if (!data->train.images.pixels) return (tutti_shape) { .rank = 1, .sizes = { 1 } };
    return (tutti_shape) { .rank = 3, .sizes = { data->channels, data->height, data->width } };
}

int data_outputs(const struct data *data)
{
    if (!data->numbers) return data->classes;
    return data->own && data->info.target_shape.rank == 1 ? (int)data->info.target_shape.sizes[0] : 1;
}

double data_in_units(const struct data *data, int64_t number, double output)
{
    const tutti_data_info *info = &data->info;
    if (!info->target_mean || number >= data_outputs(data)) return output;
    return output * (double)info->target_std[number] + (double)info->target_mean[number];
}

const tutti_data_info *data_pixels(const struct data *data)
{
    return data->own && data->info.dtype == TUTTI_DTYPE_U8 ? &data->info : NULL;
}

const tutti_shape *data_masks(const struct data *data)
{
    return data->own && data->info.target_shape.rank == 2 ? &data->info.target_shape : NULL;
}

bool data_is_unlabelled(const struct data *data)
{
    return data->own && data->info.classes == 0 && data->info.target_dtype == TUTTI_DTYPE_I32;
}

bool data_mixes(const struct data *data)
{
    return data->own && data->info.target_dtype == TUTTI_DTYPE_F32 && data->info.classes > 0;
}

tutti_status data_check_training(const struct data *data, const char *where)
{
    if (!data->own) return TUTTI_OK;
    if (data->train.count == 0)
        return fail(TUTTI_INVALID,
            "%s: there is nothing to train with: put the images of each class into a folder of its own", where);
    if (data->test.count == 0)
        return fail(TUTTI_INVALID, "%s: no sample is left to look at: %s needs at least two", where,
            data->numbers ? "it" : "each class");
    return TUTTI_OK;
}

tutti_status data_keep(const struct data *data, tutti_trainer *trainer)
{
    if (!data->own) return TUTTI_OK;
    char *text = tutti_data_json(data->own);
    const tutti_status status = text ? tutti_set_metadata(trainer, "data", text) : TUTTI_INTERNAL;
    free(text);
    return status;
}

void data_free(struct data *data)
{
    tutti_data_free(data->own);
    dataset_free(&data->train.images);
    dataset_free(&data->test.images);
}
