#include "tools/arrays.h"

#include "base/memory.h"
#include "base/status.h"
#include "tools/prepare.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* --------------------------------------------------------------------------------------------------- infer ---- */

/* Returns the type to write an output in. The network computes integers of an ONNX file as floats. */
static enum npz_type output_type(tutti_dtype dtype)
{
    switch (dtype) {
    case TUTTI_DTYPE_I32: return NPZ_I32;
    case TUTTI_DTYPE_I64: return NPZ_I64;
    case TUTTI_DTYPE_U8: return NPZ_U8;
    case TUTTI_DTYPE_BOOL: return NPZ_BOOL;
    default: return NPZ_F32;
    }
}

/* Converts the floats to integers. They fit the type, because it is the one that the ONNX file gives the output. */
static tutti_status round_output(struct port *port, enum npz_type type, size_t count)
{
    const float *from = port->data;
    char *to = memory_new(count, npz_type_size(type));
    if (!to) return TUTTI_NO_MEMORY;
    for (size_t i = 0; i < count; i++) {
        const int64_t number = from[i] > -0x1p62f && from[i] < 0x1p62f ? (int64_t)from[i] : 0;
        memcpy(to + i * npz_type_size(type), &number, npz_type_size(type)); /* the lowest bytes come first */
    }
    free(port->data);
    port->data = to;
    return TUTTI_OK;
}

static tutti_status write_outputs(const char *path, const struct session *session, struct ports *ports)
{
    struct npz_array arrays[TUTTI_ONNX_PORTS];
    for (int i = 0; i < ports->output_count; i++) {
        struct port *port = &ports->outputs[i];
        const enum npz_type type = output_type(session->file.output_dtypes[i]);
        const tutti_status status =
            type == NPZ_F32 ? TUTTI_OK : round_output(port, type, (size_t)(ports->samples * port->elements));
        if (status != TUTTI_OK) return status;
        arrays[i] = (struct npz_array) { .name = port->name, .type = type, .data = port->data };
        int64_t sizes[TUTTI_MAX_RANK + 1];
        arrays[i].rank = port_sizes(ports, port, ports->samples, sizes);
        if (arrays[i].rank > NPZ_MAX_RANK)
            return fail(TUTTI_UNSUPPORTED, "output \"%s\" has %d axes", port->name, arrays[i].rank);
        memcpy(arrays[i].sizes, sizes, (size_t)arrays[i].rank * sizeof *sizes);
    }
    return npz_save(path, arrays, ports->output_count);
}

static int open_arrays(const struct session *session, const char *path, struct npz **file)
{
    const tutti_status status = npz_open(path, file);
    return status == TUTTI_OK ? EXIT_DONE : work_failed(session->command, status, status_message());
}

static int read_inputs(struct session *session, const struct saved_options *options, const char *inputs,
    const struct preparation *preparation, struct ports *ports)
{
    struct npz *file = NULL;
    int result = open_arrays(session, inputs, &file);
    if (result == EXIT_DONE) result = ports_read(session, inputs, file, false, ports);
    if (result == EXIT_DONE && ports->prepares)
        result = preparation_apply(
            preparation, saved_weights(options), ports_array(file, ports, &ports->inputs[0]), &ports->inputs[0]);
    npz_close(file);
    if (result == EXIT_DONE) preparation_report(preparation, saved_weights(options), ports->prepares);
    return result;
}

static int infer(struct session *session, const struct saved_options *options, const char *inputs, const char *outputs,
    const struct preparation *preparation, struct ports *ports)
{
    if (ports->prepares && preparation->nodes)
        return wrong_use("infer", "--prepare: nodes of the file prepare its inputs already");
    if (ports->prepares && session->file.network && (!preparation->known || session->file.input_count != 1))
        return wrong_use(
            "infer", "--prepare is for the models of `tutti train`, and ONNX files that `tutti export` made of them");
    int result = read_inputs(session, options, inputs, preparation, ports);
    if (result == EXIT_DONE) result = ports_compile(session, ports, session->training.batch);
    if (result == EXIT_DONE) result = saved_load("infer", options, session);
    if (result == EXIT_DONE) result = ports_compute(session, ports);
    if (result != EXIT_DONE) return result;
    if (ports->prepares) preparation_undo(preparation, ports->samples, &ports->outputs[0]);
    const tutti_status status = write_outputs(outputs, session, ports);
    return status == TUTTI_OK ? EXIT_DONE : work_failed("infer", status, status_message());
}

