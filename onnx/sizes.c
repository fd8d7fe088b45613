/* Sizes that a file leaves open, besides the batch: by their names, by axes of inputs, or by the shape of a sample. */
#include "onnx/import.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Texts that exporters write for a size without a name are not names: axes with them need not be equal. */
static const char *name_of(const Onnx__ValueInfoProto *input, int axis)
{
    static const char *const none[] = { "?", "-1", "None", "none", "null", "*" };
    const char *name = proto_text(input->type->tensor_type->shape->dim[axis]->dim_param);
    for (size_t i = 0; i < sizeof none / sizeof *none; i++)
        if (!strcmp(name, none[i])) return "";
    return name;
}

/* "x.1" is axis 1 of the input x. */
static bool is_axis(const char *name, const Onnx__ValueInfoProto *input, int axis)
{
    char number[16];
    const size_t length = strlen(input->name);
    snprintf(number, sizeof number, ".%d", axis);
    return !strncmp(name, input->name, length) && !strcmp(name + length, number);
}

/* The size that the caller gives for one axis; 0: none. `asked`: the shape of a sample of this input, or rank 0. */
static int64_t said_of(
    const struct import *import, const Onnx__ValueInfoProto *input, const tutti_shape *asked, int axis)
{
    const tutti_onnx_options *options = import->options;
    const int batch = import_batch_axis(import, input->name), at = axis - (batch != NO_AXIS && axis > batch);
    if (asked->rank > at) return asked->sizes[at];
    for (int i = 0; i < options->size_count; i++)
        if (options->sizes[i].name && is_axis(options->sizes[i].name, input, axis)) return options->sizes[i].size;
    return 0;
}

static tutti_status agree(const Onnx__ValueInfoProto *input, int axis, int64_t found, int64_t *size)
{
    if (*size && found && *size != found)
        return fail(TUTTI_SHAPE, "input '%s': axis %d, '%s', has the sizes %" PRId64 " and %" PRId64, input->name, axis,
            name_of(input, axis), *size, found);
    if (found) *size = found;
    return TUTTI_OK;
}

/* Axes of other inputs with the same name have the same size. */
static tutti_status agree_by_name(
    const struct import *import, const Onnx__ValueInfoProto *input, int axis, int64_t *size)
{
    const Onnx__GraphProto *graph = import->model->graph;
    const tutti_onnx_options *options = import->options;
    const char *name = name_of(input, axis);
    tutti_status status = TUTTI_OK;
    for (int i = 0; i < options->size_count && status == TUTTI_OK; i++)
        if (options->sizes[i].name && !strcmp(options->sizes[i].name, name))
            status = agree(input, axis, options->sizes[i].size, size);
    for (size_t i = 0; i < graph->n_input && status == TUTTI_OK; i++) {
        const Onnx__ValueInfoProto *other = graph->input[i];
        const Onnx__TypeProto__Tensor *type = other->type ? other->type->tensor_type : NULL;
        if (import_find(import, other->name)->initialiser || !type || !type->shape) continue;
        const tutti_shape none = { 0 }, *asked = other == import->first_input ? &options->input : &none;
        for (int k = 0; k < (int)type->shape->n_dim && status == TUTTI_OK; k++)
            if (k != import_batch_axis(import, other->name) && !strcmp(name_of(other, k), name))
                status = agree(input, axis, said_of(import, other, asked, k), size);
    }
    return status;
}

tutti_status import_open_size(
    const struct import *import, const Onnx__ValueInfoProto *input, const tutti_shape *asked, int axis, int64_t *size)
{
    const char *name = name_of(input, axis);
    *size = said_of(import, input, asked, axis);
    const tutti_status status = *name ? agree_by_name(import, input, axis, size) : TUTTI_OK;
    if (status != TUTTI_OK) return status;
    if (*size > 0 && *size <= INT32_MAX) return TUTTI_OK;
    return fail(TUTTI_SHAPE, "input '%s': axis %d has an open size%s%s%s: pass the shape of a sample%s", input->name,
        axis, *name ? ", '" : "", name, *name ? "'" : "",
        import->options->whole ? "" : " or this size (sizes); if it is the batch, say so (batch_axis)");
}
