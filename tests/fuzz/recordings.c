/* WAV files, read as a whole. */
#include "formats/wav.h"
#include "tests/fuzz/target.h"

#include <math.h>
#include <stdlib.h>

int LLVMFuzzerInitialize(int *count, char ***words)
{
    (void)count;
    (void)words;
    input_open();
    return 0;
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
    return 0;
}
