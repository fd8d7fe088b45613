/* Names, arrays and nodes of a file that is written. */
#include "onnx/export/export.h"

#include "base/memory.h"
#include "base/numbers.h"
#include "tutti_inspect.h"

#include <search.h>
#include <stdlib.h>
#include <string.h>

/* --------------------------------------------------------------------------------------------------- memory ---- */

void export_fail(struct export *export, tutti_status status)
{
    if (export->status == TUTTI_OK) export->status = status;
}

bool export_add(struct export *export, struct export_list *list, void *item)
{
    const tutti_status status = memory_grow((void **)&list->items, &list->capacity, list->count + 1, sizeof(void *));
    if (status != TUTTI_OK) {
        export_fail(export, status);
        return false;
    }
    list->items[list->count++] = item;
    return true;
}

void *export_new(struct export *export, size_t count, size_t size)
{
    if (export->status != TUTTI_OK) return NULL;
    void *memory = memory_new(count ? count : 1, size);
    if (!memory) export_fail(export, TUTTI_NO_MEMORY);
    if (!memory || export_add(export, &export->owned, memory)) return memory;
    free(memory);
    return NULL;
}

static char *copy_text(struct export *export, const char *text)
{
    char *copy = export_new(export, strlen(text) + 1, 1);
    if (copy) memcpy(copy, text, strlen(text));
    return copy;
}

/* ---------------------------------------------------------------------------------------------------- names ---- */

static int compare_names(const void *a, const void *b)
{
    return strcmp(a, b);
}

/* False if the tree has the name, or after a failure. */
static bool take_name(struct export *export, void **names, const char *name)
{
    const char *copy = copy_text(export, name);
    if (!copy) return false;
    const char *const *found = tsearch(copy, names, compare_names);
    if (!found) export_fail(export, TUTTI_NO_MEMORY);
    return found && *found == copy;
}

static const char *new_name(struct export *export, void **names, const char *text)
{
    char *name = export_new(export, strlen(text) + 24, 1);
    for (int i = 0; name && export->status == TUTTI_OK; i++) {
        if (i == 0)
            number_print(name, strlen(text) + 24, "%s", text);
        else
            number_print(name, strlen(text) + 24, "%s.%d", text, i);
        if (take_name(export, names, name)) return name;
    }
    return "";
}

const char *export_name(struct export *export, const char *text)
{
    return new_name(export, &export->names, text);
}

static const char *layer_name(const struct source *source)
{
    return source->info.layer ? source->info.layer : source->info.operation;
}

const char *source_temporary(struct source *source)
{
    return export_name(source->export, layer_name(source));
}

/* --------------------------------------------------------------------------------------------------- arrays ---- */

/* Takes the values, which live as long as the export or the network. NULL after a failure. */
static Onnx__TensorProto *new_array(struct export *export, const char *name, enum onnx_type type, const int64_t *sizes,
    int rank, const void *values, size_t bytes)
{
    Onnx__TensorProto *tensor = export_new(export, 1, sizeof *tensor);
    int64_t *dims = export_new(export, (size_t)rank, sizeof *dims);
    if (!tensor || !dims) return NULL;
    onnx__tensor_proto__init(tensor);
    if (rank) memcpy(dims, sizes, (size_t)rank * sizeof *dims);
    tensor->n_dims = (size_t)rank;
    tensor->dims = dims;
    tensor->has_data_type = tensor->has_raw_data = true;
    tensor->data_type = type;
    tensor->name = (char *)name;
    tensor->raw_data = (ProtobufCBinaryData) { bytes, (uint8_t *)values };
    return tensor;
}

static void add_array(struct export *export, const char *name, enum onnx_type type, const int64_t *sizes, int rank,
    const void *values, size_t bytes)
{
    Onnx__TensorProto *tensor = new_array(export, name, type, sizes, rank, values, bytes);
    if (tensor) (void)export_add(export, &export->initialisers, tensor);
}

