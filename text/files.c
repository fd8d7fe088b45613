/* What is at a path as the JSON of a tokenizer.json. */
#include "base/file.h"
#include "base/path.h"
#include "base/text.h"
#include "text/byte_level.h"
#include "text/sentencepiece.h"
#include "text/tokenizer.h"
#include "text/utf8.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

json_t *tokenizer_bytes(void)
{
    json_t *vocabulary = json_object();
    for (int byte = 0; byte < 256; byte++) {
        char text[5] = { 0 };
        utf8_write(byte_character((unsigned char)byte), text);
        json_object_set_new(vocabulary, text, json_integer(byte));
    }
    return json_pack("{s:s, s:n, s:n, s:[], s:n, s:{s:s, s:b, s:b, s:b}, s:n, s:{s:s, s:b, s:b, s:b},"
                     " s:{s:s, s:n, s:n, s:n, s:n, s:b, s:b, s:b, s:o, s:[]}}",
        "version", "1.0", "truncation", "padding", "added_tokens", "normalizer", "pre_tokenizer", "type", "ByteLevel",
        "add_prefix_space", 0, "trim_offsets", 1, "use_regex", 0, "post_processor", "decoder", "type", "ByteLevel",
        "add_prefix_space", 0, "trim_offsets", 1, "use_regex", 0, "model", "type", "BPE", "dropout", "unk_token",
        "continuing_subword_prefix", "end_of_word_suffix", "fuse_unk", 0, "byte_fallback", 0, "ignore_merges", 0,
        "vocab", vocabulary, "merges");
}

static tutti_status read_json(const char *path, json_t **json)
{
    unsigned char *data = NULL;
    size_t size;
    tutti_status status = file_read(path, TOKENIZER_LARGEST, &data, &size);
    if (status != TUTTI_OK) return status;
    json_error_t error;
    *json = json_loadb((const char *)data, size, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &error);
    if (!*json)
        status = fail(TUTTI_FORMAT, "%s: no JSON: %s in line %d", path, text_printable(error.text).text, error.line);
    free(data);
    return status;
}

/* ------------------------------------------------------------------------------------------- BERT's and GPT-2's ----
 */

/* The next line, without its end; false: there is none. */
static bool next_line(const char **at, const char *end, const char **line, size_t *size)
{
    if (*at >= end) return false;
    const char *stop = memchr(*at, '\n', (size_t)(end - *at));
    *line = *at;
    *size = (size_t)((stop ? stop : end) - *at);
    *at = stop ? stop + 1 : end;
    if (*size > 0 && (*line)[*size - 1] == '\r') --*size;
    return true;
}

static json_t *special_token(json_t *vocabulary, const char *token)
{
    return json_pack("{s:O, s:s, s:b, s:b, s:b, s:b, s:b}", "id", json_object_get(vocabulary, token), "content", token,
        "single_word", 0, "lstrip", 0, "rstrip", 0, "normalized", 0, "special", 1);
}

/* A token in each line, its id the number of the line: as transformers' BertTokenizerFast, which makes all lower case
 * unless the vocabulary has capital letters. */
static json_t *bert_json(json_t *vocabulary, bool lower)
{
    static const char *const special[] = { "[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]" };
    json_t *added = json_array(), *cls = json_object_get(vocabulary, "[CLS]"),
           *sep = json_object_get(vocabulary, "[SEP]");
    for (size_t i = 0; i < sizeof(special) / sizeof(special[0]); i++)
        if (json_object_get(vocabulary, special[i]))
            json_array_append_new(added, special_token(vocabulary, special[i]));
    json_t *around = cls && sep
        ? json_pack("{s:s, s:[s, O], s:[s, O]}", "type", "BertProcessing", "sep", "[SEP]", sep, "cls", "[CLS]", cls)
        : json_null();
    return json_pack("{s:s, s:n, s:n, s:o, s:{s:s, s:b, s:b, s:n, s:b}, s:{s:s}, s:o, s:{s:s, s:s, s:b},"
                     " s:{s:s, s:s, s:s, s:i, s:O}}",
        "version", "1.0", "truncation", "padding", "added_tokens", added, "normalizer", "type", "BertNormalizer",
        "clean_text", 1, "handle_chinese_chars", 1, "strip_accents", "lowercase", lower, "pre_tokenizer", "type",
        "BertPreTokenizer", "post_processor", around, "decoder", "type", "WordPiece", "prefix", "##", "cleanup", 1,
        "model", "type", "WordPiece", "unk_token", "[UNK]", "continuing_subword_prefix", "##",
        "max_input_chars_per_word", 100, "vocab", vocabulary);
}

static tutti_status read_vocabulary(const char *path, json_t **json)
{
    unsigned char *data = NULL;
    size_t size, bytes;
    tutti_status status = file_read(path, TOKENIZER_LARGEST, &data, &size);
    if (status != TUTTI_OK) return status;
    json_t *vocabulary = json_object();
    const char *at = (const char *)data, *end = at + size, *line;
    bool lower = true;
    for (json_int_t id = 0; status == TUTTI_OK && next_line(&at, end, &line, &bytes); id++) {
        if (memchr(line, 0, bytes) || json_object_getn(vocabulary, line, bytes) ||
            json_object_setn_new(vocabulary, line, bytes, json_integer(id)) != 0)
            status = fail(TUTTI_FORMAT, "%s: line %lld is no UTF-8, or is there twice", path, (long long)id + 1);
        if (bytes > 0 && line[0] != '[' && line[0] >= 'A' && line[0] <= 'Z') lower = false;
    }
    if (status == TUTTI_OK && !json_object_get(vocabulary, "[UNK]"))
        status = fail(TUTTI_FORMAT, "%s: there is no line [UNK]: it is no vocabulary of BERT's", path);
    if (status == TUTTI_OK) *json = bert_json(vocabulary, lower);
    if (status == TUTTI_OK && !*json) status = fail(TUTTI_NO_MEMORY, "no memory on the host for a tokenizer");
    json_decref(vocabulary);
    free(data);
    return status;
}

