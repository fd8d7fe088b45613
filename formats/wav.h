/* Recordings: WAV files (RIFF) with PCM of 8 to 32 bits, floats, A-law or mu-law. */
#ifndef FORMATS_WAV_H
#define FORMATS_WAV_H

#include "tutti.h"

enum { WAV_MAX_CHANNELS = 64, WAV_MOST_RATE = 1 << 20, WAV_MOST_LEVEL = 1 << 20 };

struct wav {
    char *path;
    int descriptor;
    int rate, channels, bits; /* samples of each second; of a sample in the file */
    enum wav_code { WAV_PCM = 1, WAV_FLOATS = 3, WAV_ALAW = 6, WAV_MULAW = 7 } code;
    int64_t frames; /* samples of each channel */
    uint64_t begin; /* bytes before the first one */
};

/* Opens a file and reads its header. Errors: TUTTI_FILE; TUTTI_FORMAT if it is damaged, cut, or coded in another way.
 * Messages begin with the path. */
tutti_status wav_open(const char *path, struct wav *wav);
void wav_close(struct wav *wav);
/* Reads `count` frames from `first` on, which must be there: the mean of the channels, from -1 to 1. */
tutti_status wav_read(const struct wav *wav, int64_t first, int64_t count, float *mono);
/* Whether a file name ends in .wav, in any case. */
bool wav_has_name(const char *name);

#endif
