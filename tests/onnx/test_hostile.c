/* Files that are damaged or malicious: a line that says so, no crash, no leak, and nothing read outside the folder. */
#include "base/file.h"
#include "base/status.h"
#include "tests/onnx/files.h"
#include "tests/onnx/messages.h"
#include <check.h>
#undef fail

#include "tutti_inspect.h"
#include "tutti_onnx.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { NAME = 300, FLOAT = 1, INT64 = 7, STRING = 8 };

static tutti_runtime *runtime;
static char folder[NAME], path[NAME + 16];

static void open_runtime(void)
{
    runtime = tutti_open(&(tutti_runtime_options) { .devices = "0" });
    ck_assert_msg(runtime != NULL, "%s", tutti_message(NULL));
    snprintf(folder, sizeof folder, "/tmp/tutti-onnx-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/model.onnx", folder);
}

static void close_runtime(void)
{
    char command[NAME + 16];
    snprintf(command, sizeof command, "rm -r %s", folder);
    ck_assert_int_eq(system(command), 0);
    tutti_close(runtime);
}

/* Imports a file with these bytes, and returns the status. */
static tutti_status import_bytes(const void *data, size_t size)
{
    tutti_onnx made = { .size = sizeof made };
    unlink(path); /* a file that is written anew, or by file_write(), is flushed to the disk */
    FILE *file = fopen(path, "wb");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite(data, 1, size, file), size);
    ck_assert_int_eq(fclose(file), 0);
    const tutti_status status = tutti_import_onnx(runtime, path, NULL, &made);
    ck_assert_msg((status == TUTTI_OK) == (made.network != NULL), "status %d", (int)status);
    if (status != TUTTI_OK) ck_assert_msg(strchr(tutti_message(NULL), '\n') == NULL, "%s", tutti_message(NULL));
    tutti_network_free(made.network);
    return status;
}

/* ------------------------------------------------------------------------------------------------- damaged files ----
 */

static const char *const damaged[] = { "mlp", "shapes", "old", "movement", "convolutions", "products", "transformer",
    "sequences", "volumes", "sizes", "functions", "quantised_blocks", "folded_lstm", "folded_tokens", "folded_heads" };

static void read_file(const char *name, unsigned char **data, size_t *size)
{
    char from[NAME];
    file_path(from, sizeof from, name, strlen(name), ".onnx");
    ck_assert_msg(file_read(from, 1 << 20, data, size) == TUTTI_OK, "%s", status_message());
}

/* Bytes from one place that is damaged to the next one: in small files all, and with `few` one in FEWER. */
static bool few;
static size_t distance(size_t size, size_t in_large)
{
    enum { FEWER = 11 };
    return (size > 4096 ? in_large : 1) * (few ? FEWER : 1);
}

START_TEST(cut_files_are_refused)
{
    unsigned char *data;
    size_t size;
    read_file(damaged[_i], &data, &size);
    ck_assert_int_eq(import_bytes(data, size), TUTTI_OK);
    /* opset_import stands after the graph: some bytes may be read before it is found missing. */
    for (size_t cut = 0; cut < size; cut += distance(size, 7)) ck_assert_int_ne(import_bytes(data, cut), TUTTI_OK);
    free(data);
}
END_TEST

START_TEST(changed_files_do_no_harm)
{
    static const unsigned char changes[] = { 0xff, 0x80, 0x01, 0x10 };
    unsigned char *data;
    size_t size;
    read_file(damaged[_i], &data, &size);
    for (size_t at = 0; at < size; at += distance(size, 5))
        for (size_t i = 0; i < sizeof changes; i++) {
            data[at] ^= changes[i];
            (void)import_bytes(data, size);
            data[at] ^= changes[i];
        }
    free(data);
}
END_TEST

/* ---------------------------------------------------------------------------------------------- malicious files ----
 */

static void put_node(struct message *graph, const char *operator_, const char *a, const char *b, const char *y)
{
    struct message node = { 0 };
    put_text(&node, NODE_INPUT, a);
    if (b) put_text(&node, NODE_INPUT, b);
    put_text(&node, NODE_OUTPUT, y);
    put_text(&node, NODE_NAME, y);
    put_text(&node, NODE_OPERATOR, operator_);
    put_message(graph, GRAPH_NODE, &node);
}

/* [samples, size], for any number of samples if `samples` is 0. */
static void put_port_for(struct message *graph, int field, const char *name, int64_t samples, int64_t size)
{
    struct message port = { 0 }, type = { 0 }, tensor = { 0 }, shape = { 0 }, axis = { 0 };
    if (samples) put_integer(&axis, 1, samples);
    if (!samples) put_text(&axis, 2, "N");
    put_message(&shape, 1, &axis);
    put_integer(&axis, 1, size);
    put_message(&shape, 1, &axis);
    put_integer(&tensor, 1, FLOAT);
    put_message(&tensor, 2, &shape);
    put_message(&type, 1, &tensor);
    put_text(&port, 1, name);
    put_message(&port, 2, &type);
    put_message(graph, field, &port);
}

static void put_port(struct message *graph, int field, const char *name, int64_t size)
{
    put_port_for(graph, field, name, 0, size);
}

/* An initialiser "w" with sizes and so many bytes. */
static void put_initialiser(
    struct message *graph, int type, const int64_t *sizes, int rank, const void *raw, size_t bytes)
{
    struct message tensor = { 0 };
    for (int i = 0; i < rank; i++) put_integer(&tensor, TENSOR_DIMS, sizes[i]);
    put_integer(&tensor, TENSOR_TYPE, type);
    put_text(&tensor, TENSOR_NAME, "w");
    put_bytes(&tensor, TENSOR_RAW, raw, bytes);
    put_message(graph, GRAPH_INITIALIZER, &tensor);
}

