#include "text/divide.h"

#include "base/text.h"
#include "text/byte_level.h"
#include "text/unicode.h"
#include "text/utf8.h"

#include <stdlib.h>

enum behaviour { REMOVED, ISOLATED, MERGED_WITH_PREVIOUS, MERGED_WITH_NEXT, CONTIGUOUS };
enum scheme { PREPEND_ALWAYS, PREPEND_FIRST, PREPEND_NEVER };

struct divider {
    const struct divider_kind *kind;
    struct pattern *pattern;
    enum behaviour behaviour;
    bool (*matches)(uint32_t code); /* of kinds that divide by characters */
    bool invert, prefix_space, use_regex, split;
    enum scheme scheme;
    char mark[5]; /* the character that Metaspace puts for spaces, or CharDelimiterSplit's */
    size_t mark_size, length;
};
struct divider_kind {
    const char *name;
    tutti_status (*read)(struct divider *step, const json_t *json);
    tutti_status (*apply)(
        const struct divider *step, struct pattern_matcher *matcher, struct division *work, bool raw_bytes);
};

/* ----------------------------------------------------------------------------------------------- parts and matches */

/* Makes pieces of the parts of one piece, of which each is a match or not. */
struct cutter {
    struct piece_list *to;
    const struct piece *piece;
    enum behaviour behaviour;
    bool any, previous, held; /* held: `last` waits for what follows it */
    struct piece last;
};

static void add_piece(struct piece_list *list, struct piece piece)
{
    if (piece.begin == piece.end) return;
    if (list->size == list->capacity &&
        memory_grow((void **)&list->data, &list->capacity, list->size + 1, sizeof(*list->data)) != TUTTI_OK) {
        list->failed = true;
        return;
    }
    list->data[list->size++] = piece;
}

static void release(struct cutter *cutter)
{
    if (cutter->held) add_piece(cutter->to, cutter->last);
    cutter->held = false;
}

static void cut(struct cutter *cutter, size_t begin, size_t end, bool match)
{
    const struct piece part = { (uint32_t)begin, (uint32_t)end, cutter->piece->first && begin == cutter->piece->begin };
    bool joins = false;
    switch (cutter->behaviour) {
    case REMOVED:
        if (!match) add_piece(cutter->to, part);
        return;
    case ISOLATED: add_piece(cutter->to, part); return;
    case CONTIGUOUS: joins = cutter->any && match == cutter->previous; break;
    case MERGED_WITH_PREVIOUS: joins = match && !cutter->previous && cutter->any; break;
    case MERGED_WITH_NEXT: joins = !match && cutter->previous && cutter->any; break;
    }
    if (!joins) release(cutter);
    if (joins)
        cutter->last.end = part.end;
    else
        cutter->last = part;
    cutter->held = cutter->any = true;
    cutter->previous = match;
}

static struct cutter cutter_of(const struct divider *step, struct piece_list *to, const struct piece *piece)
{
    return (struct cutter) { .to = to, .piece = piece, .behaviour = step->behaviour };
}

static void exchange_pieces(struct division *work)
{
    const struct piece_list pieces = work->pieces;
    work->pieces = work->others;
    work->others = pieces;
    work->others.size = 0;
}

static tutti_status cut_by_pattern(
    const struct divider *step, const struct pattern *pattern, struct pattern_matcher *matcher, struct division *work)
{
    for (size_t i = 0; i < work->pieces.size; i++) {
        const struct piece *piece = &work->pieces.data[i];
        const char *text = work->text.data + piece->begin;
        struct pattern_walk walk = pattern_begin(pattern, matcher, text, piece->end - piece->begin);
        struct cutter cutter = cutter_of(step, &work->others, piece);
        size_t done = 0;
        for (;;) {
            bool found;
            const tutti_status status = pattern_next(&walk, &found);
            if (status != TUTTI_OK) return status;
            if (!found) break;
            if (done != walk.begin) cut(&cutter, piece->begin + done, piece->begin + walk.begin, step->invert);
            cut(&cutter, piece->begin + walk.begin, piece->begin + walk.end, !step->invert);
            done = walk.end;
        }
        if (done != walk.size) cut(&cutter, piece->begin + done, piece->end, step->invert);
        release(&cutter);
    }
    exchange_pieces(work);
    return TUTTI_OK;
}

