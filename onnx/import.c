/* tutti_import_onnx(): reads a file, checks it as a whole, and adds the layers of its nodes to a network. */
#include "onnx/head.h"
#include "onnx/metadata.h"
#include "onnx/operators.h"
#include "onnx/parameters/folded.h"
#include "onnx/parameters/signature.h"
#include "onnx/parameters/unfolded.h"

#include "base/memory.h"
#include "base/options.h"
#include "base/text.h"

#include <search.h>
#include <stdlib.h>
#include <string.h>

enum { OLDEST_OPSET = 7, NEWEST_OPSET = 28 };

/* Checks the text of an attribute, whose bytes do not end in a zero. */
static tutti_status check_bytes(const ProtobufCBinaryData *bytes)
{
    if (bytes->len == 0) return TUTTI_OK;
    char *text = memory_format("%.*s", (int)bytes->len, (const char *)bytes->data);
    if (!text) return TUTTI_NO_MEMORY;
    const tutti_status status = strlen(text) == bytes->len
        ? proto_check_text(text, "the text of an attribute")
        : fail(TUTTI_FORMAT, "the text of an attribute has control characters");
    free(text);
    return status;
}

static tutti_status check_attribute(const Onnx__AttributeProto *attribute)
{
    tutti_status status = TUTTI_OK;
    TRY(proto_check_text(proto_text(attribute->name), "the name of an attribute"));
    TRY(check_bytes(&attribute->s));
    for (size_t i = 0; i < attribute->n_strings; i++) TRY(check_bytes(&attribute->strings[i]));
    if (attribute->t) TRY(proto_check_text(proto_text(attribute->t->name), "the name of a tensor"));
done:
    return status;
}

/* -------------------------------------------------------------------------------------------------- checks ---- */

static bool is_read(int64_t opset)
{
    return opset >= OLDEST_OPSET && opset <= NEWEST_OPSET;
}

static tutti_status refuse_opset(int64_t opset)
{
    return fail(TUTTI_UNSUPPORTED, "its operators are those of opset %lld: opsets %d to %d are read; export it again",
        (long long)opset, OLDEST_OPSET, NEWEST_OPSET);
}

/* Operators that were the same before the oldest opset. */
static bool is_unchanged(const Onnx__GraphProto *graph)
{
    static const char *const names[] = { "Identity", "Not", "Transpose" };
    bool all = true;
    for (size_t i = 0; i < graph->n_node && all; i++) {
        all = false;
        for (size_t k = 0; k < sizeof names / sizeof *names; k++)
            all |= !strcmp(proto_text(graph->node[i]->op_type), names[k]);
    }
    return all;
}

static tutti_status check_opset(struct import *import)
{
    if (import->model->n_opset_import) import->opset = NEWEST_OPSET; /* a model with other domains only */
    for (size_t i = 0; i < import->model->n_opset_import; i++) {
        const Onnx__OperatorSetIdProto *set = import->model->opset_import[i];
        const char *domain = proto_text(set->domain);
        if (!*domain || !strcmp(domain, "ai.onnx")) import->opset = set->version;
    }
    if (is_read(import->opset)) return TUTTI_OK;
    if (import->opset >= 1 && import->opset < OLDEST_OPSET && is_unchanged(import->model->graph)) return TUTTI_OK;
    return refuse_opset(import->opset);
}

/* Checks the opsets that functions import. */
static tutti_status check_opsets(const struct import *import)
{
    const int64_t *opsets = import->expanded.opsets;
    for (size_t i = 0; opsets && i < import->model->graph->n_node; i++)
        if (opsets[i] != import->opset && !is_read(opsets[i])) return refuse_opset(opsets[i]);
    return TUTTI_OK;
}

static tutti_status check_node_texts(const Onnx__NodeProto *node, size_t position)
{
    tutti_status status = TUTTI_OK;
    TRY(proto_check_text(proto_text(node->name), "the name of a node"));
    TRY(proto_check_text(proto_text(node->op_type), "the operator of a node"));
    TRY(proto_check_text(proto_text(node->domain), "the domain of a node"));
    for (size_t i = 0; i < node->n_input; i++) TRY(proto_check_text(node->input[i], "the name of an input"));
    for (size_t i = 0; i < node->n_output; i++) TRY(proto_check_text(node->output[i], "the name of an output"));
    for (size_t i = 0; i < node->n_attribute; i++) {
        TRY(check_attribute(node->attribute[i]));
        if (*proto_text(node->attribute[i]->ref_attr_name))
            FAIL(TUTTI_FORMAT, "an attribute refers to one of a function, but the node is in none");
    }
    if (node->n_output == 0 || !node->op_type) FAIL(TUTTI_FORMAT, "it has no output, or no operator");
done:
    return status == TUTTI_OK ? status : status_context(status, "node %zu", position);
}

