/* CLBlast, loaded with the first product of a GPU-class device, or linked. */
#ifndef RUNTIME_CLBLAST_LIBRARY_H
#define RUNTIME_CLBLAST_LIBRARY_H

#include "base/loaded.h"
#include "runtime/opencl.h"

#include <clblast_c.h>

#ifdef TUTTI_LOADS_CLBLAST
#define CLBLAST_FUNCTIONS(X) \
    X(CLBlastClearCache)     \
    X(CLBlastSgemm)          \
    X(CLBlastSgemmStridedBatched)
LOADED_TABLE(clblast, CLBLAST_FUNCTIONS)
#define CLBlastClearCache clblast_functions.CLBlastClearCache
#define CLBlastSgemm clblast_functions.CLBlastSgemm
#define CLBlastSgemmStridedBatched clblast_functions.CLBlastSgemmStridedBatched

static struct loaded_library clblast_library = { .file = "libclblast.so.1",
    .package = "libclblast1",
    .purpose = "this implementation of matrix products",
    LOADED_ENTRIES(clblast) };
#else
static struct loaded_library clblast_library; /* linked */
#endif

#endif