static const char *add_copy(
    struct source *source, enum onnx_type type, const int64_t *sizes, int rank, const void *values, size_t bytes)
{
    const char *name = source_temporary(source);
    void *copy = export_new(source->export, bytes, 1);
    if (copy && bytes) memcpy(copy, values, bytes);
    add_array(source->export, name, type, sizes, rank, copy, bytes);
    return name;
}

const char *source_integers(struct source *source, const int64_t *numbers, int count)
{
    return add_copy(source, ONNX_INT64, (int64_t[]) { count }, 1, numbers, (size_t)count * sizeof *numbers);
}

const char *source_integer(struct source *source, int64_t number)
{
    return add_copy(source, ONNX_INT64, NULL, 0, &number, sizeof number);
}

const char *source_vector(struct source *source, const float *values, int64_t count)
{
    return add_copy(source, ONNX_FLOAT, &count, 1, values, (size_t)count * sizeof *values);
}

const char *source_scalar(struct source *source, float number)
{
    return add_copy(source, ONNX_FLOAT, NULL, 0, &number, sizeof number);
}

const char *source_matrix(struct source *source, const float *values, int64_t rows, int64_t columns)
{
    return add_copy(
        source, ONNX_FLOAT, (int64_t[]) { rows, columns }, 2, values, (size_t)(rows * columns) * sizeof *values);
}

/* A parameter has the trainer's values, a constant its own. */
static const char *add_fixed(struct source *source, const tutti_tensor_info *info)
{
    struct export *export = source->export;
    size_t count = 1;
    for (int i = 0; i < info->shape.rank; i++) count *= (size_t)info->shape.sizes[i];
    const enum onnx_type type = info->dtype == TUTTI_DTYPE_I32 ? ONNX_INT32 : ONNX_FLOAT;
    const char *name = export_name(export, info->name);
    const void *values = info->values;
    if (info->kind != TUTTI_TENSOR_CONSTANT) {
        float *read = export_new(export, count, sizeof *read);
        if (!read) return name;
        const tutti_status status = tutti_get_parameter(export->trainer, info->name, read, (int64_t)count);
        if (status != TUTTI_OK) export_fail(export, status);
        values = read;
    }
    add_array(export, name, type, info->shape.sizes, info->shape.rank, values, count * sizeof(float));
    return name;
}

/* -------------------------------------------------------------------------------------------------- tensors ---- */

tutti_tensor_info source_tensor(struct source *source, tutti_tensor tensor)
{
    tutti_tensor_info info = { .size = sizeof info };
    const tutti_status status = tutti_network_tensor(source->export->network, tensor, &info);
    if (status != TUTTI_OK) export_fail(source->export, status);
    return info;
}

bool source_is(const struct source *source, int input)
{
    return input < source->info.input_count && source->info.inputs[input].id >= 0;
}

const char *source_input(struct source *source, int input)
{
    if (!source_is(source, input)) return "";
    const int id = source->info.inputs[input].id;
    const char **name = &source->export->tensor_names[id];
    if (*name) return *name;
    const tutti_tensor_info info = source_tensor(source, source->info.inputs[input]);
    *name = info.kind == TUTTI_TENSOR_LAYER ? "" : add_fixed(source, &info);
    return *name;
}

const char *source_aligned(struct source *source, int input)
{
    const tutti_tensor_info info = source_tensor(source, source->info.inputs[input]);
    const char *name = source_input(source, input);
    const int lacks = source->y.shape.rank - info.shape.rank;
    int64_t axes[TUTTI_MAX_RANK];
    if (!info.for_each_sample || lacks <= 0) return name;
    for (int i = 0; i < lacks; i++) axes[i] = i + 1;
    return source_step(source, "Unsqueeze", name, source_integers(source, axes, lacks));
}

const char *source_output(struct source *source)
{
    const char **name = &source->export->tensor_names[source->info.outputs[0].id];
    if (!*name) *name = source_temporary(source);
    return *name;
}

const char *source_output_at(struct source *source, int output)
{
    struct export *export = source->export;
    const int id = output < source->info.output_count ? source->info.outputs[output].id : -1;
    if (id < 0 || !export->needed[id]) return NULL;
    if (!export->tensor_names[id]) export->tensor_names[id] = source_temporary(source);
    return export->tensor_names[id];
}