static void put_external(
    struct message *graph, int64_t size, const char *location, const char *offset, const char *length)
{
    struct message tensor = { 0 }, entry = { 0 };
    const char *const entries[][2] = { { "location", location }, { "offset", offset }, { "length", length } };
    put_integer(&tensor, TENSOR_DIMS, size);
    put_integer(&tensor, TENSOR_TYPE, FLOAT);
    put_text(&tensor, TENSOR_NAME, "w");
    for (int i = 0; i < 3; i++) {
        if (!entries[i][1]) continue;
        put_text(&entry, 1, entries[i][0]);
        put_text(&entry, 2, entries[i][1]);
        put_message(&tensor, TENSOR_EXTERNAL, &entry);
    }
    put_integer(&tensor, TENSOR_LOCATION, 1);
    put_message(graph, GRAPH_INITIALIZER, &tensor);
}

/* Imports a model with this graph, which are freed; `words` must be in the message. */
static void refused_model(
    struct message *model, struct message *graph, int64_t opset, tutti_status status, const char *words)
{
    struct message set = { 0 };
    put_integer(&set, OPSET_VERSION, opset);
    put_message(model, MODEL_OPSET, &set);
    put_message(model, MODEL_GRAPH, graph);
    const tutti_status got = import_bytes(model->data, model->size);
    ck_assert_msg(got == status, "status %d instead of %d: %s", (int)got, (int)status, tutti_message(NULL));
    if (words) ck_assert_msg(strstr(tutti_message(NULL), words) != NULL, "no \"%s\": %s", words, tutti_message(NULL));
    message_free(model);
}

/* Imports a model that has nothing but this graph, and expects the same as refused_model(). */
static void refused(struct message *graph, int64_t opset, tutti_status status, const char *words)
{
    struct message model = { 0 };
    refused_model(&model, graph, opset, status, words);
}

/* x [N, 4] -> operator(x, w) -> y */
static struct message graph_of(const char *operator_, const char *second)
{
    struct message graph = { 0 };
    put_port(&graph, GRAPH_INPUT, "x", 4);
    put_port(&graph, GRAPH_OUTPUT, "y", 4);
    put_node(&graph, operator_, "x", second, "y");
    return graph;
}

START_TEST(the_graph_is_checked)
{
    struct message graph = graph_of("Relu", NULL);
    refused(&graph, 17, TUTTI_OK, NULL);
    graph = graph_of("Relu", NULL);
    put_port(&graph, GRAPH_OUTPUT, "y", 4); /* two outputs of one name and one value */
    refused(&graph, 17, TUTTI_OK, NULL);
    graph = graph_of("Relu", NULL);
    refused(&graph, 6, TUTTI_UNSUPPORTED, "opset 6");
    graph = graph_of("Add", "nothing");
    refused(&graph, 17, TUTTI_FORMAT, "'nothing'");
    graph = graph_of("Add", "y");
    refused(&graph, 17, TUTTI_FORMAT, "reads 'y'");
    graph = (struct message) { 0 };
    put_port(&graph, GRAPH_INPUT, "x", 4);
    put_port(&graph, GRAPH_OUTPUT, "b", 4);
    put_node(&graph, "Add", "x", "b", "a");
    put_node(&graph, "Relu", "a", NULL, "b");
    refused(&graph, 17, TUTTI_FORMAT, "reads 'b'");
    graph = graph_of("Relu", NULL);
    put_node(&graph, "Tanh", "x", NULL, "y");
    refused(&graph, 17, TUTTI_FORMAT, "'y' stands for two values");
    graph = graph_of("Relu", NULL);
    put_port(&graph, GRAPH_OUTPUT, "z", 4);
    refused(&graph, 17, TUTTI_FORMAT, "made by no node");
    graph = graph_of("Re\x1b[2Jlu", NULL);
    refused(&graph, 17, TUTTI_FORMAT, "control characters");
    graph = graph_of("Re\xff", NULL);
    refused(&graph, 17, TUTTI_FORMAT, "UTF-8");
    graph = graph_of("Add", NULL);
    refused(&graph, 17, TUTTI_INVALID, "Add 'y'");
    graph = graph_of("Sum", "");
    refused(&graph, 17, TUTTI_FORMAT, "missing");
}
END_TEST

/* x [N, ?, 3] */
START_TEST(open_sizes_are_given)
{
    static const tutti_shape shapes[] = { { 2, { 5, 3 } }, { 1, { 5 } }, { 2, { 5, 4 } } };
    struct message model = { 0 }, graph = { 0 }, set = { 0 }, port = { 0 }, type = { 0 }, tensor = { 0 }, shape = { 0 };
    struct message axis = { 0 };
    for (int i = 0; i < 2; i++) {
        put_text(&axis, 2, i ? "length" : "N");
        put_message(&shape, 1, &axis);
    }
    put_integer(&axis, 1, 3);
    put_message(&shape, 1, &axis);
    put_integer(&tensor, 1, FLOAT);
    put_message(&tensor, 2, &shape);
    put_message(&type, 1, &tensor);
    put_text(&port, 1, "x");
    put_message(&port, 2, &type);
    put_message(&graph, GRAPH_INPUT, &port);
    put_port(&graph, GRAPH_OUTPUT, "y", 4);
    put_node(&graph, "Relu", "x", NULL, "y");
    put_integer(&set, OPSET_VERSION, 17);
    put_message(&model, MODEL_OPSET, &set);
    put_message(&model, MODEL_GRAPH, &graph);
    ck_assert_int_eq(import_bytes(model.data, model.size), TUTTI_SHAPE);
    ck_assert_ptr_nonnull(strstr(tutti_message(NULL), "axis 1 has an open size"));
    message_free(&model);
    for (int i = 0; i < 3; i++) {
        tutti_onnx made = { .size = sizeof made };
        tutti_shape got = { 0 };
        const tutti_onnx_options options = { .input = shapes[i] };
        ck_assert_int_eq(tutti_import_onnx(runtime, path, &options, &made), i ? TUTTI_SHAPE : TUTTI_OK);
        if (i > 0) continue;
        ck_assert_int_eq(tutti_shape_of(made.network, made.outputs[0], &got), TUTTI_OK);
        ck_assert(got.rank == 2 && got.sizes[0] == 5 && got.sizes[1] == 3);
        tutti_network_free(made.network);
    }
}
END_TEST

