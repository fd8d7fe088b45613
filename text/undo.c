#include "text/undo.h"

#include "base/text.h"
#include "text/byte_level.h"
#include "text/utf8.h"

#include <stdlib.h>

struct undoer {
    const struct undoer_kind *kind;
    struct pattern *pattern;
    char *content, *delimiter;
    size_t content_size, delimiter_size;
    int64_t start, stop;
    bool cleanup;
};
struct token_view {
    const char *text;
    size_t size, index, count;
};
struct undoer_kind {
    const char *name;
    tutti_status (*read)(struct undoer *step, const json_t *json);
    /* From all tokens to others, or from one token, which is appended to `to`. */
    tutti_status (*all)(const struct undoer *step, const struct text_list *tokens, struct text_list *to);
    tutti_status (*each)(
        const struct undoer *step, struct pattern_matcher *matcher, struct token_view token, struct byte_list *to);
};

void text_list_free(struct text_list *list)
{
    byte_list_free(&list->bytes);
    free(list->ends);
    *list = (struct text_list) { 0 };
}

void text_list_end(struct text_list *list)
{
    if (memory_grow((void **)&list->ends, &list->capacity, list->count + 1, sizeof(*list->ends)) != TUTTI_OK)
        list->failed = true;
    else
        list->ends[list->count++] = list->bytes.size;
}

static struct token_view view(const struct text_list *list, size_t index)
{
    const size_t begin = index ? list->ends[index - 1] : 0;
    const char *text = list->bytes.data ? list->bytes.data + begin : ""; /* there are no bytes if all texts are empty */
    return (struct token_view) { text, list->ends[index] - begin, index, list->count };
}

static bool starts_with(struct token_view token, size_t at, const char *text, size_t size)
{
    return token.size - at >= size && !memcmp(token.text + at, text, size);
}

/* Appends the token with each occurrence of a text replaced. */
static void replace_all(
    struct token_view token, const char *old, size_t old_size, const char *new, struct byte_list *to)
{
    for (size_t at = 0; at < token.size;) {
        const bool found = old_size > 0 && starts_with(token, at, old, old_size);
        byte_list_append(to, found ? new : token.text + at, found ? strlen(new) : 1);
        at += found ? old_size : 1;
    }
}

/* ------------------------------------------------------------------------------------------------- bytes, joining */

static tutti_status join_bytes(const struct undoer *step, const struct text_list *tokens, struct text_list *to)
{
    (void)step;
    struct byte_list raw = { 0 };
    for (size_t i = 0; i < tokens->count; i++) {
        const struct token_view token = view(tokens, i);
        const size_t before = raw.size;
        bool all = true;
        for (size_t at = 0; all && at < token.size;) {
            const int byte = character_byte(utf8_next(token.text, &at));
            const char value = (char)byte;
            all = byte >= 0;
            if (all) byte_list_append(&raw, &value, 1);
        }
        if (all) continue;
        raw.size = before; /* one that has other characters is text as it is */
        byte_list_append(&raw, token.text, token.size);
    }
    utf8_repair(raw.data, raw.size, &to->bytes);
    text_list_end(to);
    const bool failed = raw.failed;
    byte_list_free(&raw);
    return failed ? TUTTI_NO_MEMORY : TUTTI_OK;
}

static tutti_status fuse(const struct undoer *step, const struct text_list *tokens, struct text_list *to)
{
    (void)step;
    byte_list_append(&to->bytes, tokens->bytes.data, tokens->bytes.size);
    text_list_end(to);
    return TUTTI_OK;
}

/* The byte of <0x00> to <0xFF>, -1: another token. */
static int byte_of(struct token_view token)
{
    if (token.size != 6 || memcmp(token.text, "<0x", 3) || token.text[5] != '>') return -1;
    int byte = 0;
    for (int i = 3; i < 5; i++) {
        const char *digits = "0123456789abcdefABCDEF", *digit = strchr(digits, token.text[i]);
        if (!digit || !*digit) return -1;
        byte = byte * 16 + (digit - digits >= 16 ? (int)(digit - digits) - 6 : (int)(digit - digits));
    }
    return byte;
}

