/* The messages of an export as a file, and arrays that do not fit it in a file next to it. */
#include "onnx/export/export.h"

#include "base/file.h"
#include "base/memory.h"
#include "base/numbers.h"
#include "onnx/metadata.h"

#include <stdlib.h>
#include <string.h>

/* The version of the format that came with an opset: other runtimes may refuse newer ones. */
static int64_t ir_version(int64_t opset)
{
    return opset >= 19 ? 9 : 8;
}

#define DEFAULT_EXTERNAL ((uint64_t)1 << 30)
/* Other runtimes read shapes and other small arrays before they look for external data. */
enum { LEAST_EXTERNAL = 1024, ALIGNMENT = 4096 };
enum { EXTERNAL_LOCATION = 1 };

static bool is_external(const Onnx__TensorProto *tensor)
{
    return tensor->raw_data.len >= LEAST_EXTERNAL;
}

static Onnx__StringStringEntryProto *new_entry(struct export *export, const char *key, const char *value)
{
    Onnx__StringStringEntryProto *entry = export_new(export, 1, sizeof *entry);
    if (!entry) return NULL;
    onnx__string_string_entry_proto__init(entry);
    entry->key = (char *)key;
    entry->value = (char *)value;
    return entry;
}

static const char *print_number(struct export *export, size_t number)
{
    char *text = export_new(export, 24, 1);
    if (text) number_print(text, 24, "%zu", number);
    return text;
}

/* Records in the message where the elements are, and removes them from it. */
static void move_out(struct export *export, Onnx__TensorProto *tensor, const char *location, size_t offset)
{
    Onnx__StringStringEntryProto **entries = export_new(export, 3, sizeof *entries);
    if (!entries) return;
    entries[0] = new_entry(export, "location", location);
    entries[1] = new_entry(export, "offset", print_number(export, offset));
    entries[2] = new_entry(export, "length", print_number(export, tensor->raw_data.len));
    tensor->external_data = entries;
    tensor->n_external_data = 3;
    tensor->has_data_location = true;
    tensor->data_location = EXTERNAL_LOCATION;
    tensor->has_raw_data = false;
}

static tutti_status pad(struct atomic_file *file, size_t *offset)
{
    static const char zeros[ALIGNMENT];
    const size_t after = size_round_up(*offset, ALIGNMENT) - *offset;
    *offset += after;
    return after ? atomic_file_write(file, zeros, after) : TUTTI_OK;
}

static tutti_status write_external(struct export *export, const char *location, struct atomic_file *file)
{
    tutti_status status = TUTTI_OK;
    size_t offset = 0;
    for (size_t i = 0; i < export->initialisers.count; i++) {
        Onnx__TensorProto *tensor = export->initialisers.items[i];
        if (!is_external(tensor)) continue;
        const ProtobufCBinaryData data = tensor->raw_data;
        TRY(pad(file, &offset));
        move_out(export, tensor, location, offset);
        TRY(export->status);
        TRY(atomic_file_write(file, data.data, data.len));
        offset += data.len;
    }
    status = atomic_file_flush(file);
done:
    return status;
}

static void fill_graph(const struct export *export, Onnx__GraphProto *graph)
{
    onnx__graph_proto__init(graph);
    graph->name = "network";
    graph->node = (Onnx__NodeProto **)export->nodes.items;
    graph->n_node = export->nodes.count;
    graph->initializer = (Onnx__TensorProto **)export->initialisers.items;
    graph->n_initializer = export->initialisers.count;
    graph->input = (Onnx__ValueInfoProto **)export->inputs.items;
    graph->n_input = export->inputs.count;
    graph->output = (Onnx__ValueInfoProto **)export->outputs.items;
    graph->n_output = export->outputs.count;
    graph->value_info = (Onnx__ValueInfoProto **)export->values.items;
    graph->n_value_info = export->values.count;
}