START_TEST(unknown_operators_are_told_at_once)
{
    struct message graph = graph_of("Unique", NULL), node = { 0 };
    put_node(&graph, "Loop", "x", NULL, "a");
    put_node(&graph, "Loop", "x", NULL, "b");
    put_text(&node, NODE_INPUT, "x");
    put_text(&node, NODE_OUTPUT, "c");
    put_text(&node, NODE_OPERATOR, "Relu");
    put_text(&node, NODE_DOMAIN, "com.example");
    put_message(&graph, GRAPH_NODE, &node);
    refused(&graph, 17, TUTTI_UNSUPPORTED,
        "opset 17: operators that Tutti does not have: Unique (1 node: 'y'), Loop (2 nodes: 'a', 'b'), "
        "com.example::Relu");
}
END_TEST

/* Two axes called "?" are two sizes, not one of this name. */
START_TEST(texts_without_a_meaning_are_no_names)
{
    static const char *const texts[] = { "N", "?", "?" };
    static const tutti_onnx_size sizes[] = { { "x.1", 5 }, { "x.2", 3 } };
    const tutti_onnx_options options = { .sizes = sizes, .size_count = 2 };
    struct message model = { 0 }, graph = { 0 }, set = { 0 }, port = { 0 }, type = { 0 }, tensor = { 0 }, shape = { 0 };
    struct message axis = { 0 };
    tutti_onnx made = { .size = sizeof made };
    for (int i = 0; i < 3; i++) {
        put_text(&axis, 2, texts[i]);
        put_message(&shape, 1, &axis);
    }
    put_integer(&tensor, 1, FLOAT);
    put_message(&tensor, 2, &shape);
    put_message(&type, 1, &tensor);
    put_text(&port, 1, "x");
    put_message(&port, 2, &type);
    put_message(&graph, GRAPH_INPUT, &port);
    put_port(&graph, GRAPH_OUTPUT, "y", 4);
    put_node(&graph, "Relu", "x", NULL, "y");
    put_integer(&set, OPSET_VERSION, 17);
    put_message(&model, MODEL_OPSET, &set);
    put_message(&model, MODEL_GRAPH, &graph);
    ck_assert_int_eq(import_bytes(model.data, model.size), TUTTI_SHAPE);
    message_free(&model);
    ck_assert_msg(tutti_import_onnx(runtime, path, &options, &made) == TUTTI_OK, "%s", tutti_message(NULL));
    tutti_network_free(made.network);
}
END_TEST

/* A question about the tensor of a layer that failed tells why the layer did. */
START_TEST(the_first_failure_stays)
{
    tutti_shape shape;
    tutti_network *network = tutti_network_new(runtime);
    const tutti_tensor x = tutti_input(network, "x", TUTTI_SHAPE(4));
    const tutti_tensor y = tutti_op(network, "reshape", &x, 1, "shape=3");
    ck_assert_int_eq(tutti_shape_of(network, y, &shape), TUTTI_SHAPE);
    ck_assert_msg(strstr(tutti_message(NULL), "reshape") != NULL, "%s", tutti_message(NULL));
    tutti_network_free(network);
}
END_TEST

/* An exporter's stack in the metadata of a node: the innermost line outside of packages is in the message. */
START_TEST(messages_have_the_source)
{
    struct message graph = { 0 }, node = { 0 }, entry = { 0 };
    put_port(&graph, GRAPH_INPUT, "x", 4);
    put_port(&graph, GRAPH_OUTPUT, "y", 4);
    put_text(&node, NODE_INPUT, "x");
    put_text(&node, NODE_INPUT, "x");
    put_text(&node, NODE_OUTPUT, "y");
    put_text(&node, NODE_OPERATOR, "Reshape");
    put_text(&entry, 1, "pkg.torch.onnx.stack_trace");
    put_text(&entry, 2,
        "File \"/home/a/net.py\", line 12, in forward\n    return x.view(x)\x1b\n  File "
        "\"/lib/site-packages/torch/f.py\", line 3, in f\n    g()");
    put_message(&node, NODE_METADATA, &entry);
    put_message(&graph, GRAPH_NODE, &node);
    refused(&graph, 17, TUTTI_UNSUPPORTED, "Reshape '' (net.py:12: return x.view(x)");
    ck_assert_ptr_null(strchr(tutti_message(NULL), '\x1b'));
}
END_TEST