/* Bytes that follow each other are text; if they are not UTF-8, each is U+FFFD. */
static void end_bytes(struct byte_list *raw, struct text_list *to)
{
    if (raw->size == 0) return;
    if (utf8_valid(raw->data, raw->size)) {
        byte_list_append(&to->bytes, raw->data, raw->size);
        text_list_end(to);
    } else
        for (size_t i = 0; i < raw->size; i++) byte_list_append(&to->bytes, "\xEF\xBF\xBD", 3), text_list_end(to);
    raw->size = 0;
}

static tutti_status fall_back(const struct undoer *step, const struct text_list *tokens, struct text_list *to)
{
    (void)step;
    struct byte_list raw = { 0 };
    for (size_t i = 0; i < tokens->count; i++) {
        const struct token_view token = view(tokens, i);
        const int byte = byte_of(token);
        const char value = (char)byte;
        if (byte >= 0) {
            byte_list_append(&raw, &value, 1);
            continue;
        }
        end_bytes(&raw, to);
        byte_list_append(&to->bytes, token.text, token.size);
        text_list_end(to);
    }
    end_bytes(&raw, to);
    const bool failed = raw.failed;
    byte_list_free(&raw);
    return failed ? TUTTI_NO_MEMORY : TUTTI_OK;
}

/* --------------------------------------------------------------------------------------------------- each token ----
 */

static tutti_status read_text(const json_t *json, const char *name, const char *fallback, char **text, size_t *size)
{
    const char *given;
    const tutti_status status = field_text(json, name, &given, size);
    if (status != TUTTI_OK) return status;
    if (!given && !fallback) return fail(TUTTI_FORMAT, "the tokenizer's decoder has no \"%s\"", name);
    if (!given && fallback) given = fallback, *size = strlen(fallback);
    *text = memory_new(*size + 1, 1);
    if (!*text) return TUTTI_NO_MEMORY;
    memcpy(*text, given, *size);
    return TUTTI_OK;
}

static tutti_status read_suffix(struct undoer *step, const json_t *json)
{
    return read_text(json, "suffix", "</w>", &step->content, &step->content_size);
}

static tutti_status without_suffix(
    const struct undoer *step, struct pattern_matcher *matcher, struct token_view token, struct byte_list *to)
{
    (void)matcher;
    replace_all(token, step->content, step->content_size, token.index + 1 == token.count ? "" : " ", to);
    return TUTTI_OK;
}

static void clean(struct token_view token, struct byte_list *to)
{
    static const char *const pairs[][2] = { { " .", "." }, { " ?", "?" }, { " !", "!" }, { " ,", "," }, { " ' ", "'" },
        { " n't", "n't" }, { " 'm", "'m" }, { " do not", " don't" }, { " 's", "'s" }, { " 've", "'ve" },
        { " 're", "'re" } };
    struct byte_list now = { 0 }, next = { 0 };
    byte_list_append(&now, token.text, token.size);
    for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
        next.size = 0;
        replace_all(
            (struct token_view) { now.data, now.size, 0, 1 }, pairs[i][0], strlen(pairs[i][0]), pairs[i][1], &next);
        const struct byte_list other = now;
        now = next;
        next = other;
    }
    byte_list_append(to, now.data, now.size);
    if (now.failed || next.failed) to->failed = true;
    byte_list_free(&now);
    byte_list_free(&next);
}

static tutti_status read_wordpiece(struct undoer *step, const json_t *json)
{
    const tutti_status status = read_text(json, "prefix", "##", &step->content, &step->content_size);
    return status == TUTTI_OK ? field_flag(json, "cleanup", true, &step->cleanup) : status;
}

static tutti_status join_words(
    const struct undoer *step, struct pattern_matcher *matcher, struct token_view token, struct byte_list *to)
{
    (void)matcher;
    struct byte_list word = { 0 };
    const bool continues = token.index > 0 && starts_with(token, 0, step->content, step->content_size);
    if (token.index > 0 && !continues) byte_list_append(&word, " ", 1);
    const size_t skipped = continues ? step->content_size : 0;
    byte_list_append(&word, token.text + skipped, token.size - skipped);
    if (step->cleanup)
        clean((struct token_view) { word.data, word.size, 0, 1 }, to);
    else
        byte_list_append(to, word.data, word.size);
    if (word.failed) to->failed = true;
    byte_list_free(&word);
    return TUTTI_OK;
}

