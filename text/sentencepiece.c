/* SentencePiece's models as the JSON of a tokenizer.json that gives the ids of SentencePiece's own encoder. Control
 * tokens such as </s> are found in texts, as transformers' tokenizers do. */
#include "text/sentencepiece.h"
#include "base/base64.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/text.h"
#include "sentencepiece.pb-c.h"

#include <stdlib.h>
#include <string.h>

#define SPACE "\xE2\x96\x81" /* U+2581 stands for a blank */

enum { UNIGRAM = 1, BPE = 2 };
enum { NORMAL = 1, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE };
/* Memory for the messages of a file, in its bytes: a piece of two bytes becomes a message and its pointer. */
enum { TIMES_SIZE = 48, AT_LEAST = 1 << 20 };

struct spm {
    const char *path;
    Sentencepiece__ModelProto *model;
    Sentencepiece__TrainerSpec trainer;
    Sentencepiece__NormalizerSpec normalizer;
    json_t *vocabulary; /* ids of pieces */
    json_int_t unknown; /* its piece */
    bool any_user_defined, any_inner_space;
};

static tutti_status unsupported(const struct spm *spm, const char *what)
{
    return fail(TUTTI_UNSUPPORTED, "%s: %s is not supported: save a tokenizer.json by transformers' AutoTokenizer",
        spm->path, what);
}

static tutti_status add_piece(struct spm *spm, size_t id)
{
    const Sentencepiece__Piece *piece = spm->model->pieces[id];
    const char *text = piece->piece;
    if (!text || !*text || !text_is_utf8(text) || json_object_get(spm->vocabulary, text))
        return fail(TUTTI_FORMAT, "%s: piece %zu is empty, no UTF-8, or is there twice", spm->path, id);
    if (piece->type < NORMAL || piece->type > BYTE || piece->type == UNUSED)
        return unsupported(spm, piece->type == UNUSED ? "a model with unused pieces" : "an unknown type of pieces");
    if (piece->type == UNKNOWN && spm->unknown >= 0)
        return fail(TUTTI_FORMAT, "%s: pieces %lld and %zu are both for what is unknown", spm->path,
            (long long)spm->unknown, id);
    if (piece->type == UNKNOWN) spm->unknown = (json_int_t)id;
    spm->any_user_defined |= piece->type == USER_DEFINED;
    spm->any_inner_space |= piece->type == NORMAL && strstr(text + 1, SPACE) != NULL;
    return json_object_set_new(spm->vocabulary, text, json_integer((json_int_t)id)) == 0
        ? TUTTI_OK
        : fail(TUTTI_NO_MEMORY, "no memory on the host for a tokenizer");
}

static tutti_status check(struct spm *spm)
{
    tutti_status status = TUTTI_OK;
    if (spm->model->n_pieces == 0) return fail(TUTTI_FORMAT, "%s: the model has no pieces", spm->path);
    if (spm->trainer.model_type != UNIGRAM && spm->trainer.model_type != BPE)
        return unsupported(spm, "a model of whole words or characters");
    if (spm->trainer.treat_whitespace_as_suffix) return unsupported(spm, "a model with blanks at the end of words");
    if (!spm->normalizer.escape_whitespaces) return unsupported(spm, "a model that does not replace blanks");
    for (size_t id = 0; id < spm->model->n_pieces; id++) TRY(add_piece(spm, id));
    if (spm->unknown < 0) FAIL(TUTTI_FORMAT, "%s: no piece is for what is unknown", spm->path);
    if (spm->any_user_defined && (spm->normalizer.add_dummy_prefix || spm->normalizer.remove_extra_whitespaces))
        status = unsupported(spm, "a model that has user-defined pieces and changes blanks");
done:
    return status;
}

/* ------------------------------------------------------------------------------------------------------ merges ---- */

struct merge {
    float score;
    json_int_t made, left, right; /* ids */
    size_t left_size;             /* bytes */
};

/* In the order in which SentencePiece merges: by score. The rest makes the order of transformers' converter. */
static int compare_merges(const void *a, const void *b)
{
    const struct merge *x = a, *y = b;
    if (x->score != y->score) return x->score > y->score ? -1 : 1;
    if (x->made != y->made) return x->made < y->made ? -1 : 1;
    if (x->left != y->left) return x->left < y->left ? -1 : 1;
    return (x->right > y->right) - (x->right < y->right);
}