START_TEST(sizes_of_parameters_are_refused)
{
    static const int64_t two[] = { 2 };
    static const float floats[] = { 2, 2 };
    struct message graph = { 0 };
    put_port(&graph, GRAPH_INPUT, "x", 4);
    put_port(&graph, GRAPH_OUTPUT, "y", 4);
    put_initialiser(&graph, FLOAT, two, 1, floats, sizeof floats);
    put_node(&graph, "Exp", "w", NULL, "t");
    put_node(&graph, "Reshape", "x", "t", "y");
    refused(&graph, 17, TUTTI_UNSUPPORTED, "'t', is computed from parameters");
}
END_TEST

START_TEST(sizes_are_checked)
{
    static const int64_t huge[] = { INT64_MAX, INT64_MAX }, large[] = { 1ll << 31, 1ll << 31, 1 << 4 }, one[] = { 4 };
    static const int64_t negative[] = { -4, -1 }, many[] = { 1, 1, 1, 1, 1, 1, 1, 1, 4 };
    static const float four[4] = { 0 };
    struct message graph = graph_of("Add", "w");
    put_initialiser(&graph, FLOAT, one, 1, four, sizeof four);
    refused(&graph, 17, TUTTI_OK, NULL);
    graph = graph_of("Add", "w");
    put_initialiser(&graph, FLOAT, huge, 2, four, sizeof four);
    refused(&graph, 17, TUTTI_FORMAT, "more elements than any memory holds");
    graph = graph_of("Add", "w");
    put_initialiser(&graph, FLOAT, large, 3, four, sizeof four);
    refused(&graph, 17, TUTTI_FORMAT, "w");
    graph = graph_of("Add", "w");
    put_initialiser(&graph, FLOAT, negative, 2, four, sizeof four);
    refused(&graph, 17, TUTTI_FORMAT, "negative");
    graph = graph_of("Add", "w");
    put_initialiser(&graph, FLOAT, many, 9, four, sizeof four);
    refused(&graph, 17, TUTTI_UNSUPPORTED, "9 axes");
    graph = graph_of("Add", "w");
    put_initialiser(&graph, FLOAT, one, 1, four, sizeof four - 1);
    refused(&graph, 17, TUTTI_FORMAT, "15 bytes");
    graph = graph_of("Add", "w");
    put_initialiser(&graph, STRING, one, 1, four, sizeof four);
    refused(&graph, 17, TUTTI_UNSUPPORTED, "type STRING (8)");
    graph = (struct message) { 0 };
    put_port(&graph, GRAPH_INPUT, "x", INT64_MAX);
    put_port(&graph, GRAPH_OUTPUT, "y", 4);
    put_node(&graph, "Relu", "x", NULL, "y");
    refused(&graph, 17, TUTTI_SHAPE, "x");
}
END_TEST

/* In a file for two samples, what is computed from a parameter has a part for each, whatever the numbers are now: they
 * are no longer equal after a step. */
START_TEST(equal_parts_of_parameters_train_apart)
{
    static const char *const operators[] = { "Relu", "Identity" };
    static const int64_t sizes[] = { 2, 4 };
    static const float ones[] = { 1, 1, 1, 1, 1, 1, 1, 1 };
    for (int i = 0; i < 2; i++) {
        struct message graph = { 0 };
        put_port_for(&graph, GRAPH_INPUT, "x", 2, 4);
        put_port_for(&graph, GRAPH_OUTPUT, "y", 2, 4);
        put_initialiser(&graph, FLOAT, sizes, 2, ones, sizeof ones);
        put_node(&graph, operators[i], "w", NULL, "a");
        put_node(&graph, "Add", "a", "a", "b");
        put_node(&graph, "Add", "x", "b", "y");
        refused(&graph, 17, TUTTI_UNSUPPORTED, "'b', has elements of its own for each of the 2 samples");
    }
}
END_TEST

/* x [N, 3, 4] -> operator(x, parameters) -> y, with an attribute: a number, or else a text. */
static struct message graph_with(
    const char *operator_, int parameters, const char *name, float number, const char *text)
{
    struct message graph = { 0 }, node = { 0 }, attribute = { 0 }, port = { 0 }, type = { 0 }, tensor = { 0 };
    struct message shape = { 0 }, axis = { 0 };
    const int64_t three[] = { 3 };
    const float ones[3] = { 1, 1, 1 };
    put_text(&axis, 2, "N");
    put_message(&shape, 1, &axis);
    for (int64_t size = 3; size < 5; size++) {
        put_integer(&axis, 1, size);
        put_message(&shape, 1, &axis);
    }
    put_integer(&tensor, 1, FLOAT);
    put_message(&tensor, 2, &shape);
    put_message(&type, 1, &tensor);
    put_text(&port, 1, "x");
    put_message(&port, 2, &type);
    put_message(&graph, GRAPH_INPUT, &port);
    put_port(&graph, GRAPH_OUTPUT, "y", 4);
    put_initialiser(&graph, FLOAT, three, 1, ones, sizeof ones);
    put_text(&node, NODE_INPUT, "x");
    for (int i = 0; i < parameters; i++) put_text(&node, NODE_INPUT, "w");
    if (text) put_text(&node, NODE_INPUT, "");
    if (text) put_text(&node, NODE_INPUT, "w");
    put_text(&node, NODE_OUTPUT, "y");
    put_text(&node, NODE_NAME, "here");
    put_text(&node, NODE_OPERATOR, operator_);
    put_text(&attribute, ATTRIBUTE_NAME, name);
    put_integer(&attribute, 20, text ? 3 : 1);
    if (text) put_text(&attribute, ATTRIBUTE_TEXT, text);
    if (!text) put_float(&attribute, 2, number);
    put_message(&node, NODE_ATTRIBUTE, &attribute);
    put_message(&graph, GRAPH_NODE, &node);
    return graph;
}