static tutti_status check_initialiser(const Onnx__TensorProto *tensor)
{
    tutti_status status = TUTTI_OK;
    TRY(proto_check_text(proto_text(tensor->name), "the name of an initialiser"));
    if (!*proto_text(tensor->name)) FAIL(TUTTI_FORMAT, "an initialiser has no name");
    TRY(tensor_check(tensor));
done:
    return status;
}

/* Checks what the steps after it read without a check of their own. */
static tutti_status check_graph(const Onnx__GraphProto *graph)
{
    tutti_status status = TUTTI_OK;
    for (size_t i = 0; i < graph->n_initializer; i++) TRY(check_initialiser(graph->initializer[i]));
    for (size_t i = 0; i < graph->n_node; i++) TRY(check_node_texts(graph->node[i], i));
done:
    return status;
}

/* Whether a node reads the elements of an input, not only its type or shape. */
static bool reads(const Onnx__NodeProto *node, size_t input)
{
    return strcmp(node->op_type, "Shape") && strcmp(node->op_type, "Size") &&
        (input == 0 || strcmp(node->op_type, "CastLike"));
}

/* A node may only read names that were added before it. So there is no cycle. */
static tutti_status add_node_names(struct import *import, const Onnx__NodeProto *node, size_t position)
{
    tutti_status status = TUTTI_OK;
    struct onnx_value *made = NULL;
    for (size_t i = 0; i < node->n_input; i++)
        if (*node->input[i] && !import_find(import, node->input[i]))
            FAIL(TUTTI_FORMAT,
                "node %zu, %s '%s', reads '%s', which is neither an input, an initialiser nor an output of a node "
                "before it",
                position, node->op_type, proto_text(node->name), node->input[i]);
        else if (*node->input[i])
            import_find(import, node->input[i])->usage.nodes += reads(node, i);
    for (size_t i = 0; i < node->n_output; i++)
        if (*node->output[i]) TRY(import_add_name(import, node->output[i], &made));
done:
    return status;
}

static tutti_status add_initialiser(struct import *import, const Onnx__TensorProto *tensor)
{
    tutti_status status = TUTTI_OK;
    struct onnx_value *value = NULL;
    TRY(import_add_name(import, tensor->name, &value));
    value->stored = tensor;
    value->type = tensor->data_type;
    value->initialiser = true;
done:
    return status;
}

/* Old files list initialisers among the inputs. */
static tutti_status add_input_name(struct import *import, const Onnx__ValueInfoProto *input)
{
    tutti_status status = TUTTI_OK;
    struct onnx_value *value = import_find(import, proto_text(input->name));
    TRY(proto_check_text(proto_text(input->name), "the name of an input"));
    if (!*proto_text(input->name)) FAIL(TUTTI_FORMAT, "an input has no name");
    if (!value || !value->initialiser) TRY(import_add_name(import, input->name, &value));
done:
    return status;
}

/* Reads the types that the file declares in a list of values. */
static void read_types(struct import *import, Onnx__ValueInfoProto *const *list, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct onnx_value *value = import_find(import, proto_text(list[i]->name));
        if (value && list[i]->type && list[i]->type->tensor_type)
            value->declared = list[i]->type->tensor_type->elem_type;
    }
}

/* The names of everything, in the file's order. */
static tutti_status add_names(struct import *import)
{
    tutti_status status = TUTTI_OK;
    const Onnx__GraphProto *graph = import->model->graph;
    size_t count = graph->n_initializer + graph->n_input + 1; /* one more: for a name that is there twice */
    for (size_t i = 0; i < graph->n_node; i++) /* inputs: for initialisers that are taken apart; 2: that are joined */
        count += graph->node[i]->n_output + graph->node[i]->n_input + 2;
    import->values = memory_new(count, sizeof *import->values);
    if (!import->values) return TUTTI_NO_MEMORY;
    for (size_t i = 0; i < graph->n_initializer; i++) TRY(add_initialiser(import, graph->initializer[i]));
    for (size_t i = 0; i < graph->n_input; i++) TRY(add_input_name(import, graph->input[i]));
    for (size_t i = 0; i < graph->n_node; i++) TRY(add_node_names(import, graph->node[i], i));
    for (size_t i = 0; i < graph->n_output; i++)
        if (!import_find(import, proto_text(graph->output[i]->name)))
            FAIL(TUTTI_FORMAT, "the output %zu of the model is made by no node", i);
    if (graph->n_output == 0) FAIL(TUTTI_FORMAT, "the model has no output");
    read_types(import, graph->value_info, graph->n_value_info);
    read_types(import, graph->output, graph->n_output);
done:
    return status;
}

