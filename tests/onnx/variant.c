/* A model in which a parameter is added to some inputs. */
#include "tests/onnx/conform.h"

#include "base/memory.h"
#include "onnx/proto.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Memory that protobuf-c frees with the model. */
static void *grown(void *list, size_t count)
{
    void *more = realloc(list, count * sizeof(void *));
    if (!more) abort();
    return more;
}

static void add_input(Onnx__GraphProto *graph, char *name)
{
    Onnx__ValueInfoProto *input = calloc(1, sizeof *input);
    if (!input) abort();
    onnx__value_info_proto__init(input);
    input->name = name;
    graph->input = grown(graph->input, graph->n_input + 1);
    graph->input[graph->n_input++] = input;
}

/* Also within branches. */
static void rename_inputs(Onnx__GraphProto *graph, const char *name, const char *moved)
{
    for (size_t i = 0; i < graph->n_node; i++) {
        Onnx__NodeProto *node = graph->node[i];
        for (size_t j = 0; j < node->n_input; j++) {
            if (strcmp(node->input[j], name)) continue;
            free(node->input[j]);
            node->input[j] = strdup(moved);
        }
        for (size_t j = 0; j < node->n_attribute; j++)
            if (node->attribute[j]->g) rename_inputs(node->attribute[j]->g, name, moved);
    }
}

/* Nodes read NAME~ in place of NAME, which the first node makes: NAME + NAME~zero, which is an input, too. */
static void move(Onnx__GraphProto *graph, const char *name)
{
    char *zero = memory_format("%s" VARIANT_ZERO, name), *moved = memory_format("%s~", name);
    Onnx__NodeProto *node = calloc(1, sizeof *node);
    if (!zero || !moved || !node) abort();
    rename_inputs(graph, name, moved);
    onnx__node_proto__init(node);
    node->op_type = strdup("Add");
    node->input = grown(NULL, node->n_input = 2);
    node->input[0] = strdup(name);
    node->input[1] = strdup(zero);
    node->output = grown(NULL, node->n_output = 1);
    node->output[0] = moved;
    graph->node = grown(graph->node, graph->n_node + 1);
    memmove(graph->node + 1, graph->node, graph->n_node++ * sizeof(void *));
    graph->node[0] = node;
    add_input(graph, zero);
}

static tutti_status write_model(const Onnx__ModelProto *model, const char *path)
{
    const size_t bytes = onnx__model_proto__get_packed_size(model);
    unsigned char *data = malloc(bytes + 1);
    FILE *file = fopen(path, "wb");
    const bool good =
        data && file && onnx__model_proto__pack(model, data) == bytes && fwrite(data, 1, bytes, file) == bytes;
    const bool closed = file && !fclose(file);
    free(data);
    return good && closed ? TUTTI_OK : fail(TUTTI_FILE, "%s cannot be written", path);
}

tutti_status variant_write(const struct conform_test *test, const char *path)
{
    char from[CONFORM_PATH];
    Onnx__ModelProto *model = NULL;
    snprintf(from, sizeof from, "%s/%s.onnx", test->folder, test->name);
    tutti_status status = proto_read(from, &model);
    if (status != TUTTI_OK) return status;
    for (int i = 0; i < test->input_count; i++)
        if (test->roles[i] == ROLE_MOVED) move(model->graph, test->input_names[i]);
    status = write_model(model, path);
    proto_free(model);
    return status;
}
