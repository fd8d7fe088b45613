/* Finds which initialisers are parameters. Those that come from parameters of the exported module's state dict train.
 * Buffers, and initialisers that exporters computed without parameters, as tables of positions, are constants. */
#include "onnx/parameters/exported_names.h"
#include "onnx/parameters/folded.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Whether a node reads its input as a layer reads its weights. */
static bool reads_weight(const Onnx__NodeProto *node, size_t input)
{
    static const struct {
        const char *type;
        unsigned inputs; /* bits */
    } rows[] = { { "BatchNormalization", 0x6 }, { "Conv", 0x6 }, { "ConvTranspose", 0x6 }, { "Gemm", 0x7 },
        { "GRU", 0xe }, { "GroupNormalization", 0x6 }, { "InstanceNormalization", 0x6 }, { "LSTM", 0x8e },
        { "LayerNormalization", 0x6 }, { "MatMul", 0x3 }, { "PRelu", 0x2 }, { "RMSNormalization", 0x2 }, { "RNN", 0xe },
        { "Einsum", ~0u }, { "Gather", 0x1 }, { "DequantizeLinear", 0x1 } };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (!strcmp(node->op_type, rows[i].type)) return input < 32 && rows[i].inputs >> input & 1;
    return false;
}

/* Whether the file's state dict has it as a parameter. If the file gives its kind, that decides. */
static bool is_in_state(const struct signature *signature, const struct onnx_value *value)
{
    if (value->origin.kind) return !strcmp(value->origin.kind, "PARAMETER");
    if (value->origin.state_name) {
        const struct signature_entry *entry = signature_find(signature, value->origin.state_name);
        return entry && entry->parameter;
    }
    return folded_has_parameter(signature, value);
}

static tutti_status find_by_state(struct import *import, const struct signature *signature)
{
    tutti_status status = TUTTI_OK;
    for (size_t i = 0; i < import->value_count && status == TUTTI_OK; i++) {
        struct onnx_value *value = &import->values[i];
        if (!value->initialiser || value->view.of || !onnx_type_is_float(value->type)) continue;
        value->constant = !is_in_state(signature, value);
        if (!value->constant && value->origin.folded_from && value->stored)
            status = folded_check(import, signature, value);
    }
    return status;
}

/* For files without a state dict whose nodes tell their scopes: constants are initialisers with names that the
 * exporter made up, which no layer reads as its weights. This is not done for PyTorch's older exporter, which also
 * makes up names of parameters that it reshaped: its files tell no scopes. */
static void find_by_use(struct import *import)
{
    for (size_t i = 0; i < import->value_count; i++) {
        struct onnx_value *value = &import->values[i];
        value->constant = value->initialiser && !value->view.of && !value->origin.renamed &&
            onnx_type_is_float(value->type) && !value->usage.is_weight && import_is_nameless(import, value);
    }
}

/* -------------------------------------------------------------------------------------------- by what reads it ---- */

/* What a value affects in the end. 0: only comparisons and shapes. */
enum { FOR_GRADIENT = 1, FOR_GRID = 2 };

static int demand_of_input(const Onnx__NodeProto *node, size_t input, int of_outputs)
{
    static const char *const compares[] = { "Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual", "Not", "And",
        "Or", "Xor", "IsNaN", "IsInf", "Sign", "Shape", "Size", "ArgMax", "ArgMin", "NonZero", NULL };
    static const char *const moves[] = { "Slice", "Unsqueeze", "Squeeze", "Reshape", "Transpose", "Expand", "Identity",
        "Gather", "Tile", "Flatten", NULL };
    const char *type = node->op_type;
    const Onnx__AttributeProto *to = proto_attribute(node->attribute, node->n_attribute, "to");
    const bool casts = !strcmp(type, "Cast") && !(to && onnx_type_is_float((int)to->i));
    if (type_is_among(type, compares) || casts || (!strcmp(type, "Where") && input == 0)) return 0;
    if (type_is_among(type, moves) && input == 0) return of_outputs;
    return !strcmp(type, "GridSample") && input == 1 ? FOR_GRID : FOR_GRADIENT;
}

