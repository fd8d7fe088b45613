/* The samples of a file of arrays as inputs of any network, and its outputs as such a file. */
#ifndef TOOLS_ARRAYS_H
#define TOOLS_ARRAYS_H

#include "tools/saved.h"

/* Reads the file `inputs`, a .npz with an array [samples, ...] for each input of the network, or a .npy for the only
 * one; computes all named outputs of all samples, and writes them by their names. An error line for each array that
 * does not fit. Returns an exit status. */
int arrays_infer(struct session *session, const struct saved_options *options, const char *inputs, const char *outputs);

#endif