/* Writes what is known of the training's data, and which values are the network's own input and output. */
static tutti_status add_metadata(struct export *export, Onnx__ModelProto *model)
{
    const char *const texts[][2] = { { METADATA_DATA, export->data.text }, { METADATA_BEGIN, export->data.begin },
        { METADATA_END, export->data.end } };
    const size_t count = sizeof texts / sizeof *texts;
    model->metadata_props = export_new(export, count, sizeof *model->metadata_props);
    for (size_t i = 0; i < count && model->metadata_props; i++)
        if (texts[i][1]) model->metadata_props[model->n_metadata_props++] = new_entry(export, texts[i][0], texts[i][1]);
    return export->status;
}

static tutti_status write_model(struct export *export, struct atomic_file *file)
{
    enum { ML_OPSET = 2 };
    Onnx__GraphProto graph;
    Onnx__OperatorSetIdProto opset = ONNX__OPERATOR_SET_ID_PROTO__INIT, ml = opset, *opsets[] = { &opset, &ml };
    Onnx__ModelProto model = ONNX__MODEL_PROTO__INIT;
    fill_graph(export, &graph);
    opset.domain = "";
    opset.has_version = true;
    opset.version = export->opset;
    ml.domain = "ai.onnx.ml";
    ml.has_version = true;
    ml.version = ML_OPSET;
    model.has_ir_version = true;
    model.ir_version = ir_version(export->opset);
    model.producer_name = "tutti";
    model.producer_version = (char *)tutti_version();
    model.doc_string =
        "A trained network, as it is in inference. N: the number of samples; T: the length of sequences.";
    model.graph = &graph;
    model.opset_import = opsets;
    model.n_opset_import = export->uses_ml ? 2 : 1;
    if (add_metadata(export, &model) != TUTTI_OK) return export->status;
    const size_t bytes = onnx__model_proto__get_packed_size(&model);
    if (bytes > INT32_MAX) return fail(TUTTI_UNSUPPORTED, "the file would have %zu bytes: 2 GB are possible", bytes);
    unsigned char *packed = memory_new(bytes, 1);
    if (!packed) return TUTTI_NO_MEMORY;
    (void)onnx__model_proto__pack(&model, packed);
    const tutti_status status = atomic_file_write(file, packed, bytes);
    free(packed);
    return status == TUTTI_OK ? atomic_file_flush(file) : status;
}

/* Both files are complete before one of them gets its name. */
static tutti_status write_both(struct export *export, const char *path, const char *data)
{
    tutti_status status = TUTTI_OK;
    const char *slash = strrchr(data, '/');
    struct atomic_file *file = NULL, *data_file = NULL;
    TRY(atomic_file_open(&data_file, data));
    TRY(write_external(export, slash ? slash + 1 : data, data_file));
    TRY(atomic_file_open(&file, path));
    TRY(write_model(export, file));
    status = atomic_file_commit(data_file);
    data_file = NULL;
    if (status == TUTTI_OK) {
        status = atomic_file_commit(file);
        file = NULL;
    }
done:
    atomic_file_abandon(data_file);
    atomic_file_abandon(file);
    return status;
}

static tutti_status write_one(struct export *export, const char *path)
{
    struct atomic_file *file = NULL;
    tutti_status status = atomic_file_open(&file, path);
    if (status != TUTTI_OK) return status;
    status = write_model(export, file);
    if (status == TUTTI_OK) return atomic_file_commit(file);
    atomic_file_abandon(file);
    return status;
}

tutti_status export_write(struct export *export, const char *path, uint64_t external_bytes)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < export->initialisers.count; i++)
        bytes += ((const Onnx__TensorProto *)export->initialisers.items[i])->raw_data.len;
    if (bytes <= (external_bytes ? external_bytes : DEFAULT_EXTERNAL)) return write_one(export, path);
    char *data = memory_format("%s.data", path);
    if (!data) return TUTTI_NO_MEMORY;
    const tutti_status status = write_both(export, path, data);
    free(data);
    return status;
}
