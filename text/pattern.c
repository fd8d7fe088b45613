#include "text/pattern.h"

#include "base/text.h"
#include "text/utf8.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <stdlib.h>

struct pattern {
    pcre2_code *code; /* NULL: a string */
    char *string;
    size_t size;
};
struct pattern_matcher {
    pcre2_match_data *data;
    pcre2_match_context *context;
    pcre2_jit_stack *stack;
};

/* What Oniguruma takes for classes of characters, without the brackets. PCRE2's own \s, \d and \w differ from it. */
#define SPACES "\\x09-\\x0D\\x20\\x85\\xA0\\x{1680}\\x{2000}-\\x{200A}\\x{2028}\\x{2029}\\x{202F}\\x{205F}\\x{3000}"
#define WORDS "\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}"

/* Writes the escape at *at in PCRE2's syntax and moves on. */
static tutti_status translate_escape(const char *text, size_t size, size_t *at, bool in_class, struct text *to)
{
    const char letter = *at + 1 < size ? text[*at + 1] : 0;
    const char *const set = strchr("sS", letter) ? SPACES : strchr("wW", letter) ? WORDS : "\\p{Nd}";
    if (!letter) return fail(TUTTI_FORMAT, "the tokenizer's pattern ends with a backslash");
    *at += 2;
    if (strchr("sdw", letter))
        text_append(to, in_class ? "%s" : "[%s]", set);
    else if (strchr("SDW", letter) && !in_class)
        text_append(to, "[^%s]", set);
    else if (letter == 'D')
        text_append(to, "\\P{Nd}");
    else if (letter == 'u' && *at + 4 <= size)
        text_append(to, "\\x{%.4s}", text + *at), *at += 4;
    else if (strchr("pPx", letter)) {
        const char *end = *at < size && text[*at] == '{' ? memchr(text + *at, '}', size - *at) : NULL;
        const size_t bytes = end ? (size_t)(end - text) + 1 - *at : 0;
        text_append(to, "\\%c%.*s", letter, (int)bytes, text + *at);
        *at += bytes;
    } else if (strchr("rntfvaeAzZbB", letter))
        text_append(to, "\\%c", letter);
    else if (strchr("\\.^$|()[]{}*+?-/'\"#&~!@%,:;<>=_` ", letter))
        text_append(to, "\\%c", letter);
    else
        return fail(TUTTI_UNSUPPORTED, "\"\\%c\" in the tokenizer's pattern is not supported", letter);
    return TUTTI_OK;
}

/* What means something else in PCRE2, or may: "" if nothing does. */
static const char *foreign(const char *text, size_t size, size_t at, bool in_class)
{
    static const char *const outside[] = { "(?m", "(?x", "(?<", "{,", "(?~", "\\G", "(?s" };
    static const char *const inside[] = { "&&", "[" };
    const char *const *words = in_class ? inside : outside;
    const size_t count = in_class ? sizeof(inside) / sizeof(*inside) : sizeof(outside) / sizeof(*outside);
    for (size_t i = 0; i < count; i++) {
        const size_t bytes = strlen(words[i]);
        const bool lookbehind = !strcmp(words[i], "(?<") && at + 3 < size && strchr("=!", text[at + 3]);
        if (size - at >= bytes && !memcmp(text + at, words[i], bytes) && !lookbehind) return words[i];
    }
    if (!in_class && text[at] == '}' && at + 1 < size && text[at + 1] == '+') return "}+";
    return NULL;
}

static tutti_status translate(const char *text, size_t size, struct text *to)
{
    bool in_class = false;
    for (size_t at = 0; at < size;) {
        const char *word = foreign(text, size, at, in_class);
        if (word) return fail(TUTTI_UNSUPPORTED, "\"%s\" in the tokenizer's pattern is not supported", word);
        if (text[at] == '\\') {
            tutti_status status = translate_escape(text, size, &at, in_class, to);
            if (status != TUTTI_OK) return status;
            continue;
        }
        if (text[at] == '[' && !in_class) {
            in_class = true;
            text_append(to, at + 1 < size && text[at + 1] == '^' ? "[^" : "[");
            at += at + 1 < size && text[at + 1] == '^' ? 2 : 1;
            continue;
        }
        if (text[at] == ']') in_class = false;
        text_append(to, "%c", text[at++]);
    }
    return to->failed ? TUTTI_NO_MEMORY : TUTTI_OK;
}

