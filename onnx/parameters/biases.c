/* PyTorch's newer exporter leaves out biases of zeros, such as those of layers that were never trained. The state dict
 * in the file tells that the layers have them. */
#include "onnx/parameters/exported_names.h"
#include "onnx/parameters/graph_edit.h"
#include "onnx/parameters/signature.h"

#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

/* The number of output channels, or 0. */
static size_t channels_of(const Onnx__NodeProto *node, const Onnx__TensorProto *weight)
{
    const bool gemm = !strcmp(node->op_type, "Gemm"), transposed = !strcmp(node->op_type, "ConvTranspose");
    if ((!gemm && !transposed && strcmp(node->op_type, "Conv")) || weight->n_dims < 2) return 0;
    const Onnx__AttributeProto *swapped = proto_attribute(node->attribute, node->n_attribute, "transB");
    const Onnx__AttributeProto *group = proto_attribute(node->attribute, node->n_attribute, "group");
    const int64_t size = weight->dims[transposed || (gemm && !(swapped && swapped->i))];
    const int64_t groups = transposed && group ? group->i : 1;
    return size > 0 && groups > 0 && size <= INT32_MAX / groups ? (size_t)(size * groups) : 0;
}

/* The layer's bias, if the state dict has it and the file does not. */
static struct signature_entry *find_bias(const struct signature *signature, const char *weight)
{
    char *name = bias_name(weight);
    struct signature_entry *entry = name ? signature_find(signature, name) : NULL;
    free(name);
    return entry && entry->parameter && !entry->present ? entry : NULL;
}

static tutti_status add_zeros(Onnx__GraphProto *graph, const char *name, size_t count)
{
    struct graph_edit edit = { .graph = graph };
    const int64_t size = (int64_t)count;
    float *zeros = memory_new(count, sizeof *zeros);
    const tutti_status status = zeros ? edit_add_floats(&edit, name, 1, &size, zeros) : TUTTI_NO_MEMORY;
    free(zeros);
    return status;
}

/* Makes the node read the initialiser as its third input. */
static tutti_status read_bias(Onnx__NodeProto *node, const char *name)
{
    char *copy = memory_copy_text(name);
    char **inputs = realloc(node->input, 3 * sizeof *inputs);
    if (inputs) node->input = inputs;
    if (!copy || !inputs) return free(copy), TUTTI_NO_MEMORY;
    if (node->n_input == 3) free(node->input[2]);
    node->input[2] = copy;
    node->n_input = 3;
    return TUTTI_OK;
}

static tutti_status restore_bias(struct import *import, const struct signature *signature, Onnx__NodeProto *node)
{
    if (node->n_input < 2 || node->n_input > 3 || (node->n_input == 3 && *node->input[2])) return TUTTI_OK;
    const struct onnx_value *weight = import_find(import, node->input[1]);
    if (!weight || !weight->initialiser || !weight->stored || weight->type != ONNX_FLOAT) return TUTTI_OK;
    struct signature_entry *entry =
        find_bias(signature, weight->origin.state_name ? weight->origin.state_name : weight->name);
    const size_t count = entry ? channels_of(node, weight->stored) : 0;
    if (!count || import_find(import, entry->name)) return TUTTI_OK;
    struct onnx_value *bias = NULL;
    Onnx__GraphProto *graph = import->model->graph;
    tutti_status status = add_zeros(graph, entry->name, count);
    if (status != TUTTI_OK) return status;
    const Onnx__TensorProto *tensor = graph->initializer[graph->n_initializer - 1];
    status = read_bias(node, entry->name);
    if (status == TUTTI_OK) status = import_add_name(import, tensor->name, &bias);
    if (status != TUTTI_OK) return status;
    bias->stored = tensor;
    bias->type = ONNX_FLOAT;
    bias->initialiser = entry->present = true;
    bias->origin.kind = "PARAMETER";
    bias->origin.state_name = memory_copy_text(entry->name);
    if (!bias->origin.state_name) return TUTTI_NO_MEMORY;
    bias->usage.nodes++;
    import_note(import, "the exporter left out %s, which is 0: it trains from 0", entry->name);
    return TUTTI_OK;
}

tutti_status import_restore_biases(struct import *import, const struct signature *signature)
{
    const Onnx__GraphProto *graph = import->model->graph;
    tutti_status status = TUTTI_OK;
    for (size_t i = 0; signature->count && i < graph->n_node && status == TUTTI_OK; i++)
        status = restore_bias(import, signature, graph->node[i]);
    return status;
}

void import_note_left_out(const struct import *import, const struct signature *signature)
{
    struct name_list list = { .length = 0 };
    for (size_t i = 0; i < signature->count; i++) {
        const struct signature_entry *entry = &signature->entries[i];
        if (entry->parameter && !entry->present && !entry->value) name_list_add(&list, entry->name);
    }
    if (list.count)
        import_note(import,
            "warning: %zu parameter%s of the exported module %s not in the file, and cannot train: %s%s; if the module "
            "uses %s, torch.onnx.export(..., optimize=False) keeps %s",
            list.count, list.count == 1 ? "" : "s", list.count == 1 ? "is" : "are", list.names, name_list_end(&list),
            list.count == 1 ? "it" : "them", list.count == 1 ? "it" : "them");
}
