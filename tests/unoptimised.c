/* A layer that builds every program without optimisation, also those of CLBlast and clFFT, to which the library has no
 * options to give: most of the time of their many large kernels. TUTTI_OPTIMISE=off does the same for Tutti's own. */
#include "tests/opencl_layer.h" /* first: it says which OpenCL */

#include <stdio.h>
#include <stdlib.h>

#define UNOPTIMISED "-cl-opt-disable"

static CL_API_ENTRY cl_int CL_API_CALL build_program(cl_program program, cl_uint count, const cl_device_id *devices,
    const char *options, void(CL_CALLBACK *notify)(cl_program, void *), void *user)
{
    char *all = NULL;
    if (options && strstr(options, UNOPTIMISED))
        return next->clBuildProgram(program, count, devices, options, notify, user);
    if (asprintf(&all, "%s " UNOPTIMISED, options ? options : "") < 0) return CL_OUT_OF_HOST_MEMORY;
    const cl_int error = next->clBuildProgram(program, count, devices, all, notify, user);
    free(all);
    return error;
}

static void layer_start(void)
{
    mine.clBuildProgram = build_program;
}
