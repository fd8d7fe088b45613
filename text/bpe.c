/* Byte-pair encoding: the characters of a piece are merged, the pair that was learned first and stands leftmost first.
 */
#include "base/text.h"
#include "text/byte_level.h"
#include "text/model.h"
#include "text/utf8.h"

#include <stdlib.h>

/* Pieces with more symbols than this take a heap, shorter ones are searched. */
enum { SHORT = 24 };

/* ---------------------------------------------------------------------------------------------------- the merges ----
 */

static size_t slot_of(const struct model *model, int32_t left, int32_t right)
{
    const uint64_t key = ((uint64_t)(uint32_t)left << 32 | (uint32_t)right) * 0x9E3779B97F4A7C15u;
    return (size_t)(key >> 32) & (model->merge_slots - 1);
}

static struct merge *find_slot(const struct model *model, int32_t left, int32_t right)
{
    size_t slot = slot_of(model, left, right);
    while (model->merges[slot].left >= 0 && (model->merges[slot].left != left || model->merges[slot].right != right))
        slot = (slot + 1) & (model->merge_slots - 1);
    return &model->merges[slot];
}

static const struct merge *find_merge(const struct model *model, int32_t left, int32_t right)
{
    const struct merge *merge = find_slot(model, left, right);
    return merge->left >= 0 ? merge : NULL;
}

static tutti_status make_slots(struct model *model, size_t count)
{
    model->merge_slots = 16;
    while (model->merge_slots < count * 2) model->merge_slots *= 2;
    model->merges = memory_new(model->merge_slots, sizeof(*model->merges));
    if (!model->merges) return TUTTI_NO_MEMORY;
    for (size_t i = 0; i < model->merge_slots; i++) model->merges[i].left = -1;
    return TUTTI_OK;
}

static tutti_status token_of_merge(const struct model *model, const char *text, size_t size, int32_t *id)
{
    *id = vocabulary_find(&model->vocabulary, text, size);
    if (*id >= 0) return TUTTI_OK;
    return fail(
        TUTTI_FORMAT, "the token \"%s\" of the tokenizer's merges is not in its vocabulary", text_printable(text).text);
}

static tutti_status read_merge(struct model *model, const json_t *json, uint32_t rank, struct byte_list *joined)
{
    const char *left = json_string_value(json), *right;
    size_t left_size = left ? json_string_length(json) : 0, right_size;
    if (left) {
        const char *space = memchr(left, ' ', left_size);
        right = space ? space + 1 : NULL;
        right_size = space ? left_size - (size_t)(right - left) : 0;
        left_size = space ? (size_t)(space - left) : 0;
        if (right && memchr(right, ' ', right_size)) right = NULL;
    } else {
        left = json_string_value(json_array_get(json, 0)), left_size = json_string_length(json_array_get(json, 0));
        right = json_string_value(json_array_get(json, 1)), right_size = json_string_length(json_array_get(json, 1));
    }
    if (!left || !right || (json_is_array(json) && json_array_size(json) != 2) || right_size < model->prefix_size)
        return fail(TUTTI_FORMAT, "merge %u of the tokenizer is not a pair of tokens", rank + 1);
    struct merge merge = { .rank = rank };
    joined->size = 0;
    byte_list_append(joined, left, left_size);
    byte_list_append(joined, "", 1);
    tutti_status status = joined->failed ? TUTTI_NO_MEMORY : TUTTI_OK;
    if (status == TUTTI_OK) status = token_of_merge(model, joined->data, left_size, &merge.left);
    if (status == TUTTI_OK) status = token_of_merge(model, right, right_size, &merge.right);
    joined->size = left_size;
    byte_list_append(joined, right + model->prefix_size, right_size - model->prefix_size);
    byte_list_append(joined, "", 1);
    if (status == TUTTI_OK && joined->failed) status = TUTTI_NO_MEMORY;
    if (status == TUTTI_OK) status = token_of_merge(model, joined->data, joined->size - 1, &merge.id);
    if (status == TUTTI_OK) *find_slot(model, merge.left, merge.right) = merge; /* the last one of a pair counts */
    return status;
}

static tutti_status read_merges(struct model *model, const json_t *json)
{
    const json_t *merges = json_object_get(json, "merges");
    if (!json_is_array(merges)) return fail(TUTTI_FORMAT, "\"merges\" of the tokenizer must be a list");
    tutti_status status = make_slots(model, json_array_size(merges));
    struct byte_list joined = { 0 };
    uint32_t rank = 0;
    for (size_t i = 0; i < json_array_size(merges) && status == TUTTI_OK; i++) {
        const json_t *merge = json_array_get(merges, i);
        if (json_is_string(merge) && !strncmp(json_string_value(merge), "#version", 8)) continue;
        status = read_merge(model, merge, rank++, &joined);
    }
    byte_list_free(&joined);
    return status;
}

