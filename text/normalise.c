#include "text/normalise.h"

#include "base/text.h"
#include "text/byte_level.h"
#include "text/charsmap.h"
#include "text/unicode.h"
#include "text/utf8.h"

#include <stdlib.h>

struct normaliser {
    const struct normaliser_kind *kind;
    enum unicode_form form;
    struct pattern *pattern;
    struct charsmap *map;
    char *content;
    size_t content_size;
    bool left, right, clean, chinese, accents, lower;
};
struct normaliser_kind {
    const char *name;
    tutti_status (*read)(struct normaliser *step, const json_t *json); /* NULL: nothing to read */
    /* From work->text to work->spare, which is empty; they are then exchanged. */
    tutti_status (*apply)(const struct normaliser *step, struct pattern_matcher *matcher, struct normalised *work);
};

static void swap(struct normalised *work)
{
    const struct byte_list text = work->text;
    work->text = work->spare;
    work->spare = text;
    work->spare.size = 0;
}

/* ------------------------------------------------------------------------------------------------ by characters ----
 */

/* Calls change() for each character; it appends what the character becomes. */
static void each(struct normalised *work, void (*change)(uint32_t code, struct byte_list *to))
{
    for (size_t at = 0; at < work->text.size;) {
        const bool first = at == 0;
        change(utf8_next(work->text.data, &at), &work->spare);
        if (first && work->spare.size == 0) work->moved = true;
    }
}

static void append_code(struct byte_list *to, uint32_t code)
{
    char bytes[4];
    byte_list_append(to, bytes, utf8_write(code, bytes));
}

static tutti_status apply_lowercase(
    const struct normaliser *step, struct pattern_matcher *matcher, struct normalised *work)
{
    (void)step, (void)matcher;
    each(work, unicode_lower);
    return TUTTI_OK;
}

static void without_mark(uint32_t code, struct byte_list *to)
{
    if (!unicode_is_mark(code)) append_code(to, code);
}

static tutti_status apply_strip_accents(
    const struct normaliser *step, struct pattern_matcher *matcher, struct normalised *work)
{
    (void)step, (void)matcher;
    each(work, without_mark);
    return TUTTI_OK;
}

static void nmt_character(uint32_t code, struct byte_list *to)
{
    if ((code >= 1 && code <= 8) || code == 0xB || (code >= 0xE && code <= 0x1F) || code == 0x7F || code == 0x8F ||
        code == 0x9F)
        return;
    const bool space = code == 9 || code == 0xA || code == 0xC || code == 0xD || code == 0x1680 ||
        (code >= 0x200B && code <= 0x200F) || code == 0x2028 || code == 0x2029 || code == 0x2581 || code == 0xFEFF ||
        code == 0xFFFD;
    append_code(to, space ? ' ' : code);
}

static tutti_status apply_nmt(const struct normaliser *step, struct pattern_matcher *matcher, struct normalised *work)
{
    (void)step, (void)matcher;
    each(work, nmt_character);
    return TUTTI_OK;
}

static tutti_status apply_form(const struct normaliser *step, struct pattern_matcher *matcher, struct normalised *work)
{
    (void)matcher;
    return unicode_normalise(step->form, work->text.data, work->text.size, &work->spare);
}

/* ------------------------------------------------------------------------------------------------------- BERT's ----
 */

static tutti_status read_bert(struct normaliser *step, const json_t *json)
{
    tutti_status status = field_flag(json, "clean_text", true, &step->clean);
    if (status == TUTTI_OK) status = field_flag(json, "handle_chinese_chars", true, &step->chinese);
    if (status == TUTTI_OK) status = field_flag(json, "lowercase", true, &step->lower);
    if (status == TUTTI_OK) status = field_flag(json, "strip_accents", step->lower, &step->accents);
    return status;
}

static void clean_character(uint32_t code, struct byte_list *to)
{
    const bool line = code == '\t' || code == '\n' || code == '\r';
    if (code == 0 || code == 0xFFFD || (!line && unicode_is_control(code))) return;
    append_code(to, unicode_is_space(code) ? ' ' : code);
}