static json_t *gpt2_json(json_t *vocabulary, json_t *merges)
{
    json_t *added = json_array();
    if (json_object_get(vocabulary, "<|endoftext|>"))
        json_array_append_new(added, special_token(vocabulary, "<|endoftext|>"));
    return json_pack("{s:s, s:n, s:n, s:o, s:n, s:{s:s, s:b, s:b, s:b}, s:{s:s, s:b, s:b, s:b}, s:{s:s, s:b, s:b, s:b},"
                     " s:{s:s, s:n, s:n, s:n, s:n, s:b, s:b, s:b, s:O, s:O}}",
        "version", "1.0", "truncation", "padding", "added_tokens", added, "normalizer", "pre_tokenizer", "type",
        "ByteLevel", "add_prefix_space", 0, "trim_offsets", 1, "use_regex", 1, "post_processor", "type", "ByteLevel",
        "add_prefix_space", 1, "trim_offsets", 0, "use_regex", 1, "decoder", "type", "ByteLevel", "add_prefix_space", 1,
        "trim_offsets", 1, "use_regex", 1, "model", "type", "BPE", "dropout", "unk_token", "continuing_subword_prefix",
        "end_of_word_suffix", "fuse_unk", 0, "byte_fallback", 0, "ignore_merges", 0, "vocab", vocabulary, "merges",
        merges);
}

/* vocab.json next to merges.txt. */
static tutti_status read_vocabulary_next_to(const char *path, json_t **vocabulary)
{
    const char *slash = strrchr(path, '/');
    char *neighbour = memory_format("%.*svocab.json", slash ? (int)(slash + 1 - path) : 0, path);
    const tutti_status status = neighbour ? read_json(neighbour, vocabulary) : TUTTI_NO_MEMORY;
    free(neighbour);
    return status;
}

static tutti_status read_merges(const char *path, json_t **json)
{
    unsigned char *data = NULL;
    size_t size, bytes;
    json_t *vocabulary = NULL, *merges = json_array();
    tutti_status status;
    TRY(read_vocabulary_next_to(path, &vocabulary));
    TRY(file_read(path, TOKENIZER_LARGEST, &data, &size));
    const char *at = (const char *)data, *end = at + size, *line;
    while (next_line(&at, end, &line, &bytes)) {
        if (bytes == 0 || (bytes >= 8 && !memcmp(line, "#version", 8))) continue;
        if (json_array_append_new(merges, json_stringn(line, bytes)) != 0)
            FAIL(TUTTI_FORMAT, "%s: merge %zu is no UTF-8", path, json_array_size(merges) + 1);
    }
    *json = gpt2_json(vocabulary, merges);
    if (!*json) FAIL(TUTTI_NO_MEMORY, "no memory on the host for a tokenizer");
done:
    json_decref(vocabulary);
    json_decref(merges);
    free(data);
    return status;
}

/* ------------------------------------------------------------------------------------------------------------------ */

static tutti_status unknown_file(const char *path, json_t **json)
{
    (void)json;
    return fail(TUTTI_UNSUPPORTED,
        "%s: use \"bytes\", a tokenizer.json, a vocab.txt, a merges.txt with its vocab.json, or a .model%s", path,
        path_suggest(path, ".json").text);
}

enum { IN_FOLDERS = 4 };
static const struct file_kind {
    const char *name; /* the end of its name; the first IN_FOLDERS are searched for in folders, in this order */
    tutti_status (*read)(const char *path, json_t **json);
} kinds[] = {
    { "tokenizer.json", read_json },
    { "merges.txt", read_merges },
    { "vocab.txt", read_vocabulary },
    { "tokenizer.model", sentencepiece_read },
    { ".model", sentencepiece_read },
    { ".json", read_json },
    { "", unknown_file },
};

/* The file of a folder that holds its tokenizer. */
static tutti_status in_folder(const char *folder, char **path)
{
    for (size_t i = 0; i < IN_FOLDERS; i++) {
        *path = memory_format("%s/%s", folder, kinds[i].name);
        if (!*path) return TUTTI_NO_MEMORY;
        if (access(*path, F_OK) == 0) return TUTTI_OK;
        free(*path);
        *path = NULL;
    }
    return fail(TUTTI_FILE, "%s: the folder has no tokenizer.json, merges.txt, vocab.txt or tokenizer.model", folder);
}

tutti_status tokenizer_file(const char *given, json_t **json)
{
    if (!strcmp(given, "bytes")) {
        *json = tokenizer_bytes();
        return *json ? TUTTI_OK : fail(TUTTI_NO_MEMORY, "no memory on the host for a tokenizer");
    }
    struct stat facts;
    if (stat(given, &facts) != 0)
        return fail(TUTTI_FILE, "the tokenizer %s cannot be opened: %s%s", given, strerror(errno),
            path_suggest(given, ".json").text);
    char *inside = NULL;
    tutti_status status = S_ISDIR(facts.st_mode) ? in_folder(given, &inside) : TUTTI_OK;
    const char *path = inside ? inside : given;
    for (size_t i = 0; status == TUTTI_OK; i++)
        if (text_ends_with(path, kinds[i].name)) {
            status = kinds[i].read(path, json);
            break;
        }
    free(inside);
    return status;
}
