#include "graph/graph.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "graph/operation.h"
#include "graph/stored.h"

void graph_init(struct graph *graph)
{
    memset(graph, 0, sizeof *graph);
    graph->constants = NO_VALUE;
}

void graph_free(struct graph *graph)
{
    for (size_t i = 0; i < graph->value_count; i++) free(graph->values[i].name);
    free(graph->values);
    free(graph->nodes);
    for (size_t i = 0; i < graph->owned_count; i++) free(graph->owned[i]);
    free(graph->owned);
    graph_init(graph);
}

/* The most elements of a shape: more than any device holds, yet few enough that products of sizes, with what kernels
 * add to them, never overflow. */
#define MOST_ELEMENTS ((int64_t)1 << 48)

bool size_is_batch(int64_t size)
{
    return size < 0 && size % 2 != 0;
}

static int64_t rows_of(int64_t size)
{
    return (1 - size) / 2;
}

/* Replaces the symbols in a size: one sample, and a sequence of length 1. */
static int64_t known(int64_t size)
{
    return size_is_batch(size) ? rows_of(size) : size == TUTTI_SEQUENCE ? 1 : size;
}

static bool is_countable(const tutti_shape *shape)
{
    int64_t elements = 1;
    for (int i = 0; i < shape->rank; i++) {
        const int64_t size = known(shape->sizes[i]);
        if (size < 0 || (size > 0 && elements > MOST_ELEMENTS / size)) return false;
        elements *= size;
    }
    return true;
}

static tutti_status too_large(const char *what, const tutti_shape *shape)
{
    char sizes[200] = "", size[SIZE_TEXT];
    for (int i = 0; i < shape->rank; i++) {
        const size_t used = strlen(sizes);
        snprintf(sizes + used, sizeof sizes - used, "%s%s", i ? ", " : "", size_print(shape->sizes[i], size));
    }
    return fail(TUTTI_SHAPE, "%s would have the shape [%s]: a shape can have at most 2^48 elements", what, sizes);
}

/* Checks that the outputs of a node have the shapes that its operation infers from its inputs. */
static tutti_status validate_outputs(const struct graph *graph, size_t n);

static void bind_shape(tutti_shape *shape, struct bound_sizes sizes)
{
    for (int i = 0; i < shape->rank; i++) {
        int64_t *size = &shape->sizes[i];
        const bool fits = size_is_batch(*size) && sizes.samples <= MOST_ELEMENTS / rows_of(*size);
        if (size_is_batch(*size)) *size = fits ? sizes.samples * rows_of(*size) : MOST_ELEMENTS + 1;
        if (*size == TUTTI_SEQUENCE) *size = sizes.length;
    }
}

static void bind_attributes(struct node *node, struct bound_sizes sizes)
{
    for (const struct attribute *member = attribute_members(node->operation->attributes); member->name; member++)
        if (member->kind == ATTRIBUTE_SHAPE) bind_shape((void *)(node->attributes.bytes + member->offset), sizes);
}

static tutti_status check_bound(const struct graph *graph, struct bound_sizes sizes)
{
    if (sizes.samples < 1)
        return fail(TUTTI_INVALID, "a plan for %" PRId64 " samples is impossible: it needs at least 1", sizes.samples);
    if (sizes.length < 1 && graph_has_sequences(graph))
        return fail(TUTTI_INVALID, "a plan for sequences of length %" PRId64 " is impossible: it needs at least 1",
            sizes.length);
    return TUTTI_OK;
}

tutti_status graph_bind(const struct graph *from, struct bound_sizes sizes, struct graph *to)
{
    tutti_status status = TUTTI_OK;
    graph_init(to);
    TRY(check_bound(from, sizes));
    TRY(memory_grow((void **)&to->values, &to->value_capacity, from->value_count, sizeof *to->values));
    TRY(memory_grow((void **)&to->nodes, &to->node_capacity, from->node_count, sizeof *to->nodes));
    for (size_t i = 0; i < from->value_count; i++) {
        to->values[i] = from->values[i];
        to->values[i].name = NULL;
        to->value_count = i + 1;
        bind_shape(&to->values[i].shape, sizes);
        if (!is_countable(&to->values[i].shape)) {
            status = too_large("with this batch, a value", &to->values[i].shape);
            goto done;
        }
        if (from->values[i].name && !(to->values[i].name = memory_copy_text(from->values[i].name))) {
            status = TUTTI_NO_MEMORY;
            goto done;
        }
    }
    for (size_t i = 0; i < from->node_count; i++) {
        to->nodes[i] = from->nodes[i];
        bind_attributes(&to->nodes[i], sizes);
    }
    to->node_count = from->node_count;
    to->constants = from->constants;
    if (graph_has_sequences(from)) /* the sizes that infer() could not calculate with are numbers now */
        for (size_t i = 0; i < to->node_count; i++) TRY(validate_outputs(to, i));
done:
    if (status != TUTTI_OK) graph_free(to);
    return status;
}

