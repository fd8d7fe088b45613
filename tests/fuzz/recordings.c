/* WAV files, read as a whole, and as a recording without a class: by their own rate, or as a network was trained. */
#include "data/collection.h"
#include "formats/wav.h"
#include "tests/fuzz/target.h"

#include <math.h>
#include <stdlib.h>

static char path[512];

int LLVMFuzzerInitialize(int *count, char ***words)
{
    (void)count;
    (void)words;
    input_open();
    input_link("input.wav", path, sizeof path);
    return 0;
}

static tutti_status read_data(bool trained)
{
    const tutti_data_options kept = { .channels = 1, .height = 64, .width = 20, .rate = 8000, .normalise = "-3/2" };
    struct collection *recording = NULL;
    int32_t label;
    tutti_status status = audio_open(path, trained ? &kept : &(tutti_data_options) { .size = 0 }, &recording);
    if (status != TUTTI_OK) return status;
    if (!recording || recording->samples != 1 || recording->info.classes != 0) abort();
    const tutti_shape *shape = &recording->info.shape;
    if (shape->rank != 3 || shape->sizes[1] != 64 || (trained && shape->sizes[2] != 20)) abort();
    const size_t numbers = 64 * (size_t)shape->sizes[2];
    float *sample = malloc(numbers * sizeof *sample);
    if (!sample || recording->fit(recording, &(signed char) { TUTTI_DATA_TEST }) != TUTTI_OK) abort();
    status = recording->read(recording, 0, NULL, sample, &label);
    for (size_t i = 0; i < numbers && status == TUTTI_OK; i++)
        if (!isfinite(sample[i])) abort();
    free(sample);
    recording->free(recording);
    return status;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct wav wav;
    tutti_status status = wav_open(input_path(data, size), &wav);
    if (status == TUTTI_OK) {
        const size_t frames = (size_t)wav.frames;
        if (wav.frames < 1 || frames > size || wav.channels < 1 || wav.rate < 1) abort();
        float *samples = malloc(frames * sizeof *samples);
        if (!samples) abort();
        status = wav_read(&wav, 0, wav.frames, samples);
        for (size_t i = 0; i < frames && status == TUTTI_OK; i++)
            if (!isfinite(samples[i])) abort();
        if (wav_read(&wav, wav.frames - 1, 1, samples) != TUTTI_OK && status == TUTTI_OK) abort();
        free(samples);
        wav_close(&wav);
    }
    if (status != TUTTI_OK) check_message();
    if (read_data(size & 1) != TUTTI_OK) check_message();
    return 0;
}
