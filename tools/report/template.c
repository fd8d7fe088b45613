#include "tools/report/template.h"

#include "tools/report/page_text.h"

#include <stdlib.h>
#include <string.h>

struct tag {
    char kind; /* one of "#^/{", or 0 */
    char name[32], format[16];
};

/* A value whose members are known by their names, and the values around it. */
struct scope {
    const json_t *value;
    const struct scope *outer;
};

/* Reads the tag after "{{". Returns what follows it. */
static const char *read_tag(const char *at, struct tag *tag)
{
    tag->kind = *at && strchr("#^/{", *at) ? *at++ : 0;
    const size_t name = strcspn(at, "|}");
    snprintf(tag->name, sizeof(tag->name), "%.*s", (int)name, at);
    at += name + (at[name] == '|');
    const size_t format = strcspn(at, "}");
    snprintf(tag->format, sizeof(tag->format), "%.*s", (int)format, at);
    at += format;
    return at + strspn(at, "}");
}

static const json_t *find(const struct scope *scope, const char *name)
{
    const json_t *value = NULL;
    if (!strcmp(name, ".")) return scope->value;
    for (; scope && !value; scope = scope->outer) value = json_object_get(scope->value, name);
    return value;
}

static void fill_number(struct text *page, double value, const char *format)
{
    static const struct {
        const char *name;
        const char *(*print)(double value, char *buffer, size_t size);
    } words[] = { { "count", format_count }, { "bytes", format_bytes }, { "seconds", format_seconds } };
    char text[48];
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        if (!strcmp(format, words[i].name)) text_append(page, "%s", words[i].print(value, text, sizeof(text)));
    if (!*format) text_append(page, "%.15g", value);
    if (*format != '.') return;
    const int digits = format[1] - '0';
    if (format[2] == 'g')
        text_append(page, "%.*g", digits, value);
    else if (format[2] == 'f')
        text_append(page, "%.*f", digits, value);
    else
        text_append(page, "%.*f %%", digits, 100 * value);
}

/* Appends an object; its texts cannot end the element around it. */
static void fill_data(struct text *page, const json_t *value)
{
    char *data = json_dumps(value, JSON_REAL_PRECISION(9));
    page->failed |= !data;
    for (const char *at = data; at && *at;) {
        const size_t plain = strcspn(at, "<");
        text_append(page, "%.*s%s", (int)plain, at, at[plain] ? "\\u003c" : "");
        at += plain + (at[plain] == '<');
    }
    free(data);
}

static void fill_value(struct text *page, const json_t *value, const struct tag *tag)
{
    const char *string = json_string_value(value);
    if (json_is_number(value))
        fill_number(page, json_number_value(value), tag->format);
    else if (json_is_object(value))
        fill_data(page, value);
    else if (string && tag->kind == '{')
        text_append(page, "%s", string);
    else if (string && *tag->format)
        page_text_cut(page, string, atoi(tag->format));
    else if (string)
        page_text(page, string);
}

/* Appends the template until the end of its section; NULL: passes over it. Returns what follows. */
static const char *fill(struct text *page, const char *at, const struct scope *scope)
{
    struct tag tag;
    for (;;) {
        const char *open = strstr(at, "{{");
        if (page) text_append(page, "%.*s", (int)(open ? (size_t)(open - at) : strlen(at)), at);
        if (!open) return at + strlen(at);
        at = read_tag(open + 2, &tag);
        if (tag.kind == '/') return at;
        const json_t *value = page ? find(scope, tag.name) : NULL;
        if (tag.kind != '#' && tag.kind != '^') {
            if (page) fill_value(page, value, &tag);
            continue;
        }
        const bool list = json_is_array(value), whole = value && !json_is_null(value) && !json_is_false(value);
        const size_t count = list ? json_array_size(value) : whole;
        for (size_t i = 0; i < count && tag.kind == '#'; i++)
            fill(page, at, &(struct scope) { list ? json_array_get(value, i) : value, scope });
        at = fill(tag.kind == '^' && !count ? page : NULL, at, scope);
    }
}

void template_fill(struct text *page, const char *template, const json_t *facts)
{
    fill(page, template, &(struct scope) { .value = facts });
}
