/* Custom operations: a program's own OpenCL C for the forward and the backward, as a layer of a network. docs/custom.md
 * explains them by an example.
 *
 * The texts are not kernels. They are the bodies of functions that Tutti calls once for each item of each sample, on
 * devices of both classes, and they see the arrays of this sample alone. So they need no index of the sample, no
 * global size, and divide over devices as every layer does. They must not use barriers or local memory.
 *
 *   NAME            the array of an input, for each name in `input_names`: const float *
 *   y               the output: float *, which the forward writes and the backward reads
 *   dy, dNAME       of the backward: the gradients of y (read) and of each input (written)
 *   i               the number of the item: int, 0 to items - 1
 *   NAME_elements   how many numbers a sample has in this array; y_elements
 *   NAME_size0 ...  its sizes, first axis first; y_size0 ...
 *   KEY             an attribute
 *
 * The items of a sample must write all elements of y, or of all dNAME, and each element in one item only. A parameter
 * or constant is the same array for every sample; in the backward, its gradient is that of the sample alone, and Tutti
 * adds the gradients of all samples. These need the memory of a parameter for each sample. */
#ifndef TUTTI_CUSTOM_H
#define TUTTI_CUSTOM_H

#include <tutti.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TUTTI_CUSTOM_INPUTS 6 /* at most */
typedef struct tutti_custom_options {
    size_t size; /* sizeof(tutti_custom_options), or 0 */
    const char *name;
    const char *operation;   /* its name: letters, digits and "_". It is needed */
    const char *input_names; /* their names in the texts: "x slope"; NULL: "x" */
    const char *attributes;  /* numbers: "threshold=0.5 width=3"; NULL: none */
    /* Functions and macros that stand before both bodies: OpenCL C 1.2; NULL: none. */
    const char *source;
    const char *forward; /* body. It is needed */
    const char
        *backward; /* body; NULL: the operation has no gradient, and a network that trains through it is refused */
    /* Shape of a sample of y, which may contain TUTTI_SEQUENCE. Rank 0: that of the first input. */
    tutti_shape shape;
    /* Items of a sample. 0: one for each element of y in the forward, and of the first input in the backward. */
    int64_t forward_items, backward_items;
    /* The check before a device first uses the operation, on random numbers from low to high; both 0: -2 to 2. The
     * backward is compared with finite differences of the forward. */
    float low, high;
    /* Computes y of one sample in double precision, from arrays in the order of `input_names`. If it is not NULL, the
     * check compares the forward with it, and uses it for the differences. Several threads may call it at a time, with
     * `user`; both must stay valid as long as the network. */
    void (*reference)(void *user, const double *const *inputs, double *y);
    void *user;
    bool no_check;
} tutti_custom_options;
/* Adds a custom operation with one output, of float32; `options` must not be NULL. The inputs are float32 tensors, of
 * which at least one is not a parameter or constant. Errors of the texts are found when a device compiles them, in
 * tutti_compile() or later: TUTTI_BUILD with the first message of its compiler, or TUTTI_WRONG_RESULT if the check
 * finds another result, with the element, its value and the expected one. Accesses out of bounds are not found, but for
 * writes soon after the end of an array: they may crash the program. */
TUTTI_API tutti_tensor tutti_custom(
    tutti_network *network, const tutti_tensor *inputs, int input_count, const tutti_custom_options *options);

#ifdef __cplusplus
}
#endif
#endif
