/* Added tokens: they are found in the text before the model sees it. */
#ifndef TEXT_ADDED_H
#define TEXT_ADDED_H

#include "text/fields.h"
#include "text/normalise.h"
#include "text/vocabulary.h"

struct added_token {
    int32_t id;
    char *content, *pattern; /* pattern: what is found in the text; normalised, if `normalised` */
    size_t size, pattern_size;
    bool single_word, left, right, normalised, special;
};
/* Patterns by their bytes: a tree whose nodes have a first child and a next sibling. */
struct pattern_tree {
    struct tree_node {
        int32_t child, next, token; /* indices; 0 and -1: none */
        unsigned char byte;
    } * nodes;
    size_t count, capacity;
    int32_t roots[256];
};
struct added_list {
    struct added_token *tokens;
    size_t count, capacity;
    struct vocabulary ids; /* of the contents, by the index in `tokens` */
    int32_t *by_id;        /* [id_count]: indices; -1: none */
    size_t id_count;
    struct pattern_tree raw, normal; /* of tokens that are found before and after normalisation */
};

/* A part of a text: a token if it is not below 0. */
struct added_part {
    size_t begin, end;
    int32_t token;
};
struct added_walk {
    const struct added_list *list;
    const struct pattern_tree *tree;
    const char *text;
    size_t size, at, done;
    struct added_part held; /* a token that was found after text */
    bool has_held;
};

/* json: "added_tokens", or NULL. model: the vocabulary of the model. TUTTI_FORMAT if ids are not those that follow from
 * the model's. */
tutti_status added_read(struct added_list *list, const json_t *json, const struct vocabulary *model,
    const struct normaliser_list *normalisers, struct pattern_matcher *matcher);
void added_free(struct added_list *list);
const struct added_token *added_find(const struct added_list *list, int64_t id); /* NULL: none */
/* Walks over the parts of a text. */
bool added_next(struct added_walk *walk, struct added_part *part);

#endif
