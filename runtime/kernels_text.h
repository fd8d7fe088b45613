/* The embedded OpenCL texts, generated from clkernels/ at build time. The last entry's name is NULL. */
#ifndef RUNTIME_KERNELS_TEXT_H
#define RUNTIME_KERNELS_TEXT_H

struct kernel_text {
    const char *name, *text;
};
extern const struct kernel_text kernel_texts[];

#endif
