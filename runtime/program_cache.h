/* Binaries of programs on disk. A broken, foreign or read-only cache costs time only: nothing here can fail. */
#ifndef RUNTIME_PROGRAM_CACHE_H
#define RUNTIME_PROGRAM_CACHE_H

#include "runtime/device.h"

/* The built program from the cache, or NULL. */
cl_program program_cache_load(struct device *device, const char *text, const char *options);
/* Keeps a program's binary. Call it after the kernels have run: some drivers compile at the first launch. */
void program_cache_save(struct device *device, const char *text, const char *options, cl_program program);
/* A device with its driver, its class and this library's kernels as 32 hexadecimal digits, for files whose content
 * holds for just these. False where there is no memory for it. */
bool device_key(const struct device *device, char key[33]);
/* The same of the device and its driver alone. */
bool driver_key(const struct device *device, char key[33]);

#endif
