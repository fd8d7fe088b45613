/* Tokenizers learned from texts: what divides a text is as in files of their kind, and the vocabulary is learned. */
#include "base/options.h"
#include "base/text.h"
#include "text/byte_level.h"
#include "text/learn.h"
#include "text/tokenizer.h"
#include "text/utf8.h"

#include <stdlib.h>

static const char prefix[] = "##"; /* of WordPiece's tokens that continue a word */

struct training_kind {
    const char *name;
    int64_t tokens, least;
    json_t *(*parts)(const tutti_tokenizer_options *options); /* all but model and added tokens */
    tutti_status (*learn)(
        struct learned *learned, const struct word_counts *words, const tutti_tokenizer_options *options);
    json_t *(*model)(void); /* without vocabulary and merges */
};

/* --------------------------------------------------------------------------------------------------- characters ----
 */

/* Characters with how often they occur. */
struct character_count {
    uint32_t code;
    int64_t count;
};

static int by_code(const void *a, const void *b)
{
    const uint32_t first = ((const struct character_count *)a)->code,
                   second = ((const struct character_count *)b)->code;
    return (first > second) - (first < second);
}

static int by_count(const void *a, const void *b)
{
    const int64_t first = ((const struct character_count *)a)->count,
                  second = ((const struct character_count *)b)->count;
    return first != second ? (first < second ? 1 : -1) : by_code(a, b);
}

/* Adds tokens of the most frequent characters, in their order; with prefix, too, if there is one. */
static tutti_status add_characters(
    struct learned *learned, const struct word_counts *words, size_t most, int64_t least, const char *with)
{
    struct character_count *counts = memory_new(0x110000, sizeof(*counts));
    if (!counts) return TUTTI_NO_MEMORY;
    for (size_t word = 0; word < words->words.size; word++) {
        size_t size;
        const char *text = vocabulary_text(&words->words, (int64_t)word, &size);
        for (size_t at = 0; at < size;) counts[utf8_next(text, &at)].count += words->counts[word];
    }
    size_t kept = 0;
    for (uint32_t code = 1; code < 0x110000; code++) /* JSON's keys cannot have NUL */
        if (counts[code].count >= least) counts[kept++] = (struct character_count) { code, counts[code].count };
    qsort(counts, kept, sizeof(*counts), by_count);
    if (kept > most) kept = most;
    qsort(counts, kept, sizeof(*counts), by_code);
    tutti_status status = TUTTI_OK;
    for (size_t i = 0; i < (with ? 2 : 1) * kept && status == TUTTI_OK; i++) {
        char token[16];
        const size_t extra = i < kept ? 0 : strlen(with);
        if (extra) memcpy(token, with, extra);
        const size_t size = extra + utf8_write(counts[i % kept].code, token + extra);
        if (vocabulary_find(&learned->tokens, token, size) < 0)
            status = vocabulary_add(&learned->tokens, token, size, (int64_t)learned->tokens.size);
    }
    free(counts);
    return status;
}

static json_t *character_parts(const tutti_tokenizer_options *options)
{
    json_t *lower = options->lowercase ? json_pack("{s:s}", "type", "Lowercase") : json_null();
    return json_pack(
        "{s:o, s:n, s:n, s:{s:s}}", "normalizer", lower, "pre_tokenizer", "post_processor", "decoder", "type", "Fuse");
}

static tutti_status learn_characters(
    struct learned *learned, const struct word_counts *words, const tutti_tokenizer_options *options)
{
    const int64_t most = options->tokens - (int64_t)learned->tokens.count;
    return add_characters(learned, words, most > 0 ? (size_t)most : 0, options->least, NULL);
}

static json_t *bpe_model(void)
{
    return json_pack("{s:s, s:n, s:n, s:n, s:n, s:b, s:b, s:b}", "type", "BPE", "dropout", "unk_token",
        "continuing_subword_prefix", "end_of_word_suffix", "fuse_unk", 0, "byte_fallback", 0, "ignore_merges", 0);
}

/* --------------------------------------------------------------------------------------------------- byte level ----
 */