/* --------------------------------------------------------------------------------------- unsupported operators ---- */

static bool is_supported(const Onnx__NodeProto *node)
{
    const char *domain = proto_text(node->domain);
    struct onnx_operator row;
    if (!operator_find(node->op_type, &row)) return false;
    return row.domain ? !strcmp(domain, row.domain) : !*domain || !strcmp(domain, "ai.onnx");
}

static bool same_operator(const Onnx__NodeProto *a, const Onnx__NodeProto *b)
{
    return !strcmp(a->op_type, b->op_type) && !strcmp(proto_text(a->domain), proto_text(b->domain));
}

/* "Einsum (2 nodes: 'a', 'b')", for the kind of operator that the node at `first` has. */
static void describe_kind(struct text *text, const Onnx__GraphProto *graph, size_t first)
{
    enum { MOST_NAMES = 3 };
    const Onnx__NodeProto *kind = graph->node[first];
    size_t count = 0;
    for (size_t i = first; i < graph->n_node; i++) count += same_operator(kind, graph->node[i]);
    text_append(text, "%s%s%s%s (%zu node%s:", text->size ? ", " : "", proto_text(kind->domain),
        *proto_text(kind->domain) ? "::" : "", kind->op_type, count, count == 1 ? "" : "s");
    size_t named = 0;
    for (size_t i = first; i < graph->n_node && named < MOST_NAMES; i++)
        if (same_operator(kind, graph->node[i]))
            text_append(text, "%s '%s'", named++ ? "," : "", proto_text(graph->node[i]->name));
    text_append(text, "%s)", count > MOST_NAMES ? ", ..." : "");
}

/* Reports all unknown operators at once. */
static tutti_status check_operators(const struct import *import)
{
    enum { MOST_KINDS = 64 };
    const Onnx__GraphProto *graph = import->model->graph;
    size_t kinds[MOST_KINDS], count = 0;
    struct text text = { 0 };
    for (size_t i = 0; i < graph->n_node && count < MOST_KINDS; i++) {
        /* Branches are checked when it is known that they are needed. */
        const bool in_branch = import->expanded.guard_of && import->expanded.guard_of[i] >= 0;
        bool known = in_branch || is_supported(graph->node[i]);
        for (size_t k = 0; k < count && !known; k++) known = same_operator(graph->node[kinds[k]], graph->node[i]);
        if (known) continue;
        kinds[count++] = i;
        describe_kind(&text, graph, i);
    }
    const tutti_status status = count == 0
        ? TUTTI_OK
        : fail(TUTTI_UNSUPPORTED, "opset %lld: operators that Tutti does not have: %s", (long long)import->opset,
              text.failed ? "" : text.data);
    text_free(&text);
    return status;
}

/* -------------------------------------------------------------------------------------------------- layers ---- */

/* Types that Tutti does not have are fed as wider ones. */
static bool dtype_of(int type, tutti_dtype *dtype)
{
    static const tutti_dtype types[] = { [ONNX_FLOAT] = TUTTI_DTYPE_F32,
        [ONNX_UINT8] = TUTTI_DTYPE_U8,
        [ONNX_INT8] = TUTTI_DTYPE_I32,
        [ONNX_UINT16] = TUTTI_DTYPE_I32,
        [ONNX_INT16] = TUTTI_DTYPE_I32,
        [ONNX_INT32] = TUTTI_DTYPE_I32,
        [ONNX_INT64] = TUTTI_DTYPE_I64,
        [ONNX_BOOL] = TUTTI_DTYPE_BOOL,
        [ONNX_FLOAT16] = TUTTI_DTYPE_F32,
        [ONNX_DOUBLE] = TUTTI_DTYPE_F32,
        [ONNX_UINT32] = TUTTI_DTYPE_I64,
        [ONNX_UINT64] = TUTTI_DTYPE_I64,
        [ONNX_BFLOAT16] = TUTTI_DTYPE_F32 };
    if (!onnx_type_is_known(type)) return false;
    *dtype = types[type];
    return true;
}

static tutti_status check_rank(const struct import *import, const Onnx__ValueInfoProto *input)
{
    const Onnx__TypeProto__Tensor *type = input->type ? input->type->tensor_type : NULL;
    const Onnx__TensorShapeProto *sizes = type ? type->shape : NULL;
    const int axis = import_batch_axis(import, input->name);
    const bool whole = axis == NO_AXIS;
    if (sizes && sizes->n_dim < (size_t)TUTTI_MAX_RANK + !whole && (whole || sizes->n_dim > (size_t)axis))
        return TUTTI_OK;
    if (whole)
        return fail(
            TUTTI_UNSUPPORTED, "input '%s' must be a tensor of at most %d axes", input->name, TUTTI_MAX_RANK - 1);
    return fail(TUTTI_UNSUPPORTED,
        "input '%s' must be a tensor of %d to %d axes, of which axis %d is the batch: if it is not of samples, "
        "give its values now (known); if the batch is another axis or none, say so (batch_axis, whole)",
        input->name, axis + 1, TUTTI_MAX_RANK, axis);
}

