/* Tutti: trains one neural network on every OpenCL device of a machine, whoever made them.
 *
 * Conventions of this header
 *   Shapes     row-major, int64_t sizes; images are N, C, H, W. A shape given to tutti_input() is that of one sample:
 *              the batch dimension is implied everywhere and never written.
 *   Ownership  every tutti_*_new/open/compile has its tutti_*_free/close, which takes NULL. Arrays that are passed in
 *              are read during the call only, unless a comment says otherwise; strings are copied.
 *   Options    structs passed by pointer; NULL and zeroed members mean the defaults that their comments give.
 *   Errors     functions return a tutti_status, or a handle that is NULL (a tensor whose id is negative) on failure.
 *              tutti_message() explains the last failure of the calling thread. Nothing prints, exits or aborts.
 *              Builder functions keep the first error in the network; tutti_compile() reports it.
 *   Threads    several runtimes may live in one process, and several threads may make, use and free networks and
 * trainers on one runtime. A network and what was made from it is used by one thread at a time; tutti_cancel() alone
 * may be called from any thread. tutti_close() comes after all other uses of the runtime.
 */
#ifndef TUTTI_H
#define TUTTI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define TUTTI_API __attribute__((visibility("default")))
#else
#define TUTTI_API
#endif

#define TUTTI_VERSION_MAJOR 0
#define TUTTI_VERSION_MINOR 1
#define TUTTI_VERSION_PATCH 0

/* ------------------------------------------------------------------------------------------------ statuses ---- */

/* X(name, number, sentence). Numbers are frozen: new ones are added at the end. */
#define TUTTI_STATUS_TABLE(X)                                                \
    X(OK, 0, "success")                                                      \
    X(INVALID, 1, "an argument is out of its range or contradicts another")  \
    X(SHAPE, 2, "the shapes of a layer's inputs do not fit together")        \
    X(NO_MEMORY, 3, "the host has no memory left")                           \
    X(NO_PLATFORM, 4, "no OpenCL platform or device was found")              \
    X(NO_DEVICE, 5, "the device asked for does not exist")                   \
    X(DEVICE, 6, "an OpenCL call failed")                                    \
    X(BUILD, 7, "a kernel did not compile on a device")                      \
    X(DEVICE_MEMORY, 8, "the device has no room for what was asked")         \
    X(DEVICE_LOST, 9, "a device failed for good")                            \
    X(WRONG_RESULT, 10, "a device computes wrong numbers")                   \
    X(FILE, 11, "a file cannot be read or written")                          \
    X(FORMAT, 12, "a file's content is not what it claims to be")            \
    X(MISMATCH, 13, "a checkpoint belongs to another network or training")   \
    X(NOT_FINITE, 14, "the loss is no longer a finite number")               \
    X(CANCELLED, 15, "cancelled by the caller")                              \
    X(UNSUPPORTED, 16, "no implementation on this device takes the problem") \
    X(INTERNAL, 17, "an internal contract was broken: please report it")     \
    X(HOST_LOST, 18, "another host does not answer")                         \
    X(DEVICE_RESOURCES, 19, "a device has no resources for a command, or stopped it")

typedef enum tutti_status {
#define TUTTI_STATUS_ENUM(name, number, sentence) TUTTI_##name = number,
    TUTTI_STATUS_TABLE(TUTTI_STATUS_ENUM)
#undef TUTTI_STATUS_ENUM
} tutti_status;

/* The name ("TUTTI_FILE") and the sentence of a status; static strings. */
TUTTI_API const char *tutti_status_name(tutti_status status);
TUTTI_API const char *tutti_status_text(tutti_status status);

/* "0.1.0"; a static string. */
TUTTI_API const char *tutti_version(void);

/* ------------------------------------------------------------------------------------------ runtime, devices ---- */

typedef struct tutti_runtime tutti_runtime;

typedef enum tutti_log_level {
    TUTTI_LOG_DEFAULT,
    TUTTI_LOG_ERROR,
    TUTTI_LOG_WARN,
    TUTTI_LOG_INFO,
    TUTTI_LOG_DEBUG
} tutti_log_level;

