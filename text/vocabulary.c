#include "text/vocabulary.h"

#include "base/text.h"

#include <stdlib.h>
#include <xxhash.h>

static size_t first_slot(const struct vocabulary *vocabulary, const char *text, size_t size)
{
    return (size_t)XXH3_64bits(text, size) & (vocabulary->slot_count - 1);
}

static void insert(struct vocabulary *vocabulary, int32_t id)
{
    const struct vocabulary_token *token = &vocabulary->tokens[id];
    size_t slot = first_slot(vocabulary, vocabulary->texts.data + token->at, token->size);
    while (vocabulary->slots[slot] >= 0) slot = (slot + 1) & (vocabulary->slot_count - 1);
    vocabulary->slots[slot] = id;
}

/* At most half of the slots are used. */
static tutti_status grow_slots(struct vocabulary *vocabulary)
{
    if (vocabulary->count * 2 < vocabulary->slot_count) return TUTTI_OK;
    const size_t count = vocabulary->slot_count ? vocabulary->slot_count * 2 : 1024;
    int32_t *slots = memory_new(count, sizeof(*slots));
    if (!slots) return TUTTI_NO_MEMORY;
    memset(slots, 0xFF, count * sizeof(*slots));
    free(vocabulary->slots);
    vocabulary->slots = slots;
    vocabulary->slot_count = count;
    for (size_t id = 0; id < vocabulary->size; id++)
        if (vocabulary->tokens[id].present) insert(vocabulary, (int32_t)id);
    return TUTTI_OK;
}

tutti_status vocabulary_add(struct vocabulary *vocabulary, const char *text, size_t size, int64_t id)
{
    if (id < 0 || id >= VOCABULARY_MOST)
        return fail(TUTTI_FORMAT, "token \"%s\" has the id %lld, which is not from 0 to %d", text_printable(text).text,
            (long long)id, VOCABULARY_MOST - 1);
    if ((size_t)id < vocabulary->size && vocabulary->tokens[id].present)
        return fail(TUTTI_FORMAT, "two tokens have the id %lld", (long long)id);
    if (vocabulary_find(vocabulary, text, size) >= 0)
        return fail(TUTTI_FORMAT, "token \"%s\" is there twice", text_printable(text).text);
    if (size > UINT32_MAX) return fail(TUTTI_FORMAT, "a token of %zu bytes is too long", size);
    tutti_status status = memory_grow(
        (void **)&vocabulary->tokens, &vocabulary->token_capacity, (size_t)id + 1, sizeof(*vocabulary->tokens));
    if (status != TUTTI_OK) return status;
    const size_t at = vocabulary->texts.size;
    byte_list_append(&vocabulary->texts, text, size);
    byte_list_append(&vocabulary->texts, "", 1);
    if (vocabulary->texts.failed) return TUTTI_NO_MEMORY;
    if ((size_t)id >= vocabulary->size) vocabulary->size = (size_t)id + 1;
    vocabulary->count++;
    status = grow_slots(vocabulary);
    vocabulary->tokens[id] = (struct vocabulary_token) { .at = at, .size = (uint32_t)size, .present = true };
    if (status == TUTTI_OK) insert(vocabulary, (int32_t)id);
    return status;
}

void vocabulary_free(struct vocabulary *vocabulary)
{
    free(vocabulary->tokens);
    byte_list_free(&vocabulary->texts);
    free(vocabulary->slots);
    *vocabulary = (struct vocabulary) { 0 };
}

int32_t vocabulary_find(const struct vocabulary *vocabulary, const char *text, size_t size)
{
    if (vocabulary->slot_count == 0) return -1;
    for (size_t slot = first_slot(vocabulary, text, size);; slot = (slot + 1) & (vocabulary->slot_count - 1)) {
        const int32_t id = vocabulary->slots[slot];
        if (id < 0) return -1;
        const struct vocabulary_token *token = &vocabulary->tokens[id];
        if (token->size == size && !memcmp(vocabulary->texts.data + token->at, text, size)) return id;
    }
}

const char *vocabulary_text(const struct vocabulary *vocabulary, int64_t id, size_t *size)
{
    if (id < 0 || (size_t)id >= vocabulary->size || !vocabulary->tokens[id].present) return NULL;
    if (size) *size = vocabulary->tokens[id].size;
    return vocabulary->texts.data + vocabulary->tokens[id].at;
}