/* The shape of a sample: the batch's axis is left out. */
static tutti_status input_shape(
    struct import *import, const Onnx__ValueInfoProto *input, const tutti_shape *asked, tutti_shape *shape)
{
    tutti_status status = TUTTI_OK;
    TRY(check_rank(import, input));
    const Onnx__TensorShapeProto *sizes = input->type->tensor_type->shape;
    const int batch = import_batch_axis(import, input->name);
    if (asked->rank && asked->rank != (int)sizes->n_dim - (batch != NO_AXIS))
        return fail(TUTTI_SHAPE, "input '%s' has %d axes in a sample, not %d", input->name,
            (int)sizes->n_dim - (batch != NO_AXIS), asked->rank);
    if (batch != NO_AXIS && sizes->dim[batch]->dim_value > 0) import->fixed_batch = sizes->dim[batch]->dim_value;
    shape->rank = 0;
    for (int i = 0; i < (int)sizes->n_dim; i++) {
        if (i == batch) continue;
        const int at = shape->rank++;
        const int64_t size = sizes->dim[i]->dim_value;
        shape->sizes[at] = size;
        if (size <= 0) TRY(import_open_size(import, input, asked, i, &shape->sizes[at]));
        if (asked->rank && shape->sizes[at] != asked->sizes[at])
            return fail(TUTTI_SHAPE, "input '%s': axis %d has size %lld, not %lld", input->name, i, (long long)size,
                (long long)asked->sizes[at]);
    }
done:
    return status;
}

static void add_port(tutti_onnx *made, tutti_tensor tensor, tutti_dtype dtype, int axis)
{
    made->inputs[made->input_count] = tensor;
    made->input_dtypes[made->input_count] = dtype;
    made->input_batch_axes[made->input_count++] = (tutti_onnx_batch_axis) { axis, 1, 1 };
}

static tutti_status add_input(struct import *import, const Onnx__ValueInfoProto *input, const tutti_shape *asked)
{
    tutti_shape shape = { 0 };
    tutti_dtype dtype;
    struct onnx_value *value = import_find(import, input->name);
    const tutti_status status = input_shape(import, input, asked, &shape);
    if (status != TUTTI_OK) return status;
    value->type = input->type->tensor_type->elem_type;
    if (!dtype_of(value->type, &dtype))
        return fail(TUTTI_UNSUPPORTED, "input '%s' is of type %s (%d), which Tutti does not read", input->name,
            onnx_type_name(value->type), value->type);
    value->tensor = tutti_input_typed(import->network, input->name, dtype, shape.sizes, shape.rank);
    value->converts = dtype != TUTTI_DTYPE_F32;
    value->batch.batched = true;
    value->batch.axis = import_batch_axis(import, input->name);
    if (value->tensor.id < 0) return tutti_network_status(import->network);
    add_port(import->made, value->tensor, dtype, value->batch.axis); /* a network has at most TUTTI_ONNX_PORTS - 1 */
    return TUTTI_OK;
}

/* ------------------------------------------------------------------------------------------------ known inputs ---- */

static const tutti_onnx_known *find_known(const struct import *import, const char *name)
{
    for (int i = 0; i < import->options->known_count; i++)
        if (import->options->known[i].name && !strcmp(import->options->known[i].name, name))
            return &import->options->known[i];
    return NULL;
}

static int64_t known_integer(const tutti_onnx_known *known, size_t i)
{
    switch (known->dtype) {
    case TUTTI_DTYPE_I32: return ((const int32_t *)known->values)[i];
    case TUTTI_DTYPE_I64: return ((const int64_t *)known->values)[i];
    default: return ((const uint8_t *)known->values)[i];
    }
}

static void copy_known(const tutti_onnx_known *known, struct array *array)
{
    for (size_t i = 0; i < array->count; i++) {
        if (known->dtype == TUTTI_DTYPE_F32)
            array->floats[i] = ((const float *)known->values)[i];
        else if (array->floats)
            array->floats[i] = (float)known_integer(known, i);
        else
            array->integers[i].number = known_integer(known, i);
    }
}

