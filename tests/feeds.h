/* Feeds and fetches of networks with one input, one array of targets and one output, as arguments of the public calls.
 */
#ifndef TESTS_FEEDS_H
#define TESTS_FEEDS_H

#include "tutti.h"

/* Targets are floats or class numbers. */
#define FEED_DTYPE(array) \
    _Generic((array), float * : TUTTI_DTYPE_F32, const float * : TUTTI_DTYPE_F32, default : TUTTI_DTYPE_I32)
#define FEED_ONE(inputs) (tutti_feed[]) { { NULL, TUTTI_DTYPE_F32, (inputs) } }, 1
#define FEED_PAIR(inputs, targets) \
    (tutti_feed[]) { { NULL, TUTTI_DTYPE_F32, (inputs) }, { NULL, FEED_DTYPE(targets), (targets) } }, 2
#define FETCH_ONE(fetched, array) (tutti_fetch[]) { { (fetched), TUTTI_DTYPE_F32, (array) } }, 1
/* Fetches the first output of a trainer. For tests that include its internals. */
#define FETCH_FIRST(trainer, array) FETCH_ONE(((tutti_tensor) { (trainer)->objective.outputs[0] }), array)

#endif