/* What cannot be obeyed is not replaced by a default. */
START_TEST(attributes_are_obeyed_or_refused)
{
    struct message graph = graph_with("BatchNormalization", 4, "epsilon", 1e-3f, NULL);
    refused(&graph, 17, TUTTI_OK, NULL);
    graph = graph_with("BatchNormalization", 4, "epsilon", 0, NULL);
    refused(&graph, 17, TUTTI_UNSUPPORTED, "its epsilon must be positive");
    graph = graph_with("BatchNormalization", 4, "momentum", 0, NULL);
    refused(&graph, 17, TUTTI_OK, NULL);
    graph = graph_with("BatchNormalization", 4, "momentum", 1, NULL);
    refused(&graph, 17, TUTTI_UNSUPPORTED, "its momentum must be less than 1");
    graph = graph_with("Resize", 0, "mode", 0, "linear");
    refused(&graph, 17, TUTTI_OK, NULL);
    graph = graph_with("Resize", 0, "mode", 0, "linear antialias");
    refused(&graph, 17, TUTTI_UNSUPPORTED, "its mode is not known");
    graph = graph_with("Resize", 0, "mode", 0, "a mode, the name of which is longer than all that there are");
    refused(&graph, 17, TUTTI_UNSUPPORTED, "its mode is not known");
}
END_TEST

/* y = x + mean of Conv(w, w), which no sample changes, with a list of `count` ones. */
static struct message graph_with_list(const char *name, int count)
{
    struct message graph = { 0 }, node = { 0 }, attribute = { 0 };
    const int64_t sizes[] = { 1, 1, 4 };
    const float ones[4] = { 1, 1, 1, 1 };
    put_port(&graph, GRAPH_INPUT, "x", 4);
    put_port(&graph, GRAPH_OUTPUT, "y", 4);
    put_initialiser(&graph, FLOAT, sizes, 3, ones, sizeof ones);
    put_text(&attribute, ATTRIBUTE_NAME, name);
    put_integer(&attribute, 20, 7);
    for (int i = 0; i < count; i++) put_integer(&attribute, ATTRIBUTE_INTEGERS, 1);
    put_text(&node, NODE_INPUT, "w");
    put_text(&node, NODE_INPUT, "w");
    put_text(&node, NODE_OUTPUT, "c");
    put_text(&node, NODE_OPERATOR, "Conv");
    put_message(&node, NODE_ATTRIBUTE, &attribute);
    put_message(&graph, GRAPH_NODE, &node);
    put_node(&graph, "ReduceMean", "c", NULL, "m");
    put_node(&graph, "Flatten", "m", NULL, "f");
    put_node(&graph, "Add", "x", "f", "y");
    return graph;
}

START_TEST(lists_of_convolutions_have_their_length)
{
    static const struct {
        const char *name;
        int count;
    } lists[] = { { "strides", 1 }, { "dilations", 1 }, { "pads", 2 } };
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        for (int count = 1; count < 4; count++) {
            struct message graph = graph_with_list(lists[i].name, count);
            char words[64];
            snprintf(words, sizeof words, "%s has %d numbers, not %d", lists[i].name, count, lists[i].count);
            const bool good = count == lists[i].count;
            refused(&graph, 17, good ? TUTTI_OK : TUTTI_FORMAT, good ? NULL : words);
        }
}
END_TEST

START_TEST(layers_have_the_names_of_nodes)
{
    static const char *const operators[] = { "GlobalAveragePool", "GlobalMaxPool", "Sigmoid", "Relu", "Softmax" };
    tutti_onnx made = { .size = sizeof made };
    tutti_node_info info = { .size = sizeof info };
    struct message graph = graph_with(operators[_i], 0, "p", 1, NULL);
    refused(&graph, 17, TUTTI_OK, NULL);
    ck_assert_int_eq(tutti_import_onnx(runtime, path, NULL, &made), TUTTI_OK);
    ck_assert_int_eq(tutti_network_node(made.network, 0, &info), TUTTI_OK);
    ck_assert_str_eq(info.layer, "here");
    tutti_network_free(made.network);
}
END_TEST

START_TEST(numbers_are_checked)
{
    static const int64_t two[] = { 2 },
                         wild[][2] = { { INT64_MIN, INT64_MAX }, { 1ll << 40, 1ll << 40 }, { -1, -1 }, { 0, -5 },
                             { -1, 1ll << 62 }, { 7, 7 } };
    static const char *const operators[] = { "Reshape", "Expand", "Unsqueeze", "Squeeze", "Slice", "Pad", "ReduceSum",
        "Gather", "Tile", "Pow", "Split", "Add", "MatMul", "Clip", "DequantizeLinear", "QuantizeLinear" };
    for (size_t i = 0; i < sizeof operators / sizeof *operators; i++)
        for (size_t k = 0; k < sizeof wild / sizeof *wild; k++) {
            struct message graph = graph_of(operators[i], "w"), model = { 0 }, set = { 0 };
            put_initialiser(&graph, INT64, two, 1, wild[k], sizeof wild[k]);
            put_integer(&set, OPSET_VERSION, 18);
            put_message(&model, MODEL_OPSET, &set);
            put_message(&model, MODEL_GRAPH, &graph);
            const tutti_status status = import_bytes(model.data, model.size);
            ck_assert_msg(status != TUTTI_OK && status != TUTTI_INTERNAL, "%s, %zu", operators[i], k);
            message_free(&model);
        }
}
END_TEST

