/* Text to ids: added tokens are found, the rest is normalised, divided and given to the model; special tokens are put
 * around. */
#include "base/options.h"
#include "text/tokenizer.h"
#include "text/utf8.h"

#include <stdlib.h>

/* A part of the normalised text without added tokens. */
static tutti_status encode_part(const tutti_tokenizer *tokenizer, struct workspace *work, const char *text, size_t size,
    bool first, struct id_list *ids)
{
    struct division *division = &work->division;
    division->text.size = 0;
    byte_list_append(&division->text, text, size);
    tutti_status status = divide(&tokenizer->dividers, work->matcher, division, first);
    for (size_t i = 0; i < division->pieces.size && status == TUTTI_OK; i++) {
        const struct piece *piece = &division->pieces.data[i];
        status = model_encode(
            &tokenizer->model, &work->model, division->text.data + piece->begin, piece->end - piece->begin, ids);
    }
    return status;
}

/* A part of the original text. */
static tutti_status encode_original(const tutti_tokenizer *tokenizer, struct workspace *work, const char *text,
    size_t size, bool first, struct id_list *ids)
{
    struct normalised *normal = &work->normal;
    normal->text.size = 0;
    normal->moved = false;
    byte_list_append(&normal->text, text, size);
    tutti_status status = normalise(&tokenizer->normalisers, work->matcher, normal);
    struct added_walk walk = { .list = &tokenizer->added,
        .tree = &tokenizer->added.normal,
        .text = normal->text.data,
        .size = normal->text.size };
    struct added_part part;
    while (status == TUTTI_OK && added_next(&walk, &part)) {
        if (part.token >= 0)
            id_list_append(ids, tokenizer->added.tokens[part.token].id);
        else
            status = encode_part(tokenizer, work, normal->text.data + part.begin, part.end - part.begin,
                first && part.begin == 0 && !normal->moved, ids);
    }
    return status;
}

static tutti_status encode_text(
    const tutti_tokenizer *tokenizer, struct workspace *work, const char *text, size_t size, struct id_list *ids)
{
    ids->size = 0;
    if (size > INT32_MAX / 8) return fail(TUTTI_INVALID, "a text of %zu bytes is too long for a tokenizer", size);
    if (!utf8_valid(text, size)) {
        work->repaired.size = 0;
        utf8_repair(text, size, &work->repaired);
        if (work->repaired.failed) return TUTTI_NO_MEMORY;
        text = work->repaired.data, size = work->repaired.size;
    }
    struct added_walk walk = { .list = &tokenizer->added, .tree = &tokenizer->added.raw, .text = text, .size = size };
    struct added_part part;
    tutti_status status = TUTTI_OK;
    while (status == TUTTI_OK && added_next(&walk, &part)) {
        if (part.token >= 0)
            id_list_append(ids, tokenizer->added.tokens[part.token].id);
        else
            status = encode_original(tokenizer, work, text + part.begin, part.end - part.begin, part.begin == 0, ids);
    }
    return status == TUTTI_OK && ids->failed ? TUTTI_NO_MEMORY : status;
}

/* Cuts texts to so many ids in all, the longer one first. */
static void cut(struct id_list *first, struct id_list *second, size_t most)
{
    if (first->size + second->size <= most) return;
    struct id_list *shorter = first->size <= second->size ? first : second, *longer = shorter == first ? second : first;
    size_t least = shorter->size, rest = least > most ? least : most - least > least ? most - least : least;
    if (least + rest > most) least = most / 2, rest = least + most % 2;
    if (shorter->size > least) shorter->size = least;
    if (longer->size > rest) longer->size = rest;
}

static void put(struct tutti_encoding *encoding, const int32_t *ids, size_t count, int32_t type)
{
    if (count) memcpy(encoding->ids + encoding->count, ids, count * sizeof(*ids));
    for (size_t i = 0; i < count; i++) encoding->types[encoding->count + (int64_t)i] = type;
    encoding->count += (int64_t)count;
}

static tutti_status assemble(const tutti_tokenizer *tokenizer, struct id_list *texts,
    const tutti_encode_options *options, tutti_encoding *encoding)
{
    const bool pair = options->pair != NULL;
    const struct around_template *around = pair ? &tokenizer->around.pair : &tokenizer->around.single;
    const size_t special = options->no_special ? 0 : around->special, most = (size_t)options->most;
    if (tokenizer->around.given && pair && around->count == 0)
        return fail(TUTTI_UNSUPPORTED, "the tokenizer has no template for pairs of texts");
    if (most && most < special)
        return fail(TUTTI_INVALID, "at most %zu ids: the tokenizer's special tokens are %zu", most, special);
    if (most) cut(&texts[0], &texts[1], most - special);
    const size_t count = texts[0].size + texts[1].size + special;
    tutti_encoding made = { .ids = memory_new(count + 1, sizeof(int32_t)),
        .types = memory_new(count + 1, sizeof(int32_t)) };
    if (!made.ids || !made.types) {
        tutti_encoding_free(&made);
        return TUTTI_NO_MEMORY;
    }
    if (!tokenizer->around.given || (options->no_special && !tokenizer->around.always)) {
        put(&made, texts[0].data, texts[0].size, 0);
        put(&made, texts[1].data, texts[1].size, 1);
    } else
        for (size_t i = 0; i < around->count; i++) {
            const struct around_item *item = &around->items[i];
            if (item->text >= 0)
                put(&made, texts[item->text].data, texts[item->text].size, item->type);
            else if (!options->no_special)
                put(&made, item->ids, item->count, item->type);
        }
    *encoding = made;
    return TUTTI_OK;
}

tutti_status tutti_tokenizer_encode(const tutti_tokenizer *tokenizer, const char *text, int64_t bytes,
    const tutti_encode_options *given, tutti_encoding *encoding)
{
    tutti_encode_options options;
    tutti_status status = OPTIONS_READ(&options, given, tutti_encode_options);
    if (status != TUTTI_OK) return status;
    if (!tokenizer || !encoding || (!text && bytes) || bytes < 0 || options.pair_bytes < 0 || options.most < 0)
        return fail(TUTTI_INVALID, "a tokenizer needs a text, its size and an encoding");
    tutti_tokenizer *shared = (tutti_tokenizer *)tokenizer; /* its lock guards what changes */
    struct workspace *work;
    status = workspace_take(shared, &work);
    if (status != TUTTI_OK) return status;
    work->ids[1].size = 0;
    status = encode_text(tokenizer, work, text, (size_t)bytes, &work->ids[0]);
    if (status == TUTTI_OK && options.pair)
        status = encode_text(tokenizer, work, options.pair, (size_t)options.pair_bytes, &work->ids[1]);
    if (status == TUTTI_OK) status = assemble(tokenizer, work->ids, &options, encoding);
    /* Lists remember failures: what failed is not kept. */
    if (status == TUTTI_OK)
        workspace_give(shared, work);
    else
        workspace_free(work);
    return status;
}