typedef struct tutti_runtime_options {
    const char *devices; /* as TUTTI_DEVICES: "0,2", a part of a name, "all", "gpu", "cpu"; NULL: TUTTI_DEVICES, else
                            every GPU and accelerator, else the CPU */
    tutti_log_level log_level; /* 0: TUTTI_LOG (error, warn, info, debug), else warnings and errors */
    void (*log)(void *user, tutti_log_level level, const char *line); /* NULL: standard error */
    void *log_user;
    const char *cache_folder; /* NULL: TUTTI_CACHE_DIR, else $XDG_CACHE_HOME/tutti, else ~/.cache/tutti; "": no cache */
    size_t memory_limit;      /* bytes of each device's memory that may be used; 0: what the device has */
    int threads;              /* host threads; 0: the number of processors */
    const char *tuning;       /* a table of kernels' choices, as `tutti tune` writes it. NULL: TUTTI_TUNING, else
                                 $XDG_CONFIG_HOME/tutti/tuning.txt or ~/.config/tutti/tuning.txt where there is one; "off":
                                 neither it nor what was measured on this machine, the shipped choice alone */
    uint64_t reserved[7];
} tutti_runtime_options;

/* Opens the chosen devices. NULL on failure, see tutti_message(NULL).
 *
 * Where a driver compiles one kernel at a time (POCL), tutti_compile() and first uses of other batch sizes start helper
 * processes that compile side by side, and wait for them: a SIGCHLD handler of the program sees them end. They inherit
 * the environment and no open file. TUTTI_HELPER=off does without. */
TUTTI_API tutti_runtime *tutti_open(const tutti_runtime_options *options);
/* Everything made from the runtime must be freed before. */
TUTTI_API void tutti_close(tutti_runtime *runtime);

/* The text of the calling thread's last failure: what was asked, what was found, what to do. Never NULL; valid until
 * this thread's next failure. The argument is not used yet and may be NULL. */
TUTTI_API const char *tutti_message(const tutti_runtime *runtime);

typedef struct tutti_device_info {
    int index;        /* over all platforms, stable while drivers and hardware stay; what --devices takes */
    const char *name; /* as the driver gives it; valid until tutti_close() or tutti_devices_free() */
    const char *platform;
    const char *driver;       /* driver version */
    const char *device_class; /* "cpu" or "gpu" (accelerators count as gpu): decides the kernels */
    int compute_units;
    int vector_width; /* floats per vector in the kernels of a CPU-class device */
    uint64_t memory_bytes, local_bytes, allocation_bytes;
    bool half, subgroups, chosen; /* fp16 arithmetic; OpenCL subgroups; taken by this selection of devices */
    const char *note;             /* why a device is not chosen by default ("same CPU as device 0"), else "" */
} tutti_device_info;

/* All devices of the machine, chosen or not. *count is 0 and *list NULL where there is none. The list is one block,
 * freed by tutti_devices_free(). options chooses as tutti_open's do. */
TUTTI_API tutti_status tutti_devices_list(const tutti_runtime_options *options, tutti_device_info **list, int *count);
TUTTI_API void tutti_devices_free(tutti_device_info *list);
/* The devices that the runtime opened. */
TUTTI_API int tutti_device_count(const tutti_runtime *runtime);
TUTTI_API tutti_status tutti_device_get(const tutti_runtime *runtime, int position, tutti_device_info *info);
/* Builds and runs probe kernels on an opened device and compares with the host. TUTTI_OK, or what is wrong, the advice
 * in tutti_message(). */
TUTTI_API tutti_status tutti_device_check(tutti_runtime *runtime, int position);

/* --------------------------------------------------------------------------------------------------- network ---- */

typedef struct tutti_network tutti_network;
typedef struct tutti_tensor {
    int id; /* negative: an error is kept in the network */
} tutti_tensor;

/* A shape of one to six sizes: TUTTI_SHAPE(3, 224, 224). */
#define TUTTI_COUNT_(a, b, c, d, e, f, count, ...) count
#define TUTTI_COUNT(...) TUTTI_COUNT_(__VA_ARGS__, 6, 5, 4, 3, 2, 1, 0)
#ifdef __cplusplus
#define TUTTI_SHAPE(...) (tutti_shape { TUTTI_COUNT(__VA_ARGS__), { __VA_ARGS__ } })
#else
#define TUTTI_SHAPE(...) ((tutti_shape) { .rank = TUTTI_COUNT(__VA_ARGS__), .sizes = { __VA_ARGS__ } })
#endif
#define TUTTI_MAX_RANK 6
typedef struct tutti_shape {
    int rank;
    int64_t sizes[TUTTI_MAX_RANK];
} tutti_shape;