static tutti_status read(struct model *model, const json_t *json)
{
    const json_t *dropout = field_get(json, "dropout");
    tutti_status status;
    if (dropout && json_number_value(dropout) != 0)
        return fail(TUTTI_UNSUPPORTED, "the tokenizer's \"dropout\" is not supported: set it to null");
    TRY(model_read_vocabulary(model, json));
    TRY(model_read_unknown(model, json, NULL));
    TRY(field_flag(json, "byte_fallback", false, &model->byte_fallback));
    TRY(field_flag(json, "fuse_unk", false, &model->fuse_unknown));
    TRY(field_flag(json, "ignore_merges", false, &model->ignore_merges));
    TRY(model_read_affix(json, "continuing_subword_prefix", NULL, &model->prefix, &model->prefix_size));
    TRY(model_read_affix(json, "end_of_word_suffix", NULL, &model->suffix, &model->suffix_size));
    TRY(read_merges(model, json));
    model_find_byte_tokens(model);
    for (int byte = 0; byte < 256; byte++) {
        char character[4];
        const size_t size = utf8_write(byte_character((unsigned char)byte), character);
        model->byte_characters[byte] = vocabulary_find(&model->vocabulary, character, size);
    }
done:
    return status;
}

/* --------------------------------------------------------------------------------------------------- to symbols ----
 */

/* The ids of single characters, with prefix and suffix, into `ids`. */
static tutti_status characters(
    const struct model *model, struct model_work *work, const char *text, size_t size, struct id_list *ids)
{
    bool waits = false; /* an unknown character is not yet appended: those that follow may be one with it */
    for (size_t at = 0; at < size;) {
        const size_t bytes = utf8_size(text[at]);
        work->text.size = 0;
        if (at > 0) byte_list_append(&work->text, model->prefix, model->prefix_size);
        byte_list_append(&work->text, text + at, bytes);
        if (at + bytes == size) byte_list_append(&work->text, model->suffix, model->suffix_size);
        if (work->text.failed) return TUTTI_NO_MEMORY;
        at += bytes;
        const int32_t id = vocabulary_find(&model->vocabulary, work->text.data, work->text.size);
        if (id >= 0) {
            if (waits) id_list_append(ids, model->unknown);
            waits = false;
            id_list_append(ids, id);
            continue;
        }
        if (model->byte_fallback && model_append_bytes(model, work->text.data, work->text.size, ids)) continue;
        if (!model->has_unknown) continue;
        if (model->unknown < 0) return model_fail_unknown();
        if (waits && !model->fuse_unknown) id_list_append(ids, model->unknown);
        waits = true;
    }
    if (waits) id_list_append(ids, model->unknown);
    return TUTTI_OK;
}

static tutti_status first_symbols(
    const struct model *model, struct model_work *work, const char *text, size_t size, struct id_list *ids)
{
    if (!model->raw_bytes) return characters(model, work, text, size, ids);
    if (ids->capacity - ids->size < size && !id_list_reserve(ids, size)) return TUTTI_NO_MEMORY;
    for (size_t i = 0; i < size; i++) ids->data[ids->size + i] = model->byte_characters[(unsigned char)text[i]];
    ids->size += size;
    return TUTTI_OK;
}

/* ------------------------------------------------------------------------------------------------------ merging ----
 */

/* Merges ids in place and returns how many are left. */
static size_t merge_short(const struct model *model, int32_t *ids, size_t count)
{
    const struct merge *pairs[SHORT + 1] = { NULL }; /* of each id and the next */
    for (size_t i = 0; i + 1 < count; i++) pairs[i] = find_merge(model, ids[i], ids[i + 1]);
    for (;;) {
        size_t best = SIZE_MAX;
        for (size_t i = 0; i + 1 < count; i++)
            if (pairs[i] && (best == SIZE_MAX || pairs[i]->rank < pairs[best]->rank)) best = i;
        if (best == SIZE_MAX) return count;
        ids[best] = pairs[best]->id;
        count--;
        for (size_t i = best + 1; i < count; i++) ids[i] = ids[i + 1], pairs[i] = pairs[i + 1];
        if (best > 0) pairs[best - 1] = find_merge(model, ids[best - 1], ids[best]);
        if (best + 1 < count) pairs[best] = find_merge(model, ids[best], ids[best + 1]);
    }
}

