/* The newer exporter stores weights and biases of nn.LSTM and nn.GRU as ONNX reads them: gates in another order, biases
 * joined, both directions in one tensor. They become the parameters of the state dict again, and nodes that do what the
 * exporter did. */
#include "onnx/parameters/unfolded.h"

#include "base/memory.h"
#include "onnx/parameters/exported_names.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_GATES = 4, MOST_DIRECTIONS = 2, MOST_PARTS = 2 };

/* An input of the node: weights of one kind, or biases of both kinds. */
struct gates {
    const Onnx__NodeProto *node;
    const char *layer; /* "" is the whole module */
    int count;         /* gates */
    const int *order;  /* gate i of the file is gate order[i] of PyTorch */
    int directions, parts;
    const char *kinds[MOST_PARTS]; /* "weight_ih"; of biases "bias_ih", "bias_hh" */
    struct array *array;           /* [directions, parts * gates * hidden, features]; biases have no features */
    int64_t hidden, features;
    char *names[MOST_DIRECTIONS][MOST_PARTS]; /* of the parameters */
};

static void gates_free(struct gates *g)
{
    for (int d = 0; d < MOST_DIRECTIONS; d++)
        for (int p = 0; p < MOST_PARTS; p++) free(g->names[d][p]);
    array_free(g->array);
}

/* The number in "weight_ih_l1" or "layer.weight_ih_l1_reverse", of this kind. -1: another name. */
static int level_in(const char *name, const char *kind)
{
    const char *last = strrchr(name, '.'), *at = last ? last + 1 : name;
    const size_t length = strlen(kind);
    char *end;
    if (strncmp(at, kind, length) || strncmp(at + length, "_l", 2) || !strchr("0123456789", at[length + 2])) return -1;
    const long level = strtol(at + length + 2, &end, 10);
    return level >= 0 && level < 1000 && (!*end || !strcmp(end, "_reverse")) ? (int)level : -1;
}

/* Finds which layer of a stack the weights are of. -1: the list does not tell. */
static int find_level(const char *list, const char *kind)
{
    int found = -1;
    bool same = true;
    for (char *name; (name = list_next(&list)) != NULL; free(name)) {
        const int level = level_in(name, kind);
        same &= level < 0 || found < 0 || level == found;
        if (level >= 0) found = level;
    }
    return same ? found : -1;
}

/* Sets the names; false if the state dict does not have them all as parameters, or there is no memory. */
static bool find_names(const struct unfolding *u, struct gates *g, int level)
{
    bool good = true;
    for (int d = 0; d < g->directions; d++)
        for (int p = 0; p < g->parts; p++) {
            g->names[d][p] =
                memory_format("%s%s%s_l%d%s", g->layer, *g->layer ? "." : "", g->kinds[p], level, d ? "_reverse" : "");
            const struct signature_entry *entry = g->names[d][p] ? signature_find(&u->signature, g->names[d][p]) : NULL;
            good &= entry && entry->parameter;
        }
    return good;
}

static bool read_shape(struct gates *g, bool biases)
{
    const struct array *a = g->array;
    const int64_t rows = a->rank > 1 ? a->sizes[1] : 0, unit = (int64_t)g->count * g->parts;
    if (a->rank != (biases ? 2 : 3) || a->sizes[0] != g->directions || rows <= 0 || rows % unit) return false;
    g->hidden = rows / unit;
    g->features = biases ? 1 : a->sizes[2];
    return g->features > 0;
}

/* The parameter [gates * hidden, features] in PyTorch's order. NULL: no memory. */
static struct array *parameter_of(const struct gates *g, int direction, int part)
{
    const size_t block = (size_t)(g->hidden * g->features);
    const int64_t sizes[] = { g->count * g->hidden, g->features };
    struct array *array = array_new(g->array->rank - 1, sizes, true);
    for (int i = 0; array && i < g->count; i++)
        memcpy(array->floats + (size_t)g->order[i] * block,
            g->array->floats + (size_t)((direction * g->parts + part) * g->count + i) * block, block * sizeof(float));
    return array;
}

/* Adds the parameter, unless the file has it. *same: whether the file has no other numbers for it. */
static tutti_status add_parameter(struct unfolding *u, const struct gates *g, int direction, int part, bool *same)
{
    const char *name = g->names[direction][part];
    struct array *array = parameter_of(g, direction, part), *known = NULL;
    const Onnx__TensorProto *there = edit_find(&u->edit, name);
    tutti_status status = array ? TUTTI_OK : TUTTI_NO_MEMORY;
    if (status == TUTTI_OK && there && tensor_check(there) == TUTTI_OK && there->data_type == ONNX_FLOAT)
        status = tensor_read(there, u->import->folder, &known);
    if (status == TUTTI_OK && there)
        *same &= known && known->count == array->count &&
            !memcmp(known->floats, array->floats, array->count * sizeof *array->floats);
    else if (status == TUTTI_OK && edit_is_free(&u->edit, name))
        status = edit_add_floats(&u->edit, name, array->rank, array->sizes, array->floats);
    else
        *same = false;
    array_free(array);
    array_free(known);
    return status;
}