bool graph_has_sequences(const struct graph *graph)
{
    for (size_t i = 0; i < graph->value_count; i++)
        if (shape_sequences(&graph->values[i].shape) > 0) return true;
    return false;
}

void *graph_new(struct graph *graph, size_t bytes)
{
    const size_t count = graph->owned_count + 1;
    if (memory_grow((void **)&graph->owned, &graph->owned_capacity, count, sizeof *graph->owned) != TUTTI_OK)
        return NULL;
    void *memory = memory_new(1, bytes);
    if (memory) graph->owned[graph->owned_count++] = memory;
    return memory;
}

struct node *graph_last(struct graph *graph)
{
    return &graph->nodes[graph->node_count - 1];
}

/* Keeps the first failure. Returns NO_VALUE, the result of every later append. */
static int failed(struct graph *graph, tutti_status status)
{
    if (graph->status == TUTTI_OK) graph->status = status;
    return NO_VALUE;
}

static int add_value(struct graph *graph, const struct value *value)
{
    tutti_status status =
        memory_grow((void **)&graph->values, &graph->value_capacity, graph->value_count + 1, sizeof *graph->values);
    if (status != TUTTI_OK) return failed(graph, status);
    graph->values[graph->value_count] = *value;
    return (int)graph->value_count++;
}

int graph_value(
    struct graph *graph, enum value_role role, enum value_type type, tutti_shape shape, bool batched, const char *name)
{
    if (graph->status != TUTTI_OK) return NO_VALUE;
    struct value value = { .role = role,
        .type = type,
        .shape = shape,
        .batched = batched,
        .rows = batched,
        .producer = -1,
        .parameter = -1,
        .gradient_of = -1 };
    if (!is_countable(&shape)) return failed(graph, too_large(name ? name : "a value", &shape));
    if (name && !(value.name = memory_copy_text(name))) return failed(graph, TUTTI_NO_MEMORY);
    int made = add_value(graph, &value);
    if (made == NO_VALUE) free(value.name);
    return made;
}

int graph_constants(struct graph *graph)
{
    if (graph->constants == NO_VALUE) {
        tutti_shape shape = TUTTI_SHAPE((int64_t)(sizeof(struct step_constants) / sizeof(uint32_t)));
        graph->constants = graph_value(graph, ROLE_CONSTANTS, TYPE_I32, shape, false, "constants");
    }
    return graph->constants;
}

/* Checks what infer() relies on: every input has a port, and only optional inputs are absent. */
static tutti_status check_ports(const struct node *node)
{
    const struct operation *operation = node->operation;
    for (int i = 0; i < node->input_count || (i < GRAPH_MAX_INPUTS && operation->inputs[i].name); i++) {
        const struct port *port = node_input_port(node, i);
        if (!port)
            return fail(TUTTI_INVALID, "%s: it got %d inputs: it takes %d", operation->name, node->input_count, i);
        if (node->inputs[i] == NO_VALUE && !(port->flags & PORT_OPTIONAL))
            return fail(TUTTI_INVALID, "%s: it got no input '%s', which it needs", operation->name, port->name);
    }
    for (int i = 0; i < node->output_count; i++)
        if (!node_output_port(node, i))
            return fail(
                TUTTI_INTERNAL, "%s: it has %d outputs, but names only %d", operation->name, node->output_count, i);
    return TUTTI_OK;
}

/* Checks that inputs are floats unless their port accepts other types, because kernels read floats. */
static tutti_status check_types(const struct graph *graph, const struct node *node)
{
    for (int i = 0; i < node->input_count; i++) {
        const struct value *value = graph_at(graph, node->inputs[i]);
        const struct port *port = node_input_port(node, i);
        if (!value || value_is_float(value) || value->role == ROLE_CONSTANTS) continue;
        if (!(port->flags & PORT_ANY_TYPE))
            return fail(TUTTI_INVALID, "%s: input %d (%s) is not float32: convert it with tutti_cast()",
                node->operation->name, i, port->name);
    }
    return TUTTI_OK;
}