struct merges {
    struct merge *items;
    size_t count, capacity;
};

/* Adds each pair of pieces that makes this one. */
static tutti_status add_merges(const struct spm *spm, size_t id, struct merges *merges)
{
    const char *text = spm->model->pieces[id]->piece;
    const size_t size = strlen(text);
    for (size_t cut = 1; cut < size; cut++) {
        if (((unsigned char)text[cut] & 0xC0) == 0x80) continue; /* within a character */
        const json_t *left = json_object_getn(spm->vocabulary, text, cut),
                     *right = json_object_get(spm->vocabulary, text + cut);
        if (!left || !right) continue;
        const tutti_status status =
            memory_grow((void **)&merges->items, &merges->capacity, merges->count + 1, sizeof(*merges->items));
        if (status != TUTTI_OK) return status;
        merges->items[merges->count++] = (struct merge) { spm->model->pieces[id]->score, (json_int_t)id,
            json_integer_value(left), json_integer_value(right), cut };
    }
    return TUTTI_OK;
}

static tutti_status bpe(const struct spm *spm, json_t **model)
{
    tutti_status status = TUTTI_OK;
    struct merges merges = { 0 };
    json_t *list = json_array();
    for (size_t id = 0; id < spm->model->n_pieces; id++)
        if (spm->model->pieces[id]->type == NORMAL) TRY(add_merges(spm, id, &merges));
    if (merges.count > 0) qsort(merges.items, merges.count, sizeof(*merges.items), compare_merges);
    for (size_t i = 0; i < merges.count; i++) {
        const struct merge *merge = &merges.items[i];
        const char *text = spm->model->pieces[merge->made]->piece;
        json_array_append_new(list, json_pack("[s%, s]", text, merge->left_size, text + merge->left_size));
    }
    *model = json_pack("{s:s, s:n, s:s, s:n, s:n, s:b, s:b, s:b, s:O, s:O}", "type", "BPE", "dropout", "unk_token",
        spm->model->pieces[spm->unknown]->piece, "continuing_subword_prefix", "end_of_word_suffix", "fuse_unk", 1,
        "byte_fallback", spm->trainer.byte_fallback, "ignore_merges", 0, "vocab", spm->vocabulary, "merges", list);
    if (!*model || json_array_size(list) != merges.count)
        FAIL(TUTTI_NO_MEMORY, "no memory on the host for a tokenizer");
done:
    json_decref(list);
    free(merges.items);
    return status;
}

static tutti_status unigram(const struct spm *spm, json_t **model)
{
    json_t *list = json_array();
    for (size_t id = 0; id < spm->model->n_pieces; id++) {
        const Sentencepiece__Piece *piece = spm->model->pieces[id];
        json_array_append_new(list, json_pack("[s, f]", piece->piece, (double)piece->score));
    }
    const bool whole = json_array_size(list) == spm->model->n_pieces;
    *model = json_pack("{s:s, s:I, s:o, s:b}", "type", "Unigram", "unk_id", spm->unknown, "vocab", list,
        "byte_fallback", spm->trainer.byte_fallback);
    return whole && *model ? TUTTI_OK : fail(TUTTI_NO_MEMORY, "no memory on the host for a tokenizer");
}

/* ------------------------------------------------------------------------------------------------- the other parts
 * ----
 */

static json_t *replacement(const char *kind, const char *pattern, const char *content)
{
    return json_pack("{s:s, s:{s:s}, s:s}", "type", "Replace", "pattern", kind, pattern, "content", content);
}

static json_t *normalizer(const struct spm *spm)
{
    const Sentencepiece__NormalizerSpec *spec = &spm->normalizer;
    json_t *steps = json_array();
    if (spec->precompiled_charsmap.len > 0) {
        struct text map = { 0 };
        base64_append(&map, spec->precompiled_charsmap.data, spec->precompiled_charsmap.len);
        json_array_append_new(steps,
            map.failed ? NULL : json_pack("{s:s, s:s}", "type", "Precompiled", "precompiled_charsmap", map.data));
        text_free(&map);
    }
    if (spec->remove_extra_whitespaces) {
        json_array_append_new(steps, replacement("Regex", "\\A +| +\\z", ""));
        json_array_append_new(steps, replacement("Regex", " {2,}", " "));
    }
    if (spec->add_dummy_prefix)
        json_array_append_new(steps, json_pack("{s:s, s:s}", "type", "Prepend", "prepend", SPACE));
    json_array_append_new(steps, replacement("String", " ", SPACE));
    return json_pack("{s:s, s:o}", "type", "Sequence", "normalizers", steps);
}

