/* Infers with any network: reads its inputs from a file of arrays, and writes its outputs to such a file. */
#ifndef TOOLS_ARRAYS_H
#define TOOLS_ARRAYS_H

#include "tools/saved.h"

/* A line of a table of options; the error if the model is not a file. */
#define EXPECT_OPTION(text)                                                                                  \
    {                                                                                                        \
        "expect", OPTION(text), "FILE",                                                                      \
            "of an ONNX file: first compare its outputs with those in this .npz file of inputs and outputs", \
            .file = OPTION_READS                                                                             \
    }
int expects_a_file(const char *command);

/* Reads the file `inputs`, a .npz with an array [samples, ...] for each input of the network, or a .npy for the only
 * one; computes all named outputs of all samples, and writes them by their names. Prints an error line for each array
 * that does not fit. `prepare`: does to the inputs what training did, and gives numbers in the units of the data; a
 * line says which of the two it is. Returns an exit status. */
int arrays_infer(struct session *session, const struct saved_options *options, const char *inputs, const char *outputs,
    bool prepare);

/* Computes the outputs of a built network from the inputs in a file, and compares them with outputs of another
 * runtime in the same file. Prints a line for each; the exit status tells whether all agree to 1e-4 of the largest
 * number. The network is not compiled afterwards. */
int arrays_expect(struct session *session, const char *path);

#endif
