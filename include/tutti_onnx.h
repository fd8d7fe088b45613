/* Networks from and to ONNX files, as PyTorch and others write them: docs/onnx.md says what is read and written. */
#ifndef TUTTI_ONNX_H
#define TUTTI_ONNX_H

#include <tutti.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tutti_onnx_options {
    size_t size; /* sizeof(tutti_onnx_options), or 0 */
    /* Shape of a sample of the first input, for sizes that the file leaves open, such as height and width. It must
     * agree with the sizes that the file states. rank 0: the file's. */
    tutti_shape input;
    /* If a Softmax or LogSoftmax node computes the first float output, the output becomes the input of this node:
     * logits, as TUTTI_CROSS_ENTROPY needs them. Probabilities of a LinearClassifier become logits, too. */
    bool logits;
    int batch_axis; /* of the inputs that are not in batch_axes; 0: the first one */
    /* The file's inputs have no batch axis: a sample is the whole of each input, and the network computes the file's
     * outputs for each sample, of any number of samples. A file without inputs gets one, "sample": one number, which
     * nothing reads. */
    bool whole;
    /* Inputs that get their values now, `known_count` of them: shapes, axes and other numbers that must be known when
     * a file is read, or parameters. They are not inputs of the network. TUTTI_INVALID if the file has no such
     * input. */
    const struct tutti_onnx_known *known;
    int known_count;
    /* Gets a line for each change by the exporter that the import undoes or that affects how the network trains:
     * names, copies, folded batch normalisation. A line that begins with "warning: " tells where Tutti's results
     * differ from those of other runtimes, or which parameters the file does not distinguish from copies; one with
     * "constant: " lists the constants that may be parameters, one with "trains: " the parameters that may be
     * buffers. May be NULL. */
    void (*note)(void *user, const char *line);
    void *user;
    /* Number of units that the last layer gets, with new initial values as those of tutti_dense(), for other classes.
     * The last layer is the Gemm, or MatMul and Add, that the first float output comes from. 0: the file's. */
    int64_t head;
    /* Sizes that the file leaves open, `size_count` of them. A size is named as in the file, as "sequence", or by
     * input and axis, as "x.1": axis 1 of the input x in the file. Axes with the same name have the same size, so one
     * entry is enough. Names that no input has are ignored, and sizes that the file states stay. */
    const struct tutti_onnx_size *sizes;
    int size_count;
    /* Also train initialisers that are not parameters of the exported module: buffers, and tables that the exporter
     * computed. By default they are constants if the file tells what they are. If it does not, as files of PyTorch's
     * older exporter, these are constants: initialisers that are only compared, grids of GridSample, mean and
     * deviation of a standardisation, and tables of sines and cosines. note() gets their names. */
    bool train_constants;
    /* Inputs whose batch axis is not `batch_axis`, `batch_axis_count` of them. */
    const struct tutti_onnx_axis *batch_axes;
    int batch_axis_count;
    /* Reads the network alone from a file with preparation (tutti_onnx_export_options.with_preparation): its input is
     * prepared by the caller, as in training, and nodes after its output are left out. Other files stay. */
    bool without_preparation;
} tutti_onnx_options;

/* The batch axis of an input. This struct never grows. */
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
    tutti_dtype dtype; /* TUTTI_DTYPE_F32, or an integer type; a float input of the file takes integers, too */
    tutti_shape shape; /* the file's; or rank 0: one number; or rank 1: as many numbers as the file's shape has */
    const void *values;
    bool trains; /* the input becomes a parameter of this name, of float32; otherwise a constant */
} tutti_onnx_known;

/* The batch axis of an input or output of the file. The file's axis `axis` has `outer` times the number of
 * samples times `inner` elements. In the network's tensor, the samples come first, then `inner` if it is not 1. If
 * `outer` is not 1, the sample has an axis of this size with the number `axis`. This struct never grows. */
typedef struct tutti_onnx_batch_axis {
    int axis; /* negative: a sample is the whole value (tutti_onnx_options.whole) */
    int64_t outer, inner;
} tutti_onnx_batch_axis;

#define TUTTI_ONNX_PORTS 256
/* What tutti_import_onnx() makes. Inputs and outputs are in the file's order, with its names: tutti_network_tensor()
 * and tutti_network_output() tell them. */
