/* Recordings at another rate than their own, by the formulas of torchaudio.functional.resample with its defaults: a
 * sinc under a Hann window of 6 zeros on each side, that lets pass what is below 0.99 of half the lower rate. */
#ifndef DATA_RESAMPLE_H
#define DATA_RESAMPLE_H

#include "formats/sound.h"

/* The largest factor between two rates: what a header says decides how much is read and computed. */
enum { RESAMPLE_MOST_RATIO = 100 };
bool resample_is_possible(int from, int to);
/* sound_open() of a recording to be read at this rate; 0: at its own. Errors: also TUTTI_FORMAT if that is impossible.
 */
tutti_status resample_open(const char *path, int rate, struct sound *sound);
/* Samples at the rate `to` of a recording of so many frames. */
int64_t resample_length(int from, int to, int64_t frames);
/* Reads as sound_read() does, from the recording at `rate`, and reads no more of the file than these samples need. The
 * recording is silent outside. The rates must be possible. Errors: those of sound_read(), TUTTI_NO_MEMORY. */
tutti_status resample_read(struct sound *sound, int rate, int64_t first, int64_t count, float *mono);

#endif
