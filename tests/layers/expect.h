/* What a case must give: computed once by the interpreter, before any device runs. Finite differences of its results
 * check its gradients. */
#ifndef TESTS_LAYERS_EXPECT_H
#define TESTS_LAYERS_EXPECT_H

#include "base/text.h"
#include "plan/pipeline.h"
#include "tests/layers/cases.h"

enum { MAX_TENSORS = 1 + 64 }; /* the input, then the parameters */

/* The gradient of L = sum of seed * y, or of the loss, with respect to one tensor; for a running statistic, the value
 * that updates it. */
struct expected_gradient {
    int64_t elements;
    double *values; /* NULL: the operation has no gradient, or it is not computed */
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
    /* TUTTI_BF16: CPU-class devices store values as bfloat16 where kernels can. Unless it is TUTTI_FP32, input and
     * seed are bfloat16 numbers; so are parameters for GPU-class devices, which round what they multiply. */
    tutti_precision precision;
    enum value_type type; /* of the input: the numbers in `input` are of this type, and `fed` is what devices get */
    float *input, *seed, *parameters, *frozen; /* parameters, frozen: the whole arenas */
    void *fed;
    void *targets; /* of a loss */
    int tensors;
    /* For a loss, y is the sum over the samples and the number of correct ones. y_inference: NULL if it equals y. */
    double *y, *y_inference;
    struct expected_gradient gradients[MAX_TENSORS];
};

/* Builds the case's network and computes all that. Problems are appended to `problems`; false if the case cannot run.
 */
bool expectation_make(struct expectation *e, struct tutti_runtime *runtime, const struct operation_test *test,
    const char *line, bool gradients, tutti_precision precision, struct text *problems);
/* Whether input, output and all parameters together have at most so many numbers each. */
bool case_is_within(struct tutti_runtime *runtime, const struct operation_test *test, const char *line, int64_t most);
void expectation_free(struct expectation *e);

/* Compares what a device gave; each difference is appended to `problems`, at most a few for each array. */
void compare_array(
    const char *what, const float *got, const double *want, int64_t count, double limit, struct text *problems);

/* Runs the case on one device with one choice of implementations (NULL: the plan's own), and compares. chosen: what the
 * plan took, "conv2d=plain,...". others: NULL, or CHOICES texts for the further choices that the nodes have, empty
 * where there are no more: the n-th holds each node's n-th implementation that fits. */
enum { CHOICES = 12 };
extern bool skip_differences; /* the gradients of the interpreter are not compared with differences */
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
