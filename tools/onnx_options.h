/* Options of commands that read an ONNX file, as the library takes them. */
#ifndef TOOLS_ONNX_OPTIONS_H
#define TOOLS_ONNX_OPTIONS_H

#include "tools/options.h"
#include "tutti_onnx.h"

struct onnx_options {
    int64_t head;
    bool whole, train_constants;
    struct texts sizes, batch_axes, known;
};

/* Lines of a table of options. */
#define ONNX_OPTIONS(o)                                                                              \
    OPTION_HEADING("Networks from ONNX files"),                                                      \
        { .name = "head",                                                                            \
            .kind = OPTION_INTEGER,                                                                  \
            .value = &(o).head,                                                                      \
            .noun = "N",                                                                             \
            .low = 1,                                                                                \
            .high = 1e6,                                                                             \
            .help = "give the last layer N outputs, with new initial values" },                      \
        { .name = "sizes",                                                                           \
            .kind = OPTION_TEXTS,                                                                    \
            .value = &(o).sizes,                                                                     \
            .noun = "NAME=N,...",                                                                    \
            .help = "sizes that the file leaves open, as sequence=128, or x.1=128 (axis 1 of x)" },  \
        { .name = "batch-axis",                                                                      \
            .kind = OPTION_TEXTS,                                                                    \
            .value = &(o).batch_axes,                                                                \
            .noun = "N,NAME=N,...",                                                                  \
            .help = "axis of inputs that is the batch (default 0): of all, and of the input NAME" }, \
        { .name = "whole",                                                                           \
            .kind = OPTION_FLAG,                                                                     \
            .value = &(o).whole,                                                                     \
            .help = "no axis is the batch: a sample is all of each input" },                         \
        { .name = "known",                                                                           \
            .kind = OPTION_TEXTS,                                                                    \
            .value = &(o).known,                                                                     \
            .noun = "NAME=VALUE",                                                                    \
            .help = "the input NAME is this constant: a number, numbers as 2,3, or a .npy file" },   \
    {                                                                                                \
        .name = "train-constants", .kind = OPTION_FLAG, .value = &(o).train_constants,               \
        .help = "train initialisers that are not parameters of the exported module, as buffers"      \
    }

/* Returns whether --known has the input. */
bool onnx_options_knows(const struct onnx_options *options, const char *name);
/* The name of an option that was given, or NULL: other models take none. */
const char *onnx_options_given(const struct onnx_options *options);

/* Reads the library's options, except those that the command decides. `arrays`: a .npz file, whose arrays give the
 * sizes of the inputs with their names; or NULL. Returns an exit status. */
struct onnx_read;
int onnx_options_read(
    const char *command, const struct onnx_options *options, const char *arrays, struct onnx_read **read);
const tutti_onnx_options *onnx_options_of(const struct onnx_read *read);
void onnx_options_free(struct onnx_read *read); /* accepts NULL */

#endif