START_TEST(nesting_and_amounts_have_limits)
{
    struct message inner = { 0 };
    for (int depth = 0; depth < 5000; depth++) { /* a graph in an attribute of a node in a graph ... */
        struct message attribute = { 0 }, node = { 0 }, graph = { 0 };
        put_message(&attribute, ATTRIBUTE_GRAPH, &inner);
        put_message(&node, NODE_ATTRIBUTE, &attribute);
        put_message(&graph, GRAPH_NODE, &node);
        inner = graph;
    }
    refused(&inner, 17, TUTTI_UNSUPPORTED, "more than 32 deep");
    struct message graph = { 0 }, empty = { 0 };
    for (int i = 0; i < 4000000; i++) put_bytes(&graph, GRAPH_NODE, "", 0);
    refused(&graph, 17, TUTTI_FORMAT, NULL);
    refused(&empty, 17, TUTTI_FORMAT, "no output");
    ck_assert_int_eq(import_bytes("", 0), TUTTI_FORMAT);
}
END_TEST

/* A branch that makes Relu(x), with so many outputs. */
static void put_branch(struct message *node, const char *name, int outputs)
{
    struct message attribute = { 0 }, branch = { 0 };
    put_node(&branch, "Relu", "x", NULL, "t");
    for (int i = 0; i < outputs; i++) put_port(&branch, GRAPH_OUTPUT, "t", 4);
    put_text(&attribute, ATTRIBUTE_NAME, name);
    put_message(&attribute, ATTRIBUTE_GRAPH, &branch);
    put_message(node, NODE_ATTRIBUTE, &attribute);
}

START_TEST(branches_are_checked)
{
    static const struct {
        int first, second; /* outputs; -1: there is no such branch */
        const char *words;
    } cases[] = { { 1, -1, "two branches" }, { 2, 1, "two branches" }, { 1, 0, "two branches" },
        { 1, 1, "'x', depends on the samples" } };
    struct message graph = graph_of("Relu", NULL), node = { 0 };
    put_text(&node, NODE_INPUT, "x");
    put_text(&node, NODE_OUTPUT, "z");
    put_text(&node, NODE_OPERATOR, "If");
    put_branch(&node, "then_branch", cases[_i].first);
    if (cases[_i].second >= 0) put_branch(&node, "else_branch", cases[_i].second);
    put_message(&graph, GRAPH_NODE, &node);
    refused(&graph, 18, _i == 3 ? TUTTI_UNSUPPORTED : TUTTI_FORMAT, cases[_i].words);
}
END_TEST

/* ----------------------------------------------------------------------------------------------------- functions ----
 */

/* name(x) -> y, which are `output`: it calls `callee` so many times, one after the other. */
static void put_function(struct message *model, const char *name, const char *callee, int calls, const char *output)
{
    struct message function = { 0 };
    char from[16] = "x", to[16];
    put_text(&function, FUNCTION_NAME, name);
    put_text(&function, FUNCTION_DOMAIN, "f");
    put_text(&function, FUNCTION_INPUT, "x");
    put_text(&function, FUNCTION_OUTPUT, output);
    for (int i = 0; i < calls; i++) {
        struct message node = { 0 };
        snprintf(to, sizeof to, i + 1 < calls ? "t%d" : "y", i);
        put_text(&node, NODE_INPUT, from);
        put_text(&node, NODE_OUTPUT, to);
        put_text(&node, NODE_OPERATOR, callee);
        if (strcmp(callee, "Relu")) put_text(&node, NODE_DOMAIN, "f");
        put_message(&function, FUNCTION_NODE, &node);
        memcpy(from, to, sizeof from);
    }
    put_message(model, MODEL_FUNCTION, &function);
}

/* x [N, 4] -> f::name(x) -> y */
static struct message graph_calling(const char *name)
{
    struct message graph = { 0 }, node = { 0 };
    put_port(&graph, GRAPH_INPUT, "x", 4);
    put_port(&graph, GRAPH_OUTPUT, "y", 4);
    put_text(&node, NODE_INPUT, "x");
    put_text(&node, NODE_OUTPUT, "y");
    put_text(&node, NODE_OPERATOR, name);
    put_text(&node, NODE_DOMAIN, "f");
    put_message(&graph, GRAPH_NODE, &node);
    return graph;
}

START_TEST(functions_are_checked)
{
    static const struct {
        const char *name, *callee, *output;
        int calls;
        tutti_status status;
        const char *words;
    } cases[] = { { "A", "Relu", "y", 3, TUTTI_OK, NULL }, { "A", "Relu", "x", 1, TUTTI_OK, NULL },
        { "A", "A", "y", 1, TUTTI_FORMAT, "function f::A, called by '': it calls itself" },
        { "A", "B", "y", 1, TUTTI_UNSUPPORTED, "f::B" }, { "B", "Relu", "y", 1, TUTTI_UNSUPPORTED, "f::A" },
        { "A", "Relu", "none", 1, TUTTI_FORMAT, "made by no node" },
        { "A\n", "Relu", "y", 1, TUTTI_FORMAT, "control characters" } };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct message graph = graph_calling("A"), model = { 0 };
        put_function(&model, cases[i].name, cases[i].callee, cases[i].calls, cases[i].output);
        refused_model(&model, &graph, 17, cases[i].status, cases[i].words);
    }
    struct message graph = graph_calling("A"), model = { 0 };
    put_function(&model, "A", "B", 2, "y");
    put_function(&model, "B", "A", 1, "y");
    refused_model(&model, &graph, 17, TUTTI_FORMAT, "it calls itself");
    graph = graph_calling("A");
    for (int i = 0; i < 2; i++) put_function(&model, "A", "Relu", 1, "y");
    refused_model(&model, &graph, 17, TUTTI_FORMAT, "two of its functions are named 'f::A'");
    graph = graph_of("Relu", NULL);
    put_function(&model, "Relu", "Relu", 1, "y");
    refused_model(&model, &graph, 17, TUTTI_OK, NULL);
}
END_TEST

