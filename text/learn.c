#include "text/learn.h"

#include "text/utf8.h"

#include <stdlib.h>

/* A pair of tokens: how often it occurs, and in which words new occurrences were found that the queue does not know. */
struct pair {
    int32_t left, right; /* left: -1 in empty slots */
    int64_t count;
    struct id_list found;
};
struct queued {
    int64_t count;
    int32_t left, right;
    struct id_list words;
};
struct learner {
    struct learned *learned;
    const struct word_counts *words;
    int32_t *symbols; /* of all words */
    size_t symbol_count, symbol_capacity;
    size_t *begins, *sizes; /* of each word */
    struct pair *pairs;
    size_t slots, used;
    size_t *touched; /* slots of pairs with words in `found` */
    size_t touched_count, touched_capacity;
    struct queued *queue; /* a heap */
    size_t queue_count, queue_capacity;
};

tutti_status word_counts_add(struct word_counts *words, const char *text, size_t size)
{
    int32_t index = vocabulary_find(&words->words, text, size);
    if (index < 0) {
        index = (int32_t)words->words.size;
        tutti_status status = vocabulary_add(&words->words, text, size, index);
        if (status == TUTTI_OK)
            status = memory_grow((void **)&words->counts, &words->capacity, words->words.size, sizeof(*words->counts));
        if (status != TUTTI_OK) return status;
    }
    words->counts[index]++;
    return TUTTI_OK;
}

void word_counts_free(struct word_counts *words)
{
    vocabulary_free(&words->words);
    free(words->counts);
    *words = (struct word_counts) { 0 };
}

void learned_free(struct learned *learned)
{
    vocabulary_free(&learned->tokens);
    free(learned->merges);
    *learned = (struct learned) { 0 };
}

/* ----------------------------------------------------------------------------------------------------- the pairs ----
 */

static size_t slot_of(const struct learner *learner, int32_t left, int32_t right)
{
    const uint64_t key = ((uint64_t)(uint32_t)left << 32 | (uint32_t)right) * 0x9E3779B97F4A7C15u;
    size_t slot = (size_t)(key >> 32) & (learner->slots - 1);
    while (learner->pairs[slot].left >= 0 && (learner->pairs[slot].left != left || learner->pairs[slot].right != right))
        slot = (slot + 1) & (learner->slots - 1);
    return slot;
}

/* More slots, which moves all pairs: only between merges, when no slot is touched. */
static tutti_status make_slots(struct learner *learner, size_t count)
{
    struct pair *old = learner->pairs;
    const size_t old_slots = learner->slots;
    learner->pairs = memory_new(count, sizeof(*learner->pairs));
    if (!learner->pairs) {
        learner->pairs = old;
        return TUTTI_NO_MEMORY;
    }
    learner->slots = count;
    for (size_t i = 0; i < count; i++) learner->pairs[i].left = -1;
    for (size_t i = 0; i < old_slots; i++)
        if (old[i].left >= 0) learner->pairs[slot_of(learner, old[i].left, old[i].right)] = old[i];
    for (size_t i = 0; i < learner->touched_count; i++) {
        const struct pair *pair = &old[learner->touched[i]];
        learner->touched[i] = slot_of(learner, pair->left, pair->right);
    }
    free(old);
    return TUTTI_OK;
}

/* Changes the count of a pair. word: where it is new; -1: where it is gone. */
static tutti_status change(struct learner *learner, int32_t left, int32_t right, int64_t by, int32_t word)
{
    tutti_status status = learner->used * 2 < learner->slots ? TUTTI_OK : make_slots(learner, learner->slots * 2);
    if (status != TUTTI_OK) return status;
    const size_t slot = slot_of(learner, left, right);
    struct pair *pair = &learner->pairs[slot];
    if (pair->left < 0) {
        *pair = (struct pair) { .left = left, .right = right };
        learner->used++;
    }
    pair->count += by;
    if (word < 0 || (pair->found.size && pair->found.data[pair->found.size - 1] == word)) return TUTTI_OK;
    if (pair->found.size == 0) {
        status = memory_grow((void **)&learner->touched, &learner->touched_capacity, learner->touched_count + 1,
            sizeof(*learner->touched));
        if (status != TUTTI_OK) return status;
        learner->touched[learner->touched_count++] = slot;
    }
    id_list_append(&pair->found, word);
    return pair->found.failed ? TUTTI_NO_MEMORY : TUTTI_OK;
}

