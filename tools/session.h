/* What every command that works on a network does: open the devices, build the network, compile it. Failures are
 * reported to people at once; functions return exit statuses (failure.h). */
#ifndef TOOLS_SESSION_H
#define TOOLS_SESSION_H

#include "models/models.h"
#include "tools/lora.h"
#include "tools/onnx_options.h"
#include "tools/options.h"
#include "tools/report/page_text.h"
#include "tools/text_config.h"
#include "tutti_advanced.h"
#include "tutti_data.h"

#include <stdio.h>

enum { SESSION_MAX_DEVICES = 64, SESSION_MAX_MODELS = 32 };

struct session_options {
    tutti_runtime_options runtime;
    tutti_training training;
    tutti_advanced_options advanced; /* of `training` */
    const char *shares;
    int64_t memory_mib;
    struct onnx_options onnx;
    const char *config; /* of a network for texts */
    int rank;           /* of several processes: named in its log lines if it is not the first */
};

/* Lines of a table of options. */
#define DEVICE_OPTION(r)                                                                     \
    {                                                                                        \
        "devices", OPTION((r).devices), "LIST",                                              \
            "devices to use: indexes or parts of names separated by commas, all, gpu or cpu" \
    }
#define SESSION_OPTIONS(s)                                                                                             \
    { "config", OPTION((s).config), "FILE",                                                                            \
        "config.json of a network for texts, of speech or fno2d (default that of the weights, or the model's own)",    \
        .file = OPTION_READS },                                                                                        \
        ONNX_OPTIONS((s).onnx), OPTION_HEADING("Devices"), DEVICE_OPTION((s).runtime),                                 \
        { "shares", OPTION((s).shares), "LIST",                                                                        \
            "parts of the batch: auto (by speed, the default), equal, or a number for each device, such as 2,1" },     \
        { "micro-batch", OPTION((s).training.micro_batch), "N",                                                        \
            "largest number of samples that a device computes at once (default as many as fit)", 1, 1e9 },             \
        { "memory-limit", OPTION((s).memory_mib), "MIB", "MiB to use of each device's memory (default all)", 1, 1e9 }, \
        { "exact", OPTION((s).training.exact), NULL,                                                                   \
            "exclude algorithms that round more than a plain sum, such as Winograd's" },                               \
        { "precision", OPTION((s).training.precision), "TYPE",                                                         \
            "precision of stored activations and of products (default fp32)", .choices = session_precisions },         \
        { "tune", OPTION((s).training.tune), NULL,                                                                     \
            "measure kernels not measured before, and keep the times for later runs" },                                \
        { "tuning", OPTION((s).runtime.tuning), "FILE",                                                                \
            "choose kernels by this table, written by tutti tune; off: only by the tables shipped with tutti",         \
            .file = OPTION_READS },                                                                                    \
    {                                                                                                                  \
        "threads", OPTION((s).runtime.threads), "N", "host threads (default one per processor)", 1, 4096               \
    }

#define RECOMPUTE_OPTION(s)                                                                        \
    {                                                                                              \
        "recompute", OPTION((s).training.recompute), NULL,                                         \
            "need less memory: compute results of the forward pass again, instead of keeping them" \
    }

/* Options of commands that train, after the others. */
#define EXCHANGE_OPTIONS(s)                                                                                         \
    { "sync-batchnorm", OPTION((s).training.sync_batchnorm), NULL,                                                  \
        "normalise over the whole batch, not over each device's part of it" },                                      \
        { "wire", OPTION((s).advanced.wire), "TYPE",                                                                \
            "precision of gradients sent to the host and between hosts (default fp32)", .choices = session_wires }, \
    {                                                                                                               \
        "check-replicas", OPTION((s).advanced.check_replicas), NULL,                                                \
            "compare a checksum of each device's parameters with the master copy's in every step"                   \
    }

/* How a command reads an ONNX file. */
struct file_reading {
    bool any_ports;       /* it may have any inputs and outputs */
    bool as_it_is;        /* and a Softmax at its end is kept */
    bool raw;             /* ... with its nodes that prepare inputs and convert outputs */
    bool tells;           /* prints what its exporter did, on standard error */
    bool lists_constants; /* prints which initialisers train, and which do not */
};

