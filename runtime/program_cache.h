/* Binaries of programs on disk. A broken, foreign or read-only cache costs time only: nothing here can fail. */
#ifndef RUNTIME_PROGRAM_CACHE_H
#define RUNTIME_PROGRAM_CACHE_H

#include "runtime/device.h"

/* Loads the built program from the cache; NULL where that is not possible. */
cl_program program_cache_load(struct device *device, const char *text, const char *options);
/* Keeps a program's binary. Call it after the kernels have run: some drivers compile at the first launch. */
void program_cache_save(struct device *device, const char *text, const char *options, cl_program program);
/* Makes a key of 32 hexadecimal digits from the device, its driver, its class and this library's kernels, for files
 * that are valid for just these. False where there is no memory for it. */
bool device_key(const struct device *device, char key[33]);
/* Makes a key from the device and its driver alone, in the same way. */
bool driver_key(const struct device *device, char key[33]);

#endif
