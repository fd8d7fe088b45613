/* Words become tokens one by one, so that it is known which token each begins with, as transformers' token
 * classification has it (is_split_into_words). */
#include "data/text/texts.h"

#include "base/memory.h"
#include "base/status.h"

#include <stdlib.h>
#include <string.h>

static tutti_status encode(const tutti_tokenizer *tokenizer, const char *text, bool special, tutti_encoding *encoding)
{
    const tutti_encode_options options = { .size = sizeof options, .no_special = !special };
    return tutti_tokenizer_encode(tokenizer, text, (int64_t)strlen(text), &options, encoding);
}

static tutti_status copy(const int32_t *ids, int64_t count, int32_t **made, int64_t *made_count)
{
    *made = memory_new((size_t)count + 1, sizeof **made);
    if (!*made) return TUTTI_NO_MEMORY;
    if (count > 0) memcpy(*made, ids, (size_t)count * sizeof **made);
    *made_count = count;
    return TUTTI_OK;
}

static bool are_equal(const int32_t *a, const int32_t *b, int64_t count)
{
    return count == 0 || !memcmp(a, b, (size_t)count * sizeof *a);
}

/* Finds a word between the tokens around it. */
static tutti_status find_around(struct text_tags *tags, const tutti_tokenizer *tokenizer)
{
    tutti_encoding plain = { 0 }, whole = { 0 };
    int64_t at = 0;
    tutti_status status = TUTTI_OK;
    TRY(encode(tokenizer, "a", false, &plain));
    TRY(encode(tokenizer, "a", true, &whole));
    const int64_t rest = whole.count - plain.count;
    while (at <= rest && !are_equal(whole.ids + at, plain.ids, plain.count)) at++;
    if (plain.count == 0 || at > rest)
        FAIL(TUTTI_UNSUPPORTED, "the tokens around a text change with it: words cannot have tags by this tokenizer");
    TRY(copy(whole.ids, at, &tags->before, &tags->before_count));
    TRY(copy(whole.ids + at + plain.count, rest - at, &tags->after, &tags->after_count));
done:
    tutti_encoding_free(&plain);
    tutti_encoding_free(&whole);
    return status;
}

/* Whether "a b" is encoded as "a" and then this. */
static tutti_status follows(const tutti_tokenizer *tokenizer, const char *second, bool *equal)
{
    tutti_encoding both = { 0 }, a = { 0 }, b = { 0 };
    tutti_status status = TUTTI_OK;
    *equal = false;
    TRY(encode(tokenizer, "a b", false, &both));
    TRY(encode(tokenizer, "a", false, &a));
    TRY(encode(tokenizer, second, false, &b));
    *equal = both.count == a.count + b.count && are_equal(both.ids, a.ids, a.count) &&
        are_equal(both.ids + a.count, b.ids, b.count);
done:
    tutti_encoding_free(&both);
    tutti_encoding_free(&a);
    tutti_encoding_free(&b);
    return status;
}

/* Bytes and characters have a token for the blank. */
static tutti_status find_blank(struct text_tags *tags, const tutti_tokenizer *tokenizer)
{
    tutti_encoding blank = { 0 }, both = { 0 };
    tutti_status status = TUTTI_OK;
    TRY(encode(tokenizer, " ", false, &blank));
    TRY(encode(tokenizer, " b", false, &both));
    tags->blank_alone = blank.count == 1 && both.count > 1 && blank.ids[0] == both.ids[0];
done:
    tutti_encoding_free(&blank);
    tutti_encoding_free(&both);
    return status;
}

tutti_status words_begin(struct text_tags *tags, const tutti_tokenizer *tokenizer)
{
    bool plain = false, spaced = false;
    tutti_status status = TUTTI_OK;
    TRY(find_around(tags, tokenizer));
    TRY(follows(tokenizer, "b", &plain));
    TRY(follows(tokenizer, " b", &spaced));
    tags->spaced = spaced && !plain;
    if (tags->spaced) TRY(find_blank(tags, tokenizer));
done:
    return status;
}

