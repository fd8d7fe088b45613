/* Log mel spectrograms, by the formulas of torchaudio.transforms.MelSpectrogram: a periodic Hann window, frames around
 * multiples of the hop, reflected at the ends; power; triangles on the HTK scale from 0 Hz to half the rate. */
#ifndef DATA_MEL_H
#define DATA_MEL_H

#include "tutti.h"

/* length: of the window and its Fourier transform, a power of two from 16 on. Several threads may use one at a time. */
struct mel;
tutti_status mel_new(struct mel **mel, int rate, int length, int hop, int bands);
void mel_free(struct mel *mel); /* accepts NULL */
/* Frames of so many samples, which must be more than half the window's length. */
int64_t mel_frames(const struct mel *mel, int64_t samples);
/* Writes log(power + 1e-6), [bands][frames]. */
tutti_status mel_compute(const struct mel *mel, const float *samples, int64_t count, float *spectrogram);

#endif
