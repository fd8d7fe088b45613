/* Reading a case's line. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/layers/cases.h"

double case_get_real(const struct test_case *c, const char *key, double fallback)
{
    for (int i = 0; i < c->count; i++)
        if (!strcmp(c->words[i].key, key)) return c->words[i].value;
    return fallback;
}

int64_t case_get(const struct test_case *c, const char *key, int64_t fallback)
{
    return (int64_t)case_get_real(c, key, (double)fallback);
}

/* One word: a name of letters and a number, such as k3, or any name, = and a number, such as log2=1. */
static bool parse_word(const char *word, size_t size, struct test_case *c)
{
    const char *equals = memchr(word, '=', size), *number = equals ? equals + 1 : word;
    while (!equals && number < word + size && (isalpha((unsigned char)*number) || *number == '_')) number++;
    const size_t length = (size_t)((equals ? equals : number) - word);
    char *end = NULL;
    const double value = strtod(number, &end);
    if (!length || number == word + size || length >= sizeof c->words[0].key || end != word + size) return false;
    if (c->count >= (int)(sizeof c->words / sizeof *c->words)) return false;
    memcpy(c->words[c->count].key, word, length);
    c->words[c->count].key[length] = 0;
    c->words[c->count++].value = value;
    return true;
}

bool case_parse(const char *line, struct test_case *c)
{
    *c = (struct test_case) { .line = line,
        .constants = { .seed_low = 7, .seed_high = 11, .step_low = 3, .first_sample = 5, .gradient_weight = 0.5f } };
    const char *at = line + strcspn(line, " ");
    while (*at) {
        at += strspn(at, " ");
        size_t size = strcspn(at, " ");
        if (size && !parse_word(at, size, c)) {
            fprintf(stderr, "%s: cannot read '%.*s': a word is letters and a number, or name=number\n", line, (int)size,
                at);
            return false;
        }
        at += size;
    }
    return true;
}