static json_t *byte_parts(const tutti_tokenizer_options *options)
{
    json_t *lower = options->lowercase ? json_pack("{s:s}", "type", "Lowercase") : json_null();
    return json_pack("{s:o, s:{s:s, s:b, s:b, s:b}, s:n, s:{s:s, s:b, s:b, s:b}}", "normalizer", lower, "pre_tokenizer",
        "type", "ByteLevel", "add_prefix_space", 0, "trim_offsets", 1, "use_regex", 1, "post_processor", "decoder",
        "type", "ByteLevel", "add_prefix_space", 0, "trim_offsets", 1, "use_regex", 1);
}

static tutti_status learn_bytes(
    struct learned *learned, const struct word_counts *words, const tutti_tokenizer_options *options)
{
    tutti_status status = TUTTI_OK;
    for (uint32_t code = 0; code < 0x144 && status == TUTTI_OK; code++) {
        char token[4];
        const size_t size = utf8_write(code, token);
        if (character_byte(code) >= 0 && vocabulary_find(&learned->tokens, token, size) < 0)
            status = vocabulary_add(&learned->tokens, token, size, (int64_t)learned->tokens.size);
    }
    return status == TUTTI_OK ? learn_merges(learned, words, options->tokens, options->least, NULL) : status;
}

/* ---------------------------------------------------------------------------------------------------- WordPiece ----
 */

static json_t *wordpiece_parts(const tutti_tokenizer_options *options)
{
    return json_pack("{s:{s:s, s:b, s:b, s:n, s:b}, s:{s:s}, s:n, s:{s:s, s:s, s:b}}", "normalizer", "type",
        "BertNormalizer", "clean_text", 1, "handle_chinese_chars", 1, "strip_accents", "lowercase", options->lowercase,
        "pre_tokenizer", "type", "BertPreTokenizer", "post_processor", "decoder", "type", "WordPiece", "prefix", prefix,
        "cleanup", 1);
}

static tutti_status learn_wordpiece(
    struct learned *learned, const struct word_counts *words, const tutti_tokenizer_options *options)
{
    tutti_status status = TUTTI_OK;
    if (vocabulary_find(&learned->tokens, "[UNK]", 5) < 0)
        status = vocabulary_add(&learned->tokens, "[UNK]", 5, (int64_t)learned->tokens.size);
    const int64_t room = (options->tokens - (int64_t)learned->tokens.count) / 2;
    if (status == TUTTI_OK)
        status = add_characters(learned, words, room > 0 ? (size_t)room : 0, options->least, prefix);
    return status == TUTTI_OK ? learn_merges(learned, words, options->tokens, options->least, prefix) : status;
}

static json_t *wordpiece_model(void)
{
    return json_pack("{s:s, s:s, s:s, s:i}", "type", "WordPiece", "unk_token", "[UNK]", "continuing_subword_prefix",
        prefix, "max_input_chars_per_word", 100);
}

/* -------------------------------------------------------------------------------------------------------- words ----
 */

struct word_rank {
    int64_t count;
    int64_t word;
};

/* Frequent words first, and of equally frequent ones the one that occurs first. */
static int by_rank(const void *a, const void *b)
{
    const struct word_rank *first = a, *second = b;
    if (first->count != second->count) return first->count < second->count ? 1 : -1;
    return (first->word > second->word) - (first->word < second->word);
}

static json_t *word_parts(const tutti_tokenizer_options *options)
{
    return json_pack("{s:{s:s, s:b, s:b, s:n, s:b}, s:{s:s}, s:n, s:n}", "normalizer", "type", "BertNormalizer",
        "clean_text", 1, "handle_chinese_chars", 1, "strip_accents", "lowercase", options->lowercase, "pre_tokenizer",
        "type", "BertPreTokenizer", "post_processor", "decoder");
}

static tutti_status learn_words(
    struct learned *learned, const struct word_counts *words, const tutti_tokenizer_options *options)
{
    tutti_status status = TUTTI_OK;
    struct word_rank *ranks = memory_new(words->words.size + 1, sizeof(*ranks));
    size_t kept = 0;
    if (!ranks) return TUTTI_NO_MEMORY;
    if (vocabulary_find(&learned->tokens, "[UNK]", 5) < 0)
        status = vocabulary_add(&learned->tokens, "[UNK]", 5, (int64_t)learned->tokens.size);
    for (size_t word = 0; word < words->words.size; word++)
        if (words->counts[word] >= options->least)
            ranks[kept++] = (struct word_rank) { words->counts[word], (int64_t)word };
    qsort(ranks, kept, sizeof(*ranks), by_rank);
    for (size_t i = 0; i < kept && status == TUTTI_OK && (int64_t)learned->tokens.count < options->tokens; i++) {
        size_t size;
        const char *text = vocabulary_text(&words->words, ranks[i].word, &size);
        if (memchr(text, '\0', size)) continue; /* JSON's keys cannot have it */
        if (vocabulary_find(&learned->tokens, text, size) < 0)
            status = vocabulary_add(&learned->tokens, text, size, (int64_t)learned->tokens.size);
    }
    free(ranks);
    return status;
}

