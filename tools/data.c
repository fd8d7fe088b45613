#include "tools/data.h"

#include "base/status.h"
#include "formats/dataset_load.h"

#include <stdio.h>
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

tutti_status data_load(struct data *data, const char *where, bool numbers)
{
    memset(data, 0, sizeof(*data));
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
    if (!data->train.images.pixels) return (tutti_shape) { .rank = 1, .sizes = { 1 } };
    return (tutti_shape) { .rank = 3, .sizes = { data->channels, data->height, data->width } };
}

void data_free(struct data *data)
{
    dataset_free(&data->train.images);
    dataset_free(&data->test.images);
}
