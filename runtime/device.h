/* A device that was opened: what it can do, its context and queue. And the runtime: the devices that were chosen. */
#ifndef RUNTIME_DEVICE_H
#define RUNTIME_DEVICE_H

#include "base/log.h"
#include "runtime/compute.h"
#include "runtime/opencl.h"

#include <stdatomic.h>

/* How a device multiplies matrices by single instructions, as clkernels/matrix_product.h counts the forms. */
enum matrix_form {
    MATRIX_NONE,
    MATRIX_MMA,
    MATRIX_MFMA,
    MATRIX_WMMA,
    MATRIX_MAD_16,
    MATRIX_MAD_8,
    MATRIX_MMA_LDMATRIX,
    MATRIX_FORMS
};

/* How a CPU computes bf16 dot products, as clkernels/bf16_dots.h counts the forms. */
enum bf16_form {
    BF16_NONE,
    BF16_TILES, /* AMX */
    BF16_DOTS,  /* AVX512_BF16 */
    BF16_PLAIN, /* in OpenCL C, for tests on other processors: TUTTI_BF16_DOTS=plain */
    BF16_FORMS
};

/* How lanes of a subgroup read one another, as clkernels/group.h counts them. */
enum shuffle_form {
    SHUFFLE_NONE,
    SHUFFLE_KHR,     /* cl_khr_subgroup_shuffle_relative */
    SHUFFLE_PTX,     /* NVIDIA's shfl.sync */
    SHUFFLE_PERMUTE, /* AMD's ds_bpermute */
    SHUFFLE_FORMS
};

/* Which programs are built with -cl-opt-disable, for tests: TUTTI_OPTIMISE. */
enum unoptimised { UNOPTIMISED_NONE, UNOPTIMISED_BUT_PRODUCTS, UNOPTIMISED_ALL };

/* The class decides the kernels; an accelerator counts as a GPU; TUTTI_DEVICE_CLASS overrides it. */
enum device_class { DEVICE_CPU, DEVICE_GPU };

/* Read once. A kernel's choice may look at these and at nothing else of the device: never at its vendor. */
struct capabilities {
    enum device_class class;
    char name[128], platform[128], vendor[128], driver[128], version[128];
    char architecture[128]; /* name of devices built alike, for tuning tables: "cpu-16", "sm_90", "gfx1030" */
    int units;              /* compute units */
    int vector_width;       /* floats: 16, 8 or 4; TUTTI_VECTOR_WIDTH forces it. Channels per block of LAYOUT_BLOCKED */
    size_t local_bytes;     /* per work-group */
    bool local_dedicated;   /* CL_LOCAL; else it is ordinary memory */
    size_t allocation_max;  /* bytes of one buffer */
    size_t memory_bytes;    /* that may be used: the device's, or the limit of tutti_runtime_options */
    size_t alignment;       /* bytes, of sub-buffers */
    size_t group_max;       /* work-items in a group */
    bool unified;           /* CPU or GPU, shares the host's memory: buffers are mapped, not copied; see host_cpu */
    bool half, subgroups;
    enum unoptimised unoptimised;
    enum shuffle_form shuffle; /* proven by sums that were right: runtime/shuffle.h */
    struct matrix_ability {
        enum matrix_form form;         /* proven by a product that was right: runtime/matrix.h */
        const char *refusal;           /* why there is none; the checks' own text */
        bool pipelined;                /* gemm_pipelined.cl's product was right, too */
        const char *pipelined_refusal; /* why not */
    } matrix[COMPUTE_TYPES];
    struct bf16_ability {
        enum bf16_form form; /* proven by a product that was right: runtime/matrix.h */
        const char *refusal; /* why there is none; the checks' own text */
    } bf16[COMPUTE_TYPES];
};

struct builder_pool;
struct programs;
struct tuning;
struct store;

