/* Tutti: trains one neural network on every OpenCL device of a machine, from any vendor.
 *
 * This header opens devices, builds networks and trains them. It includes tutti_layers.h, which has the layers and
 * the losses. Each other header covers one more subject and includes this one: tutti_data.h samples from files,
 * tutti_sequences.h layers for sequences and signals, tutti_onnx.h ONNX files, tutti_finetune.h training from other
 * weights, tutti_steps.h gradients and updates apart, tutti_scores.h metrics, tutti_hosts.h several hosts,
 * tutti_inspect.h layers, kernels and times, tutti_custom.h operations in a program's own OpenCL C, tutti_text.h
 * tokenizers, tutti_advanced.h tuning and other exchanges between devices.
 *
 * Conventions of this header
 *
 * Shapes
 *   Arrays are row-major and sizes are int64_t. Images are [C, H, W]: channels, height, width.
 *   Shapes of layers are those of one sample: the batch dimension is implied and never written.
 *   "[samples][...]" describes an array of whole samples, one after another.
 *
 * Ownership
 *   The caller frees each object with the free or close function of its type. These functions accept NULL.
 *   If a driver hangs, they keep the memory that it may still use until the program ends, and return.
 *   The library reads arrays and options only during the call, and copies strings, unless a comment says otherwise.
 *
 * Options
 *   Options are structs passed by pointer. NULL selects every default; a zero member selects the default in its
 *   comment. Set all members that you do not use to zero, as TUTTI_OPTIONS() does. The first member is `size`: with
 *   sizeof of the struct, a library and a program built with different versions of this header still agree. 0 stands
 *   for the struct of version 0.2.0: members that later versions add are then not read.
 *
 * Results
 *   A struct that a function fills in and that begins with `size` can grow in the same way. Set `size` before the
 *   call: the function writes the members up to this size. Members that the library does not know keep their values.
 *   Structs without `size` keep their members. Later versions return additional information through new functions.
 *
 * Other languages
 *   Each function that takes a tutti_shape has a variant that takes a pointer to the sizes and their number. A
 *   tutti_tensor is passed by value: a struct of one int, as any language can declare it. A struct with `size` may be
 *   declared up to the last member that is used, with the size of this declaration in `size` and zeros as padding.
 *
 * Errors
 *   Functions return a tutti_status, or an object that is NULL on failure. tutti_message() explains the last failure
 *   of the calling thread, and tutti_last_status() gives its status. The library never prints (except log lines without
 *   a log callback), exits or aborts.
 *   Functions that add layers return a tensor; its id is negative on failure. The network keeps the first error, later
 *   calls that add layers do nothing, and tutti_compile() reports the error. They accept a network that is NULL.
 *   All other pointers must be valid unless a comment allows NULL.
 *
 * Threads
 *   A process may open several runtimes. Several threads may create, use and free networks and trainers of one runtime
 *   at the same time. Only one thread at a time may use a network and the trainers made from it, with two exceptions.
 *   Any thread may call tutti_cancel(). While one thread trains, another one may infer and evaluate with a trainer that
 *   has tutti_training.parameters_of.
 *   Call tutti_close() after all other uses of the runtime.
 *   Callbacks: tutti_fitting.progress and begin_epoch run in the thread of the call. tutti_source.read, batch_length,
 *   log() and tutti_training.building run in threads of the library, batch_length with `buckets` also in that of the
 *   call. They must not use the trainer or its network. See tutti_fitting.progress for what it may call.
 *
 * Processes
 *   Drivers and this library start threads, which a child of fork() does not have. A process may call fork() before its
 *   first tutti_open() or tutti_devices_list(), and the child may then use devices. In a child that was made later,
 *   functions that need a device return TUTTI_UNSUPPORTED (NULL), and functions that free runtimes, trainers and tuners
 *   do nothing. The child may start another program with exec().
 *   Some drivers compile kernels with programs that they start. If the process ignores SIGCHLD (SIG_IGN, SA_NOCLDWAIT),
 *   kernels that such a driver has not compiled before are compiled in helper processes only; otherwise functions that
 *   need them return TUTTI_UNSUPPORTED.
 */
#ifndef TUTTI_H
#define TUTTI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A struct of options, or of results, with its size and all other members zero:
 *   tutti_training training = TUTTI_OPTIONS(tutti_training);
 *   training.batch = 50; */
#ifdef __cplusplus
template <typename type>
inline type TUTTI_OPTIONS_OF_()
{
    type options = type();
    options.size = sizeof(type);
    return options;
}
#define TUTTI_OPTIONS(type) (TUTTI_OPTIONS_OF_<type>())
extern "C" {
#else
#define TUTTI_OPTIONS(type) ((type) { .size = sizeof(type) })
#endif

#if defined(__GNUC__)
#define TUTTI_API __attribute__((visibility("default")))
#else
#define TUTTI_API
#endif

#define TUTTI_VERSION_MAJOR 0
#define TUTTI_VERSION_MINOR 2
#define TUTTI_VERSION_PATCH 0

/* ------------------------------------------------------------------------------------------------ statuses ---- */

/* X(name, number, sentence). Numbers never change; new statuses are added at the end. */
#define TUTTI_STATUS_TABLE(X)                                                      \
    X(OK, 0, "success")                                                            \
    X(INVALID, 1, "an argument is out of its range or contradicts another")        \
    X(SHAPE, 2, "the shapes of a layer's inputs do not fit together")              \
    X(NO_MEMORY, 3, "the host has no memory left")                                 \
    X(NO_PLATFORM, 4, "no OpenCL platform or device was found")                    \
    X(NO_DEVICE, 5, "the requested device does not exist")                         \
    X(DEVICE, 6, "an OpenCL call failed")                                          \
    X(BUILD, 7, "a kernel did not compile on a device")                            \
    X(DEVICE_MEMORY, 8, "the device does not have enough memory")                  \
    X(DEVICE_LOST, 9, "a device failed permanently")                               \
    X(WRONG_RESULT, 10, "a device computes wrong numbers")                         \
    X(FILE, 11, "a file cannot be read or written")                                \
    X(FORMAT, 12, "the content of a file is damaged or of another format")         \
    X(MISMATCH, 13, "a checkpoint belongs to another network or training")         \
    X(NOT_FINITE, 14, "the loss or a gradient is not a finite number")             \
    X(CANCELLED, 15, "cancelled by the caller")                                    \
    X(UNSUPPORTED, 16, "this device or this build does not support the operation") \
    X(INTERNAL, 17, "an internal error occurred: please report it")                \
    X(HOST_LOST, 18, "another host does not answer")                               \
    X(DEVICE_RESOURCES, 19, "a device lacked resources for a command, or stopped it")

typedef enum tutti_status {
#define TUTTI_STATUS_ENUM(name, number, sentence) TUTTI_##name = number,
    TUTTI_STATUS_TABLE(TUTTI_STATUS_ENUM)
#undef TUTTI_STATUS_ENUM
} tutti_status;

/* Return the name ("TUTTI_FILE") and the sentence of a status, as static strings. Unknown numbers are allowed. */
TUTTI_API const char *tutti_status_name(tutti_status status);
TUTTI_API const char *tutti_status_text(tutti_status status);

/* Returns "0.2.0", a static string. */
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
    size_t size; /* sizeof(tutti_runtime_options), or 0 */
    /* Devices to open, separated by commas: an index ("0,2"), a part of a device's or platform's name, "all", "gpu" or
     * "cpu". NULL: the environment variable TUTTI_DEVICES, else every GPU and accelerator, else the CPU. */
    const char *devices;
    /* Lines above this level are not logged. 0: TUTTI_LOG (error, warn, info or debug), else warnings and errors. */
    tutti_log_level log_level;
    /* Receives log lines, one call at a time, from any thread of the library. NULL: lines go to standard error. */
    void (*log)(void *user, tutti_log_level level, const char *line);
    void *log_user; /* first argument of log() */
    /* Folder for compiled kernels, results of checks and measured times. NULL: TUTTI_CACHE_DIR, else
     * $XDG_CACHE_HOME/tutti, else ~/.cache/tutti. "": nothing is kept on disk. */
    const char *cache_folder;
    size_t memory_limit; /* bytes that may be used of each device's memory; 0: all of it */
    int threads;         /* host threads; 0: the number of processors */
    /* Tuning table, a file written by `tutti tune`, which names the kernels to use. NULL: TUTTI_TUNING, else
     * $XDG_CONFIG_HOME/tutti/tuning.txt or ~/.config/tutti/tuning.txt if it exists. "off": only the tables shipped
     * with the library; the times measured on this machine are ignored too. */
    const char *tuning;
} tutti_runtime_options;