/* Sets how many rows a sample has in the outputs: as many as in the inputs, unless infer() has set them. */
static tutti_status set_rows(const struct graph *graph, const struct node *node, struct value *outputs)
{
    int64_t rows = 0;
    const struct operation *operation = node->operation;
    for (int i = 0; i < node->input_count; i++) {
        const struct value *input = graph_at(graph, node->inputs[i]);
        if (!input || !input->batched) continue;
        if (rows && rows != input->rows)
            return fail(TUTTI_SHAPE,
                "%s: a sample has %" PRId64 " rows in one input and %" PRId64 " in another: fold or unfold one of them",
                operation->name, rows, input->rows);
        rows = input->rows;
    }
    if (rows > 1 && (operation->is_loss || operation->whole_batch))
        return fail(TUTTI_SHAPE, "%s: a sample has %" PRId64 " rows in its input: unfold it", operation->name, rows);
    for (int i = 0; i < node->output_count; i++)
        if (outputs[i].batched && outputs[i].rows == 0) outputs[i].rows = rows;
    return TUTTI_OK;
}

int graph_append(struct graph *graph, const struct operation *operation, const void *attributes, const int *inputs,
    int input_count, int layer)
{
    if (graph->status != TUTTI_OK) return NO_VALUE;
    if (input_count > GRAPH_MAX_INPUTS)
        return failed(graph,
            fail(TUTTI_INVALID, "%s accepts at most %d inputs: it got %d", operation->name, GRAPH_MAX_INPUTS,
                input_count));
    struct node node = { .input_count = input_count, .output_count = 1, .layer = layer, .implementation = -1 };
    node_set_operation(&node, operation, attributes);
    for (int i = 0; i < GRAPH_MAX_INPUTS; i++) node.inputs[i] = i < input_count ? inputs[i] : NO_VALUE;
    for (int i = 0; i < GRAPH_MAX_OUTPUTS; i++) node.outputs[i] = NO_VALUE;
    struct value outputs[GRAPH_MAX_OUTPUTS];
    memset(outputs, 0, sizeof outputs);
    tutti_status status = check_ports(&node);
    if (status == TUTTI_OK) status = check_types(graph, &node);
    if (status == TUTTI_OK) status = operation->infer(graph, &node, outputs);
    if (status == TUTTI_OK) status = set_rows(graph, &node, outputs);
    for (int i = 0; status == TUTTI_OK && i < node.output_count; i++)
        if (!is_countable(&outputs[i].shape)) status = too_large(operation->name, &outputs[i].shape);
    if (status == TUTTI_OK)
        status =
            memory_grow((void **)&graph->nodes, &graph->node_capacity, graph->node_count + 1, sizeof *graph->nodes);
    if (status != TUTTI_OK) return failed(graph, status);
    for (int i = 0; i < node.output_count; i++) {
        outputs[i].role = ROLE_TEMPORARY;
        outputs[i].layout = LAYOUT_PLAIN;
        outputs[i].producer = (int)graph->node_count;
        outputs[i].parameter = outputs[i].gradient_of = -1;
        outputs[i].output = false;
        outputs[i].name = NULL;
        node.outputs[i] = add_value(graph, &outputs[i]);
        if (node.outputs[i] == NO_VALUE) return NO_VALUE;
    }
    graph->nodes[graph->node_count++] = node;
    return node.outputs[0];
}

int64_t value_size(const struct value *value, int from_last)
{
    return value->shape.sizes[value->shape.rank - 1 - from_last];
}

int64_t value_samples(const struct value *value)
{
    return value->batched ? value->shape.sizes[0] / value->rows : 1;
}

int64_t value_elements(const struct value *value)
{
    return shape_elements(&value->shape);
}

size_t value_type_bytes(enum value_type type)
{
    static const size_t bytes[] = { [TYPE_F32] = 4,
        [TYPE_I32] = 4,
        [TYPE_U8] = 1,
        [TYPE_BF16] = 2,
        [TYPE_F16] = 2,
        [TYPE_BF16_INPUT] = 2,
        [TYPE_BOOL] = 1,
        [TYPE_INT8] = 1 };
    return bytes[type];
}

size_t value_sample_bytes(const struct value *value)
{
    int64_t elements = 1;
    for (int i = 1; i < value->shape.rank; i++) elements *= known(value->shape.sizes[i]);
    return (size_t)elements * value_type_bytes(value->type);
}

size_t value_bytes(const struct value *value, int vector_width)
{
    int64_t elements = value_elements(value);
    if (value->type == TYPE_INT8) {
        const int64_t row = value_size(value, 0);
        return (size_t)(elements / row) * stored_row_bytes(TYPE_INT8, row);
    }
    if (value->layout == LAYOUT_BLOCKED) {
        const struct planes planes = value_planes(value, CHANNEL_AXIS);
        elements = planes.n * divide_up(planes.c, vector_width) * vector_width * planes.pixels;
    }
    return (size_t)elements * value_type_bytes(value->type);
}

