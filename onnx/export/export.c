/* tutti_export_onnx(): walks the nodes that the outputs need, and writes each by the table of export_layers.c. */
#include "onnx/export/export.h"

#include "base/memory.h"
#include "base/options.h"
#include "base/text.h"
#include "tutti_inspect.h"

#include <search.h>
#include <stdlib.h>
#include <string.h>

/* --------------------------------------------------------------------------------------------- what is needed ---- */

static tutti_node_info node_at(struct export *export, int position)
{
    tutti_node_info info = { .size = sizeof info };
    const tutti_status status = tutti_network_node(export->network, position, &info);
    if (status != TUTTI_OK) export_fail(export, status);
    return info;
}

/* The largest id of a tensor is that of a node's output or of an input. */
static void count_tensors(struct export *export)
{
    tutti_tensor tensor;
    int most = 0;
    for (int i = 0; tutti_network_input(export->network, i, &tensor) == TUTTI_OK; i++)
        if (tensor.id > most) most = tensor.id;
    for (int i = 0; i < tutti_network_nodes(export->network); i++) {
        const tutti_node_info node = node_at(export, i);
        for (int k = 0; k < node.input_count; k++)
            if (node.inputs[k].id > most) most = node.inputs[k].id;
        for (int k = 0; k < node.output_count; k++)
            if (node.outputs[k].id > most) most = node.outputs[k].id;
    }
    export->tensor_count = (size_t)most + 1;
    export->needed = export_new(export, export->tensor_count, sizeof *export->needed);
    export->tensor_names = export_new(export, export->tensor_count, sizeof *export->tensor_names);
}

static bool is_needed(const struct export *export, const tutti_node_info *node)
{
    for (int i = 0; i < node->output_count; i++)
        if (node->outputs[i].id >= 0 && export->needed[node->outputs[i].id]) return true;
    return false;
}

/* Inputs of a node come before it. So one walk from the last node to the first one finds all. */
static void find_needed(struct export *export)
{
    tutti_tensor output;
    for (int i = 0; tutti_network_output(export->network, i, NULL, &output) == TUTTI_OK; i++)
        export->needed[output.id] = true;
    for (int i = tutti_network_nodes(export->network) - 1; i >= 0; i--) {
        const tutti_node_info node = node_at(export, i);
        if (!is_needed(export, &node)) continue;
        tutti_node_info dense;
        const bool absorbs = export_absorbed(export, &node, &dense);
        for (int k = absorbs; k < node.input_count; k++)
            if (node.inputs[k].id >= 0) export->needed[node.inputs[k].id] = true;
        for (int k = 0; absorbs && k < dense.input_count; k++)
            if (dense.inputs[k].id >= 0) export->needed[dense.inputs[k].id] = true;
    }
}

/* Reports all operations without a form in ONNX in one message, and finds the opset that has the others. */
static void check_operations(struct export *export)
{
    struct text text = { 0 };
    export->opset = LEAST_OPSET;
    for (int i = 0; i < tutti_network_nodes(export->network) && text.size < 1000; i++) {
        const tutti_node_info node = node_at(export, i);
        struct export_row row;
        if (!is_needed(export, &node)) continue;
        const bool found = export_find(node.operation, &row);
        if (found && row.opset > export->opset) export->opset = row.opset;
        if (!found)
            text_append(&text, "%s%s (layer %s)", text.size ? ", " : "", node.operation, node.layer ? node.layer : "");
    }
    if (text.size || text.failed)
        export_fail(
            export, fail(TUTTI_UNSUPPORTED, "these operations have no form in ONNX: %s", text.failed ? "" : text.data));
    text_free(&text);
}

/* --------------------------------------------------------------------------------------- ports of the file ---- */

static void add_inputs(struct source *source)
{
    struct export *export = source->export;
    tutti_tensor input;
    for (int i = 0; tutti_network_input(export->network, i, &input) == TUTTI_OK; i++) {
        if (!export->needed[input.id]) continue;
        const tutti_tensor_info info = source_tensor(source, input);
        export->tensor_names[input.id] = export_name(export, info.name);
        export_add_port(export, &export->inputs, export->tensor_names[input.id], &info);
    }
}

/* Parameters and inputs keep their names, so these are taken first. The first name of a layer's output becomes that of
 * the tensor; others are copies. */
static void add_outputs(struct source *source)
{
    struct export *export = source->export;
    tutti_tensor output;
    const char *name;
    for (int i = 0; tutti_network_output(export->network, i, &name, &output) == TUTTI_OK; i++) {
        const tutti_tensor_info info = source_tensor(source, output);
        const char *taken = export_name(export, name);
        if (info.kind == TUTTI_TENSOR_LAYER && !export->tensor_names[output.id])
            export->tensor_names[output.id] = taken;
        export_add_port(export, &export->outputs, taken, &info);
    }
}