/* Opens the chosen devices. A device that fails to open is skipped with a warning. Returns NULL on failure, also if no
 * device opens.
 *
 * Some drivers compile one kernel at a time (POCL). For these, tutti_open(), tutti_compile() and the first use of
 * another batch size start helper processes, which compile in parallel. Helpers of tutti_open() wait for work for ten
 * seconds; the next tutti_compile() uses them and ends them. A SIGCHLD handler of the program sees these processes end.
 * They inherit the environment and no open file. TUTTI_HELPER=off disables them. */
TUTTI_API tutti_runtime *tutti_open(const tutti_runtime_options *options);
/* Closes the devices. Free everything made from the runtime first. */
TUTTI_API void tutti_close(tutti_runtime *runtime);

/* Returns the text of the calling thread's last failure: what was asked, what was found, what to do. The text is never
 * NULL and is valid until this thread's next failure. The argument is not used yet and may be NULL. */
TUTTI_API const char *tutti_message(const tutti_runtime *runtime);
/* Returns the status of the failure that tutti_message() explains: after a function that returned NULL, or a tensor
 * with a negative id, its reason. TUTTI_OK before the thread's first failure. Calls that succeed may change it. */
TUTTI_API tutti_status tutti_last_status(void);
/* For callbacks that fail: records the status and the text, which is copied, as the calling thread's last failure.
 * Returns the status. In tutti_source.read: return tutti_fail(TUTTI_FILE, "part 3 of the data is cut off"). A text that
 * is NULL or "" stands for tutti_status_text(). */
TUTTI_API tutti_status tutti_fail(tutti_status status, const char *text);

typedef struct tutti_device_info {
    int index; /* number for `devices` and --devices, over all platforms; stable for the same hardware and drivers */
    const char *name; /* from the driver; valid until tutti_close() or tutti_devices_free() */
    const char *platform;
    const char *driver;       /* version of the driver */
    const char *device_class; /* "cpu" or "gpu" (also accelerators); it selects the kernels */
    int compute_units;
    int vector_width;                                     /* floats per vector in the kernels for CPU-class devices */
    uint64_t memory_bytes, local_bytes, allocation_bytes; /* global memory, local memory, largest buffer */
    /* The device has fp16 arithmetic; it has OpenCL subgroups; the options choose it. */
    bool half, subgroups, chosen;
    const char *note; /* why the device is not chosen by default ("same CPU as device 0"), else "" */
} tutti_device_info;

/* Lists all devices of the machine; of the options, only `devices` matters, for the member `chosen`. If the machine
 * has no device, the call succeeds with *count 0 and *list NULL. Free the list with tutti_devices_free().
 * Errors: TUTTI_NO_DEVICE if the options name a device that does not exist. */
TUTTI_API tutti_status tutti_devices_list(const tutti_runtime_options *options, tutti_device_info **list, int *count);
TUTTI_API void tutti_devices_free(tutti_device_info *list);
/* Returns the number of opened devices; 0 for NULL. */
TUTTI_API int tutti_device_count(const tutti_runtime *runtime);
/* Describes the opened device at `position`, 0 to tutti_device_count() - 1. Errors: TUTTI_NO_DEVICE. */
TUTTI_API tutti_status tutti_device_get(const tutti_runtime *runtime, int position, tutti_device_info *info);
/* Runs probe kernels on an opened device and compares their results with the host's. Errors: TUTTI_WRONG_RESULT if
 * they differ, or the status of the OpenCL call that failed; tutti_message() says what to do. */
TUTTI_API tutti_status tutti_device_check(tutti_runtime *runtime, int position);

/* --------------------------------------------------------------------------------------------------- network ---- */

typedef struct tutti_network tutti_network;
typedef struct tutti_tensor {
    int id; /* negative: the call failed, and the network keeps the error */
} tutti_tensor;

/* Makes a shape of one to eight sizes: TUTTI_SHAPE(3, 224, 224). The shape of a sample has at most seven. */
#define TUTTI_COUNT_(a, b, c, d, e, f, g, h, count, ...) count
#define TUTTI_COUNT(...) TUTTI_COUNT_(__VA_ARGS__, 8, 7, 6, 5, 4, 3, 2, 1, 0)
#ifdef __cplusplus
#define TUTTI_SHAPE(...) (tutti_shape { TUTTI_COUNT(__VA_ARGS__), { __VA_ARGS__ } })
#else
#define TUTTI_SHAPE(...) ((tutti_shape) { .rank = TUTTI_COUNT(__VA_ARGS__), .sizes = { __VA_ARGS__ } })
#endif
#define TUTTI_MAX_RANK 8
/* A size in the shape of an input: the length of sequences. It can differ in each step, evaluation and inference
 * (tutti_feed.length), up to tutti_training.sequence, and is the same for all inputs. Outputs of layers keep this
 * length, and tutti_reshape() and tutti_op() accept this size in their shape. Layers that need a fixed size fail with
 * TUTTI_SHAPE: it cannot be a size of a parameter or of the input of a convolution or pooling, and tutti_concat()
 * cannot join along it. The operation "prefix" of tutti_op() cuts a parameter or constant made for the longest
 * sequence to the present length. */
