/* How an OpenCL layer of the tests begins: included once, by the one file of a shared module that the loader is given
 * by OPENCL_LAYERS (CL/cl_layer.h). Calls that the layer does not replace go straight through. */
#ifndef TESTS_OPENCL_LAYER_H
#define TESTS_OPENCL_LAYER_H

#define CL_TARGET_OPENCL_VERSION 300
#include <CL/cl_layer.h>
#include <string.h>

static struct _cl_icd_dispatch mine;        /* what the program calls */
static const struct _cl_icd_dispatch *next; /* what is below */

/* The layer's own: replaces entries of `mine`. */
static void layer_start(void);

__attribute__((visibility("default"))) CL_API_ENTRY cl_int CL_API_CALL clGetLayerInfo(
    cl_layer_info name, size_t size, void *value, size_t *size_ret)
{
    const cl_layer_api_version version = CL_LAYER_API_VERSION_100;
    if (name != CL_LAYER_API_VERSION || (value && size < sizeof(version))) return CL_INVALID_VALUE;
    if (value) memcpy(value, &version, sizeof(version));
    if (size_ret) *size_ret = sizeof(version);
    return CL_SUCCESS;
}

__attribute__((visibility("default"))) CL_API_ENTRY cl_int CL_API_CALL clInitLayer(
    cl_uint count, const struct _cl_icd_dispatch *below, cl_uint *count_ret, const struct _cl_icd_dispatch **mine_ret)
{
    const size_t entries = sizeof(mine) / sizeof(void *);
    if (!below || !count_ret || !mine_ret) return CL_INVALID_VALUE;
    next = below;
    memcpy(&mine, below, (count < entries ? count : entries) * sizeof(void *));
    layer_start();
    *mine_ret = &mine;
    *count_ret = (cl_uint)entries;
    return CL_SUCCESS;
}

#endif