/* A number or row of `count` elements in the file's shape, which may have an open size. False if it does not fit. */
static bool shape_for(const Onnx__TensorShapeProto *sizes, int64_t count, tutti_shape *shape)
{
    int open = -1;
    int64_t product = 1;
    *shape = (tutti_shape) { .rank = (int)sizes->n_dim };
    for (int i = 0; i < shape->rank; i++) {
        const int64_t size = sizes->dim[i]->dim_value;
        if (size > count || (size > 0 && product > count / size) || (size <= 0 && open >= 0)) return false;
        if (size <= 0) open = i;
        shape->sizes[i] = size;
        product *= size > 0 ? size : 1;
    }
    if (open >= 0) shape->sizes[open] = count / product;
    return open >= 0 ? count % product == 0 : count == product;
}

/* Finds the shape in the file of a known input's values: a number or a row need not have the file's axes. */
static tutti_status known_shape(const Onnx__ValueInfoProto *input, const tutti_onnx_known *known, tutti_shape *shape)
{
    const Onnx__TypeProto__Tensor *type = input->type ? input->type->tensor_type : NULL;
    const Onnx__TensorShapeProto *sizes = type ? type->shape : NULL;
    *shape = known->shape;
    if (shape->rank < 0 || shape->rank > TUTTI_MAX_RANK)
        return fail(TUTTI_INVALID, "known input '%s' has %d axes", input->name, shape->rank);
    if (!sizes || sizes->n_dim > TUTTI_MAX_RANK) return TUTTI_OK;
    bool fits = shape->rank == (int)sizes->n_dim;
    for (int i = 0; fits && i < shape->rank; i++)
        fits = sizes->dim[i]->dim_value <= 0 || sizes->dim[i]->dim_value == shape->sizes[i];
    if (!fits && shape->rank < 2) fits = shape_for(sizes, shape->rank ? shape->sizes[0] : 1, shape);
    if (fits) return TUTTI_OK;
    return fail(
        TUTTI_SHAPE, "known input '%s' has not the shape that the file says, of %zu axes", input->name, sizes->n_dim);
}

/* An input that the caller gives now is a constant or a parameter. */
static tutti_status add_known(struct import *import, const Onnx__ValueInfoProto *input, const tutti_onnx_known *known)
{
    struct onnx_value *value = import_find(import, input->name);
    tutti_shape shape;
    value->type = input->type && input->type->tensor_type ? input->type->tensor_type->elem_type : ONNX_FLOAT;
    const bool floats = onnx_type_is_float(value->type);
    if (!onnx_type_is_known(value->type) || (!floats && (known->dtype == TUTTI_DTYPE_F32 || known->trains)) ||
        known->dtype == TUTTI_DTYPE_F16 || known->dtype == TUTTI_DTYPE_BF16)
        return fail(TUTTI_INVALID, "known input '%s' must be float32 or integers as in the file; only float32 trains",
            input->name);
    const tutti_status status = known_shape(input, known, &shape);
    if (status != TUTTI_OK) return status;
    value->array = array_new(shape.rank, shape.sizes, floats);
    if (!value->array) return TUTTI_NO_MEMORY;
    if (value->array->count && !known->values)
        return fail(TUTTI_INVALID, "known input '%s' has no values", input->name);
    value->forced_parameter = known->trains;
    copy_known(known, value->array);
    return TUTTI_OK;
}

/* Names that the caller gives must be inputs of the file that have no value there. */
static tutti_status check_name(const struct import *import, const char *option, const char *name)
{
    const Onnx__GraphProto *graph = import->model->graph;
    for (size_t i = 0; name && i < graph->n_input; i++) {
        if (strcmp(graph->input[i]->name, name)) continue;
        if (!import_find(import, name)->initialiser) return TUTTI_OK;
        return fail(TUTTI_INVALID, "%s: input '%s' has its values in the file, as an initialiser", option, name);
    }
    return fail(TUTTI_INVALID, "%s: there is no input '%s'", option, name ? name : "");
}

static tutti_status check_names(const struct import *import)
{
    tutti_status status = TUTTI_OK;
    const tutti_onnx_options *options = import->options;
    for (int i = 0; i < options->known_count; i++) TRY(check_name(import, "known", options->known[i].name));
    for (int i = 0; i < options->batch_axis_count; i++) {
        TRY(check_name(import, "batch_axes", options->batch_axes[i].name));
        if (options->batch_axes[i].axis < 0 || options->batch_axes[i].axis >= TUTTI_MAX_RANK)
            FAIL(TUTTI_INVALID, "batch_axes: input '%s' has no axis %d", options->batch_axes[i].name,
                options->batch_axes[i].axis);
    }
done:
    return status;
}

