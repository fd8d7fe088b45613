/* Fourier transforms of GPU-class devices by a library: clFFT (https://github.com/clMathLibraries/clFFT), if Tutti was
 * built with it. Lengths have the factors 2, 3, 5, 7, 11 and 13 alone. */
#ifndef RUNTIME_FFT_H
#define RUNTIME_FFT_H

#include "runtime/launch.h"

/* Transforms of `length` elements. Complex elements are two floats; strides and distances count elements. */
struct fft {
    bool real; /* real elements, forward, whose results are the first length / 2 + 1 */
    bool inverse;
    int64_t length, count;
    int64_t in_stride, in_distance;   /* between elements of a transform, and between transforms */
    int64_t out_stride, out_distance; /* the same of the result */
    float scale;
};

/* NULL, or why the library does not take these transforms on this device. */
const char *fft_refusal(const struct fft *fft, const struct capabilities *can);
/* Appends the call. The library's plan is made by launch_list_realise(), and freed with the list. */
void fft_emit(const struct fft *fft, cl_mem x, cl_mem y, struct launch_list *list);

#endif