struct session {
    const char *command;
    int rank;
    const struct model *model;
    tutti_runtime *runtime;
    tutti_network *network;
    tutti_tensor output;
    struct onnx_options onnx; /* of a file */
    const char *arrays;       /* a file with arrays for its inputs */
    tutti_onnx file;          /* what the file became; `network` is NULL for other models */
    /* Images that come as bytes, and how they are normalised on the device; NULL: inputs are floats. */
    const tutti_data_info *pixels;
    tutti_tensor loss;               /* as a node, which session_add_loss() makes */
    tutti_loss_options loss_options; /* of classes */
    bool soft;                       /* targets are probabilities of the classes */
    tutti_shape shape;               /* of a sample */
    tutti_tensor types;              /* of pairs of texts: an input; facts.types points to it; of speech: the input */
    struct model_facts facts;        /* of the data: set before session_build(), which completes them for texts */
    struct lora lora;                /* adapters of the network: set before session_build() */
    struct text_config config;       /* of a network for texts: its files are set before session_build() */
    int64_t classes, labels;         /* labels: of a sample, one for each pixel or token */
    struct file_reading reading;
    tutti_trainer *trainer;
    double shares[SESSION_MAX_DEVICES];
    tutti_training training; /* what the options say; the command adds the rest */
    tutti_advanced_options advanced;
};

extern const char *const session_precisions[], *const session_wires[]; /* in tutti_precision's order, ended by NULL */
/* The models' names, ended by NULL: what the MODEL argument may be, besides files whose names end in SESSION_FILES. */
const char *const *session_models(void);
#define SESSION_FILES ".onnx"
/* The model with this name, or one for the file: it has no `build`, and shape and classes are 0. */
const struct model *session_model(const char *name);

/* "linear, mlp and tabular take any numbers, lstm, gru and gpt texts, the others images [C, H, W].", for --help. */
const char *session_models_take(void);
/* A table of how `tutti train` trains each model unless options say otherwise, for --help. */
const char *session_models_defaults(void);
/* The MODEL argument, in a struct usage. */
#define MODEL_ARGUMENT \
    .argument = "MODEL", .arguments = session_models(), .arguments_take = session_models_take(), .suffix = SESSION_FILES
/* Checks that the model takes samples of this shape, those of the data if `info` is not NULL. Prints a line that names
 * models which do. */
int session_check_input(
    const char *command, const struct model *model, const tutti_shape *shape, const tutti_data_info *info);

int session_open(struct session *session, const char *command, const struct session_options *options);
/* Builds model for samples of this shape; classes are outputs for the linear model, and where tokens are the classes,
 * they are the vocabulary instead. An ONNX file has its own outputs: `classes` must be equal, or 0. session->shape and
 * session->classes are then those of the network. */
int session_build(struct session *session, const struct model *model, tutti_shape shape, int classes);
/* Checks that the network's output fits the data: one class for each sample or, if `masks` is not NULL, for each of
 * its pixels. Prints a line if it does not. */
int session_check_data(const struct session *session, const tutti_shape *masks);
/* If the output has classes for each pixel or token, targets are probabilities, or the loss has options, the loss is a
 * node: adds it once, if the training has a loss of classes. */
void session_add_loss(struct session *session);
/* Compiles session->training. */
int session_compile(struct session *session);
void session_close(struct session *session);

/* CxHxW or one number, as --input takes it. */
int parse_shape(const char *command, const char *text, tutti_shape *shape);

/* Arrays of the session's network as arguments of the public calls: what it reads, [batch][...] of bytes or floats (but
 * those of texts: infer_samples.c feeds them by name), and their targets, [batch][classes] of floats or [batch][labels]
 * of class numbers as its model's loss says; and its output, [batch][classes][labels] numbers. */
struct session_arrays {
    tutti_feed feeds[2];
    tutti_fetch fetch;
};
struct session_arrays session_arrays(
    const struct session *session, const void *inputs, const void *targets, float *outputs);

#endif
