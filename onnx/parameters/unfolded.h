/* Computations on parameters that PyTorch's newer exporter folded into initialisers (dynamo=True, unless
 * optimize=False), and that can be told from the initialiser's elements and the list of the names that it was computed
 * from: they become nodes again, which read the parameters. */
#ifndef ONNX_UNFOLDED_H
#define ONNX_UNFOLDED_H

#include "onnx/parameters/graph_edit.h"
#include "onnx/parameters/signature.h"

struct unfolding {
    struct import *import;
    struct signature signature;
    struct graph_edit edit;
};

/* Called before the names of the file are read. */
tutti_status import_unfold(struct import *import);

/* unfolded_gates.c: weights and biases of LSTM and GRU, whose gates the exporter put into ONNX's order. */
tutti_status unfold_recurrent(struct unfolding *u, const Onnx__NodeProto *node);
/* unfolded_copies.c: an initialiser that repeats a parameter for each sample, or is the bias of a step whose state is
 * 0. Others go to unfold_table(). */
tutti_status unfold_copies(struct unfolding *u, Onnx__TensorProto *tensor, const char *folded_from);

/* unfolded_tables.c: an initialiser of elements that were looked up in a parameter: its different elements become an
 * initialiser of its name, and a Gather repeats them. */
tutti_status unfold_table(
    struct unfolding *u, Onnx__TensorProto *tensor, const char *parameter, const struct array *array);
/* Whether another initialiser of floats was computed from the parameter. */
bool unfold_is_used_again(const struct unfolding *u, const Onnx__TensorProto *tensor, const char *parameter);

#endif
