/* Texts become tokens, on several threads, and are kept in as few bytes as their vocabulary needs. */
#include "data/text/texts.h"

#include "base/memory.h"
#include "base/status.h"

#include <stdlib.h>
#include <string.h>

enum { QUEUE_ITEMS = 1024, QUEUE_BYTES = 8 << 20, PIECE = 1 << 18, PIECES = 32 };
/* A tokenizer is learned from so much of the texts at most. */
enum { LEARN_ITEMS = 1 << 22, LEARN_BYTES = 64 << 20 };

struct queued {
    const char *text; /* NULL: a copy, from `at` on, with that of the other text after it */
    size_t at, bytes, pair_bytes;
    bool pair;
    tutti_encoding encoding;
    int64_t whole; /* tokens before it was cut */
    tutti_status status;
    char *message;
};

void texts_note(const struct texts *texts, char *line)
{
    if (line && texts->options->note) texts->options->note(texts->options->user, line);
    free(line);
}

/* ------------------------------------------------------------------------------------------------- the store ---- */

tutti_status token_store_add(struct token_store *store, const int32_t *ids, int64_t count)
{
    const size_t needed = store->count + (size_t)count;
    const tutti_status status = memory_grow(&store->ids, &store->room, needed, (size_t)store->width);
    if (status != TUTTI_OK) return status;
    for (int64_t i = 0; i < count; i++) {
        const size_t at = store->count + (size_t)i;
        const int32_t id = ids[i];
        store->unknown_count += id == store->unknown;
        if (store->width == 1)
            ((uint8_t *)store->ids)[at] = (uint8_t)id;
        else if (store->width == 2)
            ((uint16_t *)store->ids)[at] = (uint16_t)id;
        else
            ((int32_t *)store->ids)[at] = id;
    }
    store->count = needed;
    return TUTTI_OK;
}

int32_t token_store_at(const struct token_store *store, int64_t position)
{
    if (store->width == 1) return ((const uint8_t *)store->ids)[position];
    return store->width == 2 ? ((const uint16_t *)store->ids)[position] : ((const int32_t *)store->ids)[position];
}

void token_store_read(const struct token_store *store, int64_t position, int64_t count, int32_t *ids)
{
    for (int64_t i = 0; i < count; i++) ids[i] = token_store_at(store, position + i);
}

/* ------------------------------------------------------------------------------------------------- encoding ---- */

/* The tokens of a text that is too long for a sample are counted before it is cut. */
static tutti_status encode(const struct texts *texts, struct queued *item)
{
    const struct text_tags *tags = &texts->targets.tags;
    const char *text = item->text ? item->text : texts->queue.bytes + item->at;
    if (tags->on)
        return words_encode(tags, texts->tokenizer, text, item->bytes, texts->most, &item->encoding, &item->whole);
    tutti_encode_options options = { .size = sizeof options, .no_special = texts->stream };
    if (item->pair) {
        options.pair = text + item->bytes;
        options.pair_bytes = (int64_t)item->pair_bytes;
    }
    tutti_status status =
        tutti_tokenizer_encode(texts->tokenizer, text, (int64_t)item->bytes, &options, &item->encoding);
    item->whole = item->encoding.count;
    if (status != TUTTI_OK || texts->stream || item->whole <= texts->most) return status;
    tutti_encoding_free(&item->encoding);
    options.most = texts->most;
    return tutti_tokenizer_encode(texts->tokenizer, text, (int64_t)item->bytes, &options, &item->encoding);
}

static void encode_task(void *argument, int task)
{
    const struct texts *texts = argument;
    struct queued *item = &texts->queue.items[task];
    item->status = encode(texts, item);
    if (item->status != TUTTI_OK) item->message = memory_copy_text(status_message());
}

/* Ids of a damaged tokenizer could be outside of what the network embeds. */
static tutti_status check_ids(const struct texts *texts, const tutti_encoding *encoding)
{
    const int64_t vocabulary = texts->collection.info.vocabulary;
    for (int64_t i = 0; i < encoding->count; i++)
        if (encoding->ids[i] < 0 || encoding->ids[i] >= vocabulary)
            return fail(TUTTI_FORMAT, "the tokenizer gives the id %d, but its vocabulary has %lld tokens",
                (int)encoding->ids[i], (long long)vocabulary);
    return TUTTI_OK;
}

