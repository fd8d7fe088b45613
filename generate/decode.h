/* Makes, of a network that predicts the next token at each position of a text, one that takes some tokens at a time and
 * keeps what it needs of those before: keys and values of attention, states of recurrent layers. */
#ifndef GENERATE_DECODE_H
#define GENERATE_DECODE_H

#include "graph/network.h"

/* The network; inputs are ids and positions, int32 [TUTTI_SEQUENCE], and states, which tutti_carry carries. */
struct decoding {
    tutti_network *network;
    tutti_tensor ids, positions, logits; /* logits [TUTTI_SEQUENCE, vocabulary] */
    tutti_carry *carries;                /* an output and the input that it is in the next call */
    size_t carry_count, carry_capacity;
};

/* ids, logits: tensors of `from`, [TUTTI_SEQUENCE] and [TUTTI_SEQUENCE, vocabulary]. capacity: tokens of the longest
 * text. Parameters and constants are those of `from`, in their order. Errors: TUTTI_UNSUPPORTED where a layer cannot
 * work on some tokens at a time. Free it with decode_free(). */
tutti_status decode_make(
    const tutti_network *from, tutti_tensor ids, tutti_tensor logits, int64_t capacity, struct decoding *decoding);
void decode_free(struct decoding *decoding);

#endif
