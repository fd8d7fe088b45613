/* clFFT, loaded with the first transforms that a GPU-class device may leave to it, or linked. */
#ifndef RUNTIME_CLFFT_LIBRARY_H
#define RUNTIME_CLFFT_LIBRARY_H

#include "base/loaded.h"
#include "runtime/opencl.h"

#include <clFFT.h>

#ifdef TUTTI_LOADS_CLFFT
#define CLFFT_FUNCTIONS(X)    \
    X(clfftBakePlan)          \
    X(clfftCreateDefaultPlan) \
    X(clfftDestroyPlan)       \
    X(clfftEnqueueTransform)  \
    X(clfftGetTmpBufSize)     \
    X(clfftSetLayout)         \
    X(clfftSetPlanBatchSize)  \
    X(clfftSetPlanDistance)   \
    X(clfftSetPlanInStride)   \
    X(clfftSetPlanOutStride)  \
    X(clfftSetPlanPrecision)  \
    X(clfftSetPlanScale)      \
    X(clfftSetResultLocation) \
    X(clfftSetup)             \
    X(clfftTeardown)
LOADED_TABLE(clfft, CLFFT_FUNCTIONS)
#define clfftBakePlan clfft_functions.clfftBakePlan
#define clfftCreateDefaultPlan clfft_functions.clfftCreateDefaultPlan
#define clfftDestroyPlan clfft_functions.clfftDestroyPlan
#define clfftEnqueueTransform clfft_functions.clfftEnqueueTransform
#define clfftGetTmpBufSize clfft_functions.clfftGetTmpBufSize
#define clfftSetLayout clfft_functions.clfftSetLayout
#define clfftSetPlanBatchSize clfft_functions.clfftSetPlanBatchSize
#define clfftSetPlanDistance clfft_functions.clfftSetPlanDistance
#define clfftSetPlanInStride clfft_functions.clfftSetPlanInStride
#define clfftSetPlanOutStride clfft_functions.clfftSetPlanOutStride
#define clfftSetPlanPrecision clfft_functions.clfftSetPlanPrecision
#define clfftSetPlanScale clfft_functions.clfftSetPlanScale
#define clfftSetResultLocation clfft_functions.clfftSetResultLocation
#define clfftSetup clfft_functions.clfftSetup
#define clfftTeardown clfft_functions.clfftTeardown

static struct loaded_library clfft_library = { .file = "libclFFT.so.2",
    .package = "libclfft2",
    .purpose = "this implementation of Fourier transforms",
    LOADED_ENTRIES(clfft) };
#else
static struct loaded_library clfft_library; /* linked */
#endif

#endif