/* Adds nodes that make one direction: [1, parts * gates * hidden, features], as `output`. */
static tutti_status add_direction(struct unfolding *u, const struct gates *g, int direction, const char *output)
{
    char *pieces[MOST_PARTS * MOST_GATES] = { NULL };
    const char *ordered[MOST_PARTS * MOST_GATES];
    const int64_t sizes[] = { 1, g->parts * g->count * g->hidden, g->features };
    tutti_status status = TUTTI_OK;
    char *joined = memory_format("%s#joined", output);
    if (!joined) status = TUTTI_NO_MEMORY;
    for (int i = 0; i < g->parts * g->count; i++)
        if (!(pieces[i] = memory_format("%s#%d", output, i))) status = TUTTI_NO_MEMORY;
    for (int i = 0; i < g->parts * g->count; i++) ordered[i] = pieces[i / g->count * g->count + g->order[i % g->count]];
    for (int p = 0; p < g->parts && status == TUTTI_OK; p++)
        status = edit_add_node(&u->edit, "Split", (const char *const[]) { g->names[direction][p] }, 1,
            (const char *const *)pieces + p * g->count, (size_t)g->count, 0);
    if (status == TUTTI_OK)
        status = edit_add_node(
            &u->edit, "Concat", ordered, (size_t)(g->parts * g->count), (const char *const[]) { joined }, 1, 0);
    if (status == TUTTI_OK) status = edit_add_shaped(&u->edit, "Reshape", joined, output, g->array->rank, sizes);
    for (int i = 0; i < g->parts * g->count; i++) free(pieces[i]);
    free(joined);
    return status;
}

/* Adds nodes that make the input, as `output`. */
static tutti_status add_nodes(struct unfolding *u, const struct gates *g, const char *output)
{
    char *names[MOST_DIRECTIONS] = { NULL };
    tutti_status status = TUTTI_OK;
    if (g->directions == 1) return add_direction(u, g, 0, output);
    for (int d = 0; d < g->directions && status == TUTTI_OK; d++) {
        names[d] = memory_format("%s#%s", output, d ? "reverse" : "forward");
        status = names[d] ? add_direction(u, g, d, names[d]) : TUTTI_NO_MEMORY;
    }
    if (status == TUTTI_OK) status = edit_add_node(&u->edit, "Concat", (const char *const *)names, 2, &output, 1, 0);
    for (int d = 0; d < g->directions; d++) free(names[d]);
    return status;
}

/* Makes the node read the parameters instead of the initialiser. */
static tutti_status read_gates_of_parameters(struct unfolding *u, const struct gates *g, size_t input)
{
    char **read = &g->node->input[input], *old = *read;
    size_t first = 0; /* output that something reads: its name is the node's alone */
    while (first + 1 < g->node->n_output && !*g->node->output[first]) first++;
    char *output = memory_format("%s#%s", old, g->node->output[first]);
    tutti_status status = output ? add_nodes(u, g, output) : TUTTI_NO_MEMORY;
    if (status != TUTTI_OK) return free(output), status;
    *read = output;
    import_note(
        u->import, "%s is %s%s in ONNX's order of gates", old, g->names[0][0], g->parts > 1 ? " and others" : "");
    if (!edit_is_read(&u->edit, old) && !edit_is_output(&u->edit, old)) edit_remove(&u->edit, edit_find(&u->edit, old));
    free(old);
    return TUTTI_OK;
}

static tutti_status unfold_input(struct unfolding *u, struct gates *g, size_t input, const char *list)
{
    const Onnx__TensorProto *tensor = edit_find(&u->edit, g->node->input[input]);
    const int level = find_level(list, g->kinds[0]);
    bool same = true;
    if (level < 0 || tensor->data_type != ONNX_FLOAT || tensor_check(tensor) != TUTTI_OK) return TUTTI_OK;
    if (!find_names(u, g, level)) return TUTTI_OK;
    tutti_status status = tensor_read(tensor, u->import->folder, &g->array);
    if (status != TUTTI_OK || !read_shape(g, g->parts > 1)) return status;
    for (int d = 0; d < g->directions; d++)
        for (int p = 0; p < g->parts && status == TUTTI_OK; p++) status = add_parameter(u, g, d, p, &same);
    return status == TUTTI_OK && same ? read_gates_of_parameters(u, g, input) : status;
}

/* Whether the exporter made the node of a layer of PyTorch. */
static bool is_of_layer(const Onnx__NodeProto *node, const char *operation)
{
    const char *at = import_scopes(node);
    bool is = false;
    for (char *scope; (scope = list_next(&at)) != NULL; free(scope)) is = !strncmp(scope, operation, strlen(operation));
    return is;
}

tutti_status unfold_recurrent(struct unfolding *u, const Onnx__NodeProto *node)
{
    static const int of_lstm[] = { 0, 3, 1, 2 }, of_gru[] = { 1, 0, 2 };
    static const char *const kinds[][MOST_PARTS] = { { "weight_ih" }, { "weight_hh" }, { "bias_ih", "bias_hh" } };
    const bool lstm = !strcmp(node->op_type, "LSTM");
    const Onnx__AttributeProto *direction = proto_attribute(node->attribute, node->n_attribute, "direction");
    tutti_status status = TUTTI_OK;
    if (!is_of_layer(node, lstm ? "lstm" : "gru") || node->n_output == 0) return TUTTI_OK;
    char *layer = import_layer(node);
    u->edit.like = node;
    for (size_t i = 1; i < 4 && i < node->n_input && status == TUTTI_OK; i++) {
        const char *list = signature_folded_from(u->edit.graph, node->input[i]);
        struct gates g = { .node = node,
            .layer = layer ? layer : "",
            .count = lstm ? 4 : 3,
            .order = lstm ? of_lstm : of_gru,
            .directions = direction && direction->s.len == strlen("bidirectional") ? 2 : 1,
            .parts = i == 3 ? 2 : 1,
            .kinds = { kinds[i - 1][0], kinds[i - 1][1] } };
        if (list && edit_find(&u->edit, node->input[i])) status = unfold_input(u, &g, i, list);
        gates_free(&g);
    }
    u->edit.like = NULL;
    free(layer);
    return status;
}