/* Goes from the last node to the first, because a node stands after those whose outputs it reads. */
static void find_demands(struct import *import)
{
    const Onnx__GraphProto *graph = import->model->graph;
    for (size_t i = 0; i < graph->n_output; i++) {
        struct onnx_value *value = import_find(import, graph->output[i]->name);
        if (value) value->usage.demand = FOR_GRADIENT;
    }
    for (size_t n = graph->n_node; n-- > 0;) {
        const Onnx__NodeProto *node = graph->node[n];
        int of_outputs = 0;
        for (size_t k = 0; k < node->n_output; k++) {
            const struct onnx_value *value = import_find(import, node->output[k]);
            of_outputs |= value ? value->usage.demand : 0;
        }
        for (size_t k = 0; k < node->n_input; k++) {
            struct onnx_value *value = import_find(import, node->input[k]);
            if (value) value->usage.demand |= demand_of_input(node, k, of_outputs);
        }
    }
}

/* The initialiser that is the second input of such a node. */
static struct onnx_value *second_of(const struct import *import, const Onnx__NodeProto *node, const char *type)
{
    if (strcmp(node->op_type, type) || node->n_input != 2) return NULL;
    struct onnx_value *value = import_find(import, node->input[1]);
    return value && value->initialiser && value->stored && onnx_type_is_float(value->type) ? value : NULL;
}

/* (x - mean) / deviation. */
static void find_standardisation(struct import *import)
{
    const Onnx__GraphProto *graph = import->model->graph;
    for (size_t i = 0; i + 1 < graph->n_node; i++) {
        struct onnx_value *mean = second_of(import, graph->node[i], "Sub");
        struct onnx_value *deviation = second_of(import, graph->node[i + 1], "Div");
        if (!mean || !deviation || strcmp(graph->node[i + 1]->input[0], graph->node[i]->output[0])) continue;
        const size_t rank = mean->stored->n_dims;
        if (rank != deviation->stored->n_dims || mean->usage.nodes != 1 || deviation->usage.nodes != 1) continue;
        if (memcmp(mean->stored->dims, deviation->stored->dims, rank * sizeof *mean->stored->dims)) continue;
        mean->constant = deviation->constant = true;
    }
}

/* Rows of sines and cosines of 0, a, 2 a and so on, with an angle for each column: cos 2a = 2 (cos a)^2 - 1, and
 * (sin 2a)^2 = 4 (sin a)^2 (1 - (sin a)^2). No training keeps this. */
static bool is_table_of_angles(const struct array *array)
{
    enum { ROWS = 3 };
    const double limit = 1e-4;
    int64_t sizes[2] = { 0 };
    int rank = 0;
    bool moves = false;
    for (int i = 0; i < array->rank; i++) {
        if (array->sizes[i] == 1) continue;
        if (rank == 2) return false;
        sizes[rank++] = array->sizes[i];
    }
    if (rank != 2 || sizes[0] < ROWS || !array->floats) return false;
    const float *first = array->floats, *second = first + sizes[1], *third = second + sizes[1];
    for (int64_t c = 0; c < sizes[1]; c++) {
        const double square = (double)second[c] * (double)second[c], next = (double)third[c];
        if (first[c] != 0 && first[c] != 1) return false;
        const double error = first[c] == 0 ? 4 * square * (1 - square) - next * next : 2 * square - 1 - next;
        if (!(fabs(error) < limit) || square > 1 + limit) return false;
        moves |= first[c] == 0 ? square > limit : square < 1 - limit;
    }
    return moves;
}

/* For files without a state dict and scopes, as those of PyTorch's older exporter: constants are initialisers that
 * cannot be parameters, or are unlikely to be. */
static tutti_status find_by_reading(struct import *import)
{
    find_demands(import);
    find_standardisation(import);
    for (size_t i = 0; i < import->value_count; i++) {
        struct onnx_value *value = &import->values[i];
        if (!value->initialiser || value->view.of || value->origin.renamed || !value->stored || !value->usage.nodes ||
            !onnx_type_is_float(value->type))
            continue;
        value->constant |= !(value->usage.demand & FOR_GRADIENT);
        if (value->constant || value->stored->n_dims < 2) continue;
        const tutti_status status = import_load(import, value);
        if (status != TUTTI_OK) return status;
        value->constant = is_table_of_angles(value->array);
        (void)value_is_finite(import, value); /* examined while it is read */
        array_free(value->array);
        value->array = NULL;
    }
    return TUTTI_OK;
}

/* -------------------------------------------------------------------------------------------------- one number ---- */

static bool is_number(const struct onnx_value *value)
{
    return value->initialiser && onnx_type_is_float(value->type) && stored_elements(value) == 1;
}

/* "fc.weight", "lstm.weight_ih_l0", "attention.in_proj_bias", "norm.weight#2". */
static bool is_called_parameter(const char *name)
{
    const char *last = strrchr(name, '.');
    last = last ? last + 1 : name;
    return strstr(last, "weight") || strstr(last, "bias");
}

