/* The operations' tests: what a file of tests/layers/ provides for each operation, and what it may use.
 *
 * A test is one `struct operation_test`, and a name in the OPERATION_TESTS of its file. The harness builds the network
 * with the public builder, runs forward and backward on every device with every implementation that fits, and compares
 * with the interpreter (layers/interpreter/interpreter.h), whose gradients are compared with finite differences of its
 * results. */
#ifndef TESTS_LAYERS_CASES_H
#define TESTS_LAYERS_CASES_H

#include "base/text.h"
#include "graph/network.h"
#include "graph/operation.h"
#include "tests/tolerance.h"

/* A line such as "conv2d n2 c3 h7 w9 k5 r3 s3 pad1 stride2": the operation, then keys with their numbers. */
struct test_case {
    const char *line;
    struct step_constants constants; /* what the device is given: dropout's seed, the loss's scale */
    int count;
    struct {
        char key[20];
        double value;
    } words[24];
};

/* The number after a key, or `fallback` where the line does not have it. */
int64_t case_get(const struct test_case *c, const char *key, int64_t fallback);
double case_get_real(const struct test_case *c, const char *key, double fallback);
/* False, with a message, for a line that cannot be read. `line` must live as long as the case. */
bool case_parse(const char *line, struct test_case *c);

struct operation_test {
    const char *name; /* first word of its cases */
    /* The network: one tutti_input(), and the layer(s). Key "n" is the number of samples. */
    tutti_tensor (*build)(tutti_network *network, const struct test_case *c);
    const char *const *cases; /* ends with NULL */

    /* The rest may be left out. */
    const char *const *bf16_cases;               /* those that are also run with values stored as bfloat16 */
    enum tolerance_class tolerance;              /* EXACT (0): the data are small integers, and results must be equal */
    int64_t (*length)(const struct test_case *); /* of the longest sum, for the tolerance; NULL: taken from the sizes */
    bool reals;                                  /* real data although the results are exact (a maximum, a copy) */
    bool inference;                              /* inference mode is another formula: tested too, forward only */
    bool no_gradient;                            /* the gradient is not compared */
    bool kinks; /* the data lie where results are 0, and where differences give no gradient */
    /* Fills the input by itself: values that a kink, a logarithm or a class number needs. If the input is not
     * float32, the values are numbers of its type, and it has no gradient. */
    void (*fill)(const struct test_case *c, float *input, int64_t count);
    /* For operations of which the interpreter and the kernels share a description (layers/loop/loop.h,
     * layers/pointwise.h): compares it with numbers from elsewhere; and the forward result in double, with which the
     * interpreter's is compared. inputs[0]: the input with its batch. parameters: in the builder's order. */
    void (*check)(const struct test_case *c, struct text *problems);
    void (*reference)(
        const struct test_case *c, const double *const *inputs, const double *const *parameters, double *y);
    /* A loss instead of a seed: TUTTI_CROSS_ENTROPY or TUTTI_MSE + 1, and its targets (int32_t or float). */
    int loss_plus_1;
    /* For a loss that is a node of the network: adds it and its input of targets, after the network's own inputs. */
    tutti_tensor (*loss)(tutti_network *network, tutti_tensor output, const struct test_case *c);
    void (*targets)(const struct test_case *c, void *targets, int64_t count);
};

/* The last line of a file: its name, and the addresses of its tests, in the order in which they run. */
#define OPERATION_TESTS(file, ...) const struct operation_test *const file##_list[] = { __VA_ARGS__, NULL };

/* Numbers in [-1, 1) that floats hold exactly, and small integers in [-limit, limit]; a function of the position. */
float test_real(uint32_t stream, int64_t i);
float test_integer(uint32_t stream, int64_t i, int limit);
/* The nearest number of bfloat16, ties to even; not for NaN. */
float test_bf16(float x);
/* The activation of the key "act" (enum activation; "low", "high"), as an operation appended. */
tutti_tensor test_activation(tutti_network *network, const struct test_case *c, tutti_tensor x);

#endif