int arrays_infer(
    struct session *session, const struct saved_options *options, const char *inputs, const char *outputs, bool prepare)
{
    struct ports ports;
    struct preparation preparation;
    int result = ports_find(session, &ports);
    ports.prepares = prepare;
    const tutti_status status = preparation_read(saved_weights(options), &preparation);
    if (status != TUTTI_OK) result = work_failed("infer", status, status_message());
    if (result == EXIT_DONE) result = infer(session, options, inputs, outputs, &preparation, &ports);
    preparation_free(&preparation);
    ports_free(&ports);
    return result;
}

/* -------------------------------------------------------------------------------------------------- expect ---- */

/* Equal numbers do not differ, nor do equal infinities or two NaNs. */
static void measure(const struct npz_array *array, const float *got, double *worst, double *largest)
{
    *worst = *largest = 0;
    for (size_t i = 0; i < array->bytes / npz_type_size(array->type); i++) {
        const double wanted = npz_number(array, i), is = (double)got[i];
        if (isfinite(wanted)) *largest = fmax(*largest, fabs(wanted));
        if (wanted == is || (isnan(wanted) && isnan(is))) continue;
        const double difference = fabs(wanted - is);
        *worst = isfinite(difference) ? fmax(*worst, difference) : INFINITY;
    }
}

static int compare(const struct session *session, const char *path, const struct npz_array *array,
    const struct ports *ports, const struct port *port)
{
    const double limit = 1e-4;
    double worst, largest;
    int64_t sizes[TUTTI_MAX_RANK + 1];
    const int rank = port_sizes(ports, port, ports->samples, sizes);
    if (array->rank != rank || memcmp(array->sizes, sizes, (size_t)rank * sizeof *sizes))
        return wrong_use(session->command, "%s: array \"%s\" has another shape than the output of %lld samples", path,
            port->name, (long long)ports->samples);
    measure(array, port->data, &worst, &largest);
    const bool good = worst <= limit * fmax(largest, 1e-6);
    fprintf(stderr, "tutti %s: output \"%s\" differs from %s by at most %.2g, where the largest number is %.4g: %s\n",
        session->command, port->name, path, worst, largest, good ? "as expected" : "more than 1e-4 of it");
    return good ? EXIT_DONE : EXIT_WORK_FAILED;
}

static int expect(struct session *session, const char *path, const struct npz *file, struct ports *ports)
{
    int result = ports_read(session, path, file, true, ports), count = 0;
    if (result == EXIT_DONE) result = ports_compile(session, ports, ports->samples);
    if (result == EXIT_DONE) result = ports_compute(session, ports);
    if (result != EXIT_DONE) return result;
    for (int i = 0; i < ports->output_count; i++) {
        const struct npz_array *array = npz_find(file, ports->outputs[i].name);
        if (!array) continue;
        const int compared = compare(session, path, array, ports, &ports->outputs[i]);
        if (result == EXIT_DONE) result = compared;
        count++;
    }
    return count ? result : wrong_use(session->command, "%s has no array of an output", path);
}

int expects_a_file(const char *command)
{
    return wrong_use(command, "--expect needs an ONNX file: the other models have no weights of their own");
}

int arrays_expect(struct session *session, const char *path)
{
    struct ports ports;
    struct npz *file = NULL;
    int result = ports_find(session, &ports);
    if (result == EXIT_DONE) result = open_arrays(session, path, &file);
    if (result == EXIT_DONE) result = expect(session, path, file, &ports);
    npz_close(file);
    ports_free(&ports);
    tutti_trainer_free(session->trainer);
    session->trainer = NULL;
    return result;
}