static void cut_by_characters(const struct divider *step, bool (*matches)(uint32_t code), struct division *work)
{
    for (size_t i = 0; i < work->pieces.size; i++) {
        const struct piece *piece = &work->pieces.data[i];
        struct cutter cutter = cutter_of(step, &work->others, piece);
        size_t done = piece->begin;
        for (size_t at = piece->begin; at < piece->end;) {
            const size_t begin = at;
            if (!matches(utf8_next(work->text.data, &at))) continue;
            if (done < begin) cut(&cutter, done, begin, false);
            cut(&cutter, begin, at, true);
            done = at;
        }
        if (done < piece->end) cut(&cutter, done, piece->end, false);
        release(&cutter);
    }
    exchange_pieces(work);
}

/* Writes the text of all pieces anew: `change` appends that of one. */
static tutti_status rewrite(const struct divider *step, struct division *work,
    void (*change)(const struct divider *step, const struct piece *piece, const char *text, struct byte_list *to))
{
    work->spare.size = 0;
    for (size_t i = 0; i < work->pieces.size; i++) {
        struct piece *piece = &work->pieces.data[i];
        const size_t begin = work->spare.size;
        change(step, piece, work->text.data + piece->begin, &work->spare);
        if (work->spare.size > INT32_MAX) return fail(TUTTI_INVALID, "a text is too long for a tokenizer");
        piece->begin = (uint32_t)begin;
        piece->end = (uint32_t)work->spare.size;
    }
    const struct byte_list text = work->text;
    work->text = work->spare;
    work->spare = text;
    return TUTTI_OK;
}

/* --------------------------------------------------------------------------------------------------- byte level ----
 */

static tutti_status read_byte_level(struct divider *step, const json_t *json)
{
    static const char gpt2[] = "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+";
    tutti_status status = field_flag(json, "add_prefix_space", true, &step->prefix_space);
    if (status == TUTTI_OK) status = field_flag(json, "use_regex", true, &step->use_regex);
    step->behaviour = ISOLATED;
    return status == TUTTI_OK ? pattern_new(&step->pattern, gpt2, sizeof(gpt2) - 1, true) : status;
}

static void add_space(const struct divider *step, const struct piece *piece, const char *text, struct byte_list *to)
{
    (void)step;
    if (*text != ' ') byte_list_append(to, " ", 1);
    byte_list_append(to, text, piece->end - piece->begin);
}

static void bytes_to_characters(
    const struct divider *step, const struct piece *piece, const char *text, struct byte_list *to)
{
    (void)step;
    byte_level_append(to, text, piece->end - piece->begin);
}

static tutti_status apply_byte_level(
    const struct divider *step, struct pattern_matcher *matcher, struct division *work, bool raw_bytes)
{
    tutti_status status = step->prefix_space ? rewrite(step, work, add_space) : TUTTI_OK;
    if (status == TUTTI_OK && step->use_regex) status = cut_by_pattern(step, step->pattern, matcher, work);
    return status == TUTTI_OK && !raw_bytes ? rewrite(step, work, bytes_to_characters) : status;
}

/* ---------------------------------------------------------------------------------------------------- Metaspace ----
 */

static tutti_status read_metaspace(struct divider *step, const json_t *json)
{
    const char *mark, *scheme;
    size_t scheme_size;
    bool prefix;
    tutti_status status = field_character(json, "replacement", NULL, &mark, &step->mark_size);
    if (status == TUTTI_OK) status = field_text(json, "prepend_scheme", &scheme, &scheme_size);
    if (status == TUTTI_OK) status = field_flag(json, "add_prefix_space", true, &prefix);
    if (status == TUTTI_OK) status = field_flag(json, "split", true, &step->split);
    if (status != TUTTI_OK) return status;
    memcpy(step->mark, mark, step->mark_size);
    if (!scheme) scheme = prefix ? "always" : "never";
    if (!prefix && strcmp(scheme, "never"))
        return fail(TUTTI_FORMAT, "\"add_prefix_space\" of the tokenizer contradicts \"prepend_scheme\"");
    if (strcmp(scheme, "always") && strcmp(scheme, "first") && strcmp(scheme, "never"))
        return fail(TUTTI_FORMAT, "\"prepend_scheme\" of the tokenizer must be always, first or never, not \"%s\"",
            text_printable(scheme).text);
    step->scheme = *scheme == 'a' ? PREPEND_ALWAYS : *scheme == 'f' ? PREPEND_FIRST : PREPEND_NEVER;
    step->behaviour = MERGED_WITH_NEXT;
    return pattern_new(&step->pattern, mark, step->mark_size, false);
}

