/* Options of commands that read an ONNX file, as the library takes them. */
#ifndef TOOLS_ONNX_OPTIONS_H
#define TOOLS_ONNX_OPTIONS_H

#include "tools/options.h"
#include "tutti_onnx.h"

struct onnx_options {
    tutti_onnx_options import;
    struct texts sizes, batch_axes, known; /* from which the others follow */
};

/* Lines of a table of options. */
#define ONNX_OPTIONS(o)                                                                                             \
    OPTION_HEADING("Networks from ONNX files"),                                                                     \
        { "head", OPTION((o).import.head), "N", "give the last layer N outputs, with new initial values", 1, 1e6 }, \
        { "sizes", OPTION((o).sizes), "NAME=N,...",                                                                 \
            "sizes that the file leaves open, as sequence=128, or x.1=128 (axis 1 of x)" },                         \
        { "batch-axis", OPTION((o).batch_axes), "N,NAME=N,...",                                                     \
            "axis of inputs that is the batch (default 0): of all, and of the input NAME" },                        \
        { "whole", OPTION((o).import.whole), NULL, "no axis is the batch: a sample is all of each input" },         \
        { "known", OPTION((o).known), "NAME=VALUE",                                                                 \
            "the input NAME is this constant: a number, numbers as 2,3, or a .npy file",                            \
            .file = OPTION_READS_ARRAYS },                                                                          \
    {                                                                                                               \
        "train-constants", OPTION((o).import.train_constants), NULL,                                                \
            "train initialisers that are not parameters of the exported module, as buffers"                         \
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
