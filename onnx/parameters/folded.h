/* Initialisers that PyTorch's newer exporter computed from parameters (dynamo=True, unless optimize=False). The file
 * lists the names of all tensors of such a computation, but not its operations. */
#ifndef ONNX_FOLDED_H
#define ONNX_FOLDED_H

#include "onnx/parameters/signature.h"

/* Whether the order of the initialiser's elements is known: that of the parameter `state_name`, or that of its
 * transpose if a product reads the initialiser as a transposed weight (read_by_product). */
bool folded_order_is_known(const struct onnx_value *value, bool read_by_product);
/* Makes the initialiser a view of a parameter that it was computed from, or of an earlier initialiser that was
 * computed from the same parameter, if it has its elements; *same: whether it does. */
tutti_status folded_tie(const struct import *import, struct onnx_value *value, bool transposed, bool *same);
/* Whether a parameter of the state dict is among the tensors that the initialiser was computed from. */
bool folded_has_parameter(const struct signature *signature, const struct onnx_value *value);
/* Decides whether the initialiser trains, and notes what it holds. */
tutti_status folded_check(struct import *import, const struct signature *signature, struct onnx_value *value);
/* Notes batch normalisations that the exporter folded into convolutions. */
void folded_note_norms(const struct import *import);

#endif