static void apart_if_chinese(uint32_t code, struct byte_list *to)
{
    const bool chinese = (code >= 0x4E00 && code <= 0x9FFF) || (code >= 0x3400 && code <= 0x4DBF) ||
        (code >= 0x20000 && code <= 0x2A6DF) || (code >= 0x2A700 && code <= 0x2B73F) ||
        (code >= 0x2B740 && code <= 0x2B81F) || (code >= 0x2B920 && code <= 0x2CEAF) ||
        (code >= 0xF900 && code <= 0xFAFF) || (code >= 0x2F800 && code <= 0x2FA1F);
    if (chinese) append_code(to, ' ');
    append_code(to, code);
    if (chinese) append_code(to, ' ');
}

static void without_accent(uint32_t code, struct byte_list *to)
{
    if (!unicode_is_mark_without_width(code)) append_code(to, code);
}

/* Printable ASCII needs no change but lower case. */
static bool is_plain(const struct byte_list *text)
{
    for (size_t i = 0; i < text->size; i++)
        if ((unsigned char)text->data[i] < ' ' || (unsigned char)text->data[i] >= 0x7F) return false;
    return true;
}

static tutti_status apply_bert(const struct normaliser *step, struct pattern_matcher *matcher, struct normalised *work)
{
    (void)matcher;
    tutti_status status = TUTTI_OK;
    if (!is_plain(&work->text)) {
        if (step->clean) each(work, clean_character), swap(work);
        if (step->chinese) each(work, apart_if_chinese), swap(work);
        if (step->accents) {
            status = unicode_normalise(UNICODE_NFD, work->text.data, work->text.size, &work->spare);
            swap(work);
            each(work, without_accent), swap(work);
        }
    }
    if (step->lower)
        each(work, unicode_lower);
    else
        byte_list_append(&work->spare, work->text.data, work->text.size);
    return status;
}

/* ------------------------------------------------------------------------------------------------------ strings ----
 */

static tutti_status read_content(struct normaliser *step, const json_t *json, const char *name)
{
    const char *content;
    tutti_status status = field_text(json, name, &content, &step->content_size);
    if (status != TUTTI_OK) return status;
    if (!content) return fail(TUTTI_FORMAT, "a normalizer of the tokenizer has no \"%s\"", name);
    step->content = memory_new(step->content_size + 1, 1);
    if (!step->content) return TUTTI_NO_MEMORY;
    memcpy(step->content, content, step->content_size);
    return TUTTI_OK;
}

static tutti_status read_replace(struct normaliser *step, const json_t *json)
{
    const tutti_status status = read_content(step, json, "content");
    return status == TUTTI_OK ? pattern_read(&step->pattern, json_object_get(json, "pattern")) : status;
}

static tutti_status apply_replace(
    const struct normaliser *step, struct pattern_matcher *matcher, struct normalised *work)
{
    struct pattern_walk walk = pattern_begin(step->pattern, matcher, work->text.data, work->text.size);
    size_t copied = 0;
    for (;;) {
        bool found;
        const tutti_status status = pattern_next(&walk, &found);
        if (status != TUTTI_OK) return status;
        if (!found) break;
        /* What is inserted counts as the last character that it replaces. */
        if (walk.begin == 0 && walk.end > 0 && (step->content_size == 0 || walk.end > utf8_size(work->text.data[0])))
            work->moved = true;
        byte_list_append(&work->spare, work->text.data + copied, walk.begin - copied);
        byte_list_append(&work->spare, step->content, step->content_size);
        copied = walk.end;
    }
    byte_list_append(&work->spare, work->text.data + copied, work->text.size - copied);
    return TUTTI_OK;
}

static tutti_status read_prepend(struct normaliser *step, const json_t *json)
{
    return read_content(step, json, "prepend");
}

static tutti_status apply_prepend(
    const struct normaliser *step, struct pattern_matcher *matcher, struct normalised *work)
{
    (void)matcher;
    if (work->text.size > 0) byte_list_append(&work->spare, step->content, step->content_size);
    byte_list_append(&work->spare, work->text.data, work->text.size);
    return TUTTI_OK;
}

static tutti_status read_strip(struct normaliser *step, const json_t *json)
{
    const tutti_status status = field_flag(json, "strip_left", true, &step->left);
    return status == TUTTI_OK ? field_flag(json, "strip_right", true, &step->right) : status;
}

