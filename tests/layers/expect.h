/* What a case must give: made once, in double, before any device runs. */
#ifndef TESTS_LAYERS_EXPECT_H
#define TESTS_LAYERS_EXPECT_H

#include "base/text.h"
#include "plan/start.h"
#include "tests/layers/cases.h"

enum { MAX_TENSORS = 1 + 64 }; /* the input, then the parameters */

/* The gradient of L = sum of seed * y by one tensor: at some positions, and along some directions of +-1. */
struct expected_gradient {
    int64_t elements, samples;
    int64_t *positions;
    double *values; /* at the positions */
    double along[2];
    bool known; /* false: a running statistic, or an operation without gradient */
};

struct expectation {
    const struct operation_test *test;
    struct test_case c;
    tutti_network *network;
    tutti_tensor output;
    struct objective objective;
    bool has_loss;
    int64_t samples, input_elements, output_elements, length;
    enum tolerance_class class;
    /* TUTTI_BF16: CPU-class devices store values so where kernels can. But for TUTTI_FP32 input and seed are such
     * numbers; for GPU-class devices, which round what they multiply, parameters are too. */
    tutti_precision precision;
    bool whole_numbers;                        /* the input is of int32, whose bits `input` holds */
    float *input, *seed, *parameters, *frozen; /* parameters, frozen: the whole arenas */
    void *targets;                             /* of a loss */
    double *doubles[MAX_TENSORS];              /* the input and each parameter */
    int tensors;
    double *y, *y_inference; /* y_inference: NULL where it is y */
    double loss[2];          /* of a loss: sum over the samples, number of correct ones */
    struct expected_gradient gradients[MAX_TENSORS];
};

/* Builds the case's network and computes all that. Problems are appended to `problems`; false if the case cannot run.
 */
bool expectation_make(struct expectation *e, struct tutti_runtime *runtime, const struct operation_test *test,
    const char *line, bool gradients, tutti_precision precision, struct text *problems);
/* Whether input, output and all parameters together have at most so many numbers each. */
bool case_is_within(struct tutti_runtime *runtime, const struct operation_test *test, const char *line, int64_t most);
void expectation_free(struct expectation *e);
/* +1 or -1: the direction-th direction at element i of a tensor. */
double direction_sign(int direction, int tensor, int64_t i);

/* Compare what a device gave; each difference is appended to `problems`, at most a few for each array. */
void compare_array(
    const char *what, const float *got, const double *want, int64_t count, double limit, struct text *problems);
void compare_gradient(const char *what, int tensor, const float *got, const struct expected_gradient *want,
    double limit, struct text *problems);

/* Runs the case on one device with one choice of implementations (NULL: the plan's own), and compares. chosen: what the
 * plan took, "conv2d=plain,...". others: NULL, or CHOICES texts for the further choices that the nodes have, empty
 * where there are no more: the n-th holds each node's n-th implementation that fits. */
enum { CHOICES = 12 };
extern bool run_once; /* no second training step, which must give the same bytes: for interpreters, which take long */
struct device;
struct plan;
void run_case(const struct expectation *e, struct device *device, const char *force, bool gradients,
    struct text *problems, struct text *chosen, struct text *others);
void describe_choices(const struct plan *plan, struct text *chosen, struct text *others);
/* Prints time and GFLOP/s of each node; prints what was chosen and refused. False with a message on failure. */
bool measure_speed(const struct expectation *e, struct device *device, const char *force);
bool print_support(const struct expectation *e, struct device *device);

/* --record: what each run launches. */
bool record_open(const char *path);
bool record_close(void);
void record_run(const struct device *device, const char *line, const char *force);
void record_plan(const struct plan *plan);

#endif
