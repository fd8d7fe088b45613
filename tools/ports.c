#include "tools/ports.h"

#include "base/dtype.h"
#include "base/memory.h"
#include "base/status.h"
#include "tutti_inspect.h"

#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------------------------ what the network has ---- */

static tutti_status describe(const tutti_network *network, const tutti_onnx_batch_axis *batch_axis, struct port *port)
{
    port->batch_axis = batch_axis ? *batch_axis : (tutti_onnx_batch_axis) { 0, 1, 1 };
    port->info.size = sizeof port->info;
    const tutti_status status = tutti_network_tensor(network, port->tensor, &port->info);
    if (!port->name) port->name = port->info.name;
    port->elements = 1;
    for (int i = 0; i < port->info.shape.rank; i++) port->elements *= port->info.shape.sizes[i];
    return status;
}

static tutti_status find(const struct session *session, struct ports *ports)
{
    tutti_status status = TUTTI_OK;
    const tutti_network *network = session->network;
    const tutti_onnx *file = session->file.network ? &session->file : NULL;
    struct port *at = ports->inputs;
    for (int i = 0; i < TUTTI_ONNX_PORTS && tutti_network_input(network, i, &at->tensor) == TUTTI_OK; i++, at++) {
        TRY(describe(network, file ? &file->input_batch_axes[i] : NULL, at));
        ports->input_count++;
    }
    at = ports->outputs;
    for (int i = 0; i < TUTTI_ONNX_PORTS && tutti_network_output(network, i, &at->name, &at->tensor) == TUTTI_OK;
         i++, at++) {
        TRY(describe(network, file ? &file->output_batch_axes[i] : NULL, at));
        for (const struct port *other = ports->outputs; other < at && !at->same; other++)
            if (other->tensor.id == at->tensor.id) at->same = other;
        ports->output_count++;
    }
    if (ports->output_count == 0) FAIL(TUTTI_INVALID, "the model has no outputs with names");
done:
    return status;
}

int ports_find(const struct session *session, struct ports *ports)
{
    *ports = (struct ports) { .samples = 0 };
    const tutti_status status = find(session, ports);
    return status == TUTTI_OK ? EXIT_DONE : work_failed(session->command, status, status_message());
}

void ports_free(struct ports *ports)
{
    for (int i = 0; i < ports->input_count; i++) free(ports->inputs[i].data);
    for (int i = 0; i < ports->output_count; i++) free(ports->outputs[i].data);
}

int ports_compile(struct session *session, const struct ports *ports, int64_t batch)
{
    tutti_tensor others[TUTTI_ONNX_PORTS];
    int count = 0;
    const tutti_training training = session->training;
    for (int i = 1; i < ports->output_count; i++)
        if (!ports->outputs[i].same) others[count++] = ports->outputs[i].tensor;
    session->output = ports->outputs[0].tensor;
    session->training.loss = TUTTI_LOSS_NONE;
    session->training.batch = batch < ports->samples ? batch : ports->samples;
    session->training.outputs = others;
    session->training.output_count = count;
    const int result = session_compile(session);
    session->training = training;
    return result;
}

/* ---------------------------------------------------------------------------------- what the file has for it ---- */

/* [N, 3, 224, 224], where axis 0 is the batch. */
static const char *print_sizes(const int64_t *sizes, int rank, int batch, char text[160])
{
    size_t used = (size_t)snprintf(text, 160, "[");
    for (int i = 0; i < rank && used < 160; i++) {
        const char *separator = i ? ", " : "";
        used += i == batch ? (size_t)snprintf(text + used, 160 - used, "%sN", separator)
                           : (size_t)snprintf(text + used, 160 - used, "%s%lld", separator, (long long)sizes[i]);
    }
    if (used < 160) snprintf(text + used, 160 - used, "]");
    return text;
}

static bool type_fits(enum npz_type type, tutti_dtype dtype)
{
    const bool floats = type == NPZ_F16 || type == NPZ_F32 || type == NPZ_F64;
    switch (dtype) {
    case TUTTI_DTYPE_F32: return floats;
    case TUTTI_DTYPE_I32: return !floats && type != NPZ_BOOL;
    case TUTTI_DTYPE_U8: return type == NPZ_U8;
    case TUTTI_DTYPE_BOOL: return type == NPZ_BOOL;
    default: return false;
    }
}

int port_sizes(const struct ports *ports, const struct port *port, int64_t samples, int64_t sizes[TUTTI_MAX_RANK + 1])
{
    const tutti_onnx_batch_axis *batch_axis = &port->batch_axis;
    const int of_rows = batch_axis->inner > 1, rank = port->info.shape.rank - of_rows;
    const int64_t *own = port->info.shape.sizes + of_rows;
    int count = 0;
    if (batch_axis->axis < 0 && !ports->bare) sizes[count++] = samples;
    for (int i = 0; i <= rank; i++) {
        if (i == batch_axis->axis) sizes[count++] = batch_axis->outer * samples * batch_axis->inner;
        if (i < rank && (i != batch_axis->axis || batch_axis->outer == 1)) sizes[count++] = own[i];
    }
    return count;
}

