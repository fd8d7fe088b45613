/* Models of a tokenizer.json: a piece of text to ids. */
#ifndef TEXT_MODEL_H
#define TEXT_MODEL_H

#include "text/fields.h"
#include "text/vocabulary.h"

struct model;
/* What a thread needs to encode: arrays, and the words that it met. */
struct model_work {
    struct byte_list text;
    struct symbol {
        int32_t id, before, next; /* before, next: indices; -1: none, or removed */
    } * symbols;
    struct merge_candidate {
        uint32_t rank, at;
        int32_t left, right; /* ids that it would merge */
    } * heap;
    size_t symbol_capacity, heap_capacity, heap_size;
    struct path_node {
        double score;
        int32_t id, begin; /* begin: where the best token that ends here begins; -1: none */
    } * path;
    size_t path_capacity;
    struct cached_word *cache;
};
struct model_kind {
    const char *name;
    tutti_status (*read)(struct model *model, const json_t *json);
    tutti_status (*encode)(
        const struct model *model, struct model_work *work, const char *text, size_t size, struct id_list *ids);
};
struct model {
    const struct model_kind *kind;
    struct vocabulary vocabulary;
    int32_t unknown;          /* -1: none */
    bool has_unknown;         /* the file names a token for what is unknown */
    bool byte_fallback;       /* what is unknown becomes tokens of its bytes, <0x00> to <0xFF> */
    int32_t byte_tokens[256]; /* their ids; -1: none */
    /* BPE */
    struct merge {
        int32_t left, right, id;
        uint32_t rank;
    } * merges; /* hash table; left is -1 in empty slots */
    size_t merge_slots;
    bool fuse_unknown, ignore_merges;
    bool raw_bytes; /* texts are bytes, whose characters the vocabulary has */
    int32_t byte_characters[256];
    char *prefix, *suffix; /* WordPiece has the prefix, too */
    size_t prefix_size, suffix_size;
    /* WordPiece */
    int64_t longest_word;
    /* Unigram */
    double *scores, unknown_score;
    struct score_edge {
        uint32_t node; /* 0: empty */
        uint32_t child;
        int32_t id; /* of the token that ends at the child; -1: none */
        unsigned char byte;
    } * edges; /* hash table of a tree of tokens; the root is node 1 */
    size_t edge_slots;
};

extern const struct model_kind model_bpe, model_wordpiece, model_wordlevel, model_unigram;

tutti_status model_read(struct model *model, const json_t *json);
void model_free(struct model *model);
/* Appends the ids of a piece, which is valid UTF-8. */
tutti_status model_encode(
    const struct model *model, struct model_work *work, const char *text, size_t size, struct id_list *ids);
void model_work_free(struct model_work *work);

/* For the kinds: reads an object of tokens to ids, and the token for what is unknown. */
tutti_status model_read_vocabulary(struct model *model, const json_t *json);
tutti_status model_read_unknown(struct model *model, const json_t *json, const char *fallback);
tutti_status model_read_affix(const json_t *json, const char *name, const char *fallback, char **affix, size_t *size);
void model_find_byte_tokens(struct model *model);
/* Appends the tokens of the bytes; false: one has none, and nothing was appended. */
bool model_append_bytes(const struct model *model, const char *text, size_t size, struct id_list *ids);
tutti_status model_fail_unknown(void);

#endif