/* A network computes something for each sample, also if the file has nothing but constants. */
static tutti_status add_sample(struct import *import)
{
    import->per_sample = tutti_input(import->network, "sample", TUTTI_SHAPE(1));
    add_port(import->made, import->per_sample, TUTTI_DTYPE_F32, NO_AXIS);
    return import->per_sample.id < 0 ? tutti_network_status(import->network) : TUTTI_OK;
}

static tutti_status add_inputs(struct import *import, const tutti_shape *asked)
{
    tutti_status status = TUTTI_OK;
    const tutti_shape none = { 0 };
    const Onnx__GraphProto *graph = import->model->graph;
    TRY(check_names(import));
    for (size_t i = 0; i < graph->n_input; i++) {
        const tutti_onnx_known *known = find_known(import, graph->input[i]->name);
        if (import_find(import, graph->input[i]->name)->initialiser) continue;
        if (known) {
            TRY(add_known(import, graph->input[i], known));
            continue;
        }
        if (!import->first_input) import->first_input = graph->input[i];
        TRY(add_input(import, graph->input[i], asked));
        asked = &none;
    }
    if (import->options->whole && import->made->input_count == 0) TRY(add_sample(import));
done:
    return status;
}

/* Outputs have the first input's type if neither the operator nor its function sets one. Fails if the file's type
 * differs. */
static tutti_status set_types(const struct onnx_node *node, const struct onnx_operator *row)
{
    const struct onnx_value *input = node_input(node, 0);
    for (size_t i = 0; i < node->proto->n_output; i++) {
        struct onnx_value *output = node_output(node, i);
        if (output && output->type == 0)
            output->type = i == 0 && row->type ? row->type : input ? input->type : ONNX_FLOAT;
        if (output && output->declared && output->declared != output->type && output->declared != ONNX_STRING)
            return fail(TUTTI_FORMAT, "its output '%s' is of %s in the file, and of %s by its inputs", output->name,
                onnx_type_name(output->declared), onnx_type_name(output->type));
    }
    return TUTTI_OK;
}

/* A network computes integers as floats; a sum or product of small ones can leave their type. */
static tutti_status wrap(const struct onnx_node *node, const struct onnx_operator *row)
{
    struct onnx_value *output = node_output(node, 0);
    if (!row->overflows || !output || output->array || output->stored || output->converts || output->tensor.id < 0)
        return TUTTI_OK;
    output->tensor = node_wrapped(node, output->tensor, output->type);
    return output->tensor.id < 0 ? tutti_network_status(node->import->network) : TUTTI_OK;
}

/* Computes known numbers now if possible, else by the network. If neither is possible, the message has both
 * reasons. */
static tutti_status build_node(struct onnx_node *node, const struct onnx_operator *row)
{
    const struct import *import = node->import;
    if (import->logits && !strcmp(import->logits, node->proto->output[0]) && strstr(node->proto->op_type, "Softmax"))
        return node_same(node);
    if (import->normalised && !strcmp(import->normalised, node->proto->output[0])) return node_same(node);
    if (!row->evaluate || !node_inputs_are_known(node))
        return row->build ? row->build(node)
                          : node_refuse("its inputs must be numbers that are known when the file is read");
    tutti_status status = row->evaluate(node);
    if (status != TUTTI_UNSUPPORTED || !row->build || row->build == row->evaluate) return status;
    char *first = memory_copy_text(tutti_message(NULL));
    if (!first) return TUTTI_NO_MEMORY;
    status = row->build(node);
    if (status == TUTTI_UNSUPPORTED) status_context(status, "%s; as a layer", first);
    free(first);
    return status;
}

/* Finds whether a node's branch, and the branches around it, are needed. */
static tutti_status find_guard(const struct import *import, int guard, bool *is_there)
{
    *is_there = true;
    if (guard < 0) return TUTTI_OK;
    const struct guard *own = &import->expanded.guards[guard];
    struct onnx_value *value = import_find(import, own->condition);
    tutti_status status = find_guard(import, own->around, is_there);
    if (status != TUTTI_OK || !*is_there) return status;
    status = value ? import_load(import, value) : fail(TUTTI_FORMAT, "If: there is no condition '%s'", own->condition);
    if (status != TUTTI_OK) return status;
    if (!value->array || !value->array->integers || value->array->count != 1)
        return node_refuse(
            "If: its condition, '%s', depends on the samples: it must be known when the file is read, as "
            "by tutti_onnx_options.known",
            own->condition);
    const struct symbolic_integer truth = value->array->integers[0];
    *is_there = (truth.number || truth.batches) == own->wanted;
    return TUTTI_OK;
}

