#include "tools/report/network_boxes.h"

#include "base/memory.h"
#include "tutti_inspect.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DEEPEST_SCOPE = 6 };

static bool same_shape(const tutti_shape *a, const tutti_shape *b)
{
    return a->rank == b->rank && !memcmp(a->sizes, b->sizes, (size_t)a->rank * sizeof(a->sizes[0]));
}

/* Returns whether a person looks for such a layer, which then begins a box; others only follow one. */
static bool is_major(const tutti_layer_info *layer)
{
    static const char *const words[] = { "conv", "dense", "matmul", "attention", "pool", "lstm", "gru", "embedding",
        "layer_norm" };
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        if (strstr(layer->operation, words[i])) return true;
    return layer->parameters > 0 && strcmp(layer->operation, "batch_norm") != 0;
}

static void add_source(struct box *box, int source)
{
    for (int i = 0; i < box->source_count; i++)
        if (box->sources[i] == source) return;
    if (box->source_count < BOX_SOURCES) box->sources[box->source_count++] = source;
}

/* Counts how many layers read each one. */
static int *count_readers(const tutti_network *network, int layers)
{
    int from, *readers = memory_new((size_t)layers + 1, sizeof(*readers));
    for (int i = 0; readers && i < layers; i++)
        for (int k = 0; tutti_network_layer_input(network, i, k, &from) == TUTTI_OK; k++)
            if (from >= 0 && from < layers) readers[from]++;
    return readers;
}

/* Returns the box that the layer goes into; -1: a new one. */
static int box_to_join(const struct boxes *boxes, const tutti_network *network, const int *readers, int layer)
{
    int from = -1, other;
    if (is_major(&boxes->layers[layer]) || tutti_network_layer_input(network, layer, 0, &from) != TUTTI_OK) return -1;
    if (tutti_network_layer_input(network, layer, 1, &other) == TUTTI_OK) return -1;
    return from >= 0 && from < layer && readers[from] == 1 ? boxes->owners[from] : -1;
}

static void new_box(struct boxes *boxes, const tutti_network *network, int layer)
{
    int from;
    struct box *box = &boxes->boxes[boxes->count];
    *box = (struct box) { .first = layer, .repeats = 1, .stands_for = boxes->count };
    for (int k = 0; tutti_network_layer_input(network, layer, k, &from) == TUTTI_OK; k++)
        add_source(box, from < 0 || from >= layer ? BOX_INPUT : boxes->owners[from]);
    boxes->count++;
}

/* The first `depth` parts of a name. */
static size_t scope_length(const char *name, int depth)
{
    const char *at = name;
    for (int i = 0; i < depth; i++) {
        if (i) at++;
        at += strcspn(at, "./");
        if (!*at && i + 1 < depth) return 0;
    }
    return *at ? (size_t)(at - name) : 0;
}

void boxes_scope(const struct boxes *boxes, int box, int depth, char *name, size_t size)
{
    const char *whole = boxes->layers[boxes->boxes[box].first].name;
    snprintf(name, size, "%.*s", (int)scope_length(whole, depth), whole);
}

static const char *name_of(const struct boxes *boxes, int box)
{
    return boxes->layers[boxes->boxes[box].first].name;
}

/* Returns the number of boxes from `begin` on with the same scope. */
static int block_length(const struct boxes *boxes, int begin, int depth)
{
    const char *name = name_of(boxes, begin);
    const size_t scope = scope_length(name, depth);
    int end = begin;
    if (!scope) return 0;
    while (end < boxes->count && scope_length(name_of(boxes, end), depth) == scope &&
        !strncmp(name_of(boxes, end), name, scope) && boxes->boxes[end].stands_for == end &&
        boxes->boxes[end].repeats == 1)
        end++;
    return end - begin;
}