/* What is learnt about a device and kept on disk, see store.h. */
enum store_kind {
    STORE_CHECKS,   /* check.c: "passed", "failed REASON" or "trying TIME PROCESS" of an implementation */
    STORE_TUNING,   /* tuning.c: times of a problem's implementations */
    STORE_COMPILED, /* builder.c: hashes of the kernels that the driver has compiled */
    STORE_KINDS
};

/* Faults and habits of drivers, by platform and version, that no query tells; the reasons are in device.c. */
enum quirk {
    QUIRK_KEEPS_CACHE = 1,     /* has a good cache of programs itself: none is kept next to it */
    QUIRK_BUILDS_SERIALLY = 2, /* one kernel at a time in a process: helper processes fill its cache, see builder.h */
    QUIRK_READS_HEADER = 4,    /* a header of a megabyte at each build: clkernels/builtins.h stands in for it */
    QUIRK_DENIES_GROUPS = 8,   /* it tells a largest work-group that is smaller than what runs */
    QUIRK_WAITS_FOR_ALL = 16,  /* asked to wait for one command, it waits for all that are queued */
    QUIRK_UNROLLS_LONG = 32,   /* as a CPU of GPU class, it compiles loops that are not unrolled in half the time */
    QUIRK_LOADS_AHEAD = 64,    /* it moves loads ahead until sums leave registers: IN_ORDER in clkernels/vector.h */
    QUIRK_ADDS_LOCAL = 128,    /* it counts some bytes of local memory more than a kernel has */
};

struct device {
    int index; /* over all platforms */
    cl_platform_id platform;
    cl_device_id id;
    cl_context context;
    cl_command_queue queue; /* in order, with profiling */
    /* Further queues of a device with memory of its own, for copies that run in parallel with its work: of parameters
     * and gradients; of the next batch's samples. NULL until they are wanted. */
    cl_command_queue exchange_queue, prefetch_queue;
    struct capabilities can;
    /* It is the host's CPU, whatever its class: its kernels can read any memory of the process, so buffers may be the
     * host's own pages. can.unified holds for GPUs that share the host's memory, too. */
    bool host_cpu;
    atomic_bool abandoned;             /* a thread is stuck in its driver: nothing of it is freed any more */
    unsigned quirks;                   /* of enum quirk */
    bool asked_cache;                  /* builder.c: whether the driver still has what it compiled is known */
    struct programs *programs;         /* those built so far, see program.h */
    struct store *stores[STORE_KINDS]; /* NULL before the first question */
    struct tuning *tuning;             /* tables of the user and shipped ones; NULL before the first question */
    struct tutti_runtime *runtime;
};

struct tutti_runtime {
    struct log log;
    struct device *devices;
    int count;
    char *cache_folder; /* NULL: none */
    char *tuning;       /* the user's table; NULL: none */
    bool tuning_off;    /* shipped tables alone */
    int threads;
    struct builder_pool *builder; /* builder.c: NULL before the first helper process */
    atomic_bool keeps_helpers;    /* builder_keep() */
};

struct found_device;
/* Context and queue of a device that was found. device->runtime is set before. */
tutti_status device_open(struct device *device, const struct found_device *found);
void device_close(struct device *device); /* takes a zeroed one */
/* Opens one of its other queues unless it is open. */
tutti_status device_open_queue(struct device *device, cl_command_queue *queue);
bool device_has_extension(cl_device_id id, const char *name);
/* Waits until an event is complete, without burning a core. A command that failed is an error; one that takes longer
 * than the calling thread's patience is TUTTI_DEVICE_LOST: its queue is of no use any more. The event stays. */
tutti_status event_wait(struct device *device, cl_event event);
/* Waits for an event while work that follows it is already in the queue. Some drivers, asked to wait for one event,
 * finish all queued work first; this avoids that. It ends a little late. */
tutti_status event_wait_amid(struct device *device, cl_event event);

/* Sets the seconds after which waits of the calling thread give a device up as lost. With 0, the initial value, they
 * wait for ever. Other threads, which may train on the same device meanwhile, are not affected. Returns the previous
 * value. */
double wait_patience(double seconds);

#endif