TUTTI_API tutti_network *tutti_network_new(tutti_runtime *runtime);
TUTTI_API void tutti_network_free(tutti_network *network);
/* The first error of the builder calls so far, with its message in tutti_message(). */
TUTTI_API tutti_status tutti_network_status(const tutti_network *network);

/* Layers that follow are named "prefix.name" until the matching pop; a layer without a name gets its operation's name
 * and a number. Names are those of the parameters in saved files. */
TUTTI_API void tutti_scope_push(tutti_network *network, const char *prefix);
TUTTI_API void tutti_scope_pop(tutti_network *network);

typedef enum tutti_initialiser {
    TUTTI_INIT_DEFAULT,   /* what PyTorch does for the layer: Kaiming uniform with a = sqrt(5) */
    TUTTI_INIT_HE_NORMAL, /* normal, variance 2 / fan_in (He et al. 2015) */
    TUTTI_INIT_HE_UNIFORM,
    TUTTI_INIT_HE_NORMAL_FAN_OUT, /* variance 2 / fan_out, as torchvision's ResNets */
    TUTTI_INIT_GLOROT_UNIFORM,    /* Keras's default: limit sqrt(6 / (fan_in + fan_out)), bias 0 */
    TUTTI_INIT_GLOROT_NORMAL,
    TUTTI_INIT_NORMAL, /* standard deviation init_scale (0: 0.01) */
    TUTTI_INIT_ZEROS,
} tutti_initialiser;

TUTTI_API tutti_tensor tutti_input(tutti_network *network, const char *name, tutti_shape shape_of_a_sample);

typedef struct tutti_dense_options {
    const char *name;
    bool no_bias;
    tutti_initialiser init, bias_init; /* bias_init default: PyTorch's uniform with TUTTI_INIT_DEFAULT, else zeros */
    float init_scale;
    uint64_t reserved[4];
} tutti_dense_options;
/* y = x W^T + b over the last dimension: x [features] or [..., features], W [units, features]. */
TUTTI_API tutti_tensor tutti_dense(
    tutti_network *network, tutti_tensor x, int64_t units, const tutti_dense_options *options);

typedef struct tutti_conv2d_options {
    const char *name;
    int64_t stride, padding, dilation, groups;         /* 0: 1, 0, 1, 1 */
    int64_t kernel_w, stride_w, padding_w, dilation_w; /* 0: as the other direction; padding_w -1: none */
    bool no_bias;
    tutti_initialiser init, bias_init;
    float init_scale;
    uint64_t reserved[4];
} tutti_conv2d_options;
/* x [C, H, W] -> [channels, OH, OW]; weights [channels, C / groups, kernel, kernel_w]. groups == C is depthwise. */
TUTTI_API tutti_tensor tutti_conv2d(
    tutti_network *network, tutti_tensor x, int64_t channels, int64_t kernel, const tutti_conv2d_options *options);

typedef struct tutti_pool_options {
    const char *name;
    int64_t stride, padding;               /* 0: the kernel's size, 0 */
    int64_t kernel_w, stride_w, padding_w; /* 0: as the other direction; padding_w -1: none */
    bool ceil_mode;                        /* output sizes are rounded up, as PyTorch's */
    bool exclude_padding;                  /* average: divide by the pixels inside the image only */
    uint64_t reserved[4];
} tutti_pool_options;
TUTTI_API tutti_tensor tutti_max_pool(
    tutti_network *network, tutti_tensor x, int64_t kernel, const tutti_pool_options *options);
TUTTI_API tutti_tensor tutti_average_pool(
    tutti_network *network, tutti_tensor x, int64_t kernel, const tutti_pool_options *options);
/* [C, H, W] -> [C, 1, 1]: the mean, or the maximum, of each channel. */
TUTTI_API tutti_tensor tutti_global_average_pool(tutti_network *network, tutti_tensor x);
TUTTI_API tutti_tensor tutti_global_max_pool(tutti_network *network, tutti_tensor x);
/* [C, H, W] -> [C, height, width], windows as PyTorch's adaptive_avg_pool2d. */
TUTTI_API tutti_tensor tutti_adaptive_average_pool(
    tutti_network *network, tutti_tensor x, int64_t height, int64_t width);