static bool same_box(const struct boxes *boxes, int a, int b)
{
    const struct box *x = &boxes->boxes[a], *y = &boxes->boxes[b];
    const tutti_layer_info *p = &boxes->layers[x->first], *q = &boxes->layers[y->first];
    if (x->layers != y->layers || x->parameters != y->parameters || x->source_count != y->source_count) return false;
    if (strcmp(p->operation, q->operation) != 0 ||
        strcmp(boxes->layers[x->last].operation, boxes->layers[y->last].operation) != 0)
        return false;
    if (!same_shape(&p->shape, &q->shape) || !same_shape(&boxes->layers[x->last].shape, &boxes->layers[y->last].shape))
        return false;
    for (int i = 0; i < x->source_count; i++) {
        if ((x->sources[i] < 0) != (y->sources[i] < 0)) return false;
        if (x->sources[i] >= 0 && a - x->sources[i] != b - y->sources[i]) return false;
    }
    return true;
}

static bool same_block(const struct boxes *boxes, int a, int b, int length)
{
    for (int i = 0; i < length; i++)
        if (!same_box(boxes, a + i, b + i)) return false;
    return true;
}

static void collapse(struct boxes *boxes, int begin, int length, int repeats, int depth)
{
    boxes->boxes[begin].scope = depth;
    boxes->boxes[begin].repeats = repeats;
    boxes->boxes[begin].length = length;
    for (int i = length; i < length * repeats; i++) {
        boxes->boxes[begin + i].stands_for = begin + i % length;
        boxes->boxes[begin + i % length].seconds += boxes->boxes[begin + i].seconds;
    }
}

/* Blocks such as layer3.1 and layer3.2 that differ in nothing but their names are shown once. */
static void find_repeats(struct boxes *boxes, int depth)
{
    for (int begin = 0, length; begin < boxes->count; begin += length ? length : 1) {
        length = block_length(boxes, begin, depth);
        int repeats = 1;
        while (length >= 2 && begin + (repeats + 1) * length <= boxes->count &&
            block_length(boxes, begin + repeats * length, depth) == length &&
            same_block(boxes, begin, begin + repeats * length, length))
            repeats++;
        if (repeats < 2) continue;
        collapse(boxes, begin, length, repeats, depth);
        length *= repeats;
    }
}

tutti_status boxes_make(struct boxes *boxes, const tutti_network *network, const struct costs *costs)
{
    const int layers = tutti_network_layers(network);
    *boxes = (struct boxes) { .layer_count = layers };
    int *readers = count_readers(network, layers);
    tutti_status status = TUTTI_OK;
    boxes->layers = memory_new((size_t)layers + 1, sizeof(*boxes->layers));
    boxes->owners = memory_new((size_t)layers + 1, sizeof(*boxes->owners));
    boxes->boxes = memory_new((size_t)layers + 1, sizeof(*boxes->boxes));
    if (!readers || !boxes->layers || !boxes->owners || !boxes->boxes) status = TUTTI_NO_MEMORY;
    for (int i = 0; i < layers && status == TUTTI_OK; i++) {
        status = tutti_network_layer(network, i, &boxes->layers[i]);
        if (status != TUTTI_OK) break;
        boxes->owners[i] = box_to_join(boxes, network, readers, i);
        if (boxes->owners[i] < 0) {
            boxes->owners[i] = boxes->count;
            new_box(boxes, network, i);
        }
        struct box *box = &boxes->boxes[boxes->owners[i]];
        box->last = i;
        box->layers++;
        box->parameters += boxes->layers[i].parameters;
        if (costs) box->seconds += costs->layers[i].seconds;
    }
    for (int depth = 1; status == TUTTI_OK && depth <= DEEPEST_SCOPE; depth++) find_repeats(boxes, depth);
    free(readers);
    return status;
}

void boxes_free(struct boxes *boxes)
{
    free(boxes->boxes);
    free(boxes->layers);
    free(boxes->owners);
    memset(boxes, 0, sizeof(*boxes));
}