static json_t *word_model(void)
{
    return json_pack("{s:s, s:s}", "type", "WordLevel", "unk_token", "[UNK]");
}

static const struct training_kind kinds[] = {
    { "bpe", 8000, 2, byte_parts, learn_bytes, bpe_model },
    { "wordpiece", 8000, 2, wordpiece_parts, learn_wordpiece, wordpiece_model },
    { "characters", VOCABULARY_MOST, 1, character_parts, learn_characters, bpe_model },
    { "words", 32000, 2, word_parts, learn_words, word_model },
};

/* ------------------------------------------------------------------------------------------------------------------ */

static tutti_status count_words(
    struct word_counts *words, const struct division *division, const tutti_tokenizer *tokenizer)
{
    tutti_status status = TUTTI_OK;
    const bool characters = tokenizer->dividers.count == 0; /* whole texts: only their characters are counted */
    for (size_t i = 0; i < division->pieces.size && status == TUTTI_OK; i++) {
        const char *text = division->text.data + division->pieces.data[i].begin;
        const size_t size = division->pieces.data[i].end - division->pieces.data[i].begin;
        for (size_t at = 0; at < size && status == TUTTI_OK;) {
            const size_t bytes = characters ? utf8_size(text[at]) : size;
            status = word_counts_add(words, text + at, bytes);
            at += bytes;
        }
    }
    return status;
}

/* tokenizer: with normalizers and pre-tokenizers alone. */
static tutti_status read_text(
    struct word_counts *words, tutti_tokenizer *tokenizer, struct workspace *work, const char *text, size_t size)
{
    if (size > INT32_MAX / 8) return fail(TUTTI_INVALID, "a text of %zu bytes is too long: give it in lines", size);
    work->normal.text.size = 0;
    utf8_repair(text, size, &work->normal.text);
    tutti_status status = work->normal.text.failed ? TUTTI_NO_MEMORY : TUTTI_OK;
    if (status == TUTTI_OK) status = normalise(&tokenizer->normalisers, work->matcher, &work->normal);
    work->division.text.size = 0;
    byte_list_append(&work->division.text, work->normal.text.data, work->normal.text.size);
    if (status == TUTTI_OK) status = divide(&tokenizer->dividers, work->matcher, &work->division, true);
    return status == TUTTI_OK ? count_words(words, &work->division, tokenizer) : status;
}

static tutti_status read_texts(
    struct word_counts *words, const json_t *parts, const char *const *texts, const int64_t *bytes, int64_t count)
{
    tutti_tokenizer tokenizer = { .free = NULL };
    struct workspace *work = memory_new(1, sizeof(*work));
    if (!work) return TUTTI_NO_MEMORY;
    tutti_status status = pattern_matcher_new(&work->matcher);
    if (status == TUTTI_OK) status = normalise_read(&tokenizer.normalisers, field_get(parts, "normalizer"));
    if (status == TUTTI_OK) status = divide_read(&tokenizer.dividers, field_get(parts, "pre_tokenizer"));
    for (int64_t i = 0; i < count && status == TUTTI_OK; i++) {
        if (!texts[i] || (bytes && bytes[i] < 0))
            status = fail(TUTTI_INVALID, "text %lld to learn a tokenizer from is missing", (long long)i);
        else
            status = read_text(words, &tokenizer, work, texts[i], bytes ? (size_t)bytes[i] : strlen(texts[i]));
    }
    normalise_free(&tokenizer.normalisers);
    divide_free(&tokenizer.dividers);
    workspace_free(work);
    return status;
}

