/* Nodes between raw data and the network, in a file with preparation. */
#include "onnx/export/export.h"

#include <jansson.h>
#include <string.h>

/* ----------------------------------------------------------------------------------------------------- input ---- */

static tutti_tensor_info find_input(struct export *export)
{
    tutti_tensor input;
    tutti_tensor_info info = { .size = sizeof info };
    for (int i = 0; tutti_network_input(export->network, i, &input) == TUTTI_OK; i++)
        if (export->needed[input.id]) export_fail(export, tutti_network_tensor(export->network, input, &info));
    return info;
}

static size_t elements_of(const tutti_shape *shape)
{
    size_t elements = 1;
    for (int i = 0; i < shape->rank; i++) elements *= (size_t)shape->sizes[i];
    return elements;
}

/* The features that the columns become. */
static size_t width_of(const struct export_data *data)
{
    size_t width = 0;
    for (size_t i = 0; i < data->column_count; i++) {
        const struct export_column *column = &data->columns[i];
        width += column->code ? 1 : column->indicator + (column->is == COLUMN_CATEGORY ? column->categories + 1 : 1);
    }
    return width;
}

/* Whether samples are bytes, which are divided by 255. */
static bool are_bytes(const struct export_data *data)
{
    static const char *const images[] = { "images", "masks", "IDX", "CIFAR-10", "CIFAR-100", "digits" };
    bool bytes = json_is_true(json_object_get(data->object, "bytes"));
    for (size_t i = 0; i < sizeof images / sizeof *images; i++) bytes |= !strcmp(data->kind, images[i]);
    return bytes;
}

static bool says_nothing(const double *mean, const double *std, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if ((float)mean[i] != 0 || (float)std[i] != 1) return false;
    return true;
}

/* Floats or doubles, for each channel of a sample or each number. */
static const char *add_constant(
    struct source *source, enum onnx_type type, const double *numbers, size_t count, int rank)
{
    tutti_shape shape = { .rank = rank, .sizes = { (int64_t)count } };
    for (int i = 1; i < rank; i++) shape.sizes[i] = 1;
    if (type == ONNX_DOUBLE) return source_constant(source, type, &shape, numbers);
    float *rounded = export_new(source->export, count, sizeof *rounded);
    for (size_t i = 0; i < count && rounded; i++) rounded[i] = (float)numbers[i];
    return rounded ? source_constant(source, type, &shape, rounded) : "";
}

/* (x - mean) / std; doubles are limited and become floats. */
static void normalise(struct source *source, const char *x, enum onnx_type type, const tutti_shape *shape, size_t count)
{
    static const double limits[] = { -1e9, 1e9 };
    const json_t *object = source->export->data.object;
    const double *mean = export_data_numbers(source->export, object, "mean", count, false);
    const double *std = export_data_numbers(source->export, object, "std", count, true);
    if (!mean || !std || (type == ONNX_FLOAT && says_nothing(mean, std, count))) return;
    x = source_step(source, "Sub", x, add_constant(source, type, mean, count, shape->rank));
    x = source_step(source, "Div", x, add_constant(source, type, std, count, shape->rank));
    if (type == ONNX_FLOAT) return;
    const char *least = add_constant(source, type, &limits[0], 1, 0), *limited = source_temporary(source);
    (void)source_node(source, "Clip", x, least, add_constant(source, type, &limits[1], 1, 0), limited);
    (void)source_cast(source, limited, ONNX_FLOAT);
}

/* Pixels, or arrays of numbers. */
static void prepare_array(struct export *export, const tutti_tensor_info *info, bool bytes, size_t count)
{
    const double most = 255;
    const char *name = export_name(export, bytes ? "pixels" : "numbers");
    struct source source = { .export = export, .info = { .layer = "preparation", .operation = "preparation" } };
    Onnx__ValueInfoProto *port = export_port(export, name, bytes ? ONNX_UINT8 : ONNX_DOUBLE, &info->shape, true);
    port->doc_string = bytes ? "from 0 to 255" : NULL;
    (void)export_add(export, &export->inputs, port);
    const char *x = name;
    if (bytes) {
        x = source_cast(&source, x, ONNX_FLOAT);
        x = source_step(&source, "Div", x, add_constant(&source, ONNX_FLOAT, &most, 1, 0));
    }
    if (count) normalise(&source, x, bytes ? ONNX_FLOAT : ONNX_DOUBLE, &info->shape, count);
}

