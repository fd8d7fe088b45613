/* Shared by the files of tests/onnx/conform.c: a node test of the onnx package, and its outcome. */
#ifndef TESTS_ONNX_CONFORM_H
#define TESTS_ONNX_CONFORM_H

#include "formats/safetensors.h"
#include "tutti_onnx.h"

enum { CONFORM_NAME = 160, CONFORM_PATH = 512, CONFORM_TEXT = 640 };

/* How a network gets an input of the file. */
enum role {
    ROLE_FED,   /* as a sample */
    ROLE_GIVEN, /* when the file is read: integers as constants, floats as parameters */
    ROLE_MOVED  /* as a sample, to which a parameter of zeros is added: its gradient is the input's */
};

struct conform_test {
    const char *folder;
    char name[CONFORM_NAME];
    struct safetensors *arrays;
    int input_count, output_count;
    const struct safetensors_tensor *inputs[TUTTI_ONNX_PORTS], *outputs[TUTTI_ONNX_PORTS];
    const char *input_names[TUTTI_ONNX_PORTS];
    enum role roles[TUTTI_ONNX_PORTS];
    double scale;    /* of float inputs */
    bool incomplete; /* an array is of a type that its file does not have */
};

enum verdict { VERDICT_PASS, VERDICT_FAIL, VERDICT_REFUSED, VERDICT_NONE };
struct outcome {
    enum verdict verdict;
    double difference;       /* the largest */
    char text[CONFORM_TEXT]; /* the reason, or "" */
};
void outcome_set(struct outcome *outcome, enum verdict verdict, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* ------------------------------------------------------------------------------------------------------ arrays ---- */

int64_t array_elements(const struct safetensors_tensor *array);
bool array_is_float(const struct safetensors_tensor *array);
double array_at(const struct safetensors_tensor *array, int64_t element);
/* A copy as the type of a network's input, floats times `scale`; the caller frees it. NULL: there is no memory. */
void *array_as(const struct safetensors_tensor *array, tutti_dtype dtype, double scale);
/* Whether floats that were computed are these numbers by ONNX's rules, once they have the array's type. *difference
 * becomes the largest if it is larger; NaN and infinity are apart from everything else. */
bool array_equals(const struct safetensors_tensor *wanted, const float *got, double *difference);

/* ----------------------------------------------------------------------------------------------------- running ---- */

tutti_status conform_open(struct conform_test *test, const char *folder, const char *name);
void conform_close(struct conform_test *test);
/* Reads the model with the test's roles. */
tutti_status conform_import(tutti_runtime *runtime, struct conform_test *test, tutti_onnx *made);
/* The arrays of the inputs that are fed. feeds_free(): their data. */
tutti_status conform_feeds(const struct conform_test *test, const tutti_onnx *made, tutti_feed *feeds, int *count);
void conform_feeds_free(tutti_feed *feeds, int count);
/* Computes the outputs, and compares them. Roles become those with which the file was read. */
void conform_forward(tutti_runtime *runtime, struct conform_test *test, struct outcome *outcome);
/* Computes the gradients of a test that passed, and compares them. */
void conform_gradients(tutti_runtime *runtime, struct conform_test *test, struct outcome *outcome);
/* The weight of an output's element in the sum whose gradients are compared: 1 or -1 over the output's elements. */
double conform_weight(const struct conform_test *test, int output, int64_t element);

/* Writes the model with the moved inputs to a file. */
tutti_status variant_write(const struct conform_test *test, const char *path);
#define VARIANT_ZERO "~zero" /* after an input's name: the parameter that is added to it */

#endif
