/* What a hostile helper may answer for pictures and recordings of other formats: echo.c answers what the file says. The
 * first byte has the wish, and whether it is a picture; the file begins as such files do. */
#include "data/collection.h"
#include "formats/image.h"
#include "formats/sound.h"
#include "tests/fuzz/target.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST_PIXELS = 1 << 20, MOST_FRAMES = 1 << 16, MOST_BYTES = 1 << 15, START = 12 };

static char path[512];

/* The helper lies next to this program. */
int LLVMFuzzerInitialize(int *count, char ***words)
{
    char helper[512] = "";
    const ssize_t length = readlink("/proc/self/exe", helper, sizeof helper - 16);
    char *slash = length > 0 ? strrchr(helper, '/') : NULL;
    (void)count;
    (void)words;
    if (!slash) abort();
    strcpy(slash, "/fuzz_echo");
    if (access(helper, X_OK) != 0 || setenv("TUTTI_DECODER", helper, 1) != 0) abort();
    input_open();
    input_link("input.flac", path, sizeof path);
    return 0;
}

static tutti_status read_picture(const uint8_t *file, size_t size, unsigned bits)
{
    const struct image_wish wish = {
        .channels = bits & 1 ? 1 : 3, .least_width = bits & 16 ? 4 : 0, .least_height = 4, .mask = bits & 32
    };
    struct image image = { 0 };
    int width, height;
    tutti_status status = image_size(file, size, "picture", &width, &height);
    if (status != TUTTI_OK || width > MOST_PIXELS / height) return status;
    status = image_decode(file, size, "picture", &wish, &image);
    const size_t bytes = (size_t)image.width * (size_t)image.height * (size_t)image.channels;
    if (status == TUTTI_OK && (bytes > image.capacity || image.width != width || image.height != height)) abort();
    volatile unsigned char sum = 0;
    for (size_t i = 0; i < bytes && status == TUTTI_OK; i++) sum = (unsigned char)(sum + image.pixels[i]);
    image_free(&image);
    return status;
}

static tutti_status read_data(void)
{
    static const tutti_data_options kept = {
        .channels = 1, .height = 64, .width = 20, .rate = 8000, .normalise = "-3/2"
    };
    struct collection *recording = NULL;
    float sample[64 * 20];
    int32_t label;
    tutti_status status = audio_open(path, &kept, &recording);
    if (status != TUTTI_OK) return status;
    if (!recording || recording->info.shape.sizes[2] != 20) abort();
    status = recording->read(recording, 0, NULL, sample, &label);
    for (int i = 0; i < 64 * 20 && status == TUTTI_OK; i++)
        if (!isfinite(sample[i])) abort();
    recording->free(recording);
    return status;
}

static tutti_status read_sound(void)
{
    struct sound sound;
    static float samples[MOST_FRAMES];
    tutti_status status = sound_open(path, &sound);
    if (status != TUTTI_OK) return status;
    if (sound.rate < 1 || sound.frames < 1) abort();
    const int64_t frames = sound.frames < MOST_FRAMES ? sound.frames : MOST_FRAMES;
    status = sound_read(&sound, sound.frames - frames, frames, samples);
    for (int64_t i = 0; i < frames && status == TUTTI_OK; i++)
        if (!isfinite(samples[i])) abort();
    sound_close(&sound);
    return status;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const starts[] = { "RIFF\0\0\0\0WEBP", "II\x2a\0\0\0\0\0\0\0\0",
        "\0\0\0\x18"
        "ftypavif",
        "\0\0\0\x18"
        "ftypheic" };
    static uint8_t file[MOST_BYTES];
    if (size < 1 + START || size > MOST_BYTES) return 0;
    memcpy(file, data + 1, size - 1);
    if (data[0] & 128) {
        (void)input_path(data + 1, size - 1);
        if (read_sound() != TUTTI_OK) check_message();
        if (read_data() != TUTTI_OK) check_message();
        return 0;
    }
    memcpy(file, starts[data[0] >> 1 & 3], START);
    if (read_picture(file, size - 1, data[0]) != TUTTI_OK) check_message();
    return 0;
}
