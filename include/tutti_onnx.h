/* Networks from ONNX files, as PyTorch and others write them: docs/onnx.md says what is read. */
#ifndef TUTTI_ONNX_H
#define TUTTI_ONNX_H

#include <tutti.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tutti_onnx_options {
    size_t size; /* sizeof(tutti_onnx_options), or 0 */
    /* Shape of a sample of the first input, for sizes that the file leaves open, as height and width. Sizes that the
     * file has must be the same. rank 0: the file's. */
    tutti_shape input;
    /* If the first output of floats is that of a Softmax or LogSoftmax, it becomes the input of this: logits, as
     * TUTTI_CROSS_ENTROPY needs them. Probabilities of a LinearClassifier become logits, too. */
    bool logits;
    int batch_axis; /* of the inputs that are not in batch_axes; 0: the first one */
    /* The file's inputs have no batch: a sample is all of each input, and the network computes the file's outputs for
     * each of any number of samples. A file without inputs gets one, "sample", of one number that nothing reads. */
    bool whole;
    /* Inputs that get their values now, `known_count` of them: shapes, axes and other numbers that must be known when
     * a file is read, or parameters. They are no inputs of the network. TUTTI_INVALID if the file has no such input. */
    const struct tutti_onnx_known *known;
    int known_count;
    /* Gets a line for each thing that the exporter did and this undoes, or that changes how the network trains: names,
     * copies, folded batch normalisation. A line that begins with "warning: " tells where Tutti's results differ from
     * those of other runtimes, or which parameters the file does not tell from copies; one with "constant: " lists
     * the constants that may be parameters, one with "trains: " the parameters that may be buffers. May be NULL. */
    void (*note)(void *user, const char *line);
    void *user;
    /* The last layer gets so many units, with new initial values as tutti_dense() has them: a network for other
     * classes. It is the Gemm, or MatMul and Add, that the first output comes from. 0: the file's. */
    int64_t head;
    /* Sizes that the file leaves open, `size_count` of them, by the names that it has for them, as "sequence", or by
     * input and axis, as "x.1": axis 1 of the input x in the file. Axes with the same name have the same size, so one
     * of them is enough. Names that are in no input are passed over, and sizes that the file has stay. */
    const struct tutti_onnx_size *sizes;
    int size_count;
    /* Initialisers train that are no parameters of the exported module: buffers, and tables that the exporter computed.
     * Otherwise they are constants, where the file tells what they are. Where it does not, as files of PyTorch's older
     * exporter, constants are those that are only compared, grids of GridSample, mean and deviation of a
     * standardisation, and tables of sines and cosines. note() gets their names. */
    bool train_constants;
    /* Inputs whose batch is another axis than `batch_axis`, `batch_axis_count` of them. */
    const struct tutti_onnx_axis *batch_axes;
    int batch_axis_count;
} tutti_onnx_options;

/* The axis of an input that is the batch. This struct never grows. */
typedef struct tutti_onnx_axis {
    const char *name;
    int axis; /* from 0 */
} tutti_onnx_axis;

/* An open size. This struct never grows. */
typedef struct tutti_onnx_size {
    const char *name;
    int64_t size; /* from 1 to 2^31 - 1 */
} tutti_onnx_size;

/* Values of an input. This struct never grows. */
typedef struct tutti_onnx_known {
    const char *name;
    tutti_dtype dtype; /* TUTTI_DTYPE_F32, or of integers, which a float input of the file gets, too */
    tutti_shape shape; /* as in the file, or of rank 0: one number, or rank 1: a row of as many as the file's */
    const void *values;
    bool trains; /* a parameter of this name, of float32; otherwise a constant */
} tutti_onnx_known;

/* Where the file has its batch in an input or output: its axis `axis` has `ahead` times the number of samples times
 * `behind` elements. In the network's tensor, the samples come first, then `behind`, where that is not 1; `ahead` is
 * the sample's axis with this number, where that is not 1. This struct never grows. */
typedef struct tutti_onnx_place {
    int axis; /* negative: a sample is all of it (tutti_onnx_options.whole) */
    int64_t ahead, behind;
} tutti_onnx_place;