#define TUTTI_SEQUENCE (-2)
typedef struct tutti_shape {
    int rank;
    int64_t sizes[TUTTI_MAX_RANK];
} tutti_shape;

/* Types of elements, with their size in bytes. */
typedef enum tutti_dtype {
    TUTTI_DTYPE_F32,  /* 4: float */
    TUTTI_DTYPE_F16,  /* 2: IEEE 754 half precision */
    TUTTI_DTYPE_BF16, /* 2: bfloat16, the upper half of a float */
    TUTTI_DTYPE_I32,  /* 4 */
    TUTTI_DTYPE_I64,  /* 8: only in arrays of the host; devices get int32 */
    TUTTI_DTYPE_U8,   /* 1 */
    TUTTI_DTYPE_BOOL  /* 1: 0 is false, anything else is true */
} tutti_dtype;
/* Returns the size of an element in bytes; 0 for a number that is not a type. */
TUTTI_API size_t tutti_dtype_bytes(tutti_dtype dtype);

/* Creates an empty network. Returns NULL on failure, also if the runtime is NULL: the message of tutti_open()
 * is kept then. */
TUTTI_API tutti_network *tutti_network_new(tutti_runtime *runtime);
TUTTI_API void tutti_network_free(tutti_network *network);
/* Returns the first error of the calls that added layers, and restores its message for tutti_message(). */
TUTTI_API tutti_status tutti_network_status(const tutti_network *network);

/* tutti_scope_push() puts "prefix." before the names of the layers that follow, until the matching
 * tutti_scope_pop(). Scopes nest. Names are UTF-8. Files of weights name parameters "layer.weight", "layer.bias" and so
 * on. A layer without a name is called "operation_number". */
TUTTI_API void tutti_scope_push(tutti_network *network, const char *prefix);
TUTTI_API void tutti_scope_pop(tutti_network *network);

/* Initial values of weights and biases. */
typedef enum tutti_initialiser {
    TUTTI_INIT_DEFAULT,           /* PyTorch's default: uniform within 1 / sqrt(fan_in), for weights and biases */
    TUTTI_INIT_HE_NORMAL,         /* normal, variance 2 / fan_in (He et al. 2015) */
    TUTTI_INIT_HE_UNIFORM,        /* uniform within sqrt(6 / fan_in) */
    TUTTI_INIT_HE_NORMAL_FAN_OUT, /* normal, variance 2 / fan_out, as in torchvision's ResNets */
    TUTTI_INIT_GLOROT_UNIFORM,    /* Keras's default: uniform within sqrt(6 / (fan_in + fan_out)) */
    TUTTI_INIT_GLOROT_NORMAL,     /* normal, variance 2 / (fan_in + fan_out) (Glorot and Bengio 2010) */
    TUTTI_INIT_NORMAL,            /* normal, standard deviation init_scale (0: 0.01) */
    TUTTI_INIT_ZEROS,
} tutti_initialiser;

/* Adds an input of float32 samples. The shape has one to seven sizes of at least 1, or TUTTI_SEQUENCE. A network has at
 * most 255 inputs, which are fed by their names (tutti_feed): a name belongs to one input. NULL: "input" for the first
 * one, else "input_1" and so on. Errors: TUTTI_SHAPE; TUTTI_INVALID for a sixteenth input or a name that is taken. */
TUTTI_API tutti_tensor tutti_input(tutti_network *network, const char *name, tutti_shape shape_of_a_sample);
/* Adds an input of samples of any type: `sizes` has `rank` sizes, 0 to 7; with rank 0 a sample is one number, as
 * targets of tutti_cross_entropy() are. TUTTI_DTYPE_I64 makes an input of int32 that can be fed with int64 arrays: a
 * number that does not fit int32 fails the call that feeds it. Layers compute with float32: tutti_cast() and
 * tutti_normalise() make it from other types on the device. */
TUTTI_API tutti_tensor tutti_input_typed(
    tutti_network *network, const char *name, tutti_dtype dtype, const int64_t *sizes, int rank);
/* Converts an input or a constant to float32, or U8 and BOOL to int32. BOOL becomes 0 or 1. */
TUTTI_API tutti_tensor tutti_cast(tutti_network *network, tutti_tensor x, tutti_dtype dtype);

typedef struct tutti_normalise_options {
    size_t size; /* sizeof(tutti_normalise_options), or 0 */
    const char *name;
    float scale; /* 0: 1. For bytes and statistics of pixels from 0 to 1: 1.0 / 255 */
    /* One for each of `channels` channels, at most 16; NULL: 0 and 1. */
    const float *mean, *std;
    int channels;
} tutti_normalise_options;
/* y = (scale x - mean[c]) / std[c] as float32, for an input x [C, ...] of any type: images travel as bytes and become
 * floats on the device. */
TUTTI_API tutti_tensor tutti_normalise(tutti_network *network, tutti_tensor x, const tutti_normalise_options *options);

/* Parameters. Layers make their own, named LAYER.weight and LAYER.bias; several layers can also share one. */
typedef struct tutti_parameter_options {
    size_t size; /* sizeof(tutti_parameter_options), or 0 */
    tutti_initialiser init;
    float init_scale;        /* standard deviation for TUTTI_INIT_NORMAL; 0: 0.01 */
    int64_t fan_in, fan_out; /* what the initialiser divides by; 0: 1 */
    const float *values;     /* initial values instead, which are copied */
    bool frozen;             /* as tutti_freeze() makes it (tutti_finetune.h) */
} tutti_parameter_options;
/* Adds a parameter, for the `weight` or `bias` of layers. Files of weights have it by its name, after the scope. */
TUTTI_API tutti_tensor tutti_parameter(
    tutti_network *network, const char *name, tutti_shape shape, const tutti_parameter_options *options);
/* Adds a parameter as tutti_parameter() does. Takes a pointer to its sizes, for languages that have no TUTTI_SHAPE():
 * one to eight, or none with rank 0, for a parameter of one number: its shape in files is [], that of the tensor [1].
 */
TUTTI_API tutti_tensor tutti_parameter_sized(
    tutti_network *network, const char *name, const int64_t *sizes, int rank, const tutti_parameter_options *options);
/* Returns the parameter with this full name, for example one of a layer that another layer is to share. Its gradient
 * is then the sum over all uses, and the optimizer updates the parameter once. */