typedef struct tutti_onnx {
    size_t size;            /* sizeof(tutti_onnx), or 0; set it before the call */
    tutti_network *network; /* the caller's */
    int input_count, output_count;
    tutti_tensor inputs[TUTTI_ONNX_PORTS], outputs[TUTTI_ONNX_PORTS];
    tutti_dtype input_dtypes[TUTTI_ONNX_PORTS];
    tutti_dtype output_dtypes[TUTTI_ONNX_PORTS]; /* as the file states; the tensors are float32 with such numbers */
    tutti_onnx_batch_axis input_batch_axes[TUTTI_ONNX_PORTS], output_batch_axes[TUTTI_ONNX_PORTS];
} tutti_onnx;

/* Makes a network of an ONNX file, of opset 7 or newer. `options` may be NULL.
 *
 * Shapes: the first axis of every input and output of the file is the batch, which Tutti does not write. A file for one
 * number of samples works with any. Inputs keep their names and their types: float32 (also for those of other widths),
 * int32, int64, uint8 or bool. At most 255 inputs and 256 outputs are possible.
 *
 * Parameters keep the names and shapes of the file's initialisers, with the file's values as their initial ones.
 * Parameters that PyTorch's exporters merged, copied or transposed get their names and shapes of the state dict back,
 * and tied weights are one parameter, as far as the file tells. They train, unless tutti_freeze() is called. Constants
 * are: initialisers of integers, or with elements that are not finite; initialisers that are not parameters of the
 * exported module; those of one element, unless the file tells that it is a parameter and one node reads it; and the
 * outputs of Constant. If the file does not tell what was merged, each node that reads an initialiser whose elements
 * are all equal has a parameter of its own: NAME, NAME#2 and so on. A batch normalisation has LAYER.weight, LAYER.bias,
 * LAYER.running_mean and LAYER.running_var, where LAYER is the beginning of its initialisers' names, and trains with
 * the batch's statistics.
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
    /* If parameters and constants have more bytes in total, they are written to a file of their own, PATH.data, which
     * is required for more than 2 GB. 0: 1 GiB */
    uint64_t external_bytes;
    /* What tutti_data_json() said of the data that the network was trained on, as tutti_weights_metadata(path, "data")
     * returns it: kept in the file, where tutti_onnx_metadata(path, "tutti.data") reads it. NULL: not known */
    const char *data;
    /* With `data`: nodes prepare raw data for the network, and convert what it gives, so that other runtimes give what
     * `tutti infer` gives. Inputs are pixels, from 0 to 255; samples of recordings; or the columns of a table, texts or
     * doubles, of which NaN is missing. Outputs are probabilities and the name of the likeliest class, or numbers in
     * the units of the data. docs/deploy.md lists them. */
    bool with_preparation;
} tutti_onnx_export_options;

/* Writes a network as an ONNX file of opset 17, or of the first one that has all its operators: the layers that the
 * outputs named by tutti_output() need, as they are in inference, with the values of the trainer's parameters.
 * `options` may be NULL.
 *
 * Inputs, outputs and parameters keep their names, parameters their shapes. The first axis of inputs and outputs is
 * the batch, of any size ("N"); TUTTI_SEQUENCE is "T". Inputs of int64 become int32, as the network's are. Dropout
 * stays in the file, where it does nothing. Other runtimes compute the same up to rounding; but they refuse indices
 * that are out of range, and count negative ids of an embedding from the end, as the operation does with from_end=1.
 *
 * Errors; a file that was there before stays:
 *   TUTTI_INVALID       no output has a name, the trainer is of another network, or preparation lacks `data`
 *   TUTTI_UNSUPPORTED   operations that have no form in ONNX, all of them in one message; preparation that has none,
 *                       as of dates; or this build has no protobuf-c
 *   TUTTI_MISMATCH      the network is not one for these data
 *   TUTTI_FORMAT        what is said of the data is damaged
 *   TUTTI_FILE          the file cannot be written */
TUTTI_API tutti_status tutti_export_onnx(
    const tutti_network *network, tutti_trainer *trainer, const char *path, const tutti_onnx_export_options *options);

/* Returns the text that a file has for a key in metadata_props: "tutti.data" is that of the options above. Free it with
 * free(). Returns NULL if the file cannot be read, or has none. */
TUTTI_API char *tutti_onnx_metadata(const char *path, const char *key);

#ifdef __cplusplus
}
#endif
#endif