int64_t shape_elements(const tutti_shape *shape)
{
    int64_t elements = 1;
    for (int i = 0; i < shape->rank; i++) elements *= known(shape->sizes[i]);
    return elements;
}

int shape_sequences(const tutti_shape *shape)
{
    int count = 0;
    for (int i = 0; i < shape->rank; i++) count += shape->sizes[i] == TUTTI_SEQUENCE;
    return count;
}

tutti_status shape_check_numbers(const tutti_shape *shape, const char *operation)
{
    if (shape_sequences(shape) == 0) return TUTTI_OK;
    return fail(TUTTI_SHAPE,
        "%s: the input has the length of sequences, TUTTI_SEQUENCE, among its sizes: this operation needs numbers",
        operation);
}

const char *size_print(int64_t size, char text[SIZE_TEXT])
{
    if (size == BATCH || size == TUTTI_SEQUENCE)
        snprintf(text, SIZE_TEXT, "%s", size == BATCH ? "N" : "T");
    else if (size_is_batch(size))
        snprintf(text, SIZE_TEXT, "%" PRId64 "N", rows_of(size));
    else
        snprintf(text, SIZE_TEXT, "%" PRId64, size);
    return text;
}

bool shape_read(const int64_t *sizes, int rank, tutti_shape *shape)
{
    *shape = (tutti_shape) { .rank = rank };
    if (!sizes || rank < 1 || rank > TUTTI_MAX_RANK) return false;
    memcpy(shape->sizes, sizes, (size_t)rank * sizeof *sizes);
    return true;
}

bool node_is_reached(const struct node *node, const bool *reached)
{
    for (int i = 0; i < node->output_count; i++)
        if (node->outputs[i] != NO_VALUE && reached[node->outputs[i]]) return true;
    return false;
}

bool *graph_reaches(const struct graph *graph, const int *from, int count)
{
    bool *values = memory_new(graph->value_count + 1, sizeof(*values));
    if (!values) return NULL;
    for (int i = 0; i < count; i++) values[from[i]] = true;
    for (size_t n = graph->node_count; n-- > 0;) {
        const struct node *node = &graph->nodes[n];
        const bool wanted = node_is_reached(node, values);
        for (int i = 0; wanted && i < node->input_count; i++)
            if (node->inputs[i] != NO_VALUE) values[node->inputs[i]] = true;
    }
    return values;
}

static tutti_status validate_input(const struct graph *graph, size_t n, int value)
{
    const struct node *node = &graph->nodes[n];
    if (value == NO_VALUE) return TUTTI_OK;
    const struct value *v = graph_at(graph, value);
    if (!v)
        return fail(
            TUTTI_INTERNAL, "node %zu (%s) reads value %d, which does not exist", n, node->operation->name, value);
    if (v->role == ROLE_TEMPORARY && (v->producer < 0 || (size_t)v->producer >= n))
        return fail(
            TUTTI_INTERNAL, "node %zu (%s) reads value %d before it is computed", n, node->operation->name, value);
    return TUTTI_OK;
}

/* The type that infer() gives the value: F32 may be stored in fewer bits. */
static enum value_type inferred_type(const struct value *value)
{
    return value_is_float(value) ? TYPE_F32 : value->type;
}

static tutti_status validate_outputs(const struct graph *graph, size_t n)
{
    const struct node *node = &graph->nodes[n];
    struct node copy = *node;
    struct value inferred[GRAPH_MAX_OUTPUTS];
    memset(inferred, 0, sizeof inferred);
    tutti_status status = node->operation->infer(graph, &copy, inferred);
    if (status != TUTTI_OK) return status_context(status, "node %zu", n);
    for (int i = 0; i < node->output_count; i++) {
        const struct value *v = graph_at(graph, node->outputs[i]);
        if (!v) continue;
        if (v->producer != (int)n || v->role != ROLE_TEMPORARY)
            return fail(TUTTI_INTERNAL, "value %d does not name its producer, node %zu (%s)", node->outputs[i], n,
                node->operation->name);
        const char *name = node->operation->outputs[i].name; /* NULL: the port is of a fusion */
        if (name && (!shape_equal(v->shape, inferred[i].shape) || inferred_type(v) != inferred_type(&inferred[i])))
            return fail(TUTTI_INTERNAL,
                "output '%s' of node %zu (%s) differs in shape from the one that its inputs determine", name, n,
                node->operation->name);
    }
    return TUTTI_OK;
}