/* Functions that each call the next one twice; the calls of the last one have a node, or none. */
START_TEST(functions_do_not_grow_without_end)
{
    for (int calls = 0; calls < 2; calls++) {
        struct message graph = graph_calling("F0"), model = { 0 };
        char name[16], next[16];
        for (int i = 0; i < 60; i++) {
            snprintf(name, sizeof name, "F%d", i);
            snprintf(next, sizeof next, "F%d", i + 1);
            put_function(&model, name, i == 59 ? "Relu" : next, i == 59 ? calls : 2, i == 59 && !calls ? "x" : "y");
        }
        refused_model(&model, &graph, 17, TUTTI_UNSUPPORTED, "more memory than a file may take");
    }
    struct message graph = graph_calling("F0"), model = { 0 };
    char name[16], next[16];
    for (int i = 0; i < 5000; i++) {
        snprintf(name, sizeof name, "F%d", i);
        snprintf(next, sizeof next, "F%d", i + 1);
        put_function(&model, name, i == 4999 ? "Relu" : next, 1, "y");
    }
    refused_model(&model, &graph, 17, TUTTI_UNSUPPORTED, "more than 64 deep");
}
END_TEST

START_TEST(attributes_of_functions_stand_in_functions)
{
    struct message graph = graph_of("Relu", NULL), node = { 0 }, attribute = { 0 };
    put_text(&attribute, ATTRIBUTE_NAME, "alpha");
    put_text(&attribute, ATTRIBUTE_REFERENCE, "slope");
    put_text(&node, NODE_INPUT, "x");
    put_text(&node, NODE_OUTPUT, "z");
    put_text(&node, NODE_OPERATOR, "Elu");
    put_message(&node, NODE_ATTRIBUTE, &attribute);
    put_message(&graph, GRAPH_NODE, &node);
    refused(&graph, 17, TUTTI_FORMAT, "refers to one of a function");
}
END_TEST

START_TEST(computed_constants_have_a_limit)
{
    static const int64_t one[] = { 1 }, large[] = { 1 << 20 };
    struct message graph = graph_of("Relu", NULL);
    put_initialiser(&graph, INT64, one, 1, large, sizeof large);
    put_node(&graph, "ConstantOfShape", "w", NULL, "ones");
    for (int i = 0; i < 300; i++) {
        char name[NAME];
        snprintf(name, sizeof name, "c%d", i);
        put_node(&graph, "Identity", "ones", NULL, name);
    }
    refused(&graph, 17, TUTTI_UNSUPPORTED, "Identity 'c255'");
}
END_TEST

/* A Constant of integers. */
static void put_constant(struct message *graph, const char *name, const int64_t *numbers, int count)
{
    struct message node = { 0 }, attribute = { 0 };
    put_text(&attribute, ATTRIBUTE_NAME, "value_ints");
    for (int i = 0; i < count; i++) put_integer(&attribute, ATTRIBUTE_INTEGERS, numbers[i]);
    put_text(&node, NODE_OUTPUT, name);
    put_text(&node, NODE_OPERATOR, "Constant");
    put_message(&node, NODE_ATTRIBUTE, &attribute);
    put_message(graph, GRAPH_NODE, &node);
}

/* The second node gets a copy of w, for which the other arrays leave 16 bytes, or none. */
START_TEST(copies_of_uniform_initialisers_have_the_same_limit)
{
    static const int64_t four[] = { 4 }, large[] = { 1 << 20 }, rest[] = { (1 << 20) - 12, (1 << 20) - 8 };
    static const float ones[] = { 1, 1, 1, 1 };
    for (int full = 0; full < 2; full++) {
        struct message graph = graph_of("Add", "w");
        put_initialiser(&graph, FLOAT, four, 1, ones, sizeof ones);
        put_constant(&graph, "large", large, 1);
        put_constant(&graph, "rest", &rest[full], 1);
        for (int i = 0; i < 256; i++) {
            char name[NAME];
            snprintf(name, sizeof name, "c%d", i);
            put_node(&graph, "ConstantOfShape", i ? "large" : "rest", NULL, name);
        }
        put_node(&graph, "Add", "y", "w", "z");
        if (full)
            refused(&graph, 17, TUTTI_UNSUPPORTED, "Add 'z': what is computed or copied");
        else
            refused(&graph, 17, TUTTI_OK, NULL);
    }
}
END_TEST

START_TEST(tables_have_a_limit)
{
    static const int64_t pads[] = { 0, 0, 0, (1 << 24) - 8 }, crops[] = { 0, 1, 0, -1 };
    struct message graph = graph_of("Relu", NULL);
    put_constant(&graph, "pads", pads, 4);
    put_constant(&graph, "crops", crops, 4);
    for (int i = 0; i < 2; i++) {
        struct message node = { 0 }, mode = { 0 };
        put_text(&mode, ATTRIBUTE_NAME, "mode");
        put_text(&mode, ATTRIBUTE_TEXT, "edge");
        put_text(&node, NODE_INPUT, i ? "a" : "x");
        put_text(&node, NODE_INPUT, i ? "crops" : "pads");
        put_text(&node, NODE_OUTPUT, i ? "b" : "a");
        put_text(&node, NODE_NAME, i ? "b" : "a");
        put_text(&node, NODE_OPERATOR, "Pad");
        put_message(&node, NODE_ATTRIBUTE, &mode);
        put_message(&graph, GRAPH_NODE, &node);
    }
    refused(&graph, 17, TUTTI_UNSUPPORTED, "Pad 'b'");
}
END_TEST