static void mark_spaces(const struct divider *step, const struct piece *piece, const char *text, struct byte_list *to)
{
    const size_t size = piece->end - piece->begin;
    const bool marked = *text == ' ' || (size >= step->mark_size && !memcmp(text, step->mark, step->mark_size));
    if (!marked && (step->scheme == PREPEND_ALWAYS || (step->scheme == PREPEND_FIRST && piece->first)))
        byte_list_append(to, step->mark, step->mark_size);
    for (size_t at = 0; at < size;) {
        const char *space = memchr(text + at, ' ', size - at);
        const size_t until = space ? (size_t)(space - text) : size;
        byte_list_append(to, text + at, until - at);
        if (space) byte_list_append(to, step->mark, step->mark_size);
        at = until + 1;
    }
}

static tutti_status apply_metaspace(
    const struct divider *step, struct pattern_matcher *matcher, struct division *work, bool raw_bytes)
{
    (void)raw_bytes;
    const tutti_status status = rewrite(step, work, mark_spaces);
    return status == TUTTI_OK && step->split ? cut_by_pattern(step, step->pattern, matcher, work) : status;
}

/* ----------------------------------------------------------------------------------------------- by characters ---- */

static tutti_status read_behaviour(struct divider *step, const json_t *json, const char *fallback)
{
    static const char *const names[] = { "Removed", "Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous" };
    const char *name;
    size_t size;
    const tutti_status status = field_text(json, "behavior", &name, &size);
    if (status != TUTTI_OK) return status;
    if (!name) name = fallback;
    for (int i = 0; name && i < 5; i++)
        if (!strcmp(name, names[i])) {
            step->behaviour = (enum behaviour)i;
            return TUTTI_OK;
        }
    return fail(TUTTI_FORMAT, "\"behavior\" of the tokenizer is \"%s\"", text_printable(name ? name : "").text);
}

static tutti_status read_spaces(struct divider *step, const json_t *json)
{
    (void)json;
    step->behaviour = REMOVED;
    step->matches = unicode_is_space;
    return TUTTI_OK;
}

static tutti_status read_punctuation(struct divider *step, const json_t *json)
{
    step->matches = unicode_is_punctuation;
    return read_behaviour(step, json, "Isolated");
}

static tutti_status read_digits(struct divider *step, const json_t *json)
{
    bool individual;
    const tutti_status status = field_flag(json, "individual_digits", false, &individual);
    step->behaviour = individual ? ISOLATED : CONTIGUOUS;
    step->matches = unicode_is_numeric;
    return status;
}

static tutti_status apply_characters(
    const struct divider *step, struct pattern_matcher *matcher, struct division *work, bool raw_bytes)
{
    (void)matcher, (void)raw_bytes;
    cut_by_characters(step, step->matches, work);
    return TUTTI_OK;
}

static tutti_status apply_bert(
    const struct divider *step, struct pattern_matcher *matcher, struct division *work, bool raw_bytes)
{
    (void)matcher, (void)raw_bytes;
    const struct divider punctuation = { .behaviour = ISOLATED };
    cut_by_characters(step, unicode_is_space, work);
    cut_by_characters(&punctuation, unicode_is_punctuation, work);
    return TUTTI_OK;
}

/* Words, and what is neither word nor space: \w+|[^\w\s]+. */
static tutti_status apply_whitespace(
    const struct divider *step, struct pattern_matcher *matcher, struct division *work, bool raw_bytes)
{
    (void)step, (void)matcher, (void)raw_bytes;
    for (size_t i = 0; i < work->pieces.size; i++) {
        const struct piece *piece = &work->pieces.data[i];
        int kind = 0; /* of the part from `begin` on: 0 spaces, 1 a word, 2 others */
        size_t begin = piece->begin;
        for (size_t at = begin; at <= piece->end;) {
            const size_t here = at;
            const uint32_t code = at < piece->end ? utf8_next(work->text.data, &at) : (at++, ' ');
            const int now = here == piece->end ? 3 : unicode_is_word(code) ? 1 : unicode_is_space(code) ? 0 : 2;
            if (now == kind) continue;
            if (kind != 0)
                add_piece(&work->others,
                    (struct piece) { (uint32_t)begin, (uint32_t)here, piece->first && begin == piece->begin });
            kind = now;
            begin = here;
        }
    }
    exchange_pieces(work);
    return TUTTI_OK;
}

/* ----------------------------------------------------------------------------------------------------- patterns ----
 */

static tutti_status read_split(struct divider *step, const json_t *json)
{
    tutti_status status = field_flag(json, "invert", false, &step->invert);
    if (status == TUTTI_OK) status = read_behaviour(step, json, NULL);
    return status == TUTTI_OK ? pattern_read(&step->pattern, json_object_get(json, "pattern")) : status;
}