TUTTI_API tutti_tensor tutti_find_parameter(tutti_network *network, const char *name);
/* Sets the initial values of a parameter or running statistic, before tutti_compile(): `count` floats, which are
 * copied. Errors: TUTTI_INVALID if there is no such name, `count` is not its number of elements, or a trainer uses the
 * network. */
TUTTI_API tutti_status tutti_set_initial(tutti_network *network, const char *name, const float *values, int64_t count);
/* Adds a tensor of fixed float32 values, which are copied, in row-major order. It can be an input where parameters
 * can: of tutti_add(), tutti_mul() and tutti_op(), or a layer's weight or bias. It has no gradient, devices receive
 * it once, and it is not a parameter: files do not contain it, and functions that take a parameter's name do not find
 * it. The name is only used in texts; NULL: "constant". */
TUTTI_API tutti_tensor tutti_constant(tutti_network *network, const char *name, tutti_shape shape, const float *values);
/* Adds a constant as tutti_constant() does, of TUTTI_DTYPE_F32 or TUTTI_DTYPE_I32 and with one to eight sizes.
 * tutti_cast() converts int32 to floats. */
TUTTI_API tutti_tensor tutti_constant_typed(
    tutti_network *network, const char *name, tutti_dtype dtype, const int64_t *sizes, int rank, const void *values);

/* Returns the number of trainable values of the network. */
TUTTI_API int64_t tutti_network_parameters(const tutti_network *network);
/* Writes the shape of a sample of a tensor. Errors: TUTTI_INVALID if the tensor is not of this network. */
TUTTI_API tutti_status tutti_shape_of(const tutti_network *network, tutti_tensor tensor, tutti_shape *shape);

/* Names an output of the network, for programs that look for outputs by name and for files of ONNX. A tensor may have
 * several names. Naming does not make the trainer compute it: pass it to tutti_compile(). Errors: TUTTI_INVALID if
 * another output has the name, or the tensor is not of this network. */
TUTTI_API tutti_status tutti_output(tutti_network *network, const char *name, tutti_tensor tensor);
/* Give the input at `position`, from 0, in the order in which inputs were added; and the output, with its name, in the
 * order in which they were named. The name is valid until the network is freed; name and output may be NULL. Errors:
 * TUTTI_INVALID past the end. */
TUTTI_API tutti_status tutti_network_input(const tutti_network *network, int position, tutti_tensor *input);
TUTTI_API tutti_status tutti_network_output(
    const tutti_network *network, int position, const char **name, tutti_tensor *output);

/* -------------------------------------------------------------------------------------------------- training ---- */

typedef struct tutti_trainer tutti_trainer;

/* A loss of the first output, with targets that are fed as "targets". The short form of one of tutti_training.losses.
 */
typedef enum tutti_loss {
    /* Mean cross-entropy of softmax. The output is logits [classes]. Targets are int32_t, one class number per sample,
     * from 0; a negative number excludes the sample from the loss. */
    TUTTI_CROSS_ENTROPY,
    TUTTI_MSE,      /* mean squared error over the output's elements; targets are floats of the output's shape */
    TUTTI_LOSS_NONE /* inference only */
} tutti_loss;

/* How a batch is divided over several devices if tutti_training.shares is NULL. */
typedef enum tutti_sharing {
    /* By the measured speed of the devices, adjusted while training. A device that slows a step down is left out. The
     * order of sums depends on the measured times, so two runs agree only up to rounding. */
    TUTTI_SHARES_AUTO,
    TUTTI_SHARES_EQUAL /* equal parts: as with given shares, every run produces the same bytes */
} tutti_sharing;

/* Update rules, as PyTorch defines them (Lion: its authors), for a parameter p with gradient g in step t = 1, 2, ...
 * The other letters are states, which begin as 0. */
typedef enum tutti_optimizer {
    /* v = momentum v + g, p -= learning_rate v; nesterov: p -= learning_rate (g + momentum v) */
    TUTTI_SGD,
    /* m = beta1 m + (1 - beta1) g, v = beta2 v + (1 - beta2) g^2,
     * p -= learning_rate m / (1 - beta1^t) / (sqrt(v / (1 - beta2^t)) + epsilon) (Kingma and Ba 2015) */
    TUTTI_ADAM,
    /* p -= learning_rate weight_decay p, then as TUTTI_ADAM (Loshchilov and Hutter 2019) */
    TUTTI_ADAMW,
    /* v = beta2 v + (1 - beta2) g^2, p -= learning_rate g / (sqrt(v) + epsilon) (Tieleman and Hinton 2012). momentum:
     * b = momentum b + g / (sqrt(v) + epsilon), p -= learning_rate b. centered: a = beta2 a + (1 - beta2) g, and
     * v - a^2 in place of v in the root. */
    TUTTI_RMSPROP,
    /* s = s + g^2, p -= learning_rate g / (sqrt(s) + epsilon) (Duchi et al. 2011) */
    TUTTI_ADAGRAD,
    /* m and v as in TUTTI_ADAM, u(t) = beta1 (1 - 0.96^(0.004 t) / 2), P(t) = u(1) u(2) ... u(t),
     * p -= learning_rate (u(t+1) m / (1 - P(t+1)) + (1 - u(t)) g / (1 - P(t))) / (sqrt(v / (1 - beta2^t)) + epsilon)
     * (Dozat 2016) */
    TUTTI_NADAM,
    /* p -= learning_rate (sign(beta1 m + (1 - beta1) g) + weight_decay p), m = beta2 m + (1 - beta2) g
     * (Chen et al. 2023) */
    TUTTI_LION
} tutti_optimizer;
/* The name in checkpoints and for `tutti train --optimizer`: "sgd", "adam", ... NULL after the last optimizer. */
TUTTI_API const char *tutti_optimizer_name(tutti_optimizer optimizer);

/* Precision of the values between layers during a step, and of the operands of matrix products and convolutions. Sums,
 * parameters, their gradients, statistics and optimizer states are always float32, so checkpoints do not depend on the
 * precision. */
typedef enum tutti_precision {
    TUTTI_FP32,
    /* Activations and their gradients are stored as bfloat16 (8 bits of mantissa) if all kernels that use them support
     * it. This saves memory, and time in networks limited by memory bandwidth. GPU-class devices, and CPUs that
     * compute bf16 dot products (AVX512_BF16, AMX), also round the operands of products. The rest is as
     * TUTTI_FP32. */
    TUTTI_BF16,
    /* GPU-class devices round the operands of products to 11 bits of mantissa; CPUs with AMX to the sum of two bfloat16
     * numbers (16 bits). The rest is as TUTTI_FP32. */
    TUTTI_TF32,
    /* GPU-class devices round the operands of products to half precision (11 bits of mantissa, 6e-8 to 65504). The rest
     * is as TUTTI_FP32. The loss is scaled so that small gradients do not underflow (Micikevicius et al. 2018). If a
     * gradient overflows, the step updates nothing, logs a warning and halves the scale. After 2000 good steps in a row
     * the scale is doubled. */
    TUTTI_FP16
} tutti_precision;

