/* What `tutti export` keeps in metadata_props of a file. */
#ifndef ONNX_METADATA_H
#define ONNX_METADATA_H

#include "onnx/proto.h"

#define METADATA_DATA "tutti.data" /* what tutti_data_json() said of the training's data */
#define METADATA_BEGIN                                                                                               \
    "tutti.network_input"                   /* values of the graph: nodes prepare the first one for the network, ... \
                                             */
#define METADATA_END "tutti.network_output" /* ... and convert the second one */

/* NULL: the file has no such text. */
const char *metadata_find(const Onnx__ModelProto *model, const char *key);
/* Removes the nodes before the network's input and those after its output, and makes these two the only input and
 * output. Files without such nodes stay as they are. Errors: TUTTI_NO_MEMORY. */
tutti_status metadata_cut(Onnx__ModelProto *model);

#endif
