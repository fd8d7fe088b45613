#include "onnx/parameters/unfolded.h"

#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

static bool is_recurrent(const Onnx__NodeProto *node)
{
    return !strcmp(node->op_type, "LSTM") || !strcmp(node->op_type, "GRU");
}

static tutti_status unfold_nodes(struct unfolding *u)
{
    tutti_status status = TUTTI_OK;
    for (size_t i = 0; i < u->edit.graph->n_node && status == TUTTI_OK; i++)
        if (is_recurrent(u->edit.graph->node[i])) status = unfold_recurrent(u, u->edit.graph->node[i]);
    return status;
}

/* Initialisers are added and removed on the way: their names are listed first. */
static tutti_status unfold_initialisers(struct unfolding *u)
{
    const Onnx__GraphProto *graph = u->edit.graph;
    const size_t count = graph->n_initializer;
    tutti_status status = TUTTI_OK;
    char **names = memory_new(count + 1, sizeof *names);
    if (!names) return TUTTI_NO_MEMORY;
    for (size_t i = 0; i < count && status == TUTTI_OK; i++)
        if (!(names[i] = memory_copy_text(proto_text(graph->initializer[i]->name)))) status = TUTTI_NO_MEMORY;
    for (size_t i = 0; i < count && status == TUTTI_OK; i++) {
        const char *folded_from = signature_folded_from(graph, names[i]);
        Onnx__TensorProto *tensor = folded_from ? edit_find(&u->edit, names[i]) : NULL;
        const bool floats = tensor && tensor->data_type == ONNX_FLOAT && tensor->n_dims <= ARRAY_MAX_RANK;
        if (floats && !edit_is_output(&u->edit, names[i])) status = unfold_copies(u, tensor, folded_from);
    }
    for (size_t i = 0; i < count; i++) free(names[i]);
    free(names);
    return status;
}

tutti_status import_unfold(struct import *import)
{
    struct unfolding u = { .import = import, .edit.graph = import->model->graph };
    if (import->expanded.opsets) return TUTTI_OK; /* opsets and guards are by positions, which new nodes would move */
    tutti_status status = signature_read_names(u.edit.graph, &u.signature);
    if (status == TUTTI_OK && u.signature.count) status = unfold_nodes(&u);
    if (status == TUTTI_OK && u.signature.count) status = unfold_initialisers(&u);
    status = edit_finish(&u.edit, status);
    signature_free(&u.signature);
    return status;
}
