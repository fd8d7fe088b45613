/* Names that PyTorch's exporters write into a file: of tensors, which torch.export names after the operations that make
 * them, and lists of names. */
#ifndef ONNX_EXPORTED_NAMES_H
#define ONNX_EXPORTED_NAMES_H

#include "onnx/import.h"

/* What an operation does with elements. A lookup reads them by indices, perhaps several times. */
enum { RESHAPES = 1, TRANSPOSES = 2, MOVES = 4, LOOKS_UP = 8, CREATES = 16, REPEATS = 32 };
/* Bits of the operation that a tensor is named after, as "permute_1", "val_2#2", "split_1_split_0" or
 * "scalar_tensor_default". 0: the name is not one of the table's operations. */
unsigned operation_of(const char *name);
/* Whether an exporter made the value's name up. */
bool import_is_nameless(const struct import *import, const struct onnx_value *value);

/* "fc.bias" for "fc.weight", which the caller frees. NULL: the name does not end so, or there is no memory. */
char *bias_name(const char *weight);

/* The next name in a list such as "['fc.weight', 'val_1']", which the caller frees. *at starts at the list and moves
 * on. NULL: there is none, and *at is NULL, or there is no memory. */
char *list_next(const char **at);

#endif
