#include "text/added.h"

#include "base/text.h"
#include "text/unicode.h"
#include "text/utf8.h"

#include <stdlib.h>

/* ----------------------------------------------------------------------------------------------------- the tree ----
 */

static tutti_status add_node(struct pattern_tree *tree, unsigned char byte, int32_t *link)
{
    const tutti_status status =
        memory_grow((void **)&tree->nodes, &tree->capacity, tree->count + 2, sizeof(*tree->nodes));
    if (status != TUTTI_OK) return status;
    if (tree->count == 0) tree->count = 1; /* index 0 stands for none */
    tree->nodes[tree->count] = (struct tree_node) { .token = -1, .byte = byte };
    *link = (int32_t)tree->count++;
    return TUTTI_OK;
}

static int32_t child_of(const struct pattern_tree *tree, int32_t node, unsigned char byte)
{
    int32_t child = tree->nodes[node].child;
    while (child && tree->nodes[child].byte != byte) child = tree->nodes[child].next;
    return child;
}

static tutti_status insert(struct pattern_tree *tree, const struct added_token *token, int32_t index)
{
    int32_t node = 0;
    for (size_t i = 0; i < token->pattern_size; i++) {
        const unsigned char byte = (unsigned char)token->pattern[i];
        int32_t next = i == 0 ? tree->roots[byte] : child_of(tree, node, byte);
        if (!next) {
            const tutti_status status = add_node(tree, byte, &next);
            if (status != TUTTI_OK) return status;
            if (i == 0)
                tree->roots[byte] = next;
            else
                tree->nodes[next].next = tree->nodes[node].child, tree->nodes[node].child = next;
        }
        node = next;
    }
    if (tree->nodes[node].token >= 0)
        return fail(TUTTI_FORMAT, "two added tokens of the tokenizer are both \"%s\" in texts",
            text_printable(token->pattern).text);
    tree->nodes[node].token = index;
    return TUTTI_OK;
}

/* The longest token that begins here; -1: none. */
static int32_t longest(const struct added_walk *walk, size_t at, size_t *end)
{
    const struct pattern_tree *tree = walk->tree;
    int32_t found = -1, node = tree->roots[(unsigned char)walk->text[at]];
    for (size_t i = at + 1; node; i++) {
        if (tree->nodes[node].token >= 0) found = tree->nodes[node].token, *end = i;
        if (i == walk->size) break;
        node = child_of(tree, node, (unsigned char)walk->text[i]);
    }
    return found;
}

/* ----------------------------------------------------------------------------------------------------- the walk ----
 */

static bool is_apart(const struct added_walk *walk, size_t begin, size_t end)
{
    if (begin > 0) {
        size_t before = utf8_before(walk->text, begin);
        if (unicode_is_word(utf8_next(walk->text, &before))) return false;
    }
    return end == walk->size || !unicode_is_word(utf8_next(walk->text, &end));
}

/* With the spaces before and after it that belong to it. */
static struct added_part with_spaces(
    const struct added_walk *walk, const struct added_token *token, size_t begin, size_t end, int32_t index)
{
    while (token->left && begin > walk->done) {
        const size_t before = utf8_before(walk->text, begin);
        size_t at = before;
        if (!unicode_is_space(utf8_next(walk->text, &at))) break;
        begin = before;
    }
    while (token->right && end < walk->size) {
        size_t next = end;
        if (!unicode_is_space(utf8_next(walk->text, &next))) break;
        end = next;
    }
    return (struct added_part) { begin, end, index };
}

bool added_next(struct added_walk *walk, struct added_part *part)
{
    if (walk->has_held) {
        *part = walk->held;
        walk->has_held = false;
        return true;
    }
    while (walk->tree->count && walk->at < walk->size) {
        size_t end = walk->at;
        const int32_t index = longest(walk, walk->at, &end);
        if (index < 0) {
            walk->at++;
            continue;
        }
        const size_t begin = walk->at;
        const struct added_token *token = &walk->list->tokens[index];
        walk->at = end;
        if (token->single_word && !is_apart(walk, begin, end)) continue;
        const struct added_part found = with_spaces(walk, token, begin, end, index);
        const size_t done = walk->done;
        walk->done = found.end;
        *part = found;
        if (done >= found.begin) return true;
        walk->held = found;
        walk->has_held = true;
        *part = (struct added_part) { done, found.begin, -1 };
        return true;
    }
    if (walk->done >= walk->size) return false;
    *part = (struct added_part) { walk->done, walk->size, -1 };
    walk->done = walk->at = walk->size;
    return true;
}

/* -------------------------------------------------------------------------------------------------- from a file ----
 */