/* ------------------------------------------------------------------------------------------------- external data ----
 */

static void refused_external(
    int64_t size, const char *location, const char *offset, const char *length, tutti_status status, const char *words)
{
    struct message graph = graph_of("Add", "w");
    put_external(&graph, size, location, offset, length);
    refused(&graph, 17, status, words);
}

static void put_data(const char *name, size_t size)
{
    char full[NAME + 16];
    static const char zeros[64];
    snprintf(full, sizeof full, "%s/%s", folder, name);
    ck_assert_int_eq(file_write(full, zeros, size), TUTTI_OK);
}

START_TEST(external_data_are_of_the_folder)
{
    char full[NAME + 16];
    put_data("w.data", 32);
    snprintf(full, sizeof full, "%s/inside", folder);
    ck_assert_int_eq(mkdir(full, 0700), 0);
    put_data("inside/w.data", 32);
    refused_external(4, "w.data", NULL, NULL, TUTTI_OK, NULL);
    refused_external(4, "./inside/w.data", "16", "16", TUTTI_OK, NULL);
    refused_external(4, "../w.data", NULL, NULL, TUTTI_FORMAT, "'../w.data'");
    refused_external(4, "inside/../w.data", NULL, NULL, TUTTI_FORMAT, "within the model's folder");
    refused_external(4, "/etc/passwd", NULL, NULL, TUTTI_FORMAT, "within the model's folder");
    refused_external(4, "", NULL, NULL, TUTTI_FORMAT, "no location");
    refused_external(4, NULL, "0", NULL, TUTTI_FORMAT, "no location");
    refused_external(4, "inside", NULL, NULL, TUTTI_FILE, "not a file");
    refused_external(4, "none.data", NULL, NULL, TUTTI_FILE, "none.data");
    refused_external(4, "w.data/w", NULL, NULL, TUTTI_FILE, "w.data");
    snprintf(full, sizeof full, "%s/link", folder);
    ck_assert_int_eq(symlink("/etc/passwd", full), 0);
    refused_external(4, "link", NULL, NULL, TUTTI_FILE, "links are not followed");
    snprintf(full, sizeof full, "%s/outside", folder);
    ck_assert_int_eq(symlink("/etc", full), 0);
    refused_external(4, "outside/passwd", NULL, NULL, TUTTI_FILE, "outside");
    snprintf(full, sizeof full, "%s/pipe", folder);
    ck_assert_int_eq(mkfifo(full, 0600), 0);
    refused_external(4, "pipe", NULL, NULL, TUTTI_FILE, "not a file");
}
END_TEST

START_TEST(external_data_have_their_size)
{
    put_data("w.data", 32);
    refused_external(4, "w.data", "17", NULL, TUTTI_FORMAT, "from byte 17");
    refused_external(4, "w.data", "18446744073709551615", NULL, TUTTI_FORMAT, "w");
    refused_external(4, "w.data", "-16", NULL, TUTTI_FORMAT, "'-16'");
    refused_external(4, "w.data", "1e1", NULL, TUTTI_FORMAT, "'1e1'");
    refused_external(4, "w.data", "0", "12", TUTTI_FORMAT, "12 bytes");
    refused_external(1ll << 38, "w.data", "0", NULL, TUTTI_FORMAT, "1099511627776 bytes");
}
END_TEST

/* "few" as its argument: fewer damaged places. */
int main(int count, char **words)
{
    few = count > 1 && !strcmp(words[1], "few");
    Suite *suite = suite_create("onnx, hostile");
    TCase *cases = tcase_create("hostile");
    tcase_add_checked_fixture(cases, open_runtime, close_runtime);
    tcase_add_loop_test(cases, cut_files_are_refused, 0, sizeof damaged / sizeof *damaged);
    tcase_add_loop_test(cases, changed_files_do_no_harm, 0, sizeof damaged / sizeof *damaged);
    tcase_add_test(cases, the_graph_is_checked);
    tcase_add_test(cases, open_sizes_are_given);
    tcase_add_test(cases, unknown_operators_are_told_at_once);
    tcase_add_test(cases, texts_without_a_meaning_are_no_names);
    tcase_add_test(cases, the_first_failure_stays);
    tcase_add_test(cases, messages_have_the_source);
    tcase_add_test(cases, sizes_are_checked);
    tcase_add_test(cases, sizes_of_parameters_are_refused);
    tcase_add_test(cases, numbers_are_checked);
    tcase_add_test(cases, attributes_are_obeyed_or_refused);
    tcase_add_test(cases, equal_parts_of_parameters_train_apart);
    tcase_add_test(cases, lists_of_convolutions_have_their_length);
    tcase_add_loop_test(cases, layers_have_the_names_of_nodes, 0, 5);
    tcase_add_test(cases, nesting_and_amounts_have_limits);
    tcase_add_loop_test(cases, branches_are_checked, 0, 4);
    tcase_add_test(cases, functions_are_checked);
    tcase_add_test(cases, functions_do_not_grow_without_end);
    tcase_add_test(cases, attributes_of_functions_stand_in_functions);
    tcase_add_test(cases, computed_constants_have_a_limit);
    tcase_add_test(cases, copies_of_uniform_initialisers_have_the_same_limit);
    tcase_add_test(cases, tables_have_a_limit);
    tcase_add_test(cases, external_data_are_of_the_folder);
    tcase_add_test(cases, external_data_have_their_size);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