/* State that stays on the device between calls of tutti_infer(), such as caches of keys and values or the states of
 * recurrent layers (tutti_sequences.h). The `output` of a call is the `input` of the next call, for each sample; the
 * first call reads zeros. An output that "scatter_elements" or "scatter_nd" makes of its input is written over that
 * input, unless another layer reads the input later: a new row of a cache costs a row. A call that fails may have
 * written such rows. */
typedef struct tutti_carry {
    tutti_tensor output; /* one of the trainer's outputs */
    tutti_tensor input;  /* of float32, with the output's shape, which has no TUTTI_SEQUENCE */
} tutti_carry;
typedef struct tutti_hosts tutti_hosts;                       /* tutti_hosts.h */
typedef struct tutti_advanced_options tutti_advanced_options; /* tutti_advanced.h */
typedef struct tutti_training {
    size_t size; /* sizeof(tutti_training), or 0 */
    tutti_loss loss;
    tutti_optimizer optimizer;
    float learning_rate; /* 0: 0.001 for Adam and AdamW, 0.002 for NAdam, 0.0001 for Lion, 0.01 for the others */
    float momentum;      /* SGD and RMSprop; the others ignore it */
    bool nesterov;       /* SGD with Nesterov's momentum; needs momentum > 0 */
    float weight_decay;  /* adds weight_decay * p to the gradient, except where the rule has it apart (AdamW, Lion) */
    /* 0: 0.9; 0.999, for RMSprop (PyTorch's alpha) and Lion 0.99; 1e-8, for Adagrad 1e-10 */
    float beta1, beta2, epsilon;
    uint64_t seed; /* of the initial weights, shuffling, dropout and random numbers */
    /* Samples of a step, over all devices and ranks. Plans are made for this number; smaller batches are allowed.
     * 0: 32 */
    int64_t batch;
    /* One number for each opened device: its part of every batch, on any positive scale. 0: the device is not used.
     * NULL: as `sharing` says. */
    const double *shares;
    /* Largest number of samples that a device computes at once; 0: as many as fit its memory. Gradients of
     * micro-batches are added up, so steps stay the same, except for batch normalisation: it uses the statistics of
     * each micro-batch. */
    int64_t micro_batch;
    bool exact; /* exclude algorithms that round more than a plain sum, such as Winograd's */
    /* Measure the kernels for problems that this device has never measured, and keep the times in the cache folder for
     * later runs. Takes seconds to minutes. */
    bool tune;
    tutti_precision precision;
    /* Reports how many of `total` kernels are built. The threads that build call it, one call at a time for each
     * device; devices call it concurrently. May be NULL. */
    void (*building)(void *user, int built, int total);
    void *building_user; /* first argument of building() */
    tutti_sharing sharing;
    /* Watchdog: seconds after which a device is lost if it has not finished its part of a step (step_limit_s) or its
     * plans (build_limit_s; 0: 30 min). The build limit also holds for a device's first step, first evaluation and
     * first inference. step_limit_s 0: max(60 s, 20 x the slowest step); until a device's second step has ended, the
     * build limit. A single device is watched only if step_limit_s is not 0 or ranks sum gradients. */
    double step_limit_s, build_limit_s;
    /* The ranks (tutti_hosts.h). NULL: this process trains alone. Else all ranks must call tutti_compile(), and `hosts`
     * must outlive the trainer.
     *   - `batch` is the batch of all ranks together. It is divided by the ranks' speed; with given shares or
     *     TUTTI_SHARES_EQUAL, by the sums of the ranks' device shares.
     *   - tutti_fit(), tutti_fit_source() and tutti_evaluate_source() expect the same data on every rank; each rank
     *     reads only its own samples.
     *   - tutti_train_step() and tutti_evaluate() expect the rank's own samples.
     *   - Metrics are over all ranks. Only rank 0 reads and writes files of weights and checkpoints. */
    tutti_hosts *hosts;
    /* Several devices: batch normalisation uses the statistics of the whole batch, forward and backward, not those of
     * each device's part. Any division of the batch then trains like one device, up to rounding. Devices wait for each
     * other at every such layer, over all ranks (if these average, see tutti_advanced.h, over the devices of one rank).
     * Micro-batches are not possible: a part of the batch that does not fit the memory of its devices fails with
     * TUTTI_DEVICE_MEMORY. */
    bool sync_batchnorm;
    /* Trained instead of `loss`: the sum of loss_weights[i] * losses[i] over at most 8 tensors that functions such as
     * tutti_cross_entropy() returned. loss_weights NULL: all are 1. A loss with weight 0 is a metric: it is reported,
     * not trained. */
    const tutti_tensor *losses;
    const float *loss_weights;
    int loss_count;
    /* Tensors that can be fetched besides `output`, at most 255. */
    const tutti_tensor *outputs;
    int output_count;
    bool fetch_in_training;                 /* allows tutti_train_fetch(): every step then keeps the outputs */
    const tutti_advanced_options *advanced; /* tutti_advanced.h; NULL: the defaults */
    /* Largest length that TUTTI_SEQUENCE stands for; 0 without such inputs. tutti_compile() makes plans for this
     * length and finds how many samples of it fit a device's memory. The first step of another length makes a plan,
     * which takes up to seconds. A device keeps its last eight plans, including those of evaluation and of other
     * numbers of samples: programs should pad sequences to a few lengths. */
    int64_t sequence;
    /* If the norm of all trained parameters' gradients together exceeds clip_norm, they are multiplied by
     * clip_norm / (norm + 1e-6), as PyTorch's clip_grad_norm_. INFINITY: the norm is only reported, by
     * tutti_gradient_norm(). 0: neither. */
    float clip_norm;
    /* Above 0 and below 1: each step updates averages of the trained parameters,
     * average += (1 - ema_decay) (parameter - average). An average begins as its parameter. Evaluation and inference
     * use the averages, with the running statistics of the training. Saved weights are the averages; the state of a
     * checkpoint has the parameters themselves. Setting or loading a parameter restarts its average. 0: no
     * averages. */
    float ema_decay;
    bool centered; /* RMSprop: divides by the deviation of the gradient. Refused with other optimizers */
    /* Adam and AdamW: the largest v of all steps in place of v (Reddi et al. 2018). Refused with other optimizers */
    bool amsgrad;
    /* Inputs of float32 whose gradients tutti_backward() computes (tutti_steps.h); at most 256 with all outputs. Every
     * step then computes them. */
    const tutti_tensor *gradient_inputs;
    int gradient_input_count;
    /* Another trainer of this network, or of one with the same parameters in the same order, equal constants and the
     * same runtime: the owner. This trainer, the reader, has no parameters: tutti_infer() and
     * tutti_evaluate() read the owner's newest ones, or their EMA (ema_decay). Batch, shares, precision and outputs may
     * differ. The reader may have a loss, for evaluations; calls that train, or that change or load parameters, fail
     * with TUTTI_INVALID. `hosts` must be NULL. One thread may train while another one calls tutti_infer() and
     * tutti_evaluate() of the reader: a step and such a call wait for each other. While views of the owner's parameters
     * or states are open, the reader's calls fail with TUTTI_INVALID. Either trainer may be freed first; after the
     * owner, the reader's calls that need parameters fail with TUTTI_INVALID. NULL: this trainer has parameters of its
     * own. */
    tutti_trainer *parameters_of;
    /* State that this trainer carries from one tutti_infer() to the next; its inputs are not fed. The trainer must have
     * no loss; with parameters_of it infers while another trainer trains. The device with the largest share computes
     * all samples, the first of equal ones. All calls have the same number of samples, at most `batch`, until
     * tutti_reset_carried(). A call that fails leaves the state as it was. If that device is lost, calls fail with
     * TUTTI_DEVICE_LOST until tutti_reset_carried(). */
    const tutti_carry *carries;
    int carry_count;
    /* Keeps fewer results of the forward pass for the backward pass, and computes the others again: activation
     * checkpointing (Chen et al. 2016). A step then computes up to twice the forward pass, and needs memory for about
     * the square root of as many layers. Results stay the same. */
    bool recompute;
} tutti_training;

