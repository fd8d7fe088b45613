/* A network's inputs and outputs by name, with arrays for them from files. */
#ifndef TOOLS_PORTS_H
#define TOOLS_PORTS_H

#include "formats/npz.h"
#include "tools/session.h"
#include "tutti_inspect.h"
#include "tutti_onnx.h"

/* One input or output. */
struct port {
    const char *name;
    tutti_tensor tensor;
    tutti_tensor_info info;
    tutti_onnx_batch_axis batch_axis; /* of the batch in the file */
    int64_t elements;                 /* of a sample */
    void *data;              /* of an input [samples][elements]; of an output floats, as the file has its axes */
    const struct port *same; /* an output before with the same tensor; NULL: none */
};

struct ports {
    struct port inputs[TUTTI_ONNX_PORTS], outputs[TUTTI_ONNX_PORTS];
    int input_count, output_count;
    int64_t samples;
    bool prepares; /* inputs of floats take numbers of all types, which are prepared then (prepare.h) */
    bool bare;     /* with --whole: arrays have no axis of samples, of which there is one */
};

/* Finds the inputs and the named outputs of the session's network. Returns an exit status, as all of these. */
int ports_find(const struct session *session, struct ports *ports);
void ports_free(struct ports *ports);
/* Gives the sizes of an array of so many samples, in the file's order of axes. Returns the rank. */
int port_sizes(const struct ports *ports, const struct port *port, int64_t samples, int64_t sizes[TUTTI_MAX_RANK + 1]);
/* Reads an array for each input by its name, or the only array of a .npy file; the batch is at the axis that the ONNX
 * file gives. with_outputs: the file may have arrays for outputs, too. Prints a line for each array that does not
 * fit. */
int ports_read(
    const struct session *session, const char *path, const struct npz *file, bool with_outputs, struct ports *ports);
/* Returns the array in the file that is read for an input; NULL: there is none. */
const struct npz_array *ports_array(const struct npz *file, const struct ports *ports, const struct port *port);
/* Compiles the network for inference of all outputs, in batches of at most so many samples. */
int ports_compile(struct session *session, const struct ports *ports, int64_t batch);
/* Computes all outputs of all samples. */
int ports_compute(struct session *session, struct ports *ports);

#endif
