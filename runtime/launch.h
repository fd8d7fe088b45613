/* A launch: one kernel with its arguments and sizes, or a call of a library that enqueues its own kernels. Layers
 * append launches to a list; the list is realised once (programs built in parallel, kernels made, arguments set) and
 * then enqueued as often as wanted. */
#ifndef RUNTIME_LAUNCH_H
#define RUNTIME_LAUNCH_H

#include "runtime/device.h"

#define LAUNCH_ARGUMENTS 36

struct launch_argument {
    enum { ARGUMENT_BUFFER, ARGUMENT_LOCAL, ARGUMENT_BYTES } kind;
    size_t size; /* of bytes or local memory */
    union {
        cl_mem buffer;
        int i;
        long long l;
        float f;
    } value;
    cl_mem instead;   /* of the buffer; NULL: none */
    const char *name; /* of the kernel's parameter; NULL: not told */
};

struct launch {
    const char *source, *kernel_name; /* static strings: a text (runtime/source.h) and a function in it */
    char *options;
    int count;
    struct launch_argument arguments[LAUNCH_ARGUMENTS];
    int dimensions;
    size_t global[3], local[3];
    double flops, bytes; /* least possible, for the profile */
    int fault;           /* 1 + number of an int that does not fit; LAUNCH_ARGUMENTS + 1: too many; 0: none */
    int node;            /* of the plan's graph, set by the plan; -1: none */
    cl_kernel kernel;    /* NULL: until launch_list_realise, or until it is first enqueued */
    /* Instead of a kernel: a library (CLBlast, clFFT) that enqueues its own kernels. All but `call` may be NULL. */
    tutti_status (*call)(struct device *device, void *state, cl_event *event); /* enqueues; `event`: NULL or its end */
    tutti_status (*realise)(struct device *device, void *state);               /* prepares, in launch_list_realise() */
    void (*release)(void *state);                                              /* NULL: free() */
    void *state;                                                               /* the library's, of this call */
    /* Measured by the profile, seconds: since the first launch began, its length, and the least of all runs' lengths.
     */
    double begin, seconds, fastest;
};

/* A point where devices that run the same list on different samples synchronise statistics (--sync-batchnorm): the
 * numbers of a buffer become those of all samples together before the launches after it run. Float [numbers][stride],
 * of which `channels` of each row count. SUMS, 2 numbers: the sum over all devices, scaled by this device's share of
 * the samples, so that it is to these samples what the whole sum is to all of them. MOMENTS, 3 numbers: count, mean,
 * sum of squared deviations from it. */
struct sync_point {
    size_t before; /* the launch that comes next */
    cl_mem buffer;
    enum sync_kind { SYNC_SUMS, SYNC_MOMENTS } kind;
    int64_t channels, stride;
};

struct launch_list {
    struct device *device;
    struct launch *launches;
    size_t count, capacity;
    struct sync_point *sync_points; /* in their order */
    size_t sync_point_count, sync_point_capacity;
    tutti_status status; /* the first failure while appending; later appends do nothing */
    struct launch dummy; /* what appends give after a failure */
};

void launch_list_init(struct launch_list *list, struct device *device);
void launch_list_free(struct launch_list *list);
/* Appends a kernel launch. options as printf. Never NULL: after a failure a dummy is given, which is thrown away.
 * The pointer is valid until the next append. */
struct launch *launch_add(struct launch_list *list, const char *source, const char *kernel, const char *options, ...)
    __attribute__((format(printf, 4, 5)));
/* Appends a call of a library. Takes over `state`, also on failure. */
struct launch *launch_add_call(
    struct launch_list *list, const char *name, tutti_status (*call)(struct device *, void *, cl_event *), void *state);
/* Append arguments in the order of the kernel's parameters; kernels with more than six have a list
 * (runtime/arguments.h). They return the argument, so that it can be named; NULL if there are too many. */
struct launch_argument *launch_buffer(struct launch *launch, cl_mem buffer);
/* A kernel's int. It must fit, else launch_list_realise() fails. */
struct launch_argument *launch_int(struct launch *launch, int64_t value);
struct launch_argument *launch_long(struct launch *launch, int64_t value);
struct launch_argument *launch_float(struct launch *launch, double value);
struct launch_argument *launch_local(struct launch *launch, size_t bytes);
void launch_name(struct launch_argument *argument, const char *name);
/* Several in a row. */
void launch_buffers(struct launch *launch, const cl_mem *buffers, size_t count);
void launch_ints(struct launch *launch, const int64_t *values, size_t count);
#define LAUNCH_BUFFERS(launch, ...) \
    launch_buffers(launch, (const cl_mem[]) { __VA_ARGS__ }, sizeof((const cl_mem[]) { __VA_ARGS__ }) / sizeof(cl_mem))
#define LAUNCH_INTS(launch, ...) \
    launch_ints(launch, (const int64_t[]) { __VA_ARGS__ }, sizeof((const int64_t[]) { __VA_ARGS__ }) / sizeof(int64_t))
/* Global size in work-items and work-group size; every launch states its work-group size. CPU-class kernels with one
 * work-item per group use launch_tasks. */
void launch_grid(
    struct launch *launch, int dimensions, size_t gx, size_t gy, size_t gz, size_t lx, size_t ly, size_t lz);
void launch_tasks(struct launch *launch, size_t x, size_t y, size_t z); /* x*y*z groups of one work-item */
void launch_work(struct launch *launch, double flops, double bytes);
/* Appends a sync point: launches that are appended later run after it. Nothing happens there unless whoever enqueues
 * the list sees to it. */
void launch_sync(struct launch_list *list, enum sync_kind kind, cl_mem buffer, int64_t channels, int64_t stride);
int64_t sync_floats(const struct sync_point *point);

/* Tells whether a global size reaches 65536. The driver need not see two kernels with the same compiled form: POCL
 * compiles one for each work-group size, and another one for such large sizes. */
bool launch_is_large(const struct launch *launch);
/* Finds the smallest grid with the same compiled form. */
void launch_smallest(const struct launch *launch, uint64_t global[3]);

/* Builds programs, makes kernels, sets arguments. Buffers must outlive the list. While programs are loaded ahead and
 * all of the list's are known to be good, each launch waits for its own when it is first enqueued instead. */
tutti_status launch_list_realise(
    struct launch_list *list, void (*progress)(void *user, int built, int total), void *user);
/* Makes one launch ready. Waits for its program where it is being loaded. */
tutti_status launch_realise(struct launch *launch, struct device *device);
/* Has the launch use `buffer` in place of its argument k until the next call; NULL: the argument's own buffer
 * again. */
tutti_status launch_redirect(struct launch *launch, int k, cl_mem buffer);
/* Runs one kernel of each compiled form, so that nothing is compiled later (POCL compiles at first launch), unless the
 * driver's cache is known to have them all. Calls of libraries always run. Buffers' contents are clobbered. */
tutti_status launch_list_warm_up(struct launch_list *list);
/* Enqueues launches first .. last-1 on the device's queue. events: NULL, or one is written for each (profiling). */
tutti_status launch_list_enqueue(struct launch_list *list, size_t first, size_t last, cl_event *events);

#endif
