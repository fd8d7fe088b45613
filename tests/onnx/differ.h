/* Shared by the files of tests/onnx/differ.c. */
#ifndef TESTS_ONNX_DIFFER_H
#define TESTS_ONNX_DIFFER_H

#include "tests/interpreted.h"
#include "tests/onnx/conform.h"

struct session {
    tutti_runtime *runtime;
    struct conform_test test; /* its arrays, inputs and outputs */
    tutti_onnx model;
    tutti_trainer *trainer;
    tutti_feed feeds[TUTTI_ONNX_PORTS + 1];
    int feed_count;
    int64_t samples;
    bool whole;
    bool interprets; /* in double precision, without a kernel */
    struct interpreted made;
    bool verdict;          /* a verdict was printed */
    char warnings[4096];   /* of the import */
    const char *untrained; /* a parameter of which a warning says that it does not train; NULL: none */
    double worst;          /* the largest error, in limits */
};

const struct safetensors_tensor *record_find(const struct session *s, const char *kind, const char *name);
/* The interpreter computes the outputs, or a step's gradients: first of the target, then again after an update by SGD.
 */
tutti_status interpreted_infer(struct session *s, const tutti_fetch *fetches);
tutti_status interpreted_train(struct session *s);
tutti_status interpreted_again(struct session *s);
void interpreted_update(struct session *s, double rate);
/* Reads the gradient or the value of a parameter, by its name, as floats. */
tutti_status interpreted_gradient_of(struct session *s, const char *name, float *values, int64_t count);
tutti_status interpreted_value_of(struct session *s, const char *name, float *values, int64_t count);

#endif
