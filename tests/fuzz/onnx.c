/* The reader of ONNX files. Bits of the file's ir_version, which the reader does not look at, choose its options. */
#include "graph/network.h"
#include "onnx/proto.h"
#include "runtime/device.h"
#include "tests/fuzz/target.h"
#include "tutti_onnx.h"

#include <stdlib.h>
#include <string.h>

enum {
    WHOLE = 16,
    LOGITS = 32,
    HEAD = 64,
    SECOND = 128,
    SHAPE = 256,
    INTEGERS = 512,
    FLOATS = 1024,
    NOTES = 2048,
    SIZES = 4096,
    AXES = 8192,
    CONSTANTS = 16384,
    BARE = 32768
};
enum { INPUTS = 8, OPEN = 8, ELEMENTS = 64, INT64 = 7, FLOAT = 1, BOOL = 9, SIBLING = 4096 };

static tutti_runtime runtime; /* a network needs its address alone */

int LLVMFuzzerInitialize(int *count, char ***words)
{
    (void)count;
    (void)words;
    input_open();
    input_sibling("data", SIBLING);
    return 0;
}

static void ignore(void *user, const char *line)
{
    (void)user;
    if (strchr(line, '\n')) abort();
}

/* Small numbers for an input whose shape is known. Returns whether it is one that gets them. */
static bool know(const Onnx__ValueInfoProto *input, int64_t bits, tutti_onnx_known *known)
{
    static int64_t integers[ELEMENTS];
    static float floats[ELEMENTS];
    const Onnx__TypeProto__Tensor *type = input->type ? input->type->tensor_type : NULL;
    size_t count = 1;
    for (int i = 0; i < ELEMENTS; i++) floats[i] = (float)(integers[i] = i % 7 - 1);
    if (!input->name || !type || !type->shape || type->shape->n_dim > TUTTI_MAX_RANK) return false;
    *known = (tutti_onnx_known) { .name = input->name, .shape.rank = (int)type->shape->n_dim };
    for (size_t i = 0; i < type->shape->n_dim; i++) {
        const int64_t size = known->shape.sizes[i] = type->shape->dim[i]->dim_value;
        if (size < 0 || size > ELEMENTS || (count *= (size_t)size) > ELEMENTS) return false;
    }
    known->trains = (bits & FLOATS) && type->elem_type == FLOAT;
    known->dtype = type->elem_type == FLOAT ? TUTTI_DTYPE_F32
        : type->elem_type == BOOL           ? TUTTI_DTYPE_BOOL
                                            : TUTTI_DTYPE_I64;
    known->values = type->elem_type == FLOAT ? (const void *)floats : integers;
    return type->elem_type == FLOAT ? bits & FLOATS : bits & INTEGERS;
}

/* Sizes for the names that the file has for them. */
static int open_sizes(const Onnx__GraphProto *graph, tutti_onnx_size sizes[OPEN])
{
    int count = 0;
    for (size_t i = 0; i < graph->n_input; i++) {
        const Onnx__TypeProto *type = graph->input[i]->type;
        const size_t rank = type && type->tensor_type && type->tensor_type->shape ? type->tensor_type->shape->n_dim : 0;
        for (size_t k = 0; k < rank && count < OPEN; k++) {
            const char *name = type->tensor_type->shape->dim[k]->dim_param;
            if (name) sizes[count++] = (tutti_onnx_size) { name, 1 + (int64_t)strlen(name) % 5 };
        }
    }
    return count;
}

/* Each input's batch is another axis, the last of them one that inputs seldom have. */
static int batch_axes(const Onnx__GraphProto *graph, tutti_onnx_axis axes[INPUTS])
{
    int count = 0;
    for (size_t i = 0; i < graph->n_input && count < INPUTS; i++, count++)
        axes[count] = (tutti_onnx_axis) { graph->input[i]->name, count };
    return count;
}

static void import(const char *path, const tutti_onnx_options *options)
{
    tutti_onnx made = { .size = sizeof made };
    const tutti_status status = tutti_import_onnx(&runtime, path, options, &made);
    if ((status == TUTTI_OK) != (made.network != NULL)) abort();
    if (status != TUTTI_OK) check_message();
    tutti_network_free(made.network);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    tutti_onnx_known known[INPUTS];
    tutti_onnx_size sizes[OPEN];
    tutti_onnx_axis axes[INPUTS];
    tutti_onnx_options options = { .size = sizeof options, .known = known, .sizes = sizes, .batch_axes = axes };
    const char *path = input_path(data, size);
    Onnx__ModelProto *model = NULL;
    const int64_t bits = proto_read(path, &model) == TUTTI_OK ? model->ir_version : 0;
    options.whole = bits & WHOLE;
    options.logits = bits & LOGITS;
    options.head = bits & HEAD ? 3 : 0;
    options.batch_axis = bits & SECOND ? 1 : 0;
    if (bits & SHAPE) options.input = TUTTI_SHAPE(3, 5);
    options.train_constants = bits & CONSTANTS;
    options.without_preparation = bits & BARE;
    if (bits & AXES) options.batch_axis_count = batch_axes(model->graph, axes);
    if (bits & NOTES) options.note = ignore;
    if (bits & SIZES) options.size_count = open_sizes(model->graph, sizes);
    if (bits & (INTEGERS | FLOATS))
        for (size_t i = 0; i < model->graph->n_input && options.known_count < INPUTS; i++)
            options.known_count += know(model->graph->input[i], bits, &known[options.known_count]);
    import(path, &options);
    proto_free(model);
    return 0;
}