static tutti_status add_node(struct import *import, const Onnx__NodeProto *node)
{
    struct onnx_operator row;
    if (!is_supported(node) || !operator_find(node->op_type, &row))
        return fail(TUTTI_UNSUPPORTED, "operator that Tutti does not have: %s%s%s '%s'", proto_text(node->domain),
            *proto_text(node->domain) ? "::" : "", node->op_type, proto_text(node->name));
    struct onnx_node current = { import, node, row.operation, row.type, false };
    const struct onnx_value *first = node_output(&current, 0);
    if (first && first->initialiser) return TUTTI_OK; /* of an Identity that is an initialiser now */
    tutti_status status = batch_index_check(&current, row.index_rule);
    if (status == TUTTI_OK) status = build_node(&current, &row);
    if (status == TUTTI_OK) status = set_types(&current, &row);
    if (status == TUTTI_OK) status = wrap(&current, &row);
    if (status == TUTTI_OK) status = batch_index_finish(&current, row.index_rule);
    if (status == TUTTI_OK) node_find_repeats(&current);
    if (status == TUTTI_OK) return status;
    return status_context(status, "%s '%s'%s", node->op_type, proto_text(node->name), node_source(node).text);
}

/* A value that depends on no sample is an output only if the whole file is one sample. */
static tutti_status find_output(struct import *import, const char *name, int position)
{
    tutti_tensor *tensor = &import->made->outputs[position];
    tutti_dtype *dtype = &import->made->output_dtypes[position];
    char *names[] = { (char *)name };
    Onnx__NodeProto node = ONNX__NODE_PROTO__INIT;
    node.n_input = 1;
    node.input = names;
    const struct onnx_node current = { import, &node, NULL, 0, false };
    struct operand x;
    const struct onnx_value *value = import_find(import, name);
    if (!import->options->whole && !value->batch.batched)
        return fail(TUTTI_UNSUPPORTED, "output '%s' does not depend on an input", name);
    if (value->index.factor)
        return fail(TUTTI_UNSUPPORTED,
            "output '%s' has indices that grow with the sample: they are others in another batch", name);
    const tutti_status status = import->options->whole ? node_batched(&current, 0, &x) : node_operand(&current, 0, &x);
    if (status != TUTTI_OK) return status_context(status, "output '%s'", name);
    if (!dtype_of(value->type, dtype)) *dtype = TUTTI_DTYPE_F32;
    *tensor = x.tensor;
    import->made->output_batch_axes[position] =
        (tutti_onnx_batch_axis) { x.batch.axis, x.batch.outer, x.batch.rows_per_sample };
    if (x.batch.rows_per_sample > 1)
        *tensor = node_op(&current, "unfold", tensor, 1, "size=%lld", (long long)x.batch.rows_per_sample);
    return tensor->id < 0 ? tutti_network_status(import->network) : TUTTI_OK;
}

/* If two outputs are one value, the second one becomes a tensor of its own. */
static tutti_status copy_output(struct import *import, tutti_onnx *made, int position)
{
    tutti_tensor *tensor = &made->outputs[position];
    bool again = false;
    for (int i = 0; i < position; i++) again |= made->outputs[i].id == tensor->id;
    if (!again) return TUTTI_OK;
    *tensor = tutti_op(import->network, "scale", tensor, 1, "factor=1");
    return tensor->id < 0 ? tutti_network_status(import->network) : TUTTI_OK;
}

/* If several outputs have one name, the later ones are called NAME#2 and so on. */
static tutti_status name_output(const struct import *import, size_t position, tutti_tensor tensor)
{
    const Onnx__GraphProto *graph = import->model->graph;
    const char *name = graph->output[position]->name;
    size_t number = 1;
    for (size_t i = 0; i < position; i++) number += !strcmp(graph->output[i]->name, name);
    char *own = number > 1 ? memory_format("%s#%zu", name, number) : memory_copy_text(name);
    const tutti_status status = own ? tutti_output(import->network, own, tensor) : TUTTI_NO_MEMORY;
    free(own);
    return status;
}

static tutti_status find_outputs(struct import *import, tutti_onnx *made)
{
    const Onnx__GraphProto *graph = import->model->graph;
    tutti_status status = TUTTI_OK;
    if (graph->n_output > TUTTI_ONNX_PORTS)
        return fail(
            TUTTI_UNSUPPORTED, "it has %zu outputs: at most %d are possible", graph->n_output, TUTTI_ONNX_PORTS);
    for (size_t i = 0; i < graph->n_output && status == TUTTI_OK; i++, made->output_count++) {
        status = find_output(import, graph->output[i]->name, (int)i);
        if (status == TUTTI_OK) status = copy_output(import, made, made->output_count);
        if (status == TUTTI_OK) status = name_output(import, i, made->outputs[i]);
    }
    return status;
}

/* ------------------------------------------------------------------------------------------------ the call ---- */

