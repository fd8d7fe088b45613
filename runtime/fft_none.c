/* Instead of fft.c where clFFT is missing. */
#include "runtime/fft.h"

const char *fft_refusal(const struct fft *fft, const struct capabilities *can)
{
    (void)fft, (void)can;
    return "Tutti was built without clFFT";
}

void fft_emit(const struct fft *fft, cl_mem x, cl_mem y, struct launch_list *list)
{
    (void)fft, (void)x, (void)y;
    if (list->status == TUTTI_OK) list->status = fail(TUTTI_UNSUPPORTED, "Tutti was built without clFFT");
}