static tutti_status compile(struct pattern *pattern, const char *text, size_t size)
{
    struct text translated = { 0 };
    tutti_status status = translate(text, size, &translated);
    if (status == TUTTI_OK) {
        int error;
        PCRE2_SIZE offset;
        pattern->code = pcre2_compile((PCRE2_SPTR)(translated.data ? translated.data : ""), translated.size,
            PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C, &error, &offset, NULL);
        char message[128] = "";
        if (!pattern->code) {
            pcre2_get_error_message(error, (PCRE2_UCHAR *)message, sizeof(message));
            status = fail(TUTTI_UNSUPPORTED, "the tokenizer's pattern \"%s\" is not supported: %s",
                text_printable(text).text, message);
        } else
            pcre2_jit_compile(pattern->code, PCRE2_JIT_COMPLETE); /* where there is no JIT, it is interpreted */
    }
    text_free(&translated);
    return status;
}

tutti_status pattern_new(struct pattern **result, const char *text, size_t size, bool is_regex)
{
    struct pattern *pattern = memory_new(1, sizeof(*pattern));
    if (!pattern) return TUTTI_NO_MEMORY;
    *result = pattern;
    if (is_regex) return compile(pattern, text, size);
    pattern->string = memory_new(size + 1, 1);
    if (!pattern->string) return TUTTI_NO_MEMORY;
    memcpy(pattern->string, text, size);
    pattern->size = size;
    return TUTTI_OK;
}

tutti_status pattern_read(struct pattern **pattern, const json_t *json)
{
    const json_t *string = json_object_get(json, "String"), *regex = json_object_get(json, "Regex");
    const json_t *given = string ? string : regex;
    if (!json_is_string(given) || (string && regex) || json_string_length(given) == 0)
        return fail(TUTTI_FORMAT, "the tokenizer's \"pattern\" must be a \"String\" or a \"Regex\"");
    return pattern_new(pattern, json_string_value(given), json_string_length(given), !string);
}

void pattern_free(struct pattern *pattern)
{
    if (!pattern) return;
    pcre2_code_free(pattern->code);
    free(pattern->string);
    free(pattern);
}

tutti_status pattern_matcher_new(struct pattern_matcher **result)
{
    struct pattern_matcher *matcher = memory_new(1, sizeof(*matcher));
    if (!matcher) return TUTTI_NO_MEMORY;
    *result = matcher;
    matcher->data = pcre2_match_data_create(1, NULL);
    matcher->context = pcre2_match_context_create(NULL);
    matcher->stack = pcre2_jit_stack_create(32 << 10, 8 << 20, NULL);
    if (!matcher->data || !matcher->context || !matcher->stack)
        return fail(TUTTI_NO_MEMORY, "no memory on the host to match patterns");
    pcre2_jit_stack_assign(matcher->context, NULL, matcher->stack);
    return TUTTI_OK;
}

void pattern_matcher_free(struct pattern_matcher *matcher)
{
    if (!matcher) return;
    pcre2_match_data_free(matcher->data);
    pcre2_match_context_free(matcher->context);
    pcre2_jit_stack_free(matcher->stack);
    free(matcher);
}

static tutti_status find(struct pattern_walk *walk, bool *found)
{
    const struct pattern *pattern = walk->pattern;
    if (!pattern->code) {
        const char *at = memmem(walk->text + walk->at, walk->size - walk->at, pattern->string, pattern->size);
        *found = at != NULL;
        if (at) walk->begin = (size_t)(at - walk->text), walk->end = walk->begin + pattern->size;
        return TUTTI_OK;
    }
    const int result = pcre2_match(pattern->code, (PCRE2_SPTR)walk->text, walk->size, walk->at, PCRE2_NO_UTF_CHECK,
        walk->matcher->data, walk->matcher->context);
    *found = result >= 0;
    if (result < 0 && result != PCRE2_ERROR_NOMATCH)
        return fail(TUTTI_FORMAT, "the tokenizer's pattern takes too long in a text of %zu bytes", walk->size);
    const PCRE2_SIZE *range = pcre2_get_ovector_pointer(walk->matcher->data);
    if (*found) walk->begin = range[0], walk->end = range[1];
    return TUTTI_OK;
}

tutti_status pattern_next(struct pattern_walk *walk, bool *found)
{
    for (;;) {
        *found = false;
        if (walk->at > walk->size) return TUTTI_OK;
        tutti_status status = find(walk, found);
        if (status != TUTTI_OK || !*found) return status;
        const bool empty = walk->begin == walk->end;
        walk->at = walk->end;
        if (!empty || walk->end != walk->last) break;
        /* An empty match where the last one ended does not count. */
        walk->at += walk->at < walk->size ? utf8_size(walk->text[walk->at]) : 1;
    }
    walk->last = walk->end;
    return TUTTI_OK;
}
