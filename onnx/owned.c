/* Which initialisers are parameters. What the state dict of the exported module has train; buffers, and what exporters
 * computed without them, as tables of positions, are constants. */
#include "onnx/signature.h"

#include <string.h>

/* Whether a node reads its input as a layer reads its weights. */
static bool reads_weight(const Onnx__NodeProto *node, size_t input)
{
    static const struct {
        const char *type;
        unsigned inputs; /* bits */
    } rows[] = { { "BatchNormalization", 0x6 }, { "Conv", 0x6 }, { "ConvTranspose", 0x6 }, { "Gemm", 0x7 },
        { "GRU", 0xe }, { "GroupNormalization", 0x6 }, { "InstanceNormalization", 0x6 }, { "LSTM", 0xce },
        { "LayerNormalization", 0x6 }, { "MatMul", 0x3 }, { "PRelu", 0x2 }, { "RMSNormalization", 0x2 }, { "RNN", 0xe },
        { "Einsum", ~0u }, { "Gather", 0x1 }, { "DequantizeLinear", 0x1 } };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (!strcmp(node->op_type, rows[i].type)) return input < 32 && rows[i].inputs >> input & 1;
    return false;
}

/* Whether the file's state dict has it as a parameter. If the file gives its kind, that decides. */
static bool is_in_state(const struct signature *signature, const struct value *value)
{
    if (value->kind) return !strcmp(value->kind, "PARAMETER");
    if (value->state_name) {
        const struct signature_entry *entry = signature_find(signature, value->state_name);
        return entry && entry->parameter;
    }
    for (const char *at = value->folded_from ? strchr(value->folded_from, '\'') : NULL; at;) {
        const char *end = strchr(at + 1, '\'');
        for (size_t i = 0; end && i < signature->count; i++) {
            const struct signature_entry *entry = &signature->entries[i];
            const size_t length = (size_t)(end - at - 1);
            if (entry->parameter && strlen(entry->name) == length && !memcmp(entry->name, at + 1, length)) return true;
        }
        at = end ? strchr(end + 1, '\'') : NULL;
    }
    return false;
}

static void find_by_state(struct import *import, const struct signature *signature)
{
    for (size_t i = 0; i < import->value_count; i++) {
        struct value *value = &import->values[i];
        if (value->initialiser && !value->view.of && onnx_type_is_float(value->type))
            value->constant = !is_in_state(signature, value);
    }
}

/* Without a state dict, in files whose nodes tell their scopes: names that the exporter made up, which no layer reads
 * as its weights. PyTorch's older exporter makes up names of parameters that it reshaped, too. */
static void find_by_use(struct import *import)
{
    const Onnx__GraphProto *graph = import->model->graph;
    for (size_t i = 0; i < import->value_count; i++) {
        struct value *value = &import->values[i];
        value->constant = value->initialiser && !value->view.of && !value->renamed && onnx_type_is_float(value->type) &&
            import_is_nameless(import, value);
    }
    for (size_t i = 0; i < graph->n_node; i++)
        for (size_t k = 0; k < graph->node[i]->n_input; k++) {
            struct value *value = import_find(import, graph->node[i]->input[k]);
            if (value && reads_weight(graph->node[i], k)) value->constant = false;
        }
}

/* Lists the constants in one line. */
static void note_constants(const struct import *import)
{
    enum { NAMED = 6 };
    char names[256] = "";
    size_t count = 0, length = 0;
    for (size_t i = 0; i < import->value_count; i++) {
        const struct value *value = &import->values[i];
        if (!value->constant || !value->uses) continue;
        if (count++ >= NAMED || strlen(value->name) + 3 > sizeof names - length) continue;
        if (length) names[length++] = ',', names[length++] = ' ';
        memcpy(names + length, value->name, strlen(value->name) + 1);
        length += strlen(value->name);
    }
    if (count)
        import_note(import, "%zu initialiser%s no parameter%s of the exported module, and %s constant: %s%s", count,
            count == 1 ? " is" : "s are", count == 1 ? "" : "s", count == 1 ? "stays" : "stay", names,
            count > NAMED ? ", ..." : "");
}

tutti_status import_find_constants(struct import *import, const struct signature *signature)
{
    if (import->options->train_constants) return TUTTI_OK;
    if (signature->count)
        find_by_state(import, signature);
    else if (import->scopes)
        find_by_use(import);
    note_constants(import);
    return TUTTI_OK;
}