/* The network gets types as where the second text begins: 0 before, 1 from there on. */
static tutti_status check_types(const tutti_encoding *encoding)
{
    for (int64_t i = 0; i < encoding->count; i++)
        if (encoding->types[i] < (i > 0 ? encoding->types[i - 1] : 0) || encoding->types[i] > 1)
            return fail(TUTTI_UNSUPPORTED,
                "the tokenizer's types of tokens of two texts are not 0, then 1: token %lld has %d", (long long)i + 1,
                (int)encoding->types[i]);
    return TUTTI_OK;
}

static tutti_status keep(struct texts *texts, const struct queued *item, int64_t number)
{
    const tutti_encoding *encoding = &item->encoding;
    int64_t first = encoding->count;
    tutti_status status = check_ids(texts, encoding);
    if (status == TUTTI_OK && item->pair && encoding->types) status = check_types(encoding);
    if (status == TUTTI_OK && !texts->stream) {
        for (int64_t i = 0; item->pair && i < encoding->count; i++)
            if (encoding->types && encoding->types[i] == 1) {
                first = i;
                break;
            }
        texts->counts.cut += item->whole > encoding->count;
        texts->samples[number] = (struct text_sample) { .begins = (int64_t)texts->tokens.count,
            .whole = item->whole,
            .count = (int32_t)encoding->count,
            .first = (int32_t)first };
        if (texts->targets.tags.on) words_set_tokens(texts, number, encoding);
    }
    return status == TUTTI_OK ? token_store_add(&texts->tokens, encoding->ids, encoding->count) : status;
}

static void clear_queue(struct text_queue *queue)
{
    for (size_t i = 0; i < queue->count; i++) {
        tutti_encoding_free(&queue->items[i].encoding);
        free(queue->items[i].message);
    }
    queue->count = queue->used = 0;
}

/* What a tokenizer is learned from. */
struct lines {
    const char **texts;
    int64_t *bytes, count;
    size_t room, room_of_bytes;
};

static tutti_status add_line(struct lines *lines, const char *text, size_t bytes)
{
    tutti_status status;
    const size_t needed = (size_t)lines->count + 1;
    void *texts = lines->texts;
    TRY(memory_grow(&texts, &lines->room, needed, sizeof *lines->texts));
    lines->texts = texts;
    TRY(memory_grow((void **)&lines->bytes, &lines->room_of_bytes, needed, sizeof *lines->bytes));
    lines->texts[lines->count] = text;
    lines->bytes[lines->count++] = (int64_t)bytes;
done:
    return status;
}

/* Words that have tags stand for themselves. */
static tutti_status add_words(struct lines *lines, const char *words, size_t bytes)
{
    tutti_status status = TUTTI_OK;
    for (size_t at = 0; at < bytes && status == TUTTI_OK; at += strlen(words + at) + 1)
        status = add_line(lines, words + at, strlen(words + at));
    return status;
}

/* Learns from the texts that may train, or from all if there are none. What is held out by its file teaches nothing. */
static tutti_status learn(struct texts *texts)
{
    const struct text_queue *queue = &texts->queue;
    const signed char *parts = texts->collection.parts + texts->collection.samples - (int64_t)queue->count;
    struct text_tags *tags = &texts->targets.tags;
    struct lines lines = { 0 };
    tutti_status status = TUTTI_OK;
    for (int all = 0; all < 2 && lines.count == 0; all++)
        for (size_t i = 0; i < queue->count; i++) {
            const struct queued *item = &queue->items[i];
            const char *text = queue->bytes + item->at;
            if (!all && parts[i] != PART_OPEN && parts[i] != TUTTI_DATA_TRAIN) continue;
            TRY(tags->on ? add_words(&lines, text, item->bytes) : add_line(&lines, text, item->bytes));
            if (item->pair) TRY(add_line(&lines, text + item->bytes, item->pair_bytes));
        }
    TRY(texts_learn(texts, lines.texts, lines.bytes, lines.count));
    if (tags->on && !tags->before) TRY(words_begin(tags, texts->tokenizer));
done:
    free(lines.texts);
    free(lines.bytes);
    return status;
}