/* Creates a trainer: initialises the parameters and builds a plan and a replica of the network on every opened device,
 * which takes up to minutes while kernels compile. `output` is the tensor that tutti_training.loss and tutti_infer()
 * use; it may be any tensor of the network. Layers on which it does not depend are not computed: their gradients are
 * zero, so that only weight decay changes their parameters, and their running statistics stay as they are; a warning
 * names them. `training` may be NULL: cross-entropy, SGD and the other defaults. The network must outlive the trainer,
 * and cannot grow while it has one: layers, inputs, parameters and constants that are added then fail.
 * Returns NULL on failure, also if adding a layer failed before, or if the loss depends on no trained parameter. */
TUTTI_API tutti_trainer *tutti_compile(tutti_network *network, tutti_tensor output, const tutti_training *training);
TUTTI_API void tutti_trainer_free(tutti_trainer *trainer);

typedef struct tutti_metrics {
    double loss; /* mean over the samples; excluded samples count with loss 0. Several losses: their weighted sum */
    /* Share of samples whose class is predicted correctly, 0 to 1, by the first loss that counts them; NaN if none
     * does. If the loss's targets are an input, excluded samples do not count, nor do excluded labels of samples with
     * several labels; 0 if nothing counts. */
    double accuracy;
    int64_t samples;
    double counted; /* samples in the accuracy; a sample with half of its labels excluded counts as a half */
} tutti_metrics;

/* An array of samples for one input of the network. Pass one for each input that the call needs, in any order; others
 * are checked and not read. Inference needs the inputs on which the fetched outputs depend; training and evaluation
 * need those of the losses. */
typedef struct tutti_feed {
    /* Name of the input. The targets of tutti_training.loss are called "targets". NULL: the input with the feed's own
     * position; inputs count in the order in which they were added, and "targets" come last. */
    const char *name;
    tutti_dtype dtype; /* type of the input; TUTTI_DTYPE_I64 also feeds an input of TUTTI_DTYPE_I32 */
    const void *data;  /* [samples][shape of a sample] */
    /* Length that TUTTI_SEQUENCE stands for in the shape of a sample, the same for all feeds of a call and on all
     * ranks. 0: the length of another feed of the call, else tutti_training.sequence. */
    int64_t length;
} tutti_feed;
/* An array for an output of the trainer. */
typedef struct tutti_fetch {
    tutti_tensor tensor; /* as it was passed to tutti_compile() */
    tutti_dtype dtype;   /* F32; F16 and BF16: values are rounded to it */
    void *data;          /* [samples][shape of a sample], with the feeds' length of sequences */
} tutti_fetch;

/* Trains one step on at least 1 sample and at most tutti_training.batch samples over all ranks. A rank without
 * samples passes 0, and its feeds may be NULL. `metrics` may be NULL.
 * Errors: TUTTI_INVALID if an input is missing or has another type; TUTTI_NOT_FINITE if the loss or a gradient is NaN
 * or infinite; nothing was updated then. With TUTTI_FP16, a step whose gradients overflow returns TUTTI_OK but updates
 * nothing, while the scale of the loss can still be lowered. */
TUTTI_API tutti_status tutti_train_step(
    tutti_trainer *trainer, const tutti_feed *feeds, int feed_count, int64_t samples, tutti_metrics *metrics);
/* Trains as tutti_train_step() does, and writes outputs of the forward pass of this step: before its update, with
 * dropout and the batch's statistics. Errors: TUTTI_INVALID without tutti_training.fetch_in_training. */
TUTTI_API tutti_status tutti_train_fetch(tutti_trainer *trainer, const tutti_feed *feeds, int feed_count,
    int64_t samples, const tutti_fetch *fetches, int fetch_count, tutti_metrics *metrics);
/* Gives the metrics of one of tutti_training.losses in the last tutti_train_step() or tutti_evaluate(), without its
 * weight. Errors: TUTTI_INVALID if there is no such loss, or no such call before. */
TUTTI_API tutti_status tutti_loss_metrics(const tutti_trainer *trainer, tutti_tensor loss, tutti_metrics *metrics);
/* Sets the learning rate of the steps that follow, on every rank to the same. Errors: TUTTI_INVALID if it is negative
 * or not finite. */
TUTTI_API tutti_status tutti_set_learning_rate(tutti_trainer *trainer, float learning_rate);
/* The learning rate: in callbacks of tutti_fit() with a schedule, that of the last step; else what
 * tutti_set_learning_rate() has set. NaN for NULL. */
TUTTI_API float tutti_learning_rate(const tutti_trainer *trainer);
/* The norm of all trained parameters' gradients in the last step, before they were clipped. NaN for NULL, before the
 * first step, after tutti_backward() until tutti_apply(), and without tutti_training.clip_norm. */
TUTTI_API float tutti_gradient_norm(const tutti_trainer *trainer);
/* Announces the samples of the step after the next one; call it before tutti_train_step(). If both steps have equally
 * many samples, devices with their own memory copy the announced samples while they compute. If automatic shares use
 * one device only, the host copies them meanwhile. Otherwise, and with int64 arrays, the call has no effect. Do not
 * modify the arrays until the announced step, or a different one in its place, has returned. A step that fails or is
 * refused ends all announcements, and so does tutti_backward(). */