static tutti_status read_delimiter(struct divider *step, const json_t *json)
{
    const char *mark;
    const tutti_status status = field_character(json, "delimiter", NULL, &mark, &step->mark_size);
    step->behaviour = REMOVED;
    return status == TUTTI_OK ? pattern_new(&step->pattern, mark, step->mark_size, false) : status;
}

static tutti_status apply_pattern(
    const struct divider *step, struct pattern_matcher *matcher, struct division *work, bool raw_bytes)
{
    (void)raw_bytes;
    return cut_by_pattern(step, step->pattern, matcher, work);
}

static tutti_status read_fixed_length(struct divider *step, const json_t *json)
{
    int64_t length;
    const tutti_status status = field_integer(json, "length", 5, &length);
    if (status == TUTTI_OK && length < 1) return fail(TUTTI_FORMAT, "\"length\" of the tokenizer must be above 0");
    step->length = (size_t)length;
    return status;
}

static tutti_status apply_fixed_length(
    const struct divider *step, struct pattern_matcher *matcher, struct division *work, bool raw_bytes)
{
    (void)matcher, (void)raw_bytes;
    for (size_t i = 0; i < work->pieces.size; i++) {
        const struct piece *piece = &work->pieces.data[i];
        for (size_t at = piece->begin; at < piece->end;) {
            const size_t begin = at;
            for (size_t n = 0; n < step->length && at < piece->end; n++) utf8_next(work->text.data, &at);
            add_piece(
                &work->others, (struct piece) { (uint32_t)begin, (uint32_t)at, piece->first && begin == piece->begin });
        }
    }
    exchange_pieces(work);
    return TUTTI_OK;
}

/* ------------------------------------------------------------------------------------------------------------------ */

static const struct divider_kind kinds[] = {
    { "ByteLevel", read_byte_level, apply_byte_level },
    { "BertPreTokenizer", read_spaces, apply_bert },
    { "Whitespace", NULL, apply_whitespace },
    { "WhitespaceSplit", read_spaces, apply_characters },
    { "Metaspace", read_metaspace, apply_metaspace },
    { "Punctuation", read_punctuation, apply_characters },
    { "Digits", read_digits, apply_characters },
    { "Split", read_split, apply_pattern },
    { "CharDelimiterSplit", read_delimiter, apply_pattern },
    { "FixedLength", read_fixed_length, apply_fixed_length },
};

static tutti_status read_step(void *to, const json_t *json)
{
    struct divider_list *list = to;
    const char *type;
    tutti_status status = field_type(json, "pre_tokenizer", &type);
    if (status != TUTTI_OK) return status;
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        if (strcmp(kinds[i].name, type)) continue;
        status = memory_grow((void **)&list->steps, &list->capacity, list->count + 1, sizeof(*list->steps));
        if (status != TUTTI_OK) return status;
        struct divider *step = &list->steps[list->count++];
        *step = (struct divider) { .kind = &kinds[i] };
        return kinds[i].read ? kinds[i].read(step, json) : TUTTI_OK;
    }
    return fail(
        TUTTI_UNSUPPORTED, "the pre_tokenizer \"%s\" of the tokenizer is not supported", text_printable(type).text);
}

tutti_status divide_read(struct divider_list *list, const json_t *json)
{
    return field_sequence(json, "pretokenizers", read_step, list);
}

void divide_free(struct divider_list *list)
{
    for (size_t i = 0; i < list->count; i++) pattern_free(list->steps[i].pattern);
    free(list->steps);
    *list = (struct divider_list) { 0 };
}

bool divide_ends_in_bytes(const struct divider_list *list)
{
    return list->count > 0 && list->steps[list->count - 1].kind->apply == apply_byte_level;
}

tutti_status divide(const struct divider_list *list, struct pattern_matcher *matcher, struct division *work, bool first)
{
    work->pieces.size = work->others.size = 0;
    add_piece(&work->pieces, (struct piece) { 0, (uint32_t)work->text.size, first });
    for (size_t i = 0; i < list->count; i++) {
        const bool raw_bytes = list->raw_bytes && i + 1 == list->count;
        const tutti_status status = list->steps[i].kind->apply(&list->steps[i], matcher, work, raw_bytes);
        if (status != TUTTI_OK) return status;
    }
    const bool failed = work->text.failed || work->spare.failed || work->pieces.failed || work->others.failed;
    return failed ? TUTTI_NO_MEMORY : TUTTI_OK;
}