/* What waits belongs to the last samples. */
tutti_status texts_flush(struct texts *texts)
{
    struct text_queue *queue = &texts->queue;
    tutti_status status = TUTTI_OK;
    if (queue->count == 0) return TUTTI_OK;
    if (queue->learns) status = learn(texts);
    if (status != TUTTI_OK) return status;
    thread_pool_run(queue->pool, (int)queue->count, encode_task, texts);
    const int64_t first = texts->collection.samples - (int64_t)queue->count;
    for (size_t i = 0; i < queue->count && status == TUTTI_OK; i++) {
        const struct queued *item = &queue->items[i];
        if (item->status != TUTTI_OK)
            status = fail(item->status, "%s", item->message ? item->message : "a text cannot be encoded");
        else
            status = keep(texts, item, first + (int64_t)i);
    }
    clear_queue(queue);
    return status;
}

static tutti_status new_item(struct text_queue *queue, struct queued **item)
{
    void *items = queue->items;
    const tutti_status status = memory_grow(&items, &queue->items_room, queue->count + 1, sizeof *queue->items);
    queue->items = items;
    if (status != TUTTI_OK) return status;
    *item = &queue->items[queue->count++];
    **item = (struct queued) { .status = TUTTI_OK };
    return TUTTI_OK;
}

tutti_status texts_queue(struct texts *texts, const char *text, size_t bytes, const char *pair, size_t pair_bytes)
{
    struct text_queue *queue = &texts->queue;
    struct queued *item = NULL;
    void *copies = queue->bytes;
    size_t needed;
    if (!size_add(bytes, pair_bytes, &needed) || !size_add(needed, queue->used + 1, &needed))
        return fail(TUTTI_NO_MEMORY, "a text is too long");
    tutti_status status = memory_grow(&copies, &queue->room, needed, 1);
    queue->bytes = copies;
    if (status == TUTTI_OK) status = new_item(queue, &item);
    if (status != TUTTI_OK) return status;
    item->at = queue->used;
    item->bytes = bytes;
    item->pair = pair != NULL;
    item->pair_bytes = pair_bytes;
    memcpy(queue->bytes + item->at, text, bytes);
    if (pair) memcpy(queue->bytes + item->at + bytes, pair, pair_bytes);
    queue->used += bytes + pair_bytes;
    texts->counts.bytes += (int64_t)(bytes + pair_bytes);
    const size_t most = queue->learns ? LEARN_ITEMS : QUEUE_ITEMS,
                 most_bytes = queue->learns ? LEARN_BYTES : QUEUE_BYTES;
    return queue->count >= most || queue->used > most_bytes ? texts_flush(texts) : TUTTI_OK;
}

/* -------------------------------------------------------------------------------------------------- streams ---- */

static bool is_blank(char byte)
{
    return byte == ' ' || (byte >= '\t' && byte <= '\r');
}

/* Where a piece ends: after the last line end between two visible characters, so that no tokenizer would join what is
 * before and after it. A line that is longer than a piece ends at a blank, or before a character. */
static size_t piece_end(const char *text, size_t bytes)
{
    size_t at;
    if (bytes <= PIECE) return bytes;
    for (at = PIECE; at > 1; at--)
        if (text[at - 1] == '\n' && !is_blank(text[at]) && !is_blank(text[at - 2])) return at;
    for (at = PIECE - 1; at > 1; at--)
        if (text[at] == ' ' && !is_blank(text[at - 1]) && !is_blank(text[at + 1])) return at;
    at = PIECE;
    while (at > PIECE - 4 && ((unsigned char)text[at] & 0xc0) == 0x80) at--;
    return at;
}

tutti_status texts_stream(struct texts *texts, const char *text, size_t bytes)
{
    tutti_status status = TUTTI_OK;
    texts->counts.bytes += (int64_t)bytes;
    for (size_t at = 0; at < bytes && status == TUTTI_OK;) {
        struct queued *item = NULL;
        status = new_item(&texts->queue, &item);
        if (status != TUTTI_OK) break;
        item->text = text + at;
        item->bytes = piece_end(text + at, bytes - at);
        at += item->bytes;
        if (texts->queue.count == PIECES) status = texts_flush(texts);
    }
    return status == TUTTI_OK ? texts_flush(texts) : status;
}
