/* dft by a library's transforms (runtime/fft.h): whole ones, along the last axis or the first one. */

#include "base/numbers.h"
#include "layers/dft/dft_kernels.h"
#include "runtime/fft.h"

static struct fft fft_of(const struct problem *problem)
{
    const struct dft_sizes s = dft_sizes_of(problem);
    const struct dft_attributes *a = dft_attributes(problem->node);
    return (struct fft) { .real = a->form == DFT_REAL_TO_COMPLEX,
        .inverse = a->inverse,
        .length = a->length,
        .count = s.outer * s.inner,
        .in_stride = s.inner,
        .in_distance = s.inner == 1 ? s.in : 1,
        .out_stride = s.inner,
        .out_distance = s.inner == 1 ? s.out : 1,
        .scale = a->scale };
}

static const char *fits(const struct problem *problem)
{
    const struct dft_sizes s = dft_sizes_of(problem);
    const struct dft_attributes *a = dft_attributes(problem->node);
    const int out = a->form == DFT_REAL_TO_COMPLEX ? s.length / 2 + 1 : s.length;
    if (a->form == DFT_COMPLEX_TO_REAL)
        return "clFFT reads the imaginary parts of the frequency 0 and of the one at half the length";
    if (s.in != s.length || s.out != out || a->from != 0 || a->to != 0 || a->doubled)
        return "clFFT takes whole transforms, and no gradients of inverse ones";
    if (s.outer != 1 && s.inner != 1) return "clFFT takes transforms of one distance: along the first or the last axis";
    const struct fft fft = fft_of(problem);
    return fft_refusal(&fft, problem->device);
}

/* Drivers' compilers accept some of the generated kernels and refuse others: where clFFT 2.12.2 writes two numbers at
 * once, it converts a pointer without a cast. */
static void kind(const struct problem *problem, char text[IMPLEMENTATION_KIND])
{
    const struct fft fft = fft_of(problem);
    text[0] = '\0';
    number_append(text, IMPLEMENTATION_KIND, "%lld%s%s %s", (long long)fft.length, fft.real ? " real" : "",
        fft.inverse ? " back" : "", fft.in_stride == 1 ? "rows" : "columns");
}

static void emit(const struct problem *problem, const struct operands *operands, struct launch_list *list)
{
    const struct fft fft = fft_of(problem);
    fft_emit(&fft, operands->inputs[0], operands->outputs[0], list);
}

const struct implementation dft_library = { .name = "clfft", .fits = fits, .kind = kind, .emit = emit };