static bool is_before(const struct merge_candidate *a, const struct merge_candidate *b)
{
    return a->rank != b->rank ? a->rank < b->rank : a->at < b->at;
}

/* Puts the pair that begins at a symbol on the heap, if it is one that was learned. A pair takes one place at most for
 * each symbol, and each merge adds two: the heap has room. */
static void push(const struct model *model, struct model_work *work, int32_t at)
{
    const struct symbol *symbol = &work->symbols[at];
    if (at < 0 || symbol->next < 0) return;
    const struct symbol *next = &work->symbols[symbol->next];
    const struct merge *merge = find_merge(model, symbol->id, next->id);
    if (!merge) return;
    const struct merge_candidate candidate = { merge->rank, (uint32_t)at, symbol->id, next->id };
    size_t place = work->heap_size++;
    for (; place > 0 && is_before(&candidate, &work->heap[(place - 1) / 2]); place = (place - 1) / 2)
        work->heap[place] = work->heap[(place - 1) / 2];
    work->heap[place] = candidate;
}

static struct merge_candidate pop(struct model_work *work)
{
    const struct merge_candidate top = work->heap[0], last = work->heap[--work->heap_size];
    size_t place = 0;
    for (size_t child; (child = 2 * place + 1) < work->heap_size; place = child) {
        if (child + 1 < work->heap_size && is_before(&work->heap[child + 1], &work->heap[child])) child++;
        if (!is_before(&work->heap[child], &last)) break;
        work->heap[place] = work->heap[child];
    }
    work->heap[place] = last;
    return top;
}

static tutti_status merge_long(const struct model *model, struct model_work *work, int32_t *ids, size_t *count)
{
    tutti_status status = memory_grow((void **)&work->symbols, &work->symbol_capacity, *count, sizeof(*work->symbols));
    if (status == TUTTI_OK)
        status = memory_grow((void **)&work->heap, &work->heap_capacity, *count * 3, sizeof(*work->heap));
    if (status != TUTTI_OK) return status;
    for (size_t i = 0; i < *count; i++)
        work->symbols[i] = (struct symbol) { ids[i], (int32_t)i - 1, i + 1 < *count ? (int32_t)i + 1 : -1 };
    work->heap_size = 0;
    for (size_t i = 0; i + 1 < *count; i++) push(model, work, (int32_t)i);
    while (work->heap_size > 0) {
        const struct merge_candidate top = pop(work);
        struct symbol *symbol = &work->symbols[top.at];
        if (symbol->id != top.left || symbol->next < 0 || work->symbols[symbol->next].id != top.right) continue;
        struct symbol *next = &work->symbols[symbol->next];
        symbol->id = find_merge(model, top.left, top.right)->id;
        next->id = -1; /* removed */
        symbol->next = next->next;
        if (symbol->next >= 0) work->symbols[symbol->next].before = (int32_t)top.at;
        if (symbol->before >= 0) push(model, work, symbol->before);
        push(model, work, (int32_t)top.at);
    }
    size_t left = 0;
    for (int32_t at = 0; at >= 0; at = work->symbols[at].next) ids[left++] = work->symbols[at].id;
    *count = left;
    return TUTTI_OK;
}

static bool append_whole(
    const struct model *model, struct model_work *work, const char *text, size_t size, struct id_list *ids)
{
    if (model->raw_bytes) {
        work->text.size = 0;
        byte_level_append(&work->text, text, size);
        text = work->text.data, size = work->text.size;
    }
    const int32_t id = work->text.failed ? -1 : vocabulary_find(&model->vocabulary, text, size);
    if (id >= 0) id_list_append(ids, id);
    return id >= 0;
}

static tutti_status encode(
    const struct model *model, struct model_work *work, const char *text, size_t size, struct id_list *ids)
{
    if (model->ignore_merges && append_whole(model, work, text, size, ids)) return TUTTI_OK;
    const size_t before = ids->size;
    tutti_status status = first_symbols(model, work, text, size, ids);
    if (status != TUTTI_OK) return status;
    if (ids->failed) return TUTTI_NO_MEMORY;
    size_t count = ids->size - before;
    if (count > SHORT)
        status = merge_long(model, work, ids->data + before, &count);
    else if (count > 1)
        count = merge_short(model, ids->data + before, count);
    ids->size = before + count;
    return status;
}

const struct model_kind model_bpe = { "BPE", read, encode };
