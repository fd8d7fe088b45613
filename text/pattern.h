/* What splits or replaces text: a string, or a regular expression of Oniguruma's syntax, matched by PCRE2. */
#ifndef TEXT_PATTERN_H
#define TEXT_PATTERN_H

#include "text/fields.h"

struct pattern;
/* What a thread needs to match. */
struct pattern_matcher;

/* text: of this size; is_regex: it is an expression. TUTTI_UNSUPPORTED, with the part that has no equal in PCRE2. */
tutti_status pattern_new(struct pattern **pattern, const char *text, size_t size, bool is_regex);
/* {"String": text} or {"Regex": text}. */
tutti_status pattern_read(struct pattern **pattern, const json_t *json);
void pattern_free(struct pattern *pattern); /* takes NULL */

tutti_status pattern_matcher_new(struct pattern_matcher **matcher);
void pattern_matcher_free(struct pattern_matcher *matcher); /* takes NULL */

/* A walk over the matches in a text. */
struct pattern_walk {
    const struct pattern *pattern;
    struct pattern_matcher *matcher;
    const char *text;
    size_t size, at, last; /* last: where the previous match ended; SIZE_MAX: none */
    size_t begin, end;     /* the match that was found */
};
/* Finds the next match: *found. Errors: TUTTI_FORMAT if the expression takes too long. */
tutti_status pattern_next(struct pattern_walk *walk, bool *found);
static inline struct pattern_walk pattern_begin(
    const struct pattern *pattern, struct pattern_matcher *matcher, const char *text, size_t size)
{
    return (
        struct pattern_walk) { .pattern = pattern, .matcher = matcher, .text = text, .size = size, .last = SIZE_MAX };
}

#endif
