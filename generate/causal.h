/* Whether a token sees no later one. */
#ifndef GENERATE_CAUSAL_H
#define GENERATE_CAUSAL_H

#include "graph/network.h"

/* Numbers of a network's values for a short text, as far as they are needed. */
struct causal {
    const tutti_network *network;
    struct graph graph; /* with a short length */
    double **numbers;   /* of each value; NULL: not yet */
};

/* capacity: tokens of the longest text. Close it also after a failure. */
tutti_status causal_open(struct causal *causal, const tutti_network *network, int64_t capacity);
void causal_close(struct causal *causal);
/* Sets *holds: of the weights `value`, [..., tokens, seen tokens], those of later tokens are 0, whatever the products
 * of queries and keys are. */
tutti_status causal_check(struct causal *causal, int value, bool *holds);

#endif