/* ----------------------------------------------------------------------------------------------------- the queue ----
 */

/* The more frequent pair is first, else the one of older tokens. */
static bool is_before(const struct queued *a, const struct queued *b)
{
    if (a->count != b->count) return a->count > b->count;
    return a->left != b->left ? a->left < b->left : a->right < b->right;
}

static tutti_status push(struct learner *learner, struct queued item)
{
    const tutti_status status = memory_grow(
        (void **)&learner->queue, &learner->queue_capacity, learner->queue_count + 1, sizeof(*learner->queue));
    if (status != TUTTI_OK) {
        id_list_free(&item.words);
        return status;
    }
    size_t place = learner->queue_count++;
    for (; place > 0 && is_before(&item, &learner->queue[(place - 1) / 2]); place = (place - 1) / 2)
        learner->queue[place] = learner->queue[(place - 1) / 2];
    learner->queue[place] = item;
    return TUTTI_OK;
}

static struct queued pop(struct learner *learner)
{
    const struct queued top = learner->queue[0], last = learner->queue[--learner->queue_count];
    size_t place = 0;
    for (size_t child; (child = 2 * place + 1) < learner->queue_count; place = child) {
        if (child + 1 < learner->queue_count && is_before(&learner->queue[child + 1], &learner->queue[child])) child++;
        if (!is_before(&learner->queue[child], &last)) break;
        learner->queue[place] = learner->queue[child];
    }
    learner->queue[place] = last;
    return top;
}

/* Queues the pairs that were found in words since the last call. */
static tutti_status queue_touched(struct learner *learner)
{
    tutti_status status = TUTTI_OK;
    for (size_t i = 0; i < learner->touched_count; i++) {
        struct pair *pair = &learner->pairs[learner->touched[i]];
        const struct queued item = { pair->count, pair->left, pair->right, pair->found };
        pair->found = (struct id_list) { 0 };
        if (status == TUTTI_OK && item.count > 0)
            status = push(learner, item);
        else
            free(item.words.data);
    }
    learner->touched_count = 0;
    return status;
}

/* ----------------------------------------------------------------------------------------------------- the words ----
 */

static tutti_status split_word(struct learner *learner, int32_t word, const char *prefix)
{
    size_t size;
    const char *text = vocabulary_text(&learner->words->words, word, &size);
    const struct vocabulary *tokens = &learner->learned->tokens;
    learner->begins[word] = learner->symbol_count;
    for (size_t at = 0; at < size;) {
        const size_t bytes = utf8_size(text[at]), extra = prefix && at > 0 ? strlen(prefix) : 0;
        char token[32];
        if (extra > sizeof(token) - 4) return fail(TUTTI_INVALID, "the prefix \"%s\" is too long", prefix);
        if (extra) memcpy(token, prefix, extra);
        memcpy(token + extra, text + at, bytes);
        at += bytes;
        const int32_t id = vocabulary_find(tokens, token, extra + bytes);
        if (id < 0) continue;
        const tutti_status status = memory_grow((void **)&learner->symbols, &learner->symbol_capacity,
            learner->symbol_count + 1, sizeof(*learner->symbols));
        if (status != TUTTI_OK) return status;
        learner->symbols[learner->symbol_count++] = id;
    }
    learner->sizes[word] = learner->symbol_count - learner->begins[word];
    return TUTTI_OK;
}

static tutti_status split_words(struct learner *learner, const char *prefix)
{
    const size_t count = learner->words->words.size;
    learner->begins = memory_new(count + 1, sizeof(*learner->begins));
    learner->sizes = memory_new(count + 1, sizeof(*learner->sizes));
    if (!learner->begins || !learner->sizes) return TUTTI_NO_MEMORY;
    tutti_status status = make_slots(learner, 1 << 12);
    for (size_t word = 0; word < count && status == TUTTI_OK; word++) {
        status = split_word(learner, (int32_t)word, prefix);
        if (status != TUTTI_OK) return status;
        const int32_t *symbols = learner->symbols + learner->begins[word];
        for (size_t i = 0; i + 1 < learner->sizes[word] && status == TUTTI_OK; i++)
            status = change(learner, symbols[i], symbols[i + 1], learner->words->counts[word], (int32_t)word);
    }
    return status == TUTTI_OK ? queue_touched(learner) : status;
}

