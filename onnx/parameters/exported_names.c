#include "onnx/parameters/exported_names.h"

#include "base/memory.h"

#include <string.h>

/* Whether a name such as "permute_1" is made up. NO: never, because parameters are called so. WITH_SCOPES: in files
 * whose nodes tell scopes (dynamo=True), also "permute" without a number. ALWAYS: in all files, with a number. */
enum made_up { NO, WITH_SCOPES, ALWAYS };

/* Operations of torch.export. "val_7" is a value that the exporter itself computed, mostly the transposed weight of a
 * product; "_val_7" is a constant that it made. */
static const struct operation {
    const char *name;
    unsigned does;
    enum made_up made_up;
} operations[] = {
    { "val", TRANSPOSES, ALWAYS },
    { "_val", CREATES, ALWAYS },
    { "t", TRANSPOSES, WITH_SCOPES },
    { "T", TRANSPOSES, WITH_SCOPES },
    { "mT", TRANSPOSES, WITH_SCOPES },
    { "numpy_T", TRANSPOSES, WITH_SCOPES },
    { "transpose", TRANSPOSES, WITH_SCOPES },
    { "permute", TRANSPOSES, WITH_SCOPES },
    { "unsqueeze", RESHAPES, WITH_SCOPES },
    { "squeeze", RESHAPES, WITH_SCOPES },
    { "view", RESHAPES, WITH_SCOPES },
    { "reshape", RESHAPES, WITH_SCOPES },
    { "_unsafe_view", RESHAPES, WITH_SCOPES },
    { "contiguous", RESHAPES, WITH_SCOPES },
    { "clone", RESHAPES, WITH_SCOPES },
    { "alias", RESHAPES, WITH_SCOPES },
    { "detach", RESHAPES, WITH_SCOPES },
    { "flatten", RESHAPES, NO },
    { "unflatten", RESHAPES, NO },
    { "to", RESHAPES, NO },
    { "_to_copy", RESHAPES, NO },
    { "expand", MOVES | REPEATS, WITH_SCOPES },
    { "repeat", MOVES | REPEATS, NO },
    { "tile", MOVES | REPEATS, NO },
    { "flip", MOVES, NO },
    { "roll", MOVES, NO },
    { "movedim", MOVES, NO },
    { "swapaxes", MOVES, NO },
    { "slice", MOVES, NO },
    { "select", MOVES, NO },
    { "narrow", MOVES, NO },
    { "split", MOVES, NO },
    { "split_with_sizes", MOVES, NO },
    { "chunk", MOVES, NO },
    { "unbind", MOVES, NO },
    { "getitem", MOVES, NO },
    { "cat", MOVES, NO },
    { "concat", MOVES, NO },
    { "stack", MOVES, NO },
    { "diagonal", MOVES, NO },
    { "index", MOVES | LOOKS_UP, NO },
    { "index_select", MOVES | LOOKS_UP, NO },
    { "gather", MOVES | LOOKS_UP, NO },
    { "embedding", MOVES | LOOKS_UP, NO },
    { "zeros", CREATES, NO },
    { "ones", CREATES, NO },
    { "full", CREATES, NO },
    { "arange", CREATES, NO },
    { "empty", CREATES, NO },
    { "scalar_tensor", CREATES, NO },
    { "lift_fresh_copy", CREATES, NO },
    { "zeros_like", CREATES, NO },
    { "ones_like", CREATES, NO },
    { "full_like", CREATES, NO },
    { "new_zeros", CREATES, NO },
    { "new_ones", CREATES, NO },
    { "eye", CREATES, NO },
    { "linspace", CREATES, NO },
};

/* *rest: what follows the operation's name. */
static const struct operation *find_operation(const char *name, const char **rest)
{
    for (size_t i = 0; i < sizeof operations / sizeof *operations; i++) {
        const size_t length = strlen(operations[i].name);
        *rest = name + length;
        if (strncmp(name, operations[i].name, length) || (**rest && **rest != '_')) continue;
        const char *end = *rest + strspn(*rest, "_0123456789#");
        if (!*end || !strncmp(end, "split", strlen("split")) || !strncmp(end, "default", strlen("default")))
            return &operations[i];
    }
    return NULL;
}

unsigned operation_of(const char *name)
{
    const char *rest;
    const struct operation *operation = find_operation(name, &rest);
    return operation ? operation->does : 0;
}

bool import_is_nameless(const struct import *import, const struct onnx_value *value)
{
    const char *rest;
    if (value->origin.folded_from || !strncmp(value->name, "onnx::", strlen("onnx::"))) return true;
    const struct operation *operation = find_operation(value->name, &rest);
    if (!operation || operation->made_up == NO) return false;
    const bool numbered = *rest == '_' && rest[1] && strspn(rest + 1, "0123456789") == strlen(rest + 1);
    return numbered ? operation->made_up == ALWAYS || import->scopes : import->scopes && !*rest;
}

char *bias_name(const char *weight)
{
    const size_t length = strlen(weight), end = strlen("weight");
    if (length < end || strcmp(weight + length - end, "weight")) return NULL;
    return memory_format("%.*sbias", (int)(length - end), weight);
}

char *list_next(const char **at)
{
    const char *begin = *at ? strchr(*at, '\'') : NULL, *end = begin ? strchr(begin + 1, '\'') : NULL;
    *at = end ? end + 1 : NULL;
    return end ? memory_format("%.*s", (int)(end - begin - 1), begin + 1) : NULL;
}
