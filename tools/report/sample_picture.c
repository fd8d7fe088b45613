#include "tools/report/sample_picture.h"

#include "base/base64.h"
#include "base/memory.h"
#include "formats/png.h"
#include "tools/report/page.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { PICTURE_SIDE = 128, PIXELATED_SIDE = 64, LARGEST_ROOM = 1 << 26 };

/* Values from the least to the largest are shown as black to white. */
struct sample {
    int channels, height, width;
    int across, down; /* so many values become a pixel */
    const void *values;
    bool bytes;
    double least, most;
};

/* ---------------------------------------------------------------------------------------------------- room ---- */

bool sample_room_make(struct sample_room *room, const struct report_facts *facts, int count)
{
    size_t bytes = facts->dtype == TUTTI_DTYPE_U8 ? 1 : sizeof(float), all, targets;
    *room = (struct sample_room) { 0 };
    for (int i = 0; i < facts->shape.rank; i++)
        if (facts->shape.sizes[i] < 1 || !size_multiply(bytes, (size_t)facts->shape.sizes[i], &bytes)) return false;
    if (!size_multiply(bytes, (size_t)count, &all) || all > LARGEST_ROOM) return false;
    if (!size_multiply(facts->target_bytes, (size_t)count, &targets) || targets > LARGEST_ROOM) return false;
    room->values = memory_new(all, 1);
    room->targets = memory_new(targets ? targets : 1, 1);
    room->sample_bytes = bytes, room->target_bytes = facts->target_bytes;
    room->buffers[0] = (tutti_buffer) { "input", facts->dtype, room->values, bytes };
    room->buffers[1] = (tutti_buffer) { "targets", facts->target_dtype, room->targets, facts->target_bytes };
    return room->values && room->targets;
}

void sample_room_free(struct sample_room *room)
{
    free(room->values);
    free(room->targets);
}

/* ------------------------------------------------------------------------------------------------- picture ---- */

bool sample_is_picture(const struct report_facts *facts)
{
    return facts->shape.rank == 3;
}

bool sample_has_mask(const struct report_facts *facts)
{
    const size_t labels = facts->target_bytes / sizeof(int32_t);
    return sample_is_picture(facts) && facts->target_dtype == TUTTI_DTYPE_I32 && labels > 1 &&
        labels == (size_t)facts->shape.sizes[1] * (size_t)facts->shape.sizes[2];
}

unsigned sample_colour(int64_t class_number)
{
    static const unsigned colours[SAMPLE_COLOURS] = { 0x2f7fc1, 0xe0701e, 0x1fa37c, 0xc05aa0, 0xc4a01a, 0x7a72e0,
        0x8a939c, 0x20a5b4 };
    return colours[class_number % SAMPLE_COLOURS];
}

/* Pictures keep their sides' ratio; other arrays, such as spectrograms, have none. */
static struct sample sample_of(const struct report_facts *facts, const void *values)
{
    const tutti_shape *shape = &facts->shape;
    struct sample sample = { .channels = (int)shape->sizes[0],
        .height = (int)shape->sizes[1],
        .width = (int)shape->sizes[2],
        .values = values,
        .bytes = facts->dtype == TUTTI_DTYPE_U8 };
    sample.across = (int)divide_up(sample.width, PICTURE_SIDE);
    sample.down = (int)divide_up(sample.height, PICTURE_SIDE);
    if (sample.channels == 3 || sample.bytes)
        sample.across = sample.down = sample.across > sample.down ? sample.across : sample.down;
    return sample;
}

static double sample_value(const struct sample *sample, int64_t at)
{
    return sample->bytes ? ((const unsigned char *)sample->values)[at] : (double)((const float *)sample->values)[at];
}

static void find_range(struct sample *sample)
{
    const int64_t count = (int64_t)sample->channels * sample->height * sample->width;
    sample->least = INFINITY, sample->most = -INFINITY;
    for (int64_t i = 0; i < count; i++) {
        const double value = sample_value(sample, i);
        if (!isfinite(value)) continue;
        sample->least = fmin(sample->least, value), sample->most = fmax(sample->most, value);
    }
    if (sample->bytes || (sample->least >= 0 && sample->most <= 1))
        sample->least = 0, sample->most = sample->bytes ? 255 : 1;
    if (!(sample->least < sample->most)) sample->least = 0, sample->most = 1;
}

/* The mean of the values that become one, 0 to 255. */
static unsigned char shown_pixel(const struct sample *sample, int channel, int x, int y)
{
    double sum = 0;
    int count = 0;
    for (int v = y * sample->down; v < (y + 1) * sample->down && v < sample->height; v++)
        for (int u = x * sample->across; u < (x + 1) * sample->across && u < sample->width; u++, count++)
            sum += sample_value(sample, ((int64_t)channel * sample->height + v) * sample->width + u);
    const double value = (sum / (count ? count : 1) - sample->least) / (sample->most - sample->least);
    return isfinite(value) ? (unsigned char)(255 * fmin(fmax(value, 0), 1) + 0.5) : 0;
}

/* Half of the picture, half of the colour of the class at the pixel's corner. */
static unsigned char masked_pixel(const struct sample *sample, const int32_t *mask, int channel, int x, int y, int own)
{
    const int32_t label = mask[(int64_t)y * sample->down * sample->width + (int64_t)x * sample->across];
    const int colour = (int)(sample_colour(label < 0 ? 0 : label) >> (16 - 8 * channel) & 255);
    return (unsigned char)(label < 0 ? own : (own + colour) / 2);
}

tutti_status sample_picture(
    struct json_line *line, const struct report_facts *facts, const void *values, const int32_t *mask)
{
    struct sample sample = sample_of(facts, values);
    const int channels = sample.channels == 3 || mask ? 3 : 1;
    const int width = (int)divide_up(sample.width, sample.across), height = (int)divide_up(sample.height, sample.down);
    unsigned char *file = NULL, *pixels = memory_new((size_t)width * (size_t)height, (size_t)channels);
    size_t size = 0, at = 0;
    if (!pixels) return TUTTI_NO_MEMORY;
    find_range(&sample);
    for (int y = 0; y < height; y++)
        for (int x = 0; x < width; x++)
            for (int c = 0; c < channels; c++, at++) {
                pixels[at] = shown_pixel(&sample, sample.channels == 3 ? c : 0, x, y);
                if (mask) pixels[at] = masked_pixel(&sample, mask, c, x, y, pixels[at]);
            }
    const tutti_status status = png_encode(pixels, width, height, channels, &file, &size);
    free(pixels);
    if (status != TUTTI_OK) return status;
    struct text png = { 0 };
    base64_append(&png, file, size);
    free(file);
    page_member(line, "png", &png);
    json_line_print(line, "small %hhd", sample.height <= PIXELATED_SIDE && sample.width <= PIXELATED_SIDE);
    return TUTTI_OK;
}

void sample_name(struct json_line *line, const struct report_facts *facts, tutti_data_part part, int64_t index)
{
    char name[1100];
    if (!facts->opened || tutti_data_name(facts->opened, part, index, name, sizeof(name)) != TUTTI_OK)
        snprintf(name, sizeof(name), "sample %lld", (long long)index);
    const char *last = strrchr(name, '/');
    json_line_text(line, "name", last && last[1] ? last + 1 : name);
}