static tutti_status add_special(struct learned *learned, const tutti_tokenizer_options *options, json_t *added)
{
    for (int64_t i = 0; i < options->special_count; i++) {
        const char *token = options->special[i];
        if (!token || !*token || !text_is_utf8(token))
            return fail(TUTTI_INVALID, "special token %lld is empty or no UTF-8", (long long)i);
        const tutti_status status = vocabulary_add(&learned->tokens, token, strlen(token), i);
        if (status != TUTTI_OK) return status;
        json_array_append_new(added,
            json_pack("{s:I, s:s, s:b, s:b, s:b, s:b, s:b}", "id", (json_int_t)i, "content", token, "single_word", 0,
                "lstrip", 0, "rstrip", 0, "normalized", 0, "special", 1));
    }
    return TUTTI_OK;
}

/* Where a pair was merged twice, the last time counts, as where the list is read. */
static json_t *list_merges(const struct learned *learned)
{
    json_t *list = json_array();
    for (size_t i = 0; i < learned->count; i++)
        json_array_append_new(list,
            json_pack("[s, s]", vocabulary_text(&learned->tokens, learned->merges[i].left, NULL),
                vocabulary_text(&learned->tokens, learned->merges[i].right, NULL)));
    return list;
}

static tutti_status make(tutti_tokenizer **tokenizer, const struct training_kind *kind, const struct learned *learned,
    json_t *parts, json_t *added)
{
    json_t *model = kind->model(), *vocabulary = json_object();
    for (size_t id = 0; id < learned->tokens.size; id++)
        json_object_set_new(
            vocabulary, vocabulary_text(&learned->tokens, (int64_t)id, NULL), json_integer((json_int_t)id));
    if (kind->model == bpe_model && vocabulary_find(&learned->tokens, "<unk>", 5) >= 0)
        json_object_set_new(model, "unk_token", json_string("<unk>"));
    json_object_set_new(model, "vocab", vocabulary);
    if (kind->model == bpe_model) json_object_set_new(model, "merges", list_merges(learned));
    json_t *json = json_pack("{s:s, s:n, s:n, s:O}", "version", "1.0", "truncation", "padding", "added_tokens", added);
    if (!json || !model || json_object_update(json, parts) != 0 || json_object_set(json, "model", model) != 0) {
        json_decref(json);
        json_decref(model);
        return fail(TUTTI_NO_MEMORY, "no memory on the host for a tokenizer");
    }
    const tutti_status status = tokenizer_from_json(tokenizer, json);
    json_decref(json);
    json_decref(model);
    return status;
}

static const struct training_kind *find_kind(const char *name)
{
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
        if (!strcmp(name ? name : "bpe", kinds[i].name)) return &kinds[i];
    fail(TUTTI_INVALID, "the kind of a tokenizer is \"%s\": use bpe, wordpiece, characters or words",
        text_printable(name).text);
    return NULL;
}

tutti_tokenizer *tutti_tokenizer_train(
    const char *const *texts, const int64_t *bytes, int64_t count, const tutti_tokenizer_options *given)
{
    tutti_tokenizer_options options;
    if (OPTIONS_READ(&options, given, tutti_tokenizer_options) != TUTTI_OK) return NULL;
    const struct training_kind *kind = find_kind(options.kind);
    if (!kind) return NULL;
    if (options.tokens < 0 || options.tokens > VOCABULARY_MOST || options.least < 0 || options.special_count < 0 ||
        (options.special_count && !options.special) || count < 0 || (count && !texts)) {
        fail(TUTTI_INVALID, "a tokenizer is learned from texts, and has at most %d tokens", VOCABULARY_MOST);
        return NULL;
    }
    if (!options.tokens) options.tokens = kind->tokens;
    if (!options.least) options.least = kind->least;
    struct word_counts words = { 0 };
    struct learned learned = { 0 };
    tutti_tokenizer *tokenizer = NULL;
    json_t *parts = kind->parts(&options), *added = json_array();
    tutti_status status = parts && added ? TUTTI_OK : fail(TUTTI_NO_MEMORY, "no memory on the host for a tokenizer");
    if (status == TUTTI_OK) status = add_special(&learned, &options, added);
    if (status == TUTTI_OK) status = read_texts(&words, parts, texts, bytes, count);
    if (status == TUTTI_OK) status = kind->learn(&learned, &words, &options);
    if (status == TUTTI_OK) status = make(&tokenizer, kind, &learned, parts, added);
    json_decref(parts);
    json_decref(added);
    word_counts_free(&words);
    learned_free(&learned);
    return tokenizer;
}
