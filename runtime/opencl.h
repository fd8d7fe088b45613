/* The OpenCL headers, with one version asked for, and checked calls. */
#ifndef RUNTIME_OPENCL_H
#define RUNTIME_OPENCL_H

#define CL_TARGET_OPENCL_VERSION 120
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#include <CL/cl.h>

#include "base/status.h"

const char *opencl_error_name(cl_int error); /* "CL_OUT_OF_RESOURCES" */
/* Turns an OpenCL error into a status with a message: name of the error, what was done, likely cause, next step. */
tutti_status opencl_fail(cl_int error, const char *file, int line, const char *what, ...)
    __attribute__((format(printf, 4, 5)));
/* CL_TRY(clFinish(queue), "waiting for %s", name): jumps to done on an error; needs `tutti_status status`. */
#define CL_TRY(call, ...)                                                         \
    do {                                                                          \
        cl_int cl_try_error_ = (call);                                            \
        if (cl_try_error_ != CL_SUCCESS) {                                        \
            status = opencl_fail(cl_try_error_, __FILE__, __LINE__, __VA_ARGS__); \
            goto done;                                                            \
        }                                                                         \
    } while (0)

#endif