#define TUTTI_ONNX_PORTS 16
/* What tutti_import_onnx() makes. Inputs and outputs are in the file's order, with its names: tutti_network_tensor()
 * and tutti_network_output() tell them. */
typedef struct tutti_onnx {
    size_t size;            /* sizeof(tutti_onnx), or 0; set it before the call */
    tutti_network *network; /* the caller's */
    int input_count, output_count;
    tutti_tensor inputs[TUTTI_ONNX_PORTS], outputs[TUTTI_ONNX_PORTS];
    tutti_dtype input_dtypes[TUTTI_ONNX_PORTS];
    tutti_dtype output_dtypes[TUTTI_ONNX_PORTS]; /* as the file says; the tensors are of float32 with such numbers */
    tutti_onnx_place input_places[TUTTI_ONNX_PORTS], output_places[TUTTI_ONNX_PORTS];
} tutti_onnx;

/* Makes a network of an ONNX file, of opset 7 or newer. `options` may be NULL.
 *
 * Shapes: the first axis of every input and output of the file is the batch, which Tutti does not write. A file for one
 * number of samples works with any. Inputs keep their names and their types: float32 (also for those of other widths),
 * int32, int64, uint8 or bool. At most 15 inputs and 16 outputs are possible.
 *
 * Parameters keep the names and shapes of the file's initialisers, with the file's values as their initial ones. What
 * PyTorch's exporters merged, copied or transposed has the names and shapes of the state dict again, and tied weights
 * are one parameter, as far as the file tells. They train, unless tutti_freeze() is called. Initialisers of one
 * element, of integers, with elements that are not finite, or that are no parameters of the exported module are
 * constants, as are the outputs of Constant. Where the file does not tell what was merged, each node that reads an
 * initialiser whose elements are all equal has a parameter of its own, NAME, NAME#2 and so on. A batch normalisation
 * has LAYER.weight, LAYER.bias, LAYER.running_mean and LAYER.running_var, where LAYER is the beginning of its
 * initialisers' names, and trains with the batch's statistics.
 *
 * Files of untrusted origin are safe to read. External data are read from the file's folder and folders in it, not
 * through links. Errors; nothing is made then, and made->network is NULL:
 *   TUTTI_FILE          the file, or its external data, cannot be read
 *   TUTTI_FORMAT        it is damaged: the message names the node or the tensor
 *   TUTTI_UNSUPPORTED   operators that Tutti does not have, all of them in one message; or this build has no protobuf-c
 *   TUTTI_SHAPE, ...    what the function that adds the node's layer returns */
TUTTI_API tutti_status tutti_import_onnx(
    tutti_runtime *runtime, const char *path, const tutti_onnx_options *options, tutti_onnx *made);

typedef struct tutti_onnx_export_options {
    size_t size; /* sizeof(tutti_onnx_export_options), or 0 */
    /* Parameters and constants of more bytes in all lie in a file of their own, PATH.data, as those of more than 2 GB
     * have to. 0: 1 GiB */
    uint64_t external_bytes;
} tutti_onnx_export_options;

/* Writes a network as an ONNX file of opset 17, or of the first one that has all its operators: the layers that the
 * outputs named by tutti_output() need, as they are in inference, with the values of the trainer's parameters.
 * `options` may be NULL.
 *
 * Inputs, outputs and parameters keep their names, parameters their shapes. The first axis of inputs and outputs is the
 * batch, of any size ("N"); TUTTI_SEQUENCE is "T". Inputs of int64 become int32, as the network's are. Dropout stays in
 * the file, where it does nothing. Other runtimes compute the same up to rounding; but they refuse indices of no
 * element, and an embedding there counts negative ids from the end.
 *
 * Errors; a file that was there before stays:
 *   TUTTI_INVALID       no output has a name, or the trainer is of another network
 *   TUTTI_UNSUPPORTED   operations that have no form in ONNX, all of them in one message; or this build has no
 *                       protobuf-c
 *   TUTTI_FILE          the file cannot be written */
TUTTI_API tutti_status tutti_export_onnx(
    const tutti_network *network, tutti_trainer *trainer, const char *path, const tutti_onnx_export_options *options);

#ifdef __cplusplus
}
#endif
#endif