typedef struct tutti_batch_norm_options {
    const char *name;
    float epsilon;  /* 0: 1e-5 */
    float momentum; /* of the running statistics, PyTorch's sense: running = (1 - momentum) running + momentum batch; 0:
                       0.1 */
    uint64_t reserved[4];
} tutti_batch_norm_options;
/* Over each channel of [C, H, W] (or each feature of [C]). Training uses the batch's statistics (of each replica), and
 * inference the running ones. */
TUTTI_API tutti_tensor tutti_batch_norm(
    tutti_network *network, tutti_tensor x, const tutti_batch_norm_options *options);

TUTTI_API tutti_tensor tutti_relu(tutti_network *network, tutti_tensor x);
TUTTI_API tutti_tensor tutti_relu6(tutti_network *network, tutti_tensor x);
TUTTI_API tutti_tensor tutti_clip(tutti_network *network, tutti_tensor x, float low, float high);
TUTTI_API tutti_tensor tutti_leaky_relu(tutti_network *network, tutti_tensor x, float slope); /* slope > 0 */
TUTTI_API tutti_tensor tutti_sigmoid(tutti_network *network, tutti_tensor x);
TUTTI_API tutti_tensor tutti_tanh(tutti_network *network, tutti_tensor x);
TUTTI_API tutti_tensor tutti_add(tutti_network *network, tutti_tensor a, tutti_tensor b); /* equal shapes */
TUTTI_API tutti_tensor tutti_mul(tutti_network *network, tutti_tensor a, tutti_tensor b); /* equal shapes */
/* Joins along a dimension of the sample: 0 is the channels of [C, H, W]. At most 8 inputs. */
TUTTI_API tutti_tensor tutti_concat(tutti_network *network, const tutti_tensor *inputs, int count, int dimension);
TUTTI_API tutti_tensor tutti_reshape(
    tutti_network *network, tutti_tensor x, tutti_shape shape); /* one size may be -1 */
TUTTI_API tutti_tensor tutti_flatten(tutti_network *network, tutti_tensor x);
/* Zeroes with this probability and scales the rest by 1 / (1 - probability) in training; nothing in inference. The mask
 * depends on the seed, the step and the position in the whole batch alone: on any devices and shares it is the same. */
TUTTI_API tutti_tensor tutti_dropout(tutti_network *network, tutti_tensor x, float probability);
TUTTI_API tutti_tensor tutti_softmax(tutti_network *network, tutti_tensor x); /* over the last dimension */

/* What `tutti show` prints: the layers in the order in which they were added. */
typedef struct tutti_layer_info {
    const char *name, *operation; /* valid until the network is freed */
    tutti_shape shape;            /* of the first output, one sample */
    int64_t parameters;           /* of this layer, running statistics not counted */
    double flops;                 /* forward, one sample, two for each multiply-add */
} tutti_layer_info;
TUTTI_API int tutti_network_layers(const tutti_network *network);
TUTTI_API tutti_status tutti_network_layer(const tutti_network *network, int position, tutti_layer_info *info);
TUTTI_API int64_t tutti_network_parameters(const tutti_network *network); /* trainable numbers */
TUTTI_API tutti_status tutti_shape_of(
    const tutti_network *network, tutti_tensor tensor, tutti_shape *shape); /* of a sample */

/* -------------------------------------------------------------------------------------------------- training ---- */

typedef struct tutti_trainer tutti_trainer;

typedef enum tutti_loss { TUTTI_CROSS_ENTROPY, TUTTI_MSE, TUTTI_LOSS_NONE } tutti_loss; /* NONE: inference only */
/* How a batch is divided over several devices where tutti_training.shares is NULL. AUTO: by their measured speed, while
 * training; a device whose help costs more than it gives is left out; sums are then made in an order that depends on
 * the times, so that runs are equal only up to rounding. EQUAL, and given shares: the same bytes in every run. */
typedef enum tutti_sharing { TUTTI_SHARES_AUTO, TUTTI_SHARES_EQUAL } tutti_sharing;
typedef enum tutti_optimizer { TUTTI_SGD, TUTTI_ADAM, TUTTI_ADAMW } tutti_optimizer;