static tutti_status read_flags(struct added_token *token, const json_t *json)
{
    tutti_status status = field_flag(json, "special", false, &token->special);
    if (status == TUTTI_OK) status = field_flag(json, "single_word", false, &token->single_word);
    if (status == TUTTI_OK) status = field_flag(json, "lstrip", false, &token->left);
    if (status == TUTTI_OK) status = field_flag(json, "rstrip", false, &token->right);
    if (status == TUTTI_OK) status = field_flag(json, "normalized", !token->special, &token->normalised);
    return status;
}

static tutti_status normalise_pattern(
    struct added_token *token, const struct normaliser_list *normalisers, struct pattern_matcher *matcher)
{
    struct normalised work = { 0 };
    byte_list_append(&work.text, token->content, token->size);
    tutti_status status = work.text.failed ? TUTTI_NO_MEMORY : TUTTI_OK;
    if (status == TUTTI_OK && token->normalised) status = normalise(normalisers, matcher, &work);
    if (status == TUTTI_OK && work.text.size == 0)
        status = fail(TUTTI_FORMAT, "the normalizer leaves nothing of an added token of the tokenizer");
    if (status == TUTTI_OK) {
        token->pattern_size = work.text.size;
        byte_list_append(&work.text, "", 1);
        if (work.text.failed)
            status = TUTTI_NO_MEMORY;
        else
            token->pattern = work.text.data, work.text.data = NULL;
    }
    byte_list_free(&work.text);
    byte_list_free(&work.spare);
    return status;
}

static tutti_status read_token(struct added_list *list, const json_t *json, int64_t *next_id,
    const struct vocabulary *model, const struct normaliser_list *normalisers, struct pattern_matcher *matcher)
{
    const char *content;
    size_t size;
    int64_t id;
    tutti_status status = field_text(json, "content", &content, &size);
    if (status == TUTTI_OK) status = field_integer(json, "id", -1, &id);
    if (status != TUTTI_OK) return status;
    if (!content || size == 0) return fail(TUTTI_FORMAT, "an added token of the tokenizer has no \"content\"");
    const int32_t known = vocabulary_find(model, content, size);
    const int64_t expected = known >= 0 ? known : *next_id;
    if (id != expected)
        return fail(TUTTI_FORMAT, "the added token \"%s\" of the tokenizer has the id %lld where %lld follows",
            text_printable(content).text, (long long)id, (long long)expected);
    if (known < 0) ++*next_id;
    if (id >= VOCABULARY_MOST) return fail(TUTTI_FORMAT, "the tokenizer has more than %d tokens", VOCABULARY_MOST);
    status = memory_grow((void **)&list->tokens, &list->capacity, list->count + 1, sizeof(*list->tokens));
    if (status != TUTTI_OK) return status;
    status = vocabulary_add(&list->ids, content, size, (int64_t)list->count);
    if (status != TUTTI_OK) return status;
    struct added_token *token = &list->tokens[list->count++];
    *token = (struct added_token) { .id = (int32_t)id, .size = size, .content = memory_new(size + 1, 1) };
    if (!token->content) return TUTTI_NO_MEMORY;
    memcpy(token->content, content, size);
    if ((size_t)id >= list->id_count) list->id_count = (size_t)id + 1;
    status = read_flags(token, json);
    if (status == TUTTI_OK) status = normalise_pattern(token, normalisers, matcher);
    if (status != TUTTI_OK) return status;
    return insert(token->normalised ? &list->normal : &list->raw, token, (int32_t)list->count - 1);
}

tutti_status added_read(struct added_list *list, const json_t *json, const struct vocabulary *model,
    const struct normaliser_list *normalisers, struct pattern_matcher *matcher)
{
    if (json && !json_is_array(json)) return fail(TUTTI_FORMAT, "\"added_tokens\" of the tokenizer must be a list");
    int64_t next_id = (int64_t)model->count;
    for (size_t i = 0; i < json_array_size(json); i++) {
        const tutti_status status = read_token(list, json_array_get(json, i), &next_id, model, normalisers, matcher);
        if (status != TUTTI_OK) return status;
    }
    list->by_id = memory_new(list->id_count + 1, sizeof(*list->by_id));
    if (!list->by_id) return TUTTI_NO_MEMORY;
    memset(list->by_id, 0xFF, (list->id_count + 1) * sizeof(*list->by_id));
    for (size_t i = 0; i < list->count; i++) list->by_id[list->tokens[i].id] = (int32_t)i;
    return TUTTI_OK;
}

void added_free(struct added_list *list)
{
    for (size_t i = 0; i < list->count; i++) free(list->tokens[i].content), free(list->tokens[i].pattern);
    free(list->tokens);
    vocabulary_free(&list->ids);
    free(list->by_id);
    free(list->raw.nodes);
    free(list->normal.nodes);
    *list = (struct added_list) { 0 };
}

const struct added_token *added_find(const struct added_list *list, int64_t id)
{
    if (id < 0 || (size_t)id >= list->id_count || list->by_id[id] < 0) return NULL;
    return &list->tokens[list->by_id[id]];
}
