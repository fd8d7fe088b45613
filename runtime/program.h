/* Programs: one per kernel family and set of build options, built once per device, kept on disk where that pays. */
#ifndef RUNTIME_PROGRAM_H
#define RUNTIME_PROGRAM_H

#include "runtime/device.h"

struct program_request {
    const char *source;  /* name of a text (runtime/source.h) */
    const char *options; /* "-DR=3 -DSTRIDE=1"; -cl-std=CL1.2 is added, and -DV=<vector width>, -DTUTTI_GPU=0/1 where
                          * the text looks at them */
};
/* All options that a program is built with; the caller frees them. NULL where there is no memory. */
char *program_options(const struct device *device, const struct program_request *request);
/* Builds all that are not built yet, in parallel; a failure names kernel family, device and the log's first error.
 * progress may be NULL; it is called from the threads that build, one call at a time. */
tutti_status program_build_all(struct device *device, const struct program_request *requests, int count,
    void (*progress)(void *user, int built, int total), void *user);
/* Begins to build the programs in a thread of its own, one after another, and returns. Whoever needs one of them
 * meanwhile waits for it. For programs that the driver has in its cache: the first one that takes longer than
 * PROGRAM_LOADED_WITHIN ends it. */
void programs_load_ahead(struct device *device, const struct program_request *requests, int count);
/* Tells whether some programs are still to be loaded. */
bool programs_are_loading(struct device *device);
/* Returns the seconds that building took, without waiting for a processor on a busy machine; 0 where it is not
 * built. */
double program_seconds(struct device *device, const struct program_request *request);
/* A program that a driver has in its cache is loaded in a tenth of this, and compiled in thrice this. */
#define PROGRAM_LOADED_WITHIN 0.25
/* Makes a new kernel object, which is the caller's; builds the program where needed. */
tutti_status program_kernel(
    struct device *device, const struct program_request *request, const char *kernel, cl_kernel *made);

tutti_status programs_new(struct device *device); /* called when a device is opened */
void programs_free(struct device *device);
/* Keeps programs that were built from source in the cache on disk. Call it after the kernels have run once. */
void programs_save(struct device *device);

#endif
