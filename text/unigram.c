/* Unigram: the division of a piece into tokens whose scores have the largest sum (Viterbi). */
#include "base/text.h"
#include "text/model.h"
#include "text/utf8.h"

#include <math.h>

enum { ROOT = 1 };

static struct score_edge *find_slot(const struct model *model, uint32_t node, unsigned char byte)
{
    const uint64_t key = ((uint64_t)node << 8 | byte) * 0x9E3779B97F4A7C15u;
    size_t slot = (size_t)(key >> 32) & (model->edge_slots - 1);
    while (model->edges[slot].node && (model->edges[slot].node != node || model->edges[slot].byte != byte))
        slot = (slot + 1) & (model->edge_slots - 1);
    return &model->edges[slot];
}

static tutti_status read_token(struct model *model, const json_t *json, size_t id)
{
    const json_t *text = json_array_get(json, 0), *score = json_array_get(json, 1);
    if (!json_is_string(text) || !json_is_number(score) || json_array_size(json) != 2)
        return fail(TUTTI_FORMAT, "token %zu of the tokenizer is not a text and a score", id);
    model->scores[id] = json_number_value(score);
    return vocabulary_add(&model->vocabulary, json_string_value(text), json_string_length(text), (int64_t)id);
}

/* A tree of all tokens, as a hash table of its edges. */
static tutti_status make_tree(struct model *model)
{
    const size_t most = model->vocabulary.texts.size;
    model->edge_slots = 16;
    while (model->edge_slots < most * 2) model->edge_slots *= 2;
    model->edges = memory_new(model->edge_slots, sizeof(*model->edges));
    if (!model->edges) return TUTTI_NO_MEMORY;
    uint32_t nodes = ROOT;
    for (size_t id = 0; id < model->vocabulary.size; id++) {
        size_t size;
        const char *text = vocabulary_text(&model->vocabulary, (int64_t)id, &size);
        uint32_t node = ROOT;
        for (size_t i = 0; i < size; i++) {
            struct score_edge *edge = find_slot(model, node, (unsigned char)text[i]);
            if (!edge->node) *edge = (struct score_edge) { node, ++nodes, -1, (unsigned char)text[i] };
            if (i + 1 == size) edge->id = (int32_t)id;
            node = edge->child;
        }
    }
    return TUTTI_OK;
}

static tutti_status read(struct model *model, const json_t *json)
{
    const json_t *tokens = json_object_get(json, "vocab");
    const size_t count = json_array_size(tokens);
    int64_t unknown;
    if (!json_is_array(tokens) || count == 0)
        return fail(TUTTI_FORMAT, "\"vocab\" of the tokenizer must be a list of tokens and scores");
    model->scores = memory_new(count, sizeof(*model->scores));
    if (!model->scores) return TUTTI_NO_MEMORY;
    tutti_status status = field_integer(json, "unk_id", -1, &unknown);
    if (status == TUTTI_OK) status = field_flag(json, "byte_fallback", false, &model->byte_fallback);
    double least = INFINITY;
    for (size_t id = 0; id < count && status == TUTTI_OK; id++) {
        status = read_token(model, json_array_get(tokens, id), id);
        if (model->scores[id] < least) least = model->scores[id];
    }
    if (status != TUTTI_OK) return status;
    if (unknown >= (int64_t)count || unknown < -1)
        return fail(TUTTI_FORMAT, "\"unk_id\" of the tokenizer is not in its vocabulary");
    model->unknown = (int32_t)unknown;
    model->unknown_score = least - 10; /* SentencePiece's penalty */
    model_find_byte_tokens(model);
    return make_tree(model);
}

static void offer(struct path_node *node, double score, size_t begin, int32_t id)
{
    if (node->begin < 0 || score > node->score) *node = (struct path_node) { score, id, (int32_t)begin };
}

/* Fills work->path: the best token that ends at each byte. */
static tutti_status find_path(const struct model *model, struct model_work *work, const char *text, size_t size)
{
    const tutti_status status = memory_grow((void **)&work->path, &work->path_capacity, size + 1, sizeof(*work->path));
    if (status != TUTTI_OK) return status;
    for (size_t i = 0; i <= size; i++) work->path[i] = (struct path_node) { 0, 0, -1 };
    for (size_t begin = 0; begin < size;) {
        const size_t one = utf8_size(text[begin]);
        const double score = work->path[begin].score;
        bool alone = false;
        uint32_t node = ROOT;
        for (size_t at = begin; at < size; at++) {
            const struct score_edge *edge = find_slot(model, node, (unsigned char)text[at]);
            if (!edge->node) break;
            node = edge->child;
            if (edge->id < 0) continue;
            offer(&work->path[at + 1], model->scores[edge->id] + score, begin, edge->id);
            if (at + 1 - begin == one) alone = true;
        }
        if (!alone) {
            const struct path_node *target = &work->path[begin + one];
            const double unknown = model->unknown_score + score;
            if (model->unknown < 0 && (target->begin < 0 || unknown > target->score)) return model_fail_unknown();
            offer(&work->path[begin + one], unknown, begin, model->unknown);
        }
        begin += one;
    }
    return TUTTI_OK;
}

/* A token, or unknown characters that follow each other. */
static tutti_status append(const struct model *model, const char *text, size_t size, int32_t id, struct id_list *ids)
{
    if (id == model->unknown) {
        id = vocabulary_find(&model->vocabulary, text, size);
        if (id < 0 && model->byte_fallback && model_append_bytes(model, text, size, ids)) return TUTTI_OK;
        if (id < 0) id = model->unknown;
    }
    if (id < 0) return model_fail_unknown();
    id_list_append(ids, id);
    return TUTTI_OK;
}

static tutti_status encode(
    const struct model *model, struct model_work *work, const char *text, size_t size, struct id_list *ids)
{
    tutti_status status = find_path(model, work, text, size);
    if (status == TUTTI_OK)
        status = memory_grow((void **)&work->symbols, &work->symbol_capacity, size, sizeof(*work->symbols));
    if (status != TUTTI_OK) return status;
    /* The path leads backwards. Unknown characters that follow each other are one. */
    size_t count = 0;
    for (int32_t end = (int32_t)size; end > 0; end = work->path[end].begin) {
        const struct path_node *node = &work->path[end];
        struct symbol *later = count > 0 ? &work->symbols[count - 1] : NULL;
        if (later && node->id == model->unknown && later->id == model->unknown)
            later->before = node->begin;
        else
            work->symbols[count++] = (struct symbol) { node->id, node->begin, end };
    }
    while (count > 0 && status == TUTTI_OK) {
        const struct symbol *part = &work->symbols[--count];
        status = append(model, text + part->before, (size_t)(part->next - part->before), part->id, ids);
    }
    return status;
}

const struct model_kind model_unigram = { "Unigram", read, encode };