void source_finish(struct source *source, const char *from)
{
    struct export *export = source->export;
    const char **name = &export->tensor_names[source->info.outputs[0].id];
    const size_t count = export->nodes.count;
    Onnx__NodeProto *last = count > source->first ? export->nodes.items[count - 1] : NULL;
    if (!*name)
        *name = from;
    else if (last && last->output[0] == from)
        last->output[0] = (char *)*name;
    else
        (void)source_node(source, "Identity", from, NULL, NULL, *name);
}

void source_refuse(struct source *source, const char *why)
{
    if (source->export->status != TUTTI_OK) return;
    export_fail(source->export,
        fail(TUTTI_UNSUPPORTED, "layer %s, operation %s: %s", source->info.layer ? source->info.layer : "",
            source->info.operation, why));
}

/* ----------------------------------------------------------------------------------------------- attributes ---- */

/* Returns what is after "name="; NULL: the node does not have it. */
static const char *find_value(const struct source *source, const char *name)
{
    const size_t length = strlen(name);
    for (const char *at = source->attributes; *at; at += strspn(at, " ")) {
        const size_t word = strcspn(at, " ");
        if (word > length && at[length] == '=' && !memcmp(at, name, length)) return at + length + 1;
        at += word;
    }
    return NULL;
}

int source_numbers(const struct source *source, const char *name, double *numbers, int most)
{
    int count = 0;
    const char *value = find_value(source, name);
    if (!value) return 0;
    char *end = (char *)value - 1;
    for (; count < most && (*end == '=' || *end == ','); count++) numbers[count] = number_read(end + 1, &end);
    return count;
}

const char *source_choice(const struct source *source, const char *name, const char *const *words, size_t count)
{
    const char *value = find_value(source, name);
    for (size_t i = 0; value && i < count; i++)
        if (strlen(words[i]) == strcspn(value, " ") && !strncmp(words[i], value, strlen(words[i]))) return words[i];
    return words[0];
}

double source_number(const struct source *source, const char *name, double fallback)
{
    double number;
    return source_numbers(source, name, &number, 1) ? number : fallback;
}

int source_list(const struct source *source, const char *name, int64_t *numbers, int most)
{
    double read[TUTTI_MAX_RANK];
    const int count = source_numbers(source, name, read, most);
    for (int i = 0; i < count; i++) numbers[i] = (int64_t)read[i];
    return count;
}

/* ---------------------------------------------------------------------------------------------------- nodes ---- */

enum { MOST_ATTRIBUTES = 8, MOST_OUTPUTS = 3 };

struct made source_node_of(
    struct source *source, const char *type, const char *const *inputs, int count, const char *output)
{
    struct export *export = source->export;
    Onnx__NodeProto *node = export_new(export, 1, sizeof *node);
    char **names = export_new(export, (size_t)count + MOST_OUTPUTS, sizeof *names);
    Onnx__AttributeProto **attributes = export_new(export, MOST_ATTRIBUTES, sizeof(void *));
    if (!node || !names || !attributes) return (struct made) { export, &export->no_node };
    onnx__node_proto__init(node);
    for (int i = 0; i < count; i++) names[i] = (char *)inputs[i];
    names[count] = (char *)output;
    node->input = names;
    node->n_input = (size_t)count;
    node->output = names + count;
    node->n_output = 1;
    node->op_type = (char *)type;
    node->name = (char *)new_name(export, &export->node_names, layer_name(source));
    node->attribute = attributes;
    (void)export_add(export, &export->nodes, node);
    return (struct made) { export, node };
}

struct made source_node(
    struct source *source, const char *type, const char *a, const char *b, const char *c, const char *output)
{
    const char *const inputs[] = { a, b, c };
    int count = 0;
    while (count < 3 && inputs[count]) count++;
    return source_node_of(source, type, inputs, count, output);
}

const char *source_step(struct source *source, const char *type, const char *a, const char *b)
{
    const char *output = source_temporary(source);
    (void)source_node(source, type, a, b, NULL, output);
    return output;
}

