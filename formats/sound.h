/* Recordings in files: WAV, read here, and what libsndfile reads in a helper process (decoder.h): FLAC, MP3, Ogg, Opus,
 * AIFF, AU and CAF. */
#ifndef FORMATS_SOUND_H
#define FORMATS_SOUND_H

#include "formats/wav.h"

struct decoder;

struct sound {
    struct wav wav;          /* its path is NULL where a helper decodes */
    struct decoder *decoder; /* or NULL */
    char *path;
    bool broken; /* the helper sent less than was asked for */
    int rate;
    int64_t frames; /* samples of each channel */
};

/* Opens a file and reads its header. Errors: TUTTI_FILE; TUTTI_FORMAT if it is damaged, cut, or coded in another way;
 * TUTTI_UNSUPPORTED where the helper or libsndfile is missing. Messages begin with the path. */
tutti_status sound_open(const char *path, struct sound *sound);
void sound_close(struct sound *sound);
/* Reads `count` frames from `first` on, which must be there: the mean of the channels, from -1 to 1. */
tutti_status sound_read(struct sound *sound, int64_t first, int64_t count, float *mono);
/* Whether a file name ends as those of recordings do, in any case. */
bool sound_has_name(const char *name);

#endif