/* How the numbers between layers are stored while a step runs, and what the operands of matrix products and
 * convolutions are rounded to before they are multiplied. Sums are floats with all of them, and so are parameters,
 * their gradients, statistics and optimizer states: checkpoints do not depend on it. */
typedef enum tutti_precision {
    TUTTI_FP32,
    TUTTI_BF16, /* activations and their gradients as bfloat16 (8 bits of mantissa) where the kernels at hand can: saves
                  memory, and time where a network is bound by memory; operands on GPU-class devices are rounded to it,
                  too. Elsewhere as TUTTI_FP32 */
    TUTTI_TF32, /* operands with 11 bits of mantissa on GPU-class devices. Elsewhere as TUTTI_FP32 */
    TUTTI_FP16  /* operands as half-precision numbers (11 bits of mantissa, from 6e-8 to 65504) on GPU-class devices.
                  Elsewhere as TUTTI_FP32. Gradients are scaled so that the small ones are not lost: a step in which
                  some overflow updates nothing (a warning tells), and the scale is halved; after 2000 good steps in a
                  row it is doubled */
} tutti_precision;

/* The processes that train one network together, on one host or several: mpirun has started them ("ranks"), or the
 * program is an MPI program itself. Every rank makes the same network and calls the same functions of a trainer in the
 * same order; each uses all of its own devices. Gradients are summed over all ranks in every step, so that any number
 * of ranks ends with the same parameters up to rounding. See docs/hosts.md. */
typedef struct tutti_hosts tutti_hosts;
typedef struct tutti_hosts_options {
    double limit_s; /* a rank that gives no sign of life for so many seconds while others wait for it is lost; 0:
                       TUTTI_HOST_LIMIT, else 45 */
    uint64_t reserved[4];
} tutti_hosts_options;
/* Joins the others; NULL on failure. A process that was started alone is rank 0 of 1, whether the library was built
 * with MPI or not, and nothing of MPI is touched. MPI is initialised if the program has not done so (then with
 * MPI_THREAD_SERIALIZED, which is needed; all calls come from the thread that uses the trainer), on a communicator of
 * its own. TUTTI_UNSUPPORTED where several processes were started and this build has no MPI. */
TUTTI_API tutti_hosts *tutti_hosts_open(const tutti_hosts_options *options);
/* After the trainers that use it were freed; waits for the others to do the same. Finalises MPI if tutti_hosts_open()
 * has initialised it: it cannot be opened again then. After TUTTI_HOST_LOST it does neither, and mpirun, when the
 * process ends, ends the others. */
TUTTI_API void tutti_hosts_close(tutti_hosts *hosts);
TUTTI_API int tutti_hosts_rank(const tutti_hosts *hosts);  /* 0 for NULL */
TUTTI_API int tutti_hosts_count(const tutti_hosts *hosts); /* 1 for NULL */
/* Each rank comes with a status; TUTTI_OK where all do with TUTTI_OK, else on every rank a failure: for what each does
 * by itself before the next function that all call, which would wait for the one that failed. */
TUTTI_API tutti_status tutti_hosts_agree(tutti_hosts *hosts, tutti_status status);