/* Merges a pair wherever it is in a word, and counts the pairs that this ends and makes. */
static tutti_status merge_in_word(struct learner *learner, const struct queued *top, int32_t made, int32_t word)
{
    int32_t *symbols = learner->symbols + learner->begins[word];
    size_t count = learner->sizes[word];
    const int64_t times = learner->words->counts[word];
    tutti_status status = TUTTI_OK;
    for (size_t i = 0; i + 1 < count; i++) {
        if (symbols[i] != top->left || symbols[i + 1] != top->right) continue;
        symbols[i] = made;
        memmove(symbols + i + 1, symbols + i + 2, (count - i - 2) * sizeof(*symbols));
        count--;
        if (i > 0) {
            TRY(change(learner, symbols[i - 1], top->left, -times, -1));
            TRY(change(learner, symbols[i - 1], made, times, word));
        }
        if (i + 1 < count) {
            TRY(change(learner, top->right, symbols[i + 1], -times, -1));
            TRY(change(learner, made, symbols[i + 1], times, word));
        }
    }
done:
    learner->sizes[word] = count;
    return status;
}

/* The token of a pair, which may be there already, of another one. */
static tutti_status token_of_pair(struct learner *learner, const struct queued *top, const char *prefix, int32_t *made)
{
    struct vocabulary *tokens = &learner->learned->tokens;
    size_t left_size, right_size;
    const char *left = vocabulary_text(tokens, top->left, &left_size);
    const char *right = vocabulary_text(tokens, top->right, &right_size);
    const size_t cut =
        prefix && right_size >= strlen(prefix) && !memcmp(right, prefix, strlen(prefix)) ? strlen(prefix) : 0;
    struct byte_list text = { 0 };
    byte_list_append(&text, left, left_size);
    byte_list_append(&text, right + cut, right_size - cut);
    tutti_status status = text.failed ? TUTTI_NO_MEMORY : TUTTI_OK;
    if (status == TUTTI_OK) *made = vocabulary_find(tokens, text.data, text.size);
    if (status == TUTTI_OK && *made < 0) {
        *made = (int32_t)tokens->size;
        status = vocabulary_add(tokens, text.data, text.size, *made);
    }
    byte_list_free(&text);
    return status;
}

static tutti_status merge_pair(struct learner *learner, const struct queued *top, const char *prefix)
{
    struct learned *learned = learner->learned;
    int32_t made;
    tutti_status status = token_of_pair(learner, top, prefix, &made);
    if (status == TUTTI_OK)
        status =
            memory_grow((void **)&learned->merges, &learned->capacity, learned->count + 1, sizeof(*learned->merges));
    if (status != TUTTI_OK) return status;
    learned->merges[learned->count++] = (struct learned_merge) { top->left, top->right };
    for (size_t i = 0; i < top->words.size && status == TUTTI_OK; i++)
        status = merge_in_word(learner, top, made, top->words.data[i]);
    return status == TUTTI_OK ? queue_touched(learner) : status;
}

static void learner_free(struct learner *learner)
{
    for (size_t i = 0; i < learner->slots; i++) free(learner->pairs[i].found.data);
    for (size_t i = 0; i < learner->queue_count; i++) free(learner->queue[i].words.data);
    free(learner->symbols);
    free(learner->begins);
    free(learner->sizes);
    free(learner->pairs);
    free(learner->touched);
    free(learner->queue);
}

tutti_status learn_merges(
    struct learned *learned, const struct word_counts *words, int64_t most, int64_t least, const char *prefix)
{
    struct learner learner = { .learned = learned, .words = words };
    tutti_status status = split_words(&learner, prefix);
    while (status == TUTTI_OK && (int64_t)learned->tokens.count < most && learner.queue_count > 0) {
        struct queued top = pop(&learner);
        const int64_t now = learner.pairs[slot_of(&learner, top.left, top.right)].count;
        if (now != top.count) { /* it has changed since it was queued */
            top.count = now;
            status = push(&learner, top);
            continue;
        }
        if (now < 1 || now < least) {
            free(top.words.data);
            break;
        }
        status = merge_pair(&learner, &top, prefix);
        free(top.words.data);
    }
    learner_free(&learner);
    return status;
}
