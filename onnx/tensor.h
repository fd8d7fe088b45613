/* Arrays of numbers: what a TensorProto holds, in the file itself or in a file next to it, and what is computed when a
 * file is read. */
#ifndef ONNX_TENSOR_H
#define ONNX_TENSOR_H

#include "base/status.h"
#include "onnx/proto.h"

/* ONNX's numbers of types of elements. */
enum onnx_type {
    ONNX_FLOAT = 1,
    ONNX_UINT8 = 2,
    ONNX_INT8 = 3,
    ONNX_UINT16 = 4,
    ONNX_INT16 = 5,
    ONNX_INT32 = 6,
    ONNX_INT64 = 7,
    ONNX_STRING = 8, /* not read: labels become their indices in a list */
    ONNX_BOOL = 9,
    ONNX_FLOAT16 = 10,
    ONNX_DOUBLE = 11,
    ONNX_UINT32 = 12,
    ONNX_UINT64 = 13,
    ONNX_BFLOAT16 = 16,
    ONNX_UINT4 = 21,
    ONNX_INT4 = 22
};
bool onnx_type_is_known(int type); /* of inputs, too: numbers of 4 bits are read in initialisers only */
bool onnx_type_is_float(int type); /* of any width */
const char *onnx_type_name(int type);

/* number + batches N, where N is the number of samples: an integer that is computed from shapes. */
struct symbolic_integer {
    int64_t number, batches;
};
/* False: the product has a square of N, or a factor does not fit 64 bits. */
bool symbolic_multiply(struct symbolic_integer a, struct symbolic_integer b, struct symbolic_integer *product);

enum { ARRAY_MAX_RANK = 8 };
struct array {
    int rank; /* 0: one number */
    int64_t sizes[ARRAY_MAX_RANK];
    size_t count;                      /* of elements */
    float *floats;                     /* of float types, else NULL */
    double *doubles;                   /* the same numbers, not rounded, of type DOUBLE; else NULL */
    struct symbolic_integer *integers; /* of integers and bool, else NULL */
};

/* The number of elements. False if a size is negative, or the number does not fit size_t. */
bool array_count(int rank, const int64_t *sizes, size_t *count);
/* An array of zeros. NULL with a message on failure. */
struct array *array_new(int rank, const int64_t *sizes, bool floats);
struct array *array_new_typed(int rank, const int64_t *sizes, int type);
void array_free(struct array *array); /* accepts NULL */
/* Finds by how much each part of an array along an axis differs from the one before; 0: all parts are equal. False:
 * the difference is not constant. */
bool array_is_linear(const struct array *array, int axis, int64_t *factor);

/* Reads the elements of a tensor. `folder` is that of the model's file: external data lie in it or in folders in it.
 * Errors: TUTTI_FORMAT, TUTTI_FILE, TUTTI_UNSUPPORTED, TUTTI_NO_MEMORY; the message names the tensor. */
tutti_status tensor_read(const Onnx__TensorProto *tensor, const char *folder, struct array **array);
/* Checks its type, its shape and the number of its elements, without reading external data. */
tutti_status tensor_check(const Onnx__TensorProto *tensor);

#endif
