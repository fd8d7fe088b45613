/* The fault-injecting OpenCL layer, and how a test steers it. The loader puts it between the program and all drivers
 * (OPENCL_LAYERS=/path/to/layer.so, ocl-icd 2.3 or later) and skips in silence a layer that it cannot load: a test asks
 * for the symbol below, or looks for the line "layer: ..." on standard error.
 *
 * A test program opens the loaded layer (dlopen with RTLD_NOLOAD), takes the symbol "fault_layer" and gives an order
 * whenever it likes. Another program is given one order by its environment:
 *
 *   LAYER_DEVICE=1         the device, in the order in which contexts were made; without it: all
 *   LAYER_KIND=launch      of LAYER_KINDS; without it: calls of every kind are counted together
 *   LAYER_AT=37            the 37th such call
 *   LAYER_ACTION=lose      of LAYER_ACTIONS
 *   LAYER_CODE=-4          the error that failing calls give, else CL_OUT_OF_RESOURCES
 *   LAYER_FACTOR=3         how much slower a device becomes
 */
#ifndef TESTS_FAULTS_LAYER_H
#define TESTS_FAULTS_LAYER_H

#include <CL/cl.h>

/* X(name, text): the calls that can be broken. */
#define LAYER_KINDS(X)                                                                  \
    X(OPEN, "open")         /* clCreateContext and clCreateCommandQueue */              \
    X(PROGRAM, "program")   /* clCreateProgramWithSource and ...WithBinary */           \
    X(BUILD, "build")       /* clBuildProgram */                                        \
    X(KERNEL, "kernel")     /* clCreateKernel */                                        \
    X(ARGUMENT, "argument") /* clSetKernelArg */                                        \
    X(QUERY, "query")       /* clGet...Info of programs, builds, kernels, groups */     \
    X(ALLOCATE, "allocate") /* clCreateBuffer */                                        \
    X(CUT, "cut")           /* clCreateSubBuffer */                                     \
    X(FILL, "fill")         /* clEnqueueFillBuffer; from here on: what a queue takes */ \
    X(COPY, "copy")         /* clEnqueueCopyBuffer */                                   \
    X(WRITE, "write")       /* clEnqueueWriteBuffer */                                  \
    X(READ, "read")         /* clEnqueueReadBuffer */                                   \
    X(MAP, "map")           /* clEnqueueMapBuffer */                                    \
    X(UNMAP, "unmap")       /* clEnqueueUnmapMemObject */                               \
    X(LAUNCH, "launch")     /* clEnqueueNDRangeKernel */                                \
    X(MARKER, "marker")     /* clEnqueueMarkerWithWaitList; so far */                   \
    X(FLUSH, "flush")       /* clFlush and clFinish */                                  \
    X(WAIT, "wait")         /* clWaitForEvents */

enum layer_kind {
#define LAYER_ENUM(name, text) LAYER_##name,
    LAYER_KINDS(LAYER_ENUM)
#undef LAYER_ENUM
        LAYER_KIND_COUNT,
    LAYER_ANY = LAYER_KIND_COUNT
};

/* X(name, text): what happens to the call that an order means. */
#define LAYER_ACTIONS(X)                                                                                            \
    X(NONE, "none")               /* nothing; calls are counted */                                                  \
    X(FAIL, "fail")               /* it does nothing and gives an error */                                          \
    X(REFUSE, "refuse")           /* so does it, and every later call of its kind on the device */                  \
    X(LOSE, "lose")               /* so does it, and every later call on the device */                              \
    X(NAN, "nan")                 /* the numbers that it wrote become NaN */                                        \
    X(FINITE, "finite")           /* they become other numbers */                                                   \
    X(HANG_CALL, "hang_call")     /* it does not return until the layer is told to let go; then it does its work */ \
    X(HANG_DEVICE, "hang_device") /* it returns; the device does not get past it until then. FILL to MARKER */      \
    X(SLOW, "slow")               /* from it on, waits take so many times as long as the device has worked */

/* What the compiler says of a program whose build failed by an order, after lines that say nothing. */
#define LAYER_LOG "program.cl:7:3: error: the layer does not like this kernel"

enum layer_action {
#define LAYER_ENUM(name, text) LAYER_##name,
    LAYER_ACTIONS(LAYER_ENUM)
#undef LAYER_ENUM
        LAYER_ACTION_COUNT
};

struct layer_order {
    cl_device_id device; /* NULL: all */
    enum layer_kind kind;
    long at; /* from 1, counted since the order was given */
    enum layer_action action;
    cl_int code; /* 0: CL_OUT_OF_RESOURCES */
    double factor;
};

struct fault_layer {
    /* The order replaces the last one and lets its hung calls go. NULL: none. */
    void (*give)(const struct layer_order *order);
    /* Another order besides those that were given, up to 8 in all; its calls are counted from now on. */
    void (*add)(const struct layer_order *order);
    /* Lets hung calls and devices go; the orders stay done. */
    void (*let_go)(void);
    long (*calls)(enum layer_kind kind); /* on the device of give()'s order, since then */
    /* Calls that were broken. A wrong number where there was none to make wrong does not count. */
    long (*broken)(void);
};

#endif
