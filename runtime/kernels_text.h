/* The embedded OpenCL texts, generated from the .cl files of clkernels/ and layers/ at build time. The last entry's
 * name is NULL. */
#ifndef RUNTIME_KERNELS_TEXT_H
#define RUNTIME_KERNELS_TEXT_H

#include <stdbool.h>

struct kernel_text {
    const char *name, *text;
    bool width, class, shuffle; /* whether it looks at V, at TUTTI_GPU, at SHUFFLE */
    bool any_builtin;           /* it may call built-in functions that clkernels/builtins.h does not declare */
};
extern const struct kernel_text kernel_texts[];

#endif