static tutti_status read_metaspace(struct undoer *step, const json_t *json)
{
    const char *mark, *scheme;
    size_t size;
    bool prefix;
    tutti_status status = field_character(json, "replacement", NULL, &mark, &size);
    if (status == TUTTI_OK) status = read_text(json, "replacement", NULL, &step->content, &step->content_size);
    if (status == TUTTI_OK) status = field_flag(json, "add_prefix_space", true, &prefix);
    if (status == TUTTI_OK) status = field_text(json, "prepend_scheme", &scheme, &size);
    if (status == TUTTI_OK) step->start = scheme ? strcmp(scheme, "never") != 0 : prefix;
    return status;
}

static tutti_status marks_to_spaces(
    const struct undoer *step, struct pattern_matcher *matcher, struct token_view token, struct byte_list *to)
{
    (void)matcher;
    replace_all(token, step->content, step->content_size, token.index == 0 && step->start ? "" : " ", to);
    return TUTTI_OK;
}

static tutti_status read_replace(struct undoer *step, const json_t *json)
{
    const tutti_status status = read_text(json, "content", NULL, &step->content, &step->content_size);
    return status == TUTTI_OK ? pattern_read(&step->pattern, json_object_get(json, "pattern")) : status;
}

static tutti_status replace(
    const struct undoer *step, struct pattern_matcher *matcher, struct token_view token, struct byte_list *to)
{
    struct pattern_walk walk = pattern_begin(step->pattern, matcher, token.text, token.size);
    size_t copied = 0;
    for (;;) {
        bool found;
        const tutti_status status = pattern_next(&walk, &found);
        if (status != TUTTI_OK) return status;
        if (!found) break;
        byte_list_append(to, token.text + copied, walk.begin - copied);
        byte_list_append(to, step->content, step->content_size);
        copied = walk.end;
    }
    byte_list_append(to, token.text + copied, token.size - copied);
    return TUTTI_OK;
}

static tutti_status read_strip(struct undoer *step, const json_t *json)
{
    const char *mark;
    size_t size;
    tutti_status status = field_character(json, "content", NULL, &mark, &size);
    if (status == TUTTI_OK) status = read_text(json, "content", NULL, &step->content, &step->content_size);
    if (status == TUTTI_OK) status = field_integer(json, "start", 0, &step->start);
    return status == TUTTI_OK ? field_integer(json, "stop", 0, &step->stop) : status;
}

static tutti_status strip(
    const struct undoer *step, struct pattern_matcher *matcher, struct token_view token, struct byte_list *to)
{
    (void)matcher;
    const size_t one = step->content_size;
    size_t begin = 0, end = token.size;
    for (int64_t i = 0; i < step->start && starts_with(token, begin, step->content, one); i++) begin += one;
    for (int64_t i = 0; i < step->stop && end >= begin + one && !memcmp(token.text + end - one, step->content, one);
         i++)
        end -= one;
    byte_list_append(to, token.text + begin, end - begin);
    return TUTTI_OK;
}

/* ----------------------------------------------------------------------------------------------------- CTC's blank */

static tutti_status read_ctc(struct undoer *step, const json_t *json)
{
    tutti_status status = read_text(json, "pad_token", "<pad>", &step->content, &step->content_size);
    if (status == TUTTI_OK)
        status = read_text(json, "word_delimiter_token", "|", &step->delimiter, &step->delimiter_size);
    return status == TUTTI_OK ? field_flag(json, "cleanup", true, &step->cleanup) : status;
}

