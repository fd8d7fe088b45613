/* The walk through a network that decode.c makes another one of.
 *
 * Values of the network have an axis of size TUTTI_SEQUENCE for the tokens of a text; scores of attention have two, the
 * second for what is seen. The walk makes two forms of a value, each when it is needed:
 *   LOCAL  of the tokens of a call: TUTTI_SEQUENCE is their number; a second such axis has the size `capacity`
 *   WHOLE  of all positions of a text: axes of TUTTI_SEQUENCE have the size `capacity`. Of values that depend on the
 *          tokens, it is a cache into which each call writes its rows. */
#ifndef GENERATE_WALK_H
#define GENERATE_WALK_H

#include "generate/causal.h"
#include "generate/decode.h"

enum form { LOCAL, WHOLE, FORMS };

struct walk;
/* What nodes do with axes of tokens: rules.h. */
struct rules {
    /* Computes output `output` of a node of `from` in its LOCAL form. */
    int (*local)(struct walk *walk, const struct node *node, int output);
    /* Whether the node only moves or scales what it reads, so that a cache may lie before it. */
    bool (*moves)(const struct walk *walk, const struct node *node);
};

struct walk {
    const struct rules *rules;
    const tutti_network *from;
    struct decoding *made;
    struct graph bound; /* the graph of `from` with the capacity as its length */
    int64_t capacity;
    int ids;           /* of `from` */
    bool *depends;     /* for each value of `from`: on ids or other inputs */
    bool *wide;        /* for each: it has two axes of tokens, or a value that it is made of has */
    int *forms[FORMS]; /* for each value of `from`, the value of the network that is made; UNKNOWN */
    struct causal causal;
    int *parameters; /* for each parameter: its value; constants that are equal are one */
    tutti_status status;
};
enum { UNKNOWN = -2 };

/* Axes of TUTTI_SEQUENCE, counted from the last axis. `column` is the last one of two, or -1; row -1: there is none. */
struct token_axes {
    int count, row, column;
};
struct token_axes token_axes(const struct value *value);

/* Keeps the first failure. Returns NO_VALUE. */
int walk_fail(struct walk *walk, tutti_status status);
/* Return the form of a value, or NO_VALUE after a failure, which walk->status keeps. */
int walk_local(struct walk *walk, int value);
int walk_whole(struct walk *walk, int value);
/* Fails for the node. `why` goes on a sentence that names it. Returns NO_VALUE. */
int walk_refuse(struct walk *walk, const struct node *node, const char *why);
/* Appends a node, or finds one that computes the same. Returns its first output. */
int walk_append(struct walk *walk, const struct operation *operation, const void *attributes, const int *inputs,
    int count, int layer);
/* What did not depend on the text has got its batch before its other axes: puts 1 between, up to this rank, so that
 * broadcasts align these axes as before. `from`: the value of which `made` is a form. */
int walk_align(struct walk *walk, int made, const struct value *from, int rank);
/* The value of `from`. */
const struct value *walk_value(const struct walk *walk, int value);
/* Replaces TUTTI_SEQUENCE in the node's attributes by the capacity: after the first `keep` ones of each shape. */
void walk_bind(const struct walk *walk, struct node *node, int keep);
/* Adds a state: an input of this shape without the batch. */
int walk_state(struct walk *walk, tutti_shape shape);
void walk_carry(struct walk *walk, int output, int input);

#endif
