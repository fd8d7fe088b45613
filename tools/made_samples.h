/* Samples made for measuring: for all inputs of a network, its loss and its output. */
#ifndef TOOLS_MADE_SAMPLES_H
#define TOOLS_MADE_SAMPLES_H

#include "tools/session.h"

struct made_samples {
    tutti_feed feeds[TUTTI_ONNX_PORTS + 1];
    int input_count; /* the targets are the feed after them */
    tutti_fetch fetch;
    void *arrays[TUTTI_ONNX_PORTS + 2];
    int array_count;
};

/* The loss that measures a training: the model's; of a file whose output is not classes, the mean squared error. */
tutti_loss measured_loss(const struct session *session);
/* Makes samples for a network that is built, but not compiled yet. Floats are random, integers are 1, booleans are
 * true. Errors: TUTTI_NO_MEMORY, TUTTI_INVALID for a batch that does not fit the memory. */
tutti_status made_samples_new(const struct session *session, struct made_samples *made);
void made_samples_free(struct made_samples *made);

#endif