/* Whether the file tells that one number is a parameter: by the state dict, by a name in it that the exporter replaced,
 * or by a layer's name for it. Scales that are computed, as those of a quantised file, are none. */
static bool is_told_parameter(const struct signature *signature, const struct onnx_value *value)
{
    const char *last = strrchr(value->name, '.');
    if (value->origin.renamed) return true;
    if (signature->count) return !value->origin.folded_from && is_in_state(signature, value);
    last = last ? last + 1 : value->name;
    return (value->usage.is_weight && is_called_parameter(value->name)) || !strcmp(last, "weight") ||
        !strcmp(last, "bias");
}

/* Other initialisers of one number are constants: nodes may need to know them. So are those of several nodes: exporters
 * merge equal numbers, as 1 for a scale and 1 in a formula. */
static void find_numbers(const struct import *import, const struct signature *signature)
{
    struct name_list list = { .length = 0 };
    for (size_t i = 0; i < import->value_count; i++) {
        struct onnx_value *value = &import->values[i];
        if (!is_number(value) || value->constant || value->view.of || !is_told_parameter(signature, value) ||
            !value_is_finite(import, value))
            continue;
        value->forced_parameter = value->usage.nodes < 2;
        if (!value->forced_parameter) name_list_add(&list, value->name);
    }
    for (size_t i = 0; i < import->value_count; i++) {
        struct onnx_value *value = &import->values[i];
        struct onnx_value *of = value->view.of;
        if (of && is_number(value)) value->forced_parameter = value_trains(import, of);
    }
    if (list.count)
        import_note(import,
            "warning: several nodes read %zu parameter%s of one number, which the exporter may have merged with equal "
            "ones: %s%s %s not train",
            list.count, list.count == 1 ? "" : "s", list.names, name_list_end(&list), list.count == 1 ? "does" : "do");
}

/* ------------------------------------------------------------------------------------------- what was decided ---- */

static void note_constants(const struct import *import, bool known)
{
    struct name_list list = { .length = 0 };
    for (size_t i = 0; i < import->value_count; i++) {
        const struct onnx_value *value = &import->values[i];
        if (value->constant && !value->noted && value->usage.nodes) name_list_add(&list, value->name);
    }
    if (list.count)
        import_note(import, "constant: %zu initialiser%s %s: %s%s; train_constants (--train-constants) trains them",
            list.count, list.count == 1 ? "" : "s",
            known ? "that the exported module does not have as parameters"
                  : "that are compared, sample grids, standardise, or are tables of sines and cosines",
            list.names, name_list_end(&list));
}

/* Notes initialisers that train although the file does not tell parameters from buffers. */
static void note_trained(const struct import *import)
{
    struct name_list list = { .length = 0 };
    for (size_t i = 0; i < import->value_count; i++) {
        struct onnx_value *value = &import->values[i];
        if (!value->initialiser || !value->usage.nodes || value->view.of || value->origin.renamed ||
            value->usage.is_weight || !value->stored || is_called_parameter(value->name))
            continue;
        if (value_trains(import, value)) name_list_add(&list, value->name);
    }
    if (list.count)
        import_note(import,
            "trains: %zu initialiser%s of which the file does not tell whether they are parameters or buffers: %s%s; "
            "tutti_freeze() (--freeze) keeps them as they are",
            list.count, list.count == 1 ? "" : "s", list.names, name_list_end(&list));
}

static void find_weights(struct import *import)
{
    const Onnx__GraphProto *graph = import->model->graph;
    for (size_t i = 0; i < graph->n_node; i++)
        for (size_t k = 0; k < graph->node[i]->n_input; k++) {
            struct onnx_value *value = import_find(import, graph->node[i]->input[k]);
            const bool is_statistic = k >= 3 && !strcmp(graph->node[i]->op_type, "BatchNormalization");
            if (value) value->usage.is_weight |= is_statistic || reads_weight(graph->node[i], k);
        }
}

tutti_status import_find_constants(struct import *import, const struct signature *signature)
{
    const bool known = signature->count || import->scopes;
    tutti_status status = TUTTI_OK;
    find_weights(import);
    if (import->options->train_constants) return find_numbers(import, signature), TUTTI_OK;
    if (signature->count)
        status = find_by_state(import, signature);
    else if (import->scopes)
        find_by_use(import);
    else
        status = find_by_reading(import);
    find_numbers(import, signature);
    note_constants(import, known);
    if (!known) note_trained(import);
    return status;
}