/* ---------------------------------------------------------------------------------------------- a sentence ---- */

struct pieces {
    int32_t *ids, *words;
    size_t count, room, words_room;
};

static tutti_status append(struct pieces *pieces, const int32_t *ids, int64_t count, int64_t first, int32_t word)
{
    const size_t needed = pieces->count + (size_t)count;
    tutti_status status = memory_grow((void **)&pieces->ids, &pieces->room, needed + 1, sizeof *pieces->ids);
    if (status == TUTTI_OK)
        status = memory_grow((void **)&pieces->words, &pieces->words_room, needed + 1, sizeof *pieces->words);
    if (status != TUTTI_OK) return status;
    for (int64_t i = 0; i < count; i++) {
        pieces->ids[pieces->count] = ids[i];
        pieces->words[pieces->count++] = i == first ? word : 0;
    }
    return TUTTI_OK;
}

/* Encodes a word, which is followed by a NUL; the byte before it is the NUL of another word, or none. */
static tutti_status append_word(const struct text_tags *tags, const tutti_tokenizer *tokenizer, const char *word,
    size_t bytes, int32_t number, struct pieces *pieces)
{
    tutti_encoding encoding = { 0 };
    const tutti_encode_options options = { .size = sizeof options, .no_special = true };
    const bool spaced = tags->spaced && number > 1;
    char *text = spaced ? memory_format(" %.*s", (int)bytes, word) : NULL;
    if (spaced && !text) return TUTTI_NO_MEMORY;
    tutti_status status =
        tutti_tokenizer_encode(tokenizer, text ? text : word, (int64_t)(bytes + spaced), &options, &encoding);
    const int64_t first = spaced && tags->blank_alone && encoding.count > 1 ? 1 : 0;
    if (status == TUTTI_OK) status = append(pieces, encoding.ids, encoding.count, first, number);
    tutti_encoding_free(&encoding);
    free(text);
    return status;
}

tutti_status words_encode(const struct text_tags *tags, const tutti_tokenizer *tokenizer, const char *words,
    size_t bytes, int64_t most, tutti_encoding *encoding, int64_t *whole)
{
    struct pieces pieces = { NULL };
    const size_t around = (size_t)(tags->before_count + tags->after_count);
    tutti_status status = TUTTI_OK;
    int32_t number = 0;
    if ((size_t)most < around)
        return fail(TUTTI_INVALID, "--length %lld: the tokenizer's special tokens are %zu", (long long)most, around);
    TRY(append(&pieces, tags->before, tags->before_count, -1, 0));
    for (size_t at = 0; at < bytes; at += strlen(words + at) + 1)
        TRY(append_word(tags, tokenizer, words + at, strlen(words + at), ++number, &pieces));
    *whole = (int64_t)pieces.count + tags->after_count;
    if (*whole > most) pieces.count = (size_t)(most - tags->after_count);
    TRY(append(&pieces, tags->after, tags->after_count, -1, 0));
    *encoding = (tutti_encoding) { .count = (int64_t)pieces.count, .ids = pieces.ids, .types = pieces.words };
    return TUTTI_OK;
done:
    free(pieces.ids);
    free(pieces.words);
    return status;
}

void words_set_tokens(struct texts *texts, int64_t sample, const tutti_encoding *encoding)
{
    struct text_tags *tags = &texts->targets.tags;
    const struct text_sentence *sentence = &tags->sentences[sample];
    struct text_word *words = tags->words + sentence->begins;
    const size_t count = sentence->ends - sentence->begins;
    for (int64_t i = 0; i < encoding->count; i++)
        if (encoding->types[i] > 0 && (size_t)encoding->types[i] <= count)
            words[encoding->types[i] - 1].token = (int32_t)i;
    for (size_t i = 0; i < count; i++) tags->cut_words += words[i].token < 0;
}