/* Words are divided where no piece crosses their borders: the ids are the same, and words that recur are known. */
static json_t *pre_tokenizer(const struct spm *spm)
{
    return spm->any_inner_space ? json_null()
                                : json_pack("{s:s, s:s, s:s, s:b}", "type", "Metaspace", "replacement", SPACE,
                                      "prepend_scheme", "never", "split", 1);
}

static json_t *decoder(const struct spm *spm)
{
    json_t *steps =
        json_pack("[o, {s:s}, {s:s}]", replacement("String", SPACE, " "), "type", "ByteFallback", "type", "Fuse");
    if (spm->normalizer.add_dummy_prefix)
        json_array_append_new(
            steps, json_pack("{s:s, s:s, s:i, s:i}", "type", "Strip", "content", " ", "start", 1, "stop", 0));
    return json_pack("{s:s, s:o}", "type", "Sequence", "decoders", steps);
}

static json_t *added_tokens(const struct spm *spm)
{
    json_t *added = json_array();
    for (size_t id = 0; id < spm->model->n_pieces; id++) {
        const Sentencepiece__Piece *piece = spm->model->pieces[id];
        if (piece->type != CONTROL && piece->type != USER_DEFINED && piece->type != UNKNOWN) continue;
        json_array_append_new(added,
            json_pack("{s:I, s:s, s:b, s:b, s:b, s:b, s:b}", "id", (json_int_t)id, "content", piece->piece,
                "single_word", 0, "lstrip", 0, "rstrip", 0, "normalized", 0, "special", piece->type != USER_DEFINED));
    }
    return added;
}

static tutti_status make_json(struct spm *spm, json_t **json)
{
    json_t *model = NULL;
    spm->vocabulary = json_object();
    tutti_status status = check(spm);
    if (status == TUTTI_OK) status = (spm->trainer.model_type == BPE ? bpe : unigram)(spm, &model);
    if (status == TUTTI_OK) {
        *json = json_pack("{s:s, s:n, s:n, s:o, s:o, s:o, s:n, s:o, s:O}", "version", "1.0", "truncation", "padding",
            "added_tokens", added_tokens(spm), "normalizer", normalizer(spm), "pre_tokenizer", pre_tokenizer(spm),
            "post_processor", "decoder", decoder(spm), "model", model);
        if (!*json) status = fail(TUTTI_NO_MEMORY, "no memory on the host for a tokenizer");
    }
    json_decref(model);
    json_decref(spm->vocabulary);
    return status;
}

tutti_status sentencepiece_read(const char *path, json_t **json)
{
    unsigned char *data = NULL;
    size_t size;
    tutti_status status = file_read(path, TOKENIZER_LARGEST, &data, &size);
    if (status != TUTTI_OK) return status;
    struct memory_budget budget = { size * TIMES_SIZE + AT_LEAST };
    ProtobufCAllocator allocator = { memory_take, memory_give, &budget };
    struct spm spm = { .path = path, .unknown = -1 };
    spm.model = sentencepiece__model_proto__unpack(&allocator, size, data);
    free(data);
    if (!spm.model) return fail(TUTTI_FORMAT, "%s: it is no model of SentencePiece, or is cut off", path);
    spm.trainer = (Sentencepiece__TrainerSpec)SENTENCEPIECE__TRAINER_SPEC__INIT;
    spm.normalizer = (Sentencepiece__NormalizerSpec)SENTENCEPIECE__NORMALIZER_SPEC__INIT;
    if (spm.model->trainer_spec) spm.trainer = *spm.model->trainer_spec;
    if (spm.model->normalizer_spec) spm.normalizer = *spm.model->normalizer_spec;
    status = make_json(&spm, json);
    sentencepiece__model_proto__free_unpacked(spm.model, &allocator);
    return status;
}