static char *folder_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? memory_format("%.*s/", (int)(slash - path), path) : memory_copy_text(".");
}

static void keep_name(void *node)
{
    (void)node; /* it is in import.values */
}

static void import_free(struct import *import)
{
    tdestroy(import->names, keep_name);
    for (size_t i = 0; i < import->value_count; i++) {
        array_free(import->values[i].array);
        free(import->values[i].origin.renamed);
        free(import->values[i].origin.state_name);
        free(import->values[i].sequence.elements);
        free(import->values[i].sequence.own);
        free(import->values[i].origin.label);
    }
    free(import->values);
    expanded_free(&import->expanded);
    free(import->folder);
}

/* Undoes the exporter's changes to parameters. */
static tutti_status read_parameters(struct import *import)
{
    struct signature signature = { 0 };
    tutti_status status = signature_read(import, &signature);
    if (status == TUTTI_OK) signature_find_state_names(import, &signature);
    import_find_paths(import);
    if (status == TUTTI_OK) status = import_restore_biases(import, &signature);
    if (status == TUTTI_OK) status = import_take_apart(import, &signature);
    if (status == TUTTI_OK) status = import_restore_biases(import, &signature); /* of layers whose weight was merged */
    if (status == TUTTI_OK) status = import_join_cut(import);
    if (status == TUTTI_OK) status = import_restore_names(import);
    if (status == TUTTI_OK) status = import_find_constants(import, &signature);
    if (status == TUTTI_OK) import_note_left_out(import, &signature);
    signature_free(&signature);
    return status;
}

/* Nothing is allocated for the network before all operators are known to be there. */
static tutti_status import_model(struct import *import, tutti_runtime *runtime, const tutti_onnx_options *options)
{
    tutti_status status = TUTTI_OK;
    const Onnx__GraphProto *graph = import->model->graph;
    if (options->batch_axis < 0 || options->batch_axis >= TUTTI_MAX_RANK || options->known_count < 0 ||
        (options->known_count > 0 && !options->known) || options->size_count < 0 ||
        (options->size_count > 0 && !options->sizes) || options->batch_axis_count < 0 ||
        (options->batch_axis_count > 0 && !options->batch_axes))
        FAIL(TUTTI_INVALID, "batch_axis is %d, known_count %d, size_count %d and batch_axis_count %d",
            options->batch_axis, options->known_count, options->size_count, options->batch_axis_count);
    TRY(check_opset(import));
    TRY(functions_expand(import->model, import->opset, &import->expanded));
    TRY(check_opsets(import));
    TRY(import_read_classes(import));
    TRY(check_graph(graph));
    TRY(import_unfold(import));
    TRY(add_names(import));
    TRY(check_operators(import));
    if (options->head) TRY(head_replace(graph, options->head));
    TRY(read_parameters(import));
    folded_note_norms(import);
    import_note_quantised(import);
    if (options->logits) TRY(head_find_logits(graph, &import->logits, &import->normalised));
    import->network = tutti_network_new(runtime);
    if (!import->network) return TUTTI_NO_MEMORY;
    TRY(add_inputs(import, &options->input));
    for (size_t i = 0; i < graph->n_node; i++) {
        bool is_there = true;
        if (import->expanded.opsets) import->opset = import->expanded.opsets[i];
        if (import->expanded.opsets) TRY(find_guard(import, import->expanded.guard_of[i], &is_there));
        if (is_there) TRY(add_node(import, graph->node[i]));
    }
    import_note_batch_norm(import);
done:
    return status;
}

tutti_status tutti_import_onnx(
    tutti_runtime *runtime, const char *path, const tutti_onnx_options *options, tutti_onnx *made)
{
    tutti_onnx_options read;
    tutti_onnx known = { 0 };
    struct import import = { .made = &known, .options = &read, .per_sample = { -1 } };
    Onnx__ModelProto *model = NULL;
    tutti_status status = RESULT_WRITE(made, &known, tutti_onnx);
    if (status == TUTTI_OK) status = OPTIONS_READ(&read, options, tutti_onnx_options);
    if (status != TUTTI_OK) return status;
    TRY(proto_read(path, &model));
    if (read.without_preparation) TRY(metadata_cut(model));
    import.model = model;
    import.folder = folder_of(path);
    status = import.folder ? import_model(&import, runtime, &read) : TUTTI_NO_MEMORY;
    if (status == TUTTI_OK) status = find_outputs(&import, &known);
    if (status != TUTTI_OK) {
        status_context(status, "%s", path);
        goto done;
    }
    known.network = import.network;
    import.network = NULL;
    status = RESULT_WRITE(made, &known, tutti_onnx);
done:
    tutti_network_free(import.network);
    import_free(&import);
    proto_free(model);
    return status;
}
