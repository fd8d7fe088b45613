/* The texts of kernels: those of clkernels/ and layers/, embedded in the library, and those that are made while it
 * runs. */
#ifndef RUNTIME_SOURCE_H
#define RUNTIME_SOURCE_H

#include "runtime/kernels_text.h"

/* Finds the text with this name; NULL if there is none. In an embedded text, every `#include "x.h"` is replaced. */
const struct kernel_text *source_find(const char *name);
/* Adds a text that consists of the embedded text `base` and `body`. Returns its name, "base-" and a hash, which stays
 * valid. base: NULL, for a body that a program gave: it can call all built-in functions of OpenCL C. Any thread may
 * call it. NULL with a message without memory. */
const char *source_make(const char *base, const char *body);

#endif
