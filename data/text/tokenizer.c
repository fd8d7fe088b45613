/* The tokenizer of texts: opened by its name or from a description, or learned from the texts themselves. */
#include "data/text/texts.h"

#include "base/status.h"

#include <string.h>

bool texts_is_learned(const char *given)
{
    static const char *const kinds[] = { "words", "wordpiece", "bpe", "characters" };
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (!strcmp(given, kinds[i])) return true;
    return false;
}

tutti_tokenizer *texts_tokenizer(const char *given)
{
    return *given == '{' ? tutti_tokenizer_parse(given) : tutti_tokenizer_open(given);
}

/* The id of what the vocabulary does not have, by the names that it usually has. */
static int32_t find_unknown(const tutti_tokenizer *tokenizer)
{
    static const char *const names[] = { "[UNK]", "<unk>", "UNK" };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const int32_t id = tutti_tokenizer_id(tokenizer, names[i]);
        if (id >= 0) return id;
    }
    return -1;
}

/* Makes a tokenizer that of the texts; NULL: the last call failed. */
static tutti_status use(struct texts *texts, tutti_tokenizer *tokenizer)
{
    struct token_store *store = &texts->tokens;
    texts->tokenizer = tokenizer;
    if (!tokenizer) return status_context(status_last(), "tokenizer");
    const int64_t size = tutti_tokenizer_size(tokenizer);
    if (size < 1 || size > INT32_MAX) return fail(TUTTI_FORMAT, "the tokenizer has no tokens");
    store->width = size <= 1 << 8 ? 1 : size <= 1 << 16 ? 2 : 4;
    store->unknown = find_unknown(tokenizer);
    texts->collection.info.vocabulary = size;
    if (!texts->tokenizer_json) texts->tokenizer_json = tutti_tokenizer_json(tokenizer);
    if (!texts->tokenizer_json) return status_last() == TUTTI_OK ? TUTTI_NO_MEMORY : status_last();
    return TUTTI_OK;
}

tutti_status texts_choose_tokenizer(struct texts *texts)
{
    const char *given = texts->options->tokenizer;
    if (texts->described) return use(texts, texts_tokenizer(texts->tokenizer_json));
    if (given && !texts_is_learned(given)) return use(texts, texts_tokenizer(given));
    texts->queue.learns = given ? given : "words";
    return TUTTI_OK;
}

tutti_status texts_choose_for_stream(struct texts *texts)
{
    const char *given = texts->options->tokenizer;
    if (texts->tokenizer) return TUTTI_OK;
    if (given)
        return fail(TUTTI_INVALID,
            "--tokenizer %s is learned from texts that have targets, and there are none: learn one by `tutti tokenize "
            "--train TEXT --kind %s --save tokenizer.json`, and name that file",
            given, given);
    texts->queue.learns = NULL;
    return use(texts, texts_tokenizer("bytes"));
}

tutti_status texts_learn(struct texts *texts, const char *const *lines, const int64_t *bytes, int64_t count)
{
    const tutti_tokenizer_options options = { .size = sizeof options, .kind = texts->queue.learns, .lowercase = true };
    texts->queue.learns = NULL;
    return use(texts, tutti_tokenizer_train(lines, bytes, count, &options));
}