const char *source_cast(struct source *source, const char *from, enum onnx_type type)
{
    const char *output = source_temporary(source);
    made_integer(source_node(source, "Cast", from, NULL, NULL, output), "to", type);
    return output;
}

/* ONNX's numbers of types of attributes. */
enum {
    ONNX_ATTRIBUTE_FLOAT = 1,
    ONNX_ATTRIBUTE_INT = 2,
    ONNX_ATTRIBUTE_STRING = 3,
    ONNX_ATTRIBUTE_TENSOR = 4,
    ONNX_ATTRIBUTE_INTS = 7,
    ONNX_ATTRIBUTE_STRINGS = 8
};

static Onnx__AttributeProto *add_attribute(struct made made, const char *name, int type)
{
    Onnx__AttributeProto *attribute = export_new(made.export, 1, sizeof *attribute);
    if (!attribute || made.node->n_attribute == MOST_ATTRIBUTES) return &made.export->no_attribute;
    onnx__attribute_proto__init(attribute);
    attribute->name = (char *)name;
    attribute->has_type = true;
    attribute->type = type;
    made.node->attribute[made.node->n_attribute++] = attribute;
    return attribute;
}

void made_integer(struct made made, const char *name, int64_t number)
{
    Onnx__AttributeProto *attribute = add_attribute(made, name, ONNX_ATTRIBUTE_INT);
    attribute->has_i = true;
    attribute->i = number;
}

void made_integers(struct made made, const char *name, const int64_t *numbers, int count)
{
    int64_t *copy = export_new(made.export, (size_t)count, sizeof *copy);
    if (!copy) return;
    memcpy(copy, numbers, (size_t)count * sizeof *copy);
    Onnx__AttributeProto *attribute = add_attribute(made, name, ONNX_ATTRIBUTE_INTS);
    attribute->ints = copy;
    attribute->n_ints = (size_t)count;
}

void made_number(struct made made, const char *name, float number)
{
    Onnx__AttributeProto *attribute = add_attribute(made, name, ONNX_ATTRIBUTE_FLOAT);
    attribute->has_f = true;
    attribute->f = number;
}

void made_text(struct made made, const char *name, const char *text)
{
    Onnx__AttributeProto *attribute = add_attribute(made, name, ONNX_ATTRIBUTE_STRING);
    attribute->has_s = true;
    attribute->s = (ProtobufCBinaryData) { strlen(text), (uint8_t *)text };
}

void made_texts(struct made made, const char *name, const char *const *texts, int count)
{
    ProtobufCBinaryData *strings = export_new(made.export, (size_t)count, sizeof *strings);
    if (!strings) return;
    for (int i = 0; i < count; i++) strings[i] = (ProtobufCBinaryData) { strlen(texts[i]), (uint8_t *)texts[i] };
    Onnx__AttributeProto *attribute = add_attribute(made, name, ONNX_ATTRIBUTE_STRINGS);
    attribute->strings = strings;
    attribute->n_strings = (size_t)count;
}

const char *source_constant(struct source *source, enum onnx_type type, const tutti_shape *shape, const void *values)
{
    struct export *export = source->export;
    size_t bytes = type == ONNX_FLOAT ? sizeof(float) : sizeof(double); /* and int64_t */
    for (int i = 0; i < shape->rank; i++) bytes *= (size_t)shape->sizes[i];
    const char *name = source_temporary(source);
    void *copy = export_new(export, bytes, 1);
    if (!copy) return name;
    memcpy(copy, values, bytes);
    Onnx__AttributeProto *value =
        add_attribute(source_node_of(source, "Constant", NULL, 0, name), "value", ONNX_ATTRIBUTE_TENSOR);
    value->t = new_array(export, name, type, shape->sizes, shape->rank, copy, bytes);
    return name;
}

void made_output(struct made made, const char *name)
{
    if (made.node == &made.export->no_node || made.node->n_output == MOST_OUTPUTS) return;
    made.node->output[made.node->n_output++] = (char *)name;
}
