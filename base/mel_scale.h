/* How recordings become log mel spectrograms: data are read by it, and nodes of ONNX files are made of it. */
#ifndef BASE_MEL_SCALE_H
#define BASE_MEL_SCALE_H

enum { MEL_BANDS = 64, MEL_WINDOW_HOPS = 4 }; /* hops in a window */
/* What is added to the power before its logarithm. */
#define MEL_LEAST_POWER 1e-6f

/* Samples of a window, and of its Fourier transform: about 64 ms, a power of two from 16 on. */
int mel_window_length(int rate);
/* The window at a sample: a periodic Hann window. */
float mel_window_at(int sample, int length);

/* A band: a triangle over frequencies, in hertz. Corners are equally far from one another on the HTK scale. */
struct mel_triangle {
    double low, middle, high;
};
struct mel_triangle mel_triangle_of(int band, int bands, int rate);
/* The weight of a frequency; 0 outside. */
float mel_weight(const struct mel_triangle *triangle, double hertz);

#endif
