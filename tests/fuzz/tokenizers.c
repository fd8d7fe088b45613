/* Tokenizers: a tokenizer.json, and texts that it encodes and decodes. The bytes up to the first NUL are the JSON, the
 * others the text; without a JSON, a tokenizer is learned from the text, of the kind that the first byte says. */
#include "base/status.h"
#include "tests/fuzz/target.h"
#include "tutti_text.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerInitialize(int *count, char ***words)
{
    (void)count;
    (void)words;
    return 0;
}

/* Ids of a text are those of the vocabulary, and no more than asked for; all of them can be decoded. */
static void encode(const tutti_tokenizer *tokenizer, const char *text, size_t size, const tutti_encode_options *options)
{
    tutti_encoding encoding = { 0 };
    if (tutti_tokenizer_encode(tokenizer, text, (int64_t)size, options, &encoding) != TUTTI_OK) {
        check_message();
        return;
    }
    if (options->most && encoding.count > options->most) abort();
    for (int64_t i = 0; i < encoding.count; i++)
        if (encoding.ids[i] < 0 || encoding.ids[i] >= tutti_tokenizer_size(tokenizer)) abort();
    for (int keep = 0; keep < 2; keep++) {
        char *decoded = tutti_tokenizer_decode(tokenizer, encoding.ids, encoding.count, keep);
        if (!decoded) check_message();
        free(decoded);
    }
    tutti_encoding_free(&encoding);
}

/* What is saved can be opened, and is saved the same. */
static void save(const tutti_tokenizer *tokenizer)
{
    char *json = tutti_tokenizer_json(tokenizer);
    if (!json) abort();
    tutti_tokenizer *again = tutti_tokenizer_parse(json);
    if (!again) abort();
    char *same = tutti_tokenizer_json(again);
    if (!same || strcmp(json, same) != 0) abort();
    free(same);
    free(json);
    tutti_tokenizer_close(again);
}

static tutti_tokenizer *learn(const uint8_t *data, size_t size)
{
    static const char *const kinds[] = { "bpe", "wordpiece", "characters", "words" };
    const tutti_tokenizer_options options = {
        .kind = kinds[data[0] & 3], .tokens = 400, .least = 1 + (data[0] >> 2 & 1), .lowercase = data[0] >> 3 & 1
    };
    const char *const texts[] = { (const char *)data + 1 };
    return tutti_tokenizer_train(texts, (const int64_t[]) { (int64_t)size - 1 }, 1, &options);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint8_t *end = size ? memchr(data, '\0', size) : NULL;
    if (!end) return 0;
    const bool learns = end == data;
    const char *text = (const char *)end + 1;
    const size_t bytes = size - (size_t)(end + 1 - data), half = bytes / 2;
    if (learns && bytes == 0) return 0;
    tutti_tokenizer *tokenizer = learns ? learn(end + 1, bytes) : tutti_tokenizer_parse((const char *)data);
    if (!tokenizer) {
        check_message();
        return 0;
    }
    encode(tokenizer, text, bytes, &(tutti_encode_options) { .size = sizeof(tutti_encode_options) });
    encode(tokenizer, text, half,
        &(tutti_encode_options) { .pair = text + half, .pair_bytes = (int64_t)(bytes - half), .most = 5 });
    encode(tokenizer, text, bytes, &(tutti_encode_options) { .no_special = true, .most = 1 });
    save(tokenizer);
    tutti_tokenizer_close(tokenizer);
    return 0;
}