static tutti_status collapse(const struct undoer *step, const struct text_list *tokens, struct text_list *to)
{
    struct byte_list word = { 0 }, cleaned = { 0 };
    for (size_t i = 0; i < tokens->count; i++) {
        const struct token_view token = view(tokens, i), before = i ? view(tokens, i - 1) : token;
        if (i && token.size == before.size && !memcmp(token.text, before.text, token.size)) continue;
        word.size = cleaned.size = 0;
        replace_all(token, step->content, step->content_size, "", &word);
        const struct token_view left = { word.data, word.size, 0, 1 };
        if (step->cleanup) {
            clean(left, &cleaned);
            replace_all((struct token_view) { cleaned.data, cleaned.size, 0, 1 }, step->delimiter, step->delimiter_size,
                " ", &to->bytes);
        } else
            byte_list_append(&to->bytes, word.data, word.size);
        if (to->bytes.size > (to->count ? to->ends[to->count - 1] : 0)) text_list_end(to);
    }
    const bool failed = word.failed || cleaned.failed;
    byte_list_free(&word);
    byte_list_free(&cleaned);
    return failed ? TUTTI_NO_MEMORY : TUTTI_OK;
}

/* ------------------------------------------------------------------------------------------------------------------ */

static const struct undoer_kind kinds[] = {
    { "ByteLevel", NULL, join_bytes, NULL },
    { "ByteFallback", NULL, fall_back, NULL },
    { "Fuse", NULL, fuse, NULL },
    { "CTC", read_ctc, collapse, NULL },
    { "BPEDecoder", read_suffix, NULL, without_suffix },
    { "WordPiece", read_wordpiece, NULL, join_words },
    { "Metaspace", read_metaspace, NULL, marks_to_spaces },
    { "Replace", read_replace, NULL, replace },
    { "Strip", read_strip, NULL, strip },
};

static tutti_status read_step(void *to, const json_t *json)
{
    struct undo_list *list = to;
    const char *type;
    tutti_status status = field_type(json, "decoder", &type);
    if (status != TUTTI_OK) return status;
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        if (strcmp(kinds[i].name, type)) continue;
        status = memory_grow((void **)&list->steps, &list->capacity, list->count + 1, sizeof(*list->steps));
        if (status != TUTTI_OK) return status;
        struct undoer *step = &list->steps[list->count++];
        *step = (struct undoer) { .kind = &kinds[i] };
        return kinds[i].read ? kinds[i].read(step, json) : TUTTI_OK;
    }
    return fail(TUTTI_UNSUPPORTED, "the decoder \"%s\" of the tokenizer is not supported", text_printable(type).text);
}

tutti_status undo_read(struct undo_list *list, const json_t *json)
{
    list->given |= json != NULL;
    return field_sequence(json, "decoders", read_step, list);
}

void undo_free(struct undo_list *list)
{
    for (size_t i = 0; i < list->count; i++) {
        pattern_free(list->steps[i].pattern);
        free(list->steps[i].content);
        free(list->steps[i].delimiter);
    }
    free(list->steps);
    *list = (struct undo_list) { 0 };
}

static tutti_status apply(
    const struct undoer *step, struct pattern_matcher *matcher, const struct text_list *tokens, struct text_list *to)
{
    if (step->kind->all) return step->kind->all(step, tokens, to);
    for (size_t i = 0; i < tokens->count; i++) {
        const tutti_status status = step->kind->each(step, matcher, view(tokens, i), &to->bytes);
        if (status != TUTTI_OK) return status;
        text_list_end(to);
    }
    return TUTTI_OK;
}

tutti_status undo(
    const struct undo_list *list, struct pattern_matcher *matcher, struct text_list *tokens, struct byte_list *text)
{
    struct text_list other = { 0 };
    tutti_status status = TUTTI_OK;
    for (size_t i = 0; i < list->count && status == TUTTI_OK; i++) {
        other.bytes.size = other.count = 0;
        status = apply(&list->steps[i], matcher, tokens, &other);
        const struct text_list now = *tokens;
        *tokens = other;
        other = now;
        if (tokens->failed || tokens->bytes.failed) status = TUTTI_NO_MEMORY;
    }
    for (size_t i = 0; i < tokens->count && status == TUTTI_OK; i++) {
        const struct token_view token = view(tokens, i);
        if (!list->given && i > 0) byte_list_append(text, " ", 1);
        byte_list_append(text, token.text, token.size);
    }
    text_list_free(&other);
    return status;
}