tutti_status graph_validate(const struct graph *graph)
{
    tutti_status status = graph->status;
    if (status != TUTTI_OK) return status;
    for (size_t i = 0; i < graph->value_count; i++) {
        const struct value *v = &graph->values[i];
        if (v->role != ROLE_TEMPORARY && v->layout != LAYOUT_PLAIN)
            return fail(
                TUTTI_INTERNAL, "value %zu is read or written outside the plan, but its layout is not plain", i);
        if (v->layout == LAYOUT_CHANNELS_LAST ? !value_has_channels_last(v)
                                              : v->layout == LAYOUT_BLOCKED && !value_has_layouts(v))
            return fail(TUTTI_INTERNAL, "value %zu has a layout that its axes do not allow", i);
        const bool stored = v->type == TYPE_BF16 || v->type == TYPE_INT8;
        const bool inside = v->role == ROLE_TEMPORARY ? v->type == TYPE_BF16 : v->role == ROLE_PARAMETER;
        if (stored && (!inside || v->gradient_of >= 0 || v->output))
            return fail(TUTTI_INTERNAL, "value %zu is read outside the plan, but it is stored in fewer bits", i);
    }
    for (size_t n = 0; n < graph->node_count; n++) {
        status = check_ports(&graph->nodes[n]);
        if (status != TUTTI_OK) return status_context(status, "node %zu", n);
        for (int i = 0; i < graph->nodes[n].input_count; i++) TRY(validate_input(graph, n, graph->nodes[n].inputs[i]));
        TRY(validate_input(graph, n, node_added(&graph->nodes[n])));
        TRY(validate_outputs(graph, n));
    }
done:
    return status;
}

/* Prints " port=%3:name[N,C8,S4,S4]": C for channels, S for space, T for sequences; nothing for an absent value. */
static void print_value(const struct graph *graph, const char *port, int value, struct text *text)
{
    const struct value *v = graph_at(graph, value);
    if (!v) return;
    text_append(text, " %s=%%%d", port, value);
    if (v->name) text_append(text, ":%s", v->name);
    text_append(text, "[");
    static const char *const kinds[] = { "", "", "C", "S", "T" };
    char size[SIZE_TEXT];
    for (int i = 0; i < v->shape.rank; i++) {
        const char *kind = v->shape.sizes[i] == TUTTI_SEQUENCE ? "" : kinds[value_axis(v, i)];
        text_append(text, "%s%s%s", i ? "," : "", kind, size_print(v->shape.sizes[i], size));
    }
    static const char *const layouts[] = { "", "b", "c" };
    text_append(text, "]%s%s", layouts[v->layout],
        v->type == TYPE_BF16       ? "/bf16"
            : v->type == TYPE_INT8 ? "/int8"
                                   : "");
}

/* Prints " + add + relu". The function of any other kind of fusion follows its name in brackets. */
static void print_fusions(const struct node *node, struct text *text)
{
    for (int k = 0; k < node->fusion_count; k++) {
        const enum activation activation = node->fusions[k].function.activation;
        const char *kind = fusion_name(node->fusions[k].kind);
        text_append(text, " + %s", kind ? kind : activation_name(activation));
        if (kind && activation) text_append(text, "(%s)", activation_name(activation));
    }
}

/* Prints "(relu)" for an activation or its gradient. */
static void print_attributes(const struct node *node, struct text *text)
{
    for (const struct attribute *member = attribute_members(node->operation->attributes); member->name; member++) {
        if (member->kind != ATTRIBUTE_ACTIVATION) continue;
        const enum activation *activation = (const void *)(node->attributes.bytes + member->offset);
        if (*activation) text_append(text, "(%s)", activation_name(*activation));
    }
}

void graph_print(const struct graph *graph, struct text *text)
{
    for (size_t n = 0; n < graph->node_count; n++) {
        const struct node *node = &graph->nodes[n];
        text_append(text, "%4zu", n);
        text_append(text, " %s", node->operation->name);
        print_attributes(node, text);
        print_fusions(node, text);
        for (int i = 0; i < node->input_count; i++)
            print_value(graph, node_input_port(node, i)->name, node->inputs[i], text);
        if (node_added(node) != NO_VALUE) print_value(graph, "add", node_added(node), text);
        text_append(text, " ->");
        for (int i = 0; i < node->output_count; i++)
            print_value(graph, node_output_port(node, i)->name, node->outputs[i], text);
        text_append(text, "\n");
    }
}
