/* What is at a path as the JSON of a tokenizer.json. */
#include "base/file.h"
#include "base/path.h"
#include "base/text.h"
#include "text/byte_level.h"
#include "text/tokenizer.h"
#include "text/utf8.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LARGEST = 512 << 20 };

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
    tutti_status status = file_read(path, LARGEST, &data, &size);
    if (status != TUTTI_OK) return status;
    json_error_t error;
    *json = json_loadb((const char *)data, size, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &error);
    if (!*json)
        status = fail(TUTTI_FORMAT, "%s: no JSON: %s in line %d", path, text_printable(error.text).text, error.line);
    free(data);
    return status;
}

static tutti_status unknown_file(const char *path)
{
    return fail(TUTTI_UNSUPPORTED, "%s: use \"bytes\" or a tokenizer.json%s", path, path_suggest(path, ".json").text);
}

/* The file of a folder that holds its tokenizer. */
static tutti_status in_folder(const char *folder, char **path)
{
    static const char *const names[] = { "tokenizer.json" };
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        *path = memory_format("%s/%s", folder, names[i]);
        if (!*path) return TUTTI_NO_MEMORY;
        if (access(*path, F_OK) == 0) return TUTTI_OK;
        free(*path);
        *path = NULL;
    }
    return fail(TUTTI_FILE, "%s: the folder has no tokenizer.json", folder);
}

tutti_status tokenizer_file(const char *given, json_t **json)
{
    if (!strcmp(given, "bytes")) {
        *json = tokenizer_bytes();
        return *json ? TUTTI_OK : fail(TUTTI_NO_MEMORY, "no memory on the host for a tokenizer");
    }
    struct stat facts;
    if (stat(given, &facts) != 0)
        return fail(TUTTI_FILE, "%s: %s%s", given, strerror(errno), path_suggest(given, ".json").text);
    char *inside = NULL;
    tutti_status status = S_ISDIR(facts.st_mode) ? in_folder(given, &inside) : TUTTI_OK;
    const char *path = inside ? inside : given;
    if (status == TUTTI_OK) status = text_has_extension(path, ".json") ? read_json(path, json) : unknown_file(path);
    free(inside);
    return status;
}
