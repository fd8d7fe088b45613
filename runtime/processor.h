/* What the host's processor can do that OpenCL does not tell: instructions that multiply matrices of bfloat16 numbers.
 * They hold for devices that are this processor (device->host_cpu). */
#ifndef RUNTIME_PROCESSOR_H
#define RUNTIME_PROCESSOR_H

/* NULL, or why vdpbf16ps (AVX512_BF16) cannot be used. */
const char *processor_dots_refusal(void);
/* NULL, or why tiles (AMX with bfloat16) cannot be used. The first call asks the operating system for the permission,
 * for all threads of the process. */
const char *processor_tiles_refusal(void);

#endif