static void prepare_recordings(struct export *export, const tutti_tensor_info *info, size_t count)
{
    struct source source = { .export = export, .info = { .layer = "preparation", .operation = "preparation" } };
    const char *x = export_spectrogram(&source, &info->shape);
    if (export->status == TUTTI_OK && count) normalise(&source, x, ONNX_FLOAT, &info->shape, count);
}

static tutti_status refuse_input(const struct export *export, const tutti_tensor_info *info)
{
    const size_t features = elements_of(&info->shape);
    if (export->inputs.count != 1 || info->dtype != TUTTI_DTYPE_F32 || !info->for_each_sample)
        return fail(TUTTI_UNSUPPORTED,
            "only what has one input of floats can be exported with preparation: this network has %zu inputs",
            export->inputs.count);
    if (!strcmp(export->data.kind, "table") && (info->shape.rank != 1 || features != width_of(&export->data)))
        return fail(TUTTI_MISMATCH, "the table's columns make %zu inputs, but the network has %zu",
            width_of(&export->data), features);
    return TUTTI_OK;
}

void export_prepare(struct export *export)
{
    const struct export_data *data = &export->data;
    const tutti_tensor_info info = find_input(export);
    if (export->status == TUTTI_OK) export_fail(export, refuse_input(export, &info));
    if (export->status != TUTTI_OK) return;
    const size_t nodes = export->nodes.count, count = json_array_size(json_object_get(data->object, "mean"));
    Onnx__ValueInfoProto *input = export->inputs.items[0];
    const bool bytes = are_bytes(data), table = !strcmp(data->kind, "table");
    const bool recordings = !strcmp(data->kind, "recordings");
    export->data.begin = input->name;
    if (!table && !recordings && !bytes && count == 0) return; /* samples are taken as they are */
    if (!table && count && count != (size_t)info.shape.sizes[0]) {
        export_fail(export,
            fail(TUTTI_MISMATCH, "the data have %zu means, but samples of the network have %lld channels", count,
                (long long)info.shape.sizes[0]));
        return;
    }
    export->inputs.count = 0;
    (void)export_add(export, &export->values, input);
    if (table)
        export_columns(export);
    else if (recordings)
        prepare_recordings(export, &info, count);
    else
        prepare_array(export, &info, bytes, count);
    if (export->status != TUTTI_OK || export->nodes.count == nodes) return;
    Onnx__NodeProto *last = export->nodes.items[export->nodes.count - 1];
    last->output[0] = input->name;
}

/* ---------------------------------------------------------------------------------------------------- output ---- */

/* The position of the output that has the classes' scores, or the numbers. -1: there is none. */
static int find_output(struct export *export, size_t count, bool classes, tutti_tensor *output, tutti_tensor_info *info)
{
    for (int i = 0; tutti_network_output(export->network, i, NULL, output) == TUTTI_OK; i++) {
        *info = (tutti_tensor_info) { .size = sizeof *info };
        if (tutti_network_tensor(export->network, *output, info) != TUTTI_OK || info->dtype != TUTTI_DTYPE_F32)
            continue;
        const bool fits = info->shape.rank == 1 || (classes && info->shape.rank == 3);
        if (fits && (size_t)info->shape.sizes[0] == count) return i;
    }
    return -1;
}

static bool is_softmax(const struct export *export, tutti_tensor output)
{
    for (int i = 0; i < tutti_network_nodes(export->network); i++) {
        tutti_node_info node = { .size = sizeof node };
        if (tutti_network_node(export->network, i, &node) == TUTTI_OK && node.output_count > 0 &&
            node.outputs[0].id == output.id)
            return !strcmp(node.operation, "softmax");
    }
    return false;
}