typedef struct tutti_training {
    tutti_loss loss; /* cross-entropy: the output is logits [classes], targets are int32 class numbers (negative:
                        ignored); MSE: the mean over the output's elements, targets are floats of its shape */
    tutti_optimizer optimizer;
    float learning_rate; /* 0: SGD 0.01, Adam and AdamW 0.001 */
    float momentum;      /* SGD; as PyTorch: v = momentum v + g, p -= lr v */
    bool nesterov;
    float weight_decay;          /* SGD, Adam: added to the gradient; AdamW: decoupled */
    float beta1, beta2, epsilon; /* 0: 0.9, 0.999, 1e-8 */
    uint64_t seed;               /* of the initial weights, the shuffling and dropout */
    int64_t batch;        /* samples of a whole step over all devices, for which plans are made; 0: 32. Other, smaller
                             batches may be trained too */
    const double *shares; /* parts of a batch for each opened device, any positive scale; NULL: as `sharing` says */
    int64_t micro_batch;  /* largest number of samples a device takes at once; 0: as many as fit its memory */
    bool exact;           /* no algorithm that rounds more than the plain sum: no Winograd */
    bool tune;            /* measure the kernels that a device has never measured for these shapes (seconds to minutes)
                             and keep the results in the cache folder, where every later run finds them */
    tutti_precision precision;
    /* Called while kernels are built, which takes from nothing to a minute: by the threads that build, one call at a
     * time for each device. May be NULL. */
    void (*building)(void *user, int built, int total);
    void *building_user;
    tutti_sharing sharing;
    /* Seconds after which a device is taken to hang, and lost: over its part of a step, and over making its plans. 0:
     * by its own steps, at least a minute, and half an hour. A single device is watched only where step_limit_s is
     * given. */
    double step_limit_s, build_limit_s;
    tutti_hosts *hosts; /* NULL: this process alone. Else all ranks compile together; batch is that of all ranks, and is
                           divided over them by speed, or (with shares or TUTTI_SHARES_EQUAL) by the sums of their
                           devices' shares. tutti_fit() and tutti_evaluate_source() read only the rank's own samples of
                           sources that are the same on all; tutti_train_step() and tutti_evaluate() take samples of the
                           rank's own; metrics are over all ranks; rank 0 alone reads and writes checkpoints. Must
                           outlive the trainer. */
    int64_t average_every; /* with several ranks: 0, gradients are summed in every step; K, each rank trains by itself
                              and the parameters and optimizer states are averaged after every K steps, weighted by
                              samples (McMahan et al. 2017): less exact, for slow links */
    /* Several devices: batch normalisation's statistics are over the whole batch and not over each device's part of it,
     * forward and backward, so that any division of it trains as one device does, up to rounding. The devices wait for
     * each other at each such layer, those of all ranks (with average_every: of each rank, whose steps are its own).
     * There are no micro-batches then: a batch, or a rank's part, that does not fit the memory of its devices together
     * is refused (TUTTI_DEVICE_MEMORY). */
    bool sync_batchnorm;
    /* Several devices: in every step, before anything is updated, each device's parameters are compared with the master
     * copy by a checksum. A device where they differ by a bit is lost like one that fails, and the step done again. */
    bool check_replicas;
    /* Several devices or ranks: how gradients travel. TUTTI_BF16: rounded to bfloat16, half the bytes, from devices
     * with memory of their own to the host and between ranks; the host sums in float. Where host and device share
     * memory nothing travels and nothing is rounded. Running statistics, parameters and states stay floats. */
    tutti_precision wire;
    uint64_t reserved[4];
} tutti_training;

/* Makes plans and replicas on every opened device. NULL on failure. The network must outlive the trainer. */
TUTTI_API tutti_trainer *tutti_compile(tutti_network *network, tutti_tensor output, const tutti_training *training);
TUTTI_API void tutti_trainer_free(tutti_trainer *trainer);

/* Finding the fastest kernels of a network on a device, one candidate at a time: a caller that fears kernels which hang
 * or crash does it in a process of its own (`tutti tune` does). Nothing is kept; see docs/tuning.md for the file. */
typedef struct tutti_tuner tutti_tuner;
typedef struct tutti_candidate {
    const char *problem; /* its name in tuning tables; candidates of one problem follow each other */
    const char *layer;   /* the first that has it */
    const char *kernel;
    const char *refusal; /* why it cannot be tried; NULL: it can */
    int uses;            /* in how many places of the network */
    bool present;        /* it is what would be chosen now: the first of its problem */
    uint64_t reserved[4];
} tutti_candidate;
typedef struct tutti_trial {
    double least, median;                 /* seconds */
    double present_least, present_median; /* of the present choice, in turns with it */
    double noise;                         /* share of its time by which the present choice differs from itself */
    double gain;                          /* share of it that the candidate saves, by the worse of the two measures */
} tutti_trial;
/* training: loss, batch, exact and precision are looked at. device: position among the opened ones. NULL on failure.
 * The network must outlive it. */
TUTTI_API tutti_tuner *tutti_tuner_new(
    tutti_network *network, tutti_tensor output, const tutti_training *training, int device);
/* TUTTI_INVALID past the last one. Its texts live as long as the tuner. */
TUTTI_API tutti_status tutti_tuner_candidate(const tutti_tuner *tuner, int index, tutti_candidate *candidate);
/* Has the plain kernel compute the candidate's problem: tutti_tuner_try() then compares with it. Slow. */
TUTTI_API tutti_status tutti_tuner_refer(tutti_tuner *tuner, int index);
/* TUTTI_WRONG_RESULT where it computes something else than the plain kernel; else times it in turns with the present
 * choice. To be taken where gain is larger than noise. */