/* Returns the samples of an input's array. On the batch axis of inputs there is only the batch. */
static int64_t samples_of(const struct ports *ports, const struct port *port, const struct npz_array *array)
{
    const int axis = port->batch_axis.axis < 0 ? 0 : port->batch_axis.axis;
    if (port->batch_axis.axis < 0 && ports->bare) return 1;
    return array->rank > axis ? array->sizes[axis] : 0;
}

static bool sizes_fit(const struct ports *ports, const struct port *port, const struct npz_array *array)
{
    int64_t sizes[TUTTI_MAX_RANK + 1];
    const int rank = port_sizes(ports, port, samples_of(ports, port, array), sizes);
    return array->rank == rank && !memcmp(array->sizes, sizes, (size_t)rank * sizeof *sizes);
}

/* An array without a name belongs to the only input. */
const struct npz_array *ports_array(const struct npz *file, const struct ports *ports, const struct port *port)
{
    const struct npz_array *array = npz_find(file, port->name);
    return array || ports->input_count > 1 ? array : npz_find(file, "");
}

/* Returns whether an array is expected. If the file has outputs, another runtime computed them, from inputs that are
 * constants here. */
static bool is_known(const struct session *session, const struct npz *file, const struct ports *ports,
    const struct npz_array *array, bool with_outputs)
{
    if (with_outputs && onnx_options_knows(&session->onnx, array->name)) return true;
    for (int i = 0; i < ports->input_count; i++)
        if (ports_array(file, ports, &ports->inputs[i]) == array) return true;
    for (int i = 0; with_outputs && i < ports->output_count; i++)
        if (!strcmp(ports->outputs[i].name, array->name)) return true;
    return false;
}

/* Prints a line if the array does not fit its input. */
static bool check_array(const char *command, const char *path, const struct npz_array *array, const struct ports *ports,
    const struct port *port)
{
    char found[160], wanted[160];
    int64_t sizes[TUTTI_MAX_RANK + 1];
    const int64_t samples = ports->samples;
    const int rank = port_sizes(ports, port, 1, sizes);
    print_sizes(sizes, rank, port->batch_axis.axis < 0 && !ports->bare ? 0 : port->batch_axis.axis, wanted);
    if (!array) {
        wrong_use(command, "%s has no array \"%s\": the input is of %s, %s", path, port->name,
            dtype_name(port->info.dtype), wanted);
        return false;
    }
    if (!type_fits(array->type, port->info.dtype) && !(ports->prepares && port->info.dtype == TUTTI_DTYPE_F32))
        wrong_use(command, "%s: array \"%s\" is of %s: the input is of %s", path, port->name,
            npz_type_name(array->type), dtype_name(port->info.dtype));
    else if (!sizes_fit(ports, port, array))
        wrong_use(command, "%s: array \"%s\" is %s: the input is %s", path, port->name,
            print_sizes(array->sizes, array->rank, -1, found), wanted);
    else if (samples_of(ports, port, array) != samples)
        wrong_use(command, "%s: array \"%s\" has %lld samples, but another one has %lld", path, port->name,
            (long long)samples_of(ports, port, array), (long long)samples);
    else if (samples == 0)
        wrong_use(command, "%s: array \"%s\" has no samples", path, port->name);
    else
        return true;
    return false;
}

/* "x", "mask": as many as there is room for. */
static size_t print_names(const struct port *ports, int count, size_t used, char text[160])
{
    for (int i = 0; i < count && used < 160; i++)
        used += (size_t)snprintf(text + used, 160 - used, "%s\"%s\"", used ? ", " : "", ports[i].name);
    if (used >= 160) memcpy(text + 156, "...", 4);
    return used;
}

/* Reports everything that does not fit. */
static bool check_file(
    const struct session *session, const char *path, const struct npz *file, bool with_outputs, struct ports *ports)
{
    const char *command = session->command;
    char names[160] = "";
    bool fits = true;
    const size_t used = print_names(ports->inputs, ports->input_count, 0, names);
    if (with_outputs) print_names(ports->outputs, ports->output_count, used, names);
    ports->samples = 0;
    for (int i = ports->input_count - 1; i >= 0; i--) {
        const struct npz_array *array = ports_array(file, ports, &ports->inputs[i]);
        if (!array) continue;
        ports->bare = ports->inputs[i].batch_axis.axis < 0 && array->rank != ports->inputs[i].info.shape.rank + 1;
        const int64_t samples = samples_of(ports, &ports->inputs[i], array);
        if (array->rank > 0 || ports->bare) ports->samples = samples;
    }
    for (int i = 0; i < ports->input_count; i++) {
        const struct port *port = &ports->inputs[i];
        fits &= check_array(command, path, ports_array(file, ports, port), ports, port);
    }
    for (int i = 0; i < npz_count(file); i++) {
        const struct npz_array *array = npz_at(file, i);
        if (is_known(session, file, ports, array, with_outputs)) continue;
        wrong_use(command, "%s: array \"%s\" is of no %s of the model: it has %s", path, array->name,
            with_outputs ? "input and no output" : "input", names);
        fits = false;
    }
    return fits;
}

/* ------------------------------------------------------------------------------------------------- convert ---- */