TUTTI_API tutti_status tutti_train_prefetch(
    tutti_trainer *trainer, const tutti_feed *feeds, int feed_count, int64_t samples);
/* Computes loss and accuracy in inference mode, for any number of samples over all ranks; a rank may have none.
 * `metrics` may be NULL. */
TUTTI_API tutti_status tutti_evaluate(
    tutti_trainer *trainer, const tutti_feed *feeds, int feed_count, int64_t samples, tutti_metrics *metrics);
/* Computes outputs in inference mode, for any number of samples. With several ranks, each rank computes its own
 * samples. `feeds` may be NULL, and feed_count 0, where tutti_training.carries has all inputs. */
TUTTI_API tutti_status tutti_infer(tutti_trainer *trainer, const tutti_feed *feeds, int feed_count, int64_t samples,
    const tutti_fetch *fetches, int fetch_count);

/* Room for samples of one input, which a source fills. */
typedef struct tutti_buffer {
    const char *name;  /* of the input, or "targets" */
    tutti_dtype dtype; /* of the input; int32 for one that was added with TUTTI_DTYPE_I64 */
    void *data;        /* [count][shape of a sample] */
    size_t bytes;      /* of one sample */
    int64_t length;    /* of the batch's sequences, for all inputs; 0: no input has TUTTI_SEQUENCE in its shape */
} tutti_buffer;
/* A source of samples that need not be in memory. */
typedef struct tutti_source {
    int64_t samples;
    /* Writes the `count` samples with these indices, each 0 to samples - 1, into a buffer for each input that
     * training needs, in the order in which the inputs were added; "targets" come last. A background thread calls it,
     * one call at a time. Returns 0, or any other number on failure. The training then fails with TUTTI_FILE. Its
     * message contains the text that read() passed to tutti_fail(), or the message of a function of this library that
     * failed during this call; else this number. */
    int (*read)(void *user, const int64_t *indices, int64_t count, const tutti_buffer *buffers, int buffer_count);
    void *user;
    int64_t length; /* of the sequences of all its samples, as tutti_feed.length; with batch_length, the largest */
    /* Returns whether something else stands in for a sample that read() has written. Evaluations leave such samples out
     * of loss, accuracy and scores, and tutti_metrics.samples does not count them; training uses what stands in. NULL:
     * nothing does. */
    bool (*is_replaced)(void *user, int64_t index);
    /* Returns the length of sequences of a batch with these samples, from 1 to `length`: that of its longest sample, or
     * a larger one. read() then gets buffers of this length, and pads shorter samples. Losses count the padding unless
     * its labels are negative or weights exclude it. A source that runs on several ranks is asked for the whole batch
     * on each of them. It must return the same length for the same samples throughout an epoch; otherwise a resumed
     * training has another result. The thread that calls read() calls it; with `buckets`, so does the caller's thread,
     * when an epoch or an evaluation begins. NULL: all batches have `length`. */
    int64_t (*batch_length)(void *user, const int64_t *indices, int64_t count);
    /* With batch_length: divides the samples by their lengths, which batch_length() returns for one sample, into so
     * many ranges with about as many samples each, at most 64. A batch has samples of one range; at a border of ranges
     * it has samples of several. Its length is the largest one of the range of its longest sample. So little is padded,
     * and batches have at most so many lengths: devices keep eight plans (tutti_training.sequence). Which samples are
     * together, and the order of the batches, is random in each epoch; without shuffling, shorter samples come first.
     * 0: the order does not depend on lengths. */
    int buckets;
} tutti_source;

typedef struct tutti_progress {
    int64_t epoch, epochs;        /* from 1 */
    int64_t step, steps_in_epoch; /* of this epoch, from 1 */
    int64_t total_steps;          /* since the training began, including the part before a resume */
    tutti_metrics train;          /* over the epoch so far; at the end of an epoch, over the whole epoch */
    tutti_metrics test;           /* at the end of an epoch with test data; otherwise test.samples is 0 */
    double samples_per_s;         /* of training in this epoch so far, without tests */
    bool end_of_epoch;
    int64_t samples; /* trained by this call, over all ranks */
} tutti_progress;

typedef enum tutti_schedule_kind {
    TUTTI_SCHEDULE_CONSTANT,
    TUTTI_SCHEDULE_COSINE,    /* falls to `lowest` along half a cosine, by the end of the training */
    TUTTI_SCHEDULE_STEP,      /* times `factor` after every step_size epochs */
    TUTTI_SCHEDULE_ONE_CYCLE, /* rises from 1/25 of the rate for 3/10 of the steps, then falls to 1/250000 */
    TUTTI_SCHEDULE_PLATEAU    /* times `factor` after more than `patience` epochs without a lower loss */
} tutti_schedule_kind;
#define TUTTI_SCHEDULE_CALL (-1) /* tutti_schedule.steps */
/* Learning rates as functions of the step, with the formulas of PyTorch's schedulers (docs/training.md). The highest
 * rate is the trainer's, which tutti_set_learning_rate() may change meanwhile. */
typedef struct tutti_schedule {
    size_t size; /* sizeof(tutti_schedule), or 0 */
    tutti_schedule_kind kind;
    /* Steps of the whole training, including those before a resume. 0: the steps of tutti_fitting.epochs.
     * TUTTI_SCHEDULE_CALL: the training ends where tutti_fitting.steps ends this call. */
    int64_t steps;
    /* The rate rises linearly over so many steps or epochs first; give one of them. With ONE_CYCLE: how long it
     * rises. */
    int64_t warmup_steps, warmup_epochs;
    int64_t step_size; /* epochs; 0: 30 */
    float factor;      /* above 0 and below 1; 0: 0.1 */
    int64_t patience;  /* for PLATEAU; 0: 10. The loss is the test data's; without test data, the training's */
    float lowest;      /* of COSINE and PLATEAU */
} tutti_schedule;