TUTTI_API tutti_status tutti_tuner_try(tutti_tuner *tuner, int index, tutti_trial *trial);
TUTTI_API void tutti_tuner_free(tutti_tuner *tuner);

typedef struct tutti_metrics {
    double loss;     /* mean over the samples */
    double accuracy; /* share of correct classes, 0 to 1; NaN for losses without classes */
    int64_t samples;
} tutti_metrics;

/* One step on `samples` samples (at most the training's batch): inputs [samples][shape of a sample], targets as the
 * loss wants them. TUTTI_NOT_FINITE where the loss is NaN or infinite: then nothing was updated. With TUTTI_FP16,
 * TUTTI_OK too may mean that. */
TUTTI_API tutti_status tutti_train_step(
    tutti_trainer *trainer, const float *inputs, const void *targets, int64_t samples, tutti_metrics *metrics);
/* Before a step: the samples of the step behind it. Devices with memory of their own fetch them while they compute that
 * one, if both have as many samples; where one device trains while others are left out, the host copies them meanwhile;
 * else nothing is done. The arrays stay as they are until their own step is done, or another one in its place. */
TUTTI_API tutti_status tutti_train_prefetch(
    tutti_trainer *trainer, const float *inputs, const void *targets, int64_t samples);
/* Loss and accuracy in inference mode, any number of samples. */
TUTTI_API tutti_status tutti_evaluate(
    tutti_trainer *trainer, const float *inputs, const void *targets, int64_t samples, tutti_metrics *metrics);
/* outputs [samples][shape of the output], any number of samples, in inference mode. */
TUTTI_API tutti_status tutti_infer(tutti_trainer *trainer, const float *inputs, int64_t samples, float *outputs);

/* A source of samples that need not be in memory as floats. read() fills `count` samples with the given numbers; it is
 * called from a background thread, one call at a time. Non-zero: failure, with a text by the caller. */
typedef struct tutti_source {
    int64_t samples;
    int (*read)(void *user, const int64_t *indices, int64_t count, float *inputs, void *targets);
    void *user;
} tutti_source;

typedef struct tutti_progress {
    int64_t epoch, epochs;        /* counted from 1 */
    int64_t step, steps_in_epoch; /* of this epoch */
    int64_t total_steps;          /* since the training began, resumed parts included */
    tutti_metrics train;          /* of the epoch so far; at the end of an epoch: of the whole epoch */
    tutti_metrics test;           /* at the end of an epoch with test data; else samples is 0 */
    double samples_per_s;         /* of the epoch so far, training only */
    bool end_of_epoch;
    int64_t samples; /* trained by this call, over all ranks */
} tutti_progress;

typedef struct tutti_fitting {
    int64_t epochs; /* 0: 1. With resume: the total, not those to come */
    int64_t steps;  /* stop after this many steps of this call; 0: no limit */
    int64_t batch;  /* 0: the training's */
    bool no_shuffle;
    const tutti_source *test; /* evaluated after each epoch */
    const char *save;         /* NAME: writes NAME.safetensors and NAME.state.safetensors after each epoch, at the end
                                 and when cancelled */
    const char *resume;       /* NAME: continues from those two files */
    void (*progress)(void *user, const tutti_progress *progress); /* after each step and each epoch */
    void *user;
    uint64_t reserved[8];
} tutti_fitting;

/* Trains over arrays: inputs [samples][shape of a sample], targets as the loss wants them. */
TUTTI_API tutti_status tutti_fit(
    tutti_trainer *trainer, const float *inputs, const void *targets, int64_t samples, const tutti_fitting *fitting);
TUTTI_API tutti_status tutti_fit_source(
    tutti_trainer *trainer, const tutti_source *source, const tutti_fitting *fitting);
TUTTI_API tutti_status tutti_evaluate_source(
    tutti_trainer *trainer, const tutti_source *source, tutti_metrics *metrics);
/* Makes the running tutti_fit() save (if asked to) and return TUTTI_CANCELLED after the current step. Before the first
 * fit it cancels that one; after a fit or an evaluation has ended it does nothing. Async-signal-safe. */