static tutti_status apply_strip(const struct normaliser *step, struct pattern_matcher *matcher, struct normalised *work)
{
    (void)matcher;
    size_t from = 0, to = work->text.size;
    for (size_t at = 0; step->left && at < to && unicode_is_space(utf8_next(work->text.data, &at));) from = at;
    while (step->right && to > from) {
        size_t before = utf8_before(work->text.data, to), at = before;
        if (!unicode_is_space(utf8_next(work->text.data, &at))) break;
        to = before;
    }
    if (from > 0) work->moved = true;
    byte_list_append(&work->spare, work->text.data + from, to - from);
    return TUTTI_OK;
}

static tutti_status apply_byte_level(
    const struct normaliser *step, struct pattern_matcher *matcher, struct normalised *work)
{
    (void)step, (void)matcher;
    byte_level_append(&work->spare, work->text.data, work->text.size);
    return TUTTI_OK;
}

/* ------------------------------------------------------------------------------------------------- SentencePiece's */

static tutti_status read_precompiled(struct normaliser *step, const json_t *json)
{
    const char *text;
    size_t size;
    const tutti_status status = field_text(json, "precompiled_charsmap", &text, &size);
    if (status != TUTTI_OK) return status;
    return charsmap_new(&step->map, text ? text : "", size);
}

static tutti_status apply_precompiled(
    const struct normaliser *step, struct pattern_matcher *matcher, struct normalised *work)
{
    (void)matcher;
    charsmap_apply(step->map, work->text.data, work->text.size, &work->spare);
    return TUTTI_OK;
}

/* ------------------------------------------------------------------------------------------------------------------ */

static tutti_status read_form(struct normaliser *step, const json_t *json);
static const struct normaliser_kind kinds[] = {
    { "NFC", read_form, apply_form },
    { "NFD", read_form, apply_form },
    { "NFKC", read_form, apply_form },
    { "NFKD", read_form, apply_form },
    { "Lowercase", NULL, apply_lowercase },
    { "StripAccents", NULL, apply_strip_accents },
    { "BertNormalizer", read_bert, apply_bert },
    { "Replace", read_replace, apply_replace },
    { "Prepend", read_prepend, apply_prepend },
    { "Strip", read_strip, apply_strip },
    { "Nmt", NULL, apply_nmt },
    { "ByteLevel", NULL, apply_byte_level },
    { "Precompiled", read_precompiled, apply_precompiled },
};

static tutti_status read_form(struct normaliser *step, const json_t *json)
{
    (void)json;
    step->form = (enum unicode_form)(step->kind - kinds);
    return TUTTI_OK;
}

static tutti_status read_step(void *to, const json_t *json)
{
    struct normaliser_list *list = to;
    const char *type;
    tutti_status status = field_type(json, "normalizer", &type);
    if (status != TUTTI_OK) return status;
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        if (strcmp(kinds[i].name, type)) continue;
        status = memory_grow((void **)&list->steps, &list->capacity, list->count + 1, sizeof(*list->steps));
        if (status != TUTTI_OK) return status;
        struct normaliser *step = &list->steps[list->count++];
        *step = (struct normaliser) { .kind = &kinds[i] };
        return kinds[i].read ? kinds[i].read(step, json) : TUTTI_OK;
    }
    return fail(
        TUTTI_UNSUPPORTED, "the normalizer \"%s\" of the tokenizer is not supported", text_printable(type).text);
}

tutti_status normalise_read(struct normaliser_list *list, const json_t *json)
{
    return field_sequence(json, "normalizers", read_step, list);
}

void normalise_free(struct normaliser_list *list)
{
    for (size_t i = 0; i < list->count; i++) {
        pattern_free(list->steps[i].pattern);
        charsmap_free(list->steps[i].map);
        free(list->steps[i].content);
    }
    free(list->steps);
    *list = (struct normaliser_list) { 0 };
}

tutti_status normalise(const struct normaliser_list *list, struct pattern_matcher *matcher, struct normalised *work)
{
    for (size_t i = 0; i < list->count; i++) {
        work->spare.size = 0;
        const tutti_status status = list->steps[i].kind->apply(&list->steps[i], matcher, work);
        if (status != TUTTI_OK) return status;
        swap(work);
    }
    return work->text.failed || work->spare.failed ? TUTTI_NO_MEMORY : TUTTI_OK;
}