/* Makes another port of the output, which stays as a value of the graph. Returns the new name. */
static const char *replace_output(
    struct export *export, int position, const char *name, enum onnx_type type, const tutti_shape *shape)
{
    void **at = &export->outputs.items[position];
    const char *taken = export_name(export, name);
    (void)export_add(export, &export->values, *at);
    *at = export_port(export, taken, type, shape, true);
    return taken;
}

/* The name of the likeliest class. */
static void add_label(struct source *source, const char *probabilities, const json_t *classes)
{
    struct export *export = source->export;
    const size_t count = json_array_size(classes);
    const char *name = export_name(export, "label"), *number = source_temporary(source);
    const char **texts = export_new(export, count, sizeof *texts);
    int64_t *numbers = export_new(export, count, sizeof *numbers);
    const struct made largest = source_node(source, "ArgMax", probabilities, NULL, NULL, number);
    made_integer(largest, "axis", 1);
    made_integer(largest, "keepdims", 0);
    const struct made made = source_node(source, "LabelEncoder", number, NULL, NULL, name);
    if (!texts || !numbers) return;
    for (size_t i = 0; i < count; i++) {
        texts[i] = json_string_value(json_array_get(classes, i));
        numbers[i] = (int64_t)i;
        if (!texts[i]) export_fail(export, fail(TUTTI_FORMAT, "the names of the classes are damaged"));
    }
    if (export->status != TUTTI_OK) return;
    made.node->domain = "ai.onnx.ml";
    export->uses_ml = true;
    made_integers(made, "keys_int64s", numbers, (int)count);
    made_texts(made, "values_strings", texts, (int)count);
    (void)export_add(export, &export->outputs, export_port(export, name, ONNX_STRING, &(tutti_shape) { 0 }, true));
}

static void finish_classes(struct source *source, int position, bool softmax, const tutti_tensor_info *info)
{
    struct export *export = source->export;
    const char *probabilities = export->data.end;
    if (!softmax) {
        probabilities = replace_output(export, position, "probabilities", ONNX_FLOAT, &info->shape);
        made_integer(source_node(source, "Softmax", export->data.end, NULL, NULL, probabilities), "axis", 1);
    }
    if (info->shape.rank == 1) add_label(source, probabilities, json_object_get(export->data.object, "classes"));
}

/* Numbers in the units of the data, in doubles: deviations may be far smaller than means. */
static void finish_numbers(struct source *source, int position, size_t count, const tutti_tensor_info *info)
{
    struct export *export = source->export;
    const double *mean = export_data_numbers(export, export->data.object, "target_mean", count, false);
    const double *std = export_data_numbers(export, export->data.object, "target_std", count, true);
    if (!mean || !std) return;
    const char *name = replace_output(export, position, "values", ONNX_DOUBLE, &info->shape);
    const char *x = source_cast(source, export->data.end, ONNX_DOUBLE);
    x = source_step(source, "Mul", x, add_constant(source, ONNX_DOUBLE, std, count, 1));
    (void)source_node(source, "Add", x, add_constant(source, ONNX_DOUBLE, mean, count, 1), NULL, name);
}

void export_finish(struct export *export)
{
    const json_t *object = export->data.object;
    const size_t classes = json_array_size(json_object_get(object, "classes"));
    const size_t numbers = json_array_size(json_object_get(object, "target_mean"));
    struct source source = { .export = export, .info = { .layer = "result", .operation = "result" } };
    tutti_tensor output;
    tutti_tensor_info info;
    const int position =
        classes || numbers ? find_output(export, classes ? classes : numbers, classes > 0, &output, &info) : 0;
    if (position < 0 || (size_t)position >= export->outputs.count) {
        export_fail(export,
            fail(TUTTI_MISMATCH, "no output of the network has %zu numbers, one for each %s of the data",
                classes ? classes : numbers, classes ? "class" : "target"));
        return;
    }
    export->data.end = ((Onnx__ValueInfoProto *)export->outputs.items[position])->name;
    if (classes)
        finish_classes(&source, position, is_softmax(export, output), &info);
    else if (numbers)
        finish_numbers(&source, position, numbers, &info);
}