/* Arrays of the network have the samples before. */
static tutti_status move_batch(struct port *port, int64_t samples, size_t size, bool to_file)
{
    const tutti_onnx_batch_axis *batch_axis = &port->batch_axis;
    const int of_rows = batch_axis->inner > 1;
    size_t before = 1;
    if (batch_axis->axis < 1 && batch_axis->outer == 1) return TUTTI_OK;
    for (int i = 0; i < batch_axis->axis; i++) before *= (size_t)port->info.shape.sizes[of_rows + i];
    const size_t count = (size_t)samples, outer = (size_t)batch_axis->outer, rows = (size_t)batch_axis->inner;
    const size_t elements = (size_t)port->elements, bytes = elements / (before * outer * rows) * size;
    char *moved = memory_new(count * elements + 1, size), *data = port->data;
    if (!moved) return TUTTI_NO_MEMORY;
    for (size_t b = 0; b < before; b++)
        for (size_t a = 0; a < outer; a++)
            for (size_t n = 0; n < count; n++)
                for (size_t r = 0; r < rows; r++) {
                    const size_t in_file = ((b * outer + a) * count + n) * rows + r;
                    const size_t own = ((n * rows + r) * before + b) * outer + a;
                    memcpy(moved + bytes * (to_file ? in_file : own), data + bytes * (to_file ? own : in_file), bytes);
                }
    free(data);
    port->data = moved;
    return TUTTI_OK;
}

/* The array in the type of the input. */
static tutti_status convert(const char *path, const struct npz_array *array, int64_t samples, struct port *port)
{
    const size_t count = array->bytes / npz_type_size(array->type), bytes = tutti_dtype_bytes(port->info.dtype);
    port->data = memory_new(count, bytes);
    if (!port->data) return TUTTI_NO_MEMORY;
    if (port->info.dtype == TUTTI_DTYPE_U8 || port->info.dtype == TUTTI_DTYPE_BOOL)
        memcpy(port->data, array->data, count);
    for (size_t i = 0; i < count && port->info.dtype == TUTTI_DTYPE_F32; i++)
        ((float *)port->data)[i] = (float)npz_number(array, i);
    for (size_t i = 0; i < count && port->info.dtype == TUTTI_DTYPE_I32; i++) {
        const int64_t value = npz_integer(array, i);
        if (value < INT32_MIN || value > INT32_MAX)
            return fail(TUTTI_INVALID, "%s: element %zu of array \"%s\" does not fit int32", path, i, port->name);
        ((int32_t *)port->data)[i] = (int32_t)value;
    }
    return move_batch(port, samples, bytes, false);
}

int ports_read(
    const struct session *session, const char *path, const struct npz *file, bool with_outputs, struct ports *ports)
{
    tutti_status status = TUTTI_OK;
    if (!check_file(session, path, file, with_outputs, ports)) return EXIT_WRONG_USE;
    for (int i = 0; i < ports->input_count && status == TUTTI_OK; i++)
        status = convert(path, ports_array(file, ports, &ports->inputs[i]), ports->samples, &ports->inputs[i]);
    return status == TUTTI_OK ? EXIT_DONE : work_failed(session->command, status, status_message());
}

/* ------------------------------------------------------------------------------------------------- compute ---- */

static tutti_status compute(struct session *session, struct ports *ports)
{
    tutti_feed feeds[TUTTI_ONNX_PORTS];
    tutti_fetch fetches[TUTTI_ONNX_PORTS];
    int count = 0;
    for (int i = 0; i < ports->input_count; i++)
        feeds[i] = (tutti_feed) { ports->inputs[i].name, ports->inputs[i].info.dtype, ports->inputs[i].data };
    for (int i = 0; i < ports->output_count; i++) {
        struct port *port = &ports->outputs[i];
        size_t numbers;
        if (!size_multiply((size_t)ports->samples, (size_t)port->elements, &numbers))
            return fail(TUTTI_NO_MEMORY, "output \"%s\" does not fit this machine's memory", port->name);
        port->data = memory_new(numbers, sizeof(float));
        if (!port->data) return TUTTI_NO_MEMORY;
        if (!port->same) fetches[count++] = (tutti_fetch) { port->tensor, TUTTI_DTYPE_F32, port->data };
    }
    const tutti_status status =
        tutti_infer(session->trainer, feeds, ports->input_count, ports->samples, fetches, count);
    if (status != TUTTI_OK) return fail(status, "%s", tutti_message(session->runtime));
    for (struct port *port = ports->outputs; port < ports->outputs + ports->output_count; port++)
        if (port->same) memcpy(port->data, port->same->data, (size_t)(ports->samples * port->elements) * sizeof(float));
    tutti_status moved = TUTTI_OK;
    for (int i = 0; i < ports->output_count && moved == TUTTI_OK; i++)
        moved = move_batch(&ports->outputs[i], ports->samples, sizeof(float), true);
    return moved;
}

int ports_compute(struct session *session, struct ports *ports)
{
    const tutti_status status = compute(session, ports);
    return status == TUTTI_OK ? EXIT_DONE : work_failed(session->command, status, status_message());
}