TUTTI_API void tutti_cancel(tutti_trainer *trainer);

/* Weights alone, as safetensors with PyTorch's names and shapes. A file that lacks a parameter, or has one of another
 * shape or type, is refused (TUTTI_MISMATCH) and nothing is changed. */
TUTTI_API tutti_status tutti_save_weights(tutti_trainer *trainer, const char *path);
TUTTI_API tutti_status tutti_load_weights(tutti_trainer *trainer, const char *path);
/* Weights, and optimizer state, step, epoch and position: the pair NAME.safetensors, NAME.state.safetensors. A kill at
 * any moment leaves a good pair, the older or the newer. */
TUTTI_API tutti_status tutti_save(tutti_trainer *trainer, const char *name);
TUTTI_API tutti_status tutti_resume(tutti_trainer *trainer, const char *name);

/* One parameter or running statistic by its name in saved files, as floats in PyTorch's order; count must be its size.
 */
TUTTI_API tutti_status tutti_get_parameter(tutti_trainer *trainer, const char *name, float *values, int64_t count);
TUTTI_API tutti_status tutti_set_parameter(
    tutti_trainer *trainer, const char *name, const float *values, int64_t count);
/* The gradient of the last training step, for tests: the mean over the whole batch. */
TUTTI_API tutti_status tutti_get_gradient(tutti_trainer *trainer, const char *name, float *values, int64_t count);
/* The position-th parameter (0 ...; running statistics last): name, shape, whether it is trained. TUTTI_INVALID past
 * the end. */
TUTTI_API tutti_status tutti_parameter_info(
    const tutti_network *network, int position, const char **name, tutti_shape *shape, bool *trained);

/* What each opened device did since tutti_compile or the last tutti_report_reset. */
typedef struct tutti_device_report {
    int index;             /* of the device, as in tutti_device_info */
    const char *name;      /* valid while the runtime is open */
    int64_t samples;       /* trained */
    double busy_s;         /* computing those */
    double samples_per_s;  /* samples / busy_s; 0 before the first step */
    int64_t share;         /* samples of a full batch */
    uint64_t memory_bytes; /* allocated on the device */
    double build_s;        /* making plans: programs built and kernels warmed up */
} tutti_device_report;
TUTTI_API tutti_status tutti_report(const tutti_trainer *trainer, int position, tutti_device_report *report);
TUTTI_API void tutti_report_reset(tutti_trainer *trainer);

/* Where the time of the training steps went since then, in seconds over all steps; for each device
 * compute_s + transfer_s + idle_s = step_s. */
typedef struct tutti_device_times {
    int64_t steps;
    double step_s;
    double compute_s;         /* from its first command to its last, transfers left out */
    double transfer_s;        /* samples and parameters to the device, gradients from it, as its driver measures them,
                                 but for those beside which it computes */
    double idle_s;            /* waiting for other devices and for the host's part of the exchange */
    double with_s, without_s; /* of a device that automatic shares leave out: one step with it, and without; else 0 */
    bool automatic, settled;  /* shares are by speed; no other division is being tried or prepared */
    /* Copied to the device and from it, and how long that took; how much of it while the device computed. Memory that
     * host and device share is not copied. */
    double sent_bytes, sent_s, received_bytes, received_s, sent_beside_s, received_beside_s;
    uint64_t reserved[2];
} tutti_device_times;
TUTTI_API tutti_status tutti_report_times(const tutti_trainer *trainer, int position, tutti_device_times *times);
/* Text on the plan that a device trains with (or infers with, if the loss is NONE): for each node the implementation
 * chosen, and for each one refused the reason. passes: the graph after each pass. Freed by free(). NULL on failure. */
TUTTI_API char *tutti_explain(tutti_trainer *trainer, int position, bool passes);
/* Text on where the time of the last step's plan goes on a device: by operation, by kernel, then launch by launch, with
 * the rates that the least possible FLOPs and bytes give, and their share of the device's peak, which is measured. Runs
 * the plan a few times; nothing is updated. trace: NULL, or a file for chrome://tracing, which has all of these
 * numbers. Freed by free(). NULL on failure. */
TUTTI_API char *tutti_profile(tutti_trainer *trainer, int position, const char *trace);

#ifdef __cplusplus
}
#endif
#endif