typedef struct tutti_fitting {
    size_t size;    /* sizeof(tutti_fitting), or 0 */
    int64_t epochs; /* 0: 1. With resume: the total, including the epochs already done */
    int64_t steps;  /* stop after this many steps of this call; 0: no limit */
    int64_t batch;  /* at most the batch of tutti_training; 0: that batch */
    bool no_shuffle;
    const tutti_source *test; /* evaluated after each epoch; NULL: none */
    /* NAME: writes NAME.safetensors and NAME.state.safetensors after each epoch, at the end and when cancelled. Writing
     * is tried before training. If a file cannot be written after an epoch, the training logs a warning and goes on.
     * NULL: nothing is saved. */
    const char *save;
    const char *resume; /* NAME: continues from these two files; NULL: begins at epoch 1, unless after tutti_resume() */
    /* Called after each step and each epoch; or NULL. Returns 0 to go on. Any other number ends the training as
     * tutti_cancel() does: it saves if asked to, and returns TUTTI_CANCELLED. progress() may call, for the trainer that
     * trains: tutti_cancel(), tutti_evaluate(), tutti_evaluate_source(), tutti_evaluate_scores(), tutti_infer(),
     * tutti_save(), tutti_save_weights(), tutti_snapshot_take(), tutti_get_parameter(), tutti_set_parameter(),
     * tutti_get_gradient(), tutti_load_weights(), tutti_load_matching(), tutti_set_learning_rate(), and what reads
     * reports. Calls that train or move the position of the training fail with TUTTI_INVALID: tutti_fit(),
     * tutti_train_step(), tutti_train_prefetch(), tutti_find_rate(), tutti_resume(), tutti_snapshot_restore(). It must
     * not free the trainer. With several ranks, all call the same. Other trainers may be used at will. */
    int (*progress)(void *user, const tutti_progress *progress);
    void *user; /* first argument of progress() */
    /* Called with source->user (in tutti_fit(): with `user`) and the epoch, from 0, before the first sample of the
     * epoch is read; also if the epoch was resumed. For sources that augment. NULL: nothing is called. */
    void (*begin_epoch)(void *user, int64_t epoch);
    struct tutti_scores *scores;    /* of `test`: reset and filled by each evaluation (tutti_scores.h); NULL: none */
    const tutti_schedule *schedule; /* of the learning rate; NULL: it is constant */
    /* Stops after so many epochs in a row without a better result; epochs that were trained without patience do not
     * count. 0: never stops. If the first loss has an accuracy, better is a higher accuracy, or an equal one with a
     * lower loss; else a lower loss. The result is that of the test data; without test data, that of the training. */
    int64_t patience;
    /* With `save`: after each epoch with the best result so far, writes NAME.best.safetensors, the weights alone. */
    bool save_best;
    /* Returns when so many epochs are complete, as if they were all; the next call continues. 0: `epochs`. For
     * trainings that unfreeze parameters on the way (tutti_finetune.h). */
    int64_t pause_after;
    /* Of tutti_fit(): the length of sequences of each sample, from 1 to that of the arrays. Each batch has the length
     * of its longest sample, or with `buckets` the largest length of a range; what the arrays have after it is not
     * read. NULL: the length of the arrays. Other sources have tutti_source.batch_length. */
    const int64_t *lengths;
    int buckets; /* with `lengths`: as tutti_source.buckets */
} tutti_fitting;

/* Trains for several epochs over arrays. `fitting` may be NULL. If no device is left, or a rank is lost, it saves the
 * last complete step if `save` is set and the step can be read; tutti_message() says how to resume. Errors:
 * TUTTI_CANCELLED after tutti_cancel(), TUTTI_NOT_FINITE as tutti_train_step(). */
TUTTI_API tutti_status tutti_fit(
    tutti_trainer *trainer, const tutti_feed *feeds, int feed_count, int64_t samples, const tutti_fitting *fitting);
/* Trains as tutti_fit() does, over a source, which the call uses until it returns. */
TUTTI_API tutti_status tutti_fit_source(
    tutti_trainer *trainer, const tutti_source *source, const tutti_fitting *fitting);
/* Evaluates as tutti_evaluate() does, over a source. Errors: TUTTI_CANCELLED after tutti_cancel(). */
TUTTI_API tutti_status tutti_evaluate_source(
    tutti_trainer *trainer, const tutti_source *source, tutti_metrics *metrics);
/* Stops the running tutti_fit() or tutti_evaluate_source() after the current step: it saves if asked to, and returns
 * TUTTI_CANCELLED. Before the first of these calls, it cancels that call; after one has returned, it has no effect.
 * Any thread and any signal handler may call it. Accepts NULL. */
TUTTI_API void tutti_cancel(tutti_trainer *trainer);

/* Save or load weights and running statistics as safetensors, with PyTorch's names and shapes. Loading requires exactly
 * the network's parameters, as F32, F16, BF16 or F64 (PyTorch's num_batches_tracked is ignored). Otherwise it fails
 * with TUTTI_MISMATCH and changes nothing. */
TUTTI_API tutti_status tutti_save_weights(tutti_trainer *trainer, const char *path);
TUTTI_API tutti_status tutti_load_weights(tutti_trainer *trainer, const char *path);
/* Save or resume a checkpoint: NAME.safetensors (weights) and NAME.state.safetensors (optimizer state, step, epoch and
 * position in it). If the process is killed at any moment, a complete pair remains, the older or the newer. Errors:
 * TUTTI_MISMATCH if the checkpoint belongs to another network or optimizer; nothing changes then. */
TUTTI_API tutti_status tutti_save(tutti_trainer *trainer, const char *name);
TUTTI_API tutti_status tutti_resume(tutti_trainer *trainer, const char *name);

/* Keeps a text that tutti_save() and tutti_save_weights() write into "__metadata__" of the file of weights; NULL
 * removes it. tutti_resume() takes the file's texts for keys that were not set. Errors: TUTTI_INVALID if key or value
 * is not UTF-8, or the key is empty or "format". */
TUTTI_API tutti_status tutti_set_metadata(tutti_trainer *trainer, const char *key, const char *value);
/* Returns the text that a file of weights has for a key. Free it with free(). Returns NULL if the file cannot be read,
 * or has none. */
TUTTI_API char *tutti_weights_metadata(const char *path, const char *key);

/* Read or write one parameter or running statistic, by its name in saved files. `values` has `count` floats in
 * PyTorch's order. Errors: TUTTI_INVALID if there is no such name or `count` is not its number of elements. */
TUTTI_API tutti_status tutti_get_parameter(tutti_trainer *trainer, const char *name, float *values, int64_t count);
TUTTI_API tutti_status tutti_set_parameter(
    tutti_trainer *trainer, const char *name, const float *values, int64_t count);
/* Reads the gradient of the last training step for a parameter: the mean over the whole batch. After a step that
 * failed, it may be any number. After tutti_backward(), the kept one (tutti_steps.h), which is faster. */
TUTTI_API tutti_status tutti_get_gradient(tutti_trainer *trainer, const char *name, float *values, int64_t count);
/* Describes the parameter or running statistic at `position`, from 0, in the order in which the layers were added. The
 * name is valid until the network is freed. *trained is false for running statistics and frozen parameters. name, shape
 * and trained may be NULL. Errors: TUTTI_INVALID past the end. */
TUTTI_API tutti_status tutti_parameter_info(
    const tutti_network *network, int position, const char **name, tutti_shape *shape, bool *trained);

#ifdef __cplusplus
}
#endif

#include "tutti_layers.h"

#endif