/* Adds an Identity for each output whose tensor has another name in the file. */
static void add_copies(struct source *source)
{
    struct export *export = source->export;
    tutti_tensor output;
    for (int i = 0; tutti_network_output(export->network, i, NULL, &output) == TUTTI_OK; i++) {
        if ((size_t)i >= export->outputs.count) break;
        const char *name = ((Onnx__ValueInfoProto *)export->outputs.items[i])->name;
        *source = (struct source) {
            .export = export, .first = export->nodes.count, .info = { .operation = "output", .input_count = 1 }
        };
        source->info.inputs[0] = output;
        const char *from = source_input(source, 0);
        if (strcmp(from, name) != 0) (void)source_node(source, "Identity", from, NULL, NULL, name);
    }
}

static void add_parameters(struct source *source)
{
    struct export *export = source->export;
    for (size_t id = 0; id < export->tensor_count && export->status == TUTTI_OK; id++) {
        const tutti_tensor tensor = { (int)id };
        tutti_tensor_info info = { .size = sizeof info };
        if (!export->needed[id] || tutti_network_tensor(export->network, tensor, &info) != TUTTI_OK) continue;
        if (info.kind != TUTTI_TENSOR_PARAMETER && info.kind != TUTTI_TENSOR_STATISTIC) continue;
        source->info.input_count = 1;
        source->info.inputs[0] = tensor;
        (void)source_input(source, 0);
    }
}

/* ------------------------------------------------------------------------------------------------------ the call */

static void add_node(struct export *export, int position)
{
    struct source source = { .export = export, .info = node_at(export, position), .first = export->nodes.count };
    if (export->status != TUTTI_OK || !is_needed(export, &source.info)) return;
    char *attributes = tutti_network_attributes(export->network, position);
    if (!attributes) {
        export_fail(export, TUTTI_NO_MEMORY);
        return;
    }
    source.attributes = attributes;
    source.x = source_tensor(&source, source.info.inputs[0]);
    source.y = source_tensor(&source, source.info.outputs[0]);
    if (export->status == TUTTI_OK && export_find(source.info.operation, &source.row)) source.row.write(&source);
    free(attributes);
}

static void add_all(struct export *export)
{
    struct source source = { .export = export, .info = { .operation = "network" } };
    if (export->data.prepares) {
        add_parameters(&source); /* whose names stay, too */
        export_name_columns(export);
    }
    add_inputs(&source);
    add_parameters(&source);
    add_outputs(&source);
    if (export->data.prepares && export->status == TUTTI_OK) export_prepare(export);
    for (int i = 0; i < tutti_network_nodes(export->network) && export->status == TUTTI_OK; i++) add_node(export, i);
    if (export->status == TUTTI_OK) add_copies(&source);
    if (export->data.prepares && export->status == TUTTI_OK) export_finish(export);
}

static void keep_name(void *name)
{
    (void)name; /* it is in export.owned */
}

static void export_free(struct export *export)
{
    tdestroy(export->names, keep_name);
    tdestroy(export->node_names, keep_name);
    for (size_t i = 0; i < export->owned.count; i++) free(export->owned.items[i]);
    free(export->owned.items);
    free(export->nodes.items);
    free(export->initialisers.items);
    free(export->inputs.items);
    free(export->outputs.items);
    free(export->values.items);
    export_data_close(export);
}

tutti_status tutti_export_onnx(
    const tutti_network *network, tutti_trainer *trainer, const char *path, const tutti_onnx_export_options *options)
{
    tutti_onnx_export_options read;
    struct export export = { .network = network, .trainer = trainer };
    tutti_status status = OPTIONS_READ(&read, options, tutti_onnx_export_options);
    if (status != TUTTI_OK) return status;
    if (tutti_network_output(network, 0, NULL, NULL) != TUTTI_OK)
        return fail(TUTTI_INVALID, "%s: the network has no output with a name: call tutti_output()", path);
    status = export_data_open(&export, read.data, read.with_preparation);
    if (status != TUTTI_OK) goto done;
    count_tensors(&export);
    if (export.status == TUTTI_OK) find_needed(&export);
    if (export.status == TUTTI_OK) check_operations(&export);
    if (export.status == TUTTI_OK) add_all(&export);
    status = export.status == TUTTI_OK ? TUTTI_OK : status_context(export.status, "%s", path);
    if (status == TUTTI_OK) status = export_write(&export, path, read.external_bytes);
done:
    export_free(&export);
    return status;
}
