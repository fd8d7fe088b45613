/* Whether a token sees no later one, and whether what depends on positions is the same in longer texts. Both are found
 * by computing values of short texts, on the host. */
#ifndef GENERATE_CAUSAL_H
#define GENERATE_CAUSAL_H

#include "graph/network.h"

/* Numbers of a network's values for a text of one length, as far as they are needed. */
struct short_text {
    struct graph graph;
    double **numbers; /* of each value; NULL: not yet */
};
struct causal {
    const tutti_network *network;
    const bool *depends; /* for each value: on the text */
    struct short_text shorter, longer;
};

/* capacity: tokens of the longest text. Close it also after a failure. */
tutti_status causal_open(struct causal *causal, const tutti_network *network, const bool *depends, int64_t capacity);
void causal_close(struct causal *causal);
/* Sets *holds: of `value`, [..., tokens, seen tokens], what is of later tokens is this number, whatever products of the
 * text are. */
tutti_status causal_check(struct causal *causal, int value, double later, bool *holds);
/* Sets *holds: the value, which does not depend on the text, has the same numbers in a longer text, where both have. */
tutti_status causal_check_lengths(struct causal *causal, int value, bool *holds);

#endif
