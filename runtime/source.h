/* The texts of kernels: those of clkernels/, embedded in the library, and those that are made while it runs. */
#ifndef RUNTIME_SOURCE_H
#define RUNTIME_SOURCE_H

#include "runtime/kernels_text.h"

/* The text with this name; NULL: there is none. Of an embedded one, every `#include "x.h"` is replaced. */
const struct kernel_text *source_find(const char *name);
/* Adds a text: that of the embedded `base`, then `body`. Returns its name, "base-" and a hash, which stays valid. Any
 * thread may call it. NULL with a message without memory. */
const char *source_make(const char *base, const char *body);

#endif
