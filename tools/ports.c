#include "tools/ports.h"

#include "base/dtype.h"
#include "base/half.h"
#include "base/memory.h"
#include "base/status.h"
#include "tutti_inspect.h"

#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------------------------ what the network has ---- */

static tutti_status describe(const tutti_network *network, struct port *port)
{
    port->info.size = sizeof port->info;
    const tutti_status status = tutti_network_tensor(network, port->tensor, &port->info);
    if (!port->name) port->name = port->info.name;
    port->elements = 1;
    for (int i = 0; i < port->info.shape.rank; i++) port->elements *= port->info.shape.sizes[i];
    return status;
}

static tutti_status find(const tutti_network *network, struct ports *ports)
{
    tutti_status status = TUTTI_OK;
    struct port *at = ports->inputs;
    for (int i = 0; i < TUTTI_ONNX_PORTS && tutti_network_input(network, i, &at->tensor) == TUTTI_OK; i++, at++) {
        TRY(describe(network, at));
        ports->input_count++;
    }
    at = ports->outputs;
    for (int i = 0; i < TUTTI_ONNX_PORTS && tutti_network_output(network, i, &at->name, &at->tensor) == TUTTI_OK;
         i++, at++) {
        TRY(describe(network, at));
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
    const tutti_status status = find(session->network, ports);
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
    for (int i = 1; i < ports->output_count; i++)
        if (!ports->outputs[i].same) others[count++] = ports->outputs[i].tensor;
    session->output = ports->outputs[0].tensor;
    return session_compile(session,
        &(tutti_training) { .loss = TUTTI_LOSS_NONE,
            .batch = batch < ports->samples ? batch : ports->samples,
            .outputs = others,
            .output_count = count });
}

/* ---------------------------------------------------------------------------------- what the file has for it ---- */

/* [N, 3, 224, 224] */
static const char *print_sizes(const int64_t *sizes, int rank, bool batch, char text[160])
{
    size_t used = (size_t)snprintf(text, 160, batch ? "[N" : "[");
    for (int i = 0; i < rank && used < 160; i++)
        used += (size_t)snprintf(text + used, 160 - used, "%s%lld", i || batch ? ", " : "", (long long)sizes[i]);
    if (used < 160) snprintf(text + used, 160 - used, "]");
    return text;
}

static bool is_whole(enum npz_type type)
{
    return type != NPZ_BOOL && type != NPZ_F16 && type != NPZ_F32 && type != NPZ_F64;
}

static bool type_fits(enum npz_type type, tutti_dtype dtype)
{
    switch (dtype) {
    case TUTTI_DTYPE_F32: return type == NPZ_F16 || type == NPZ_F32 || type == NPZ_F64;
    case TUTTI_DTYPE_I32: return is_whole(type);
    case TUTTI_DTYPE_U8: return type == NPZ_U8;
    case TUTTI_DTYPE_BOOL: return type == NPZ_BOOL;
    default: return false;
    }
}

static bool sizes_fit(const struct npz_array *array, const tutti_shape *shape)
{
    bool fit = array->rank == shape->rank + 1;
    for (int i = 0; fit && i < shape->rank; i++) fit = array->sizes[i + 1] == shape->sizes[i];
    return fit;
}

/* An array without a name belongs to the only input. */
static const struct npz_array *array_of(const struct npz *file, const struct ports *ports, const struct port *port)
{
    const struct npz_array *array = npz_find(file, port->name);
    return array || ports->input_count > 1 ? array : npz_find(file, "");
}

static bool is_known(
    const struct npz *file, const struct ports *ports, const struct npz_array *array, bool with_outputs)
{
    for (int i = 0; i < ports->input_count; i++)
        if (array_of(file, ports, &ports->inputs[i]) == array) return true;
    for (int i = 0; with_outputs && i < ports->output_count; i++)
        if (!strcmp(ports->outputs[i].name, array->name)) return true;
    return false;
}

/* Prints a line if the array does not fit its input. */
static bool check_array(
    const char *command, const char *path, const struct npz_array *array, const struct port *port, int64_t samples)
{
    char found[160], wanted[160];
    print_sizes(port->info.shape.sizes, port->info.shape.rank, true, wanted);
    if (!array) {
        wrong_use(command, "%s has no array \"%s\": the input is of %s, %s", path, port->name,
            dtype_name(port->info.dtype), wanted);
        return false;
    }
    if (!type_fits(array->type, port->info.dtype))
        wrong_use(command, "%s: array \"%s\" is of %s: the input is of %s", path, port->name,
            npz_type_name(array->type), dtype_name(port->info.dtype));
    else if (!sizes_fit(array, &port->info.shape))
        wrong_use(command, "%s: array \"%s\" is %s: the input is %s", path, port->name,
            print_sizes(array->sizes, array->rank, false, found), wanted);
    else if (array->sizes[0] != samples)
        wrong_use(command, "%s: array \"%s\" has %lld samples, but another one has %lld", path, port->name,
            (long long)array->sizes[0], (long long)samples);
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

/* Tells all that does not fit. */
static bool check_file(
    const char *command, const char *path, const struct npz *file, bool with_outputs, struct ports *ports)
{
    char names[160] = "";
    bool fits = true;
    const size_t used = print_names(ports->inputs, ports->input_count, 0, names);
    if (with_outputs) print_names(ports->outputs, ports->output_count, used, names);
    ports->samples = 0;
    for (int i = ports->input_count - 1; i >= 0; i--) {
        const struct npz_array *array = array_of(file, ports, &ports->inputs[i]);
        if (array && array->rank > 0) ports->samples = array->sizes[0];
    }
    for (int i = 0; i < ports->input_count; i++) {
        const struct port *port = &ports->inputs[i];
        fits &= check_array(command, path, array_of(file, ports, port), port, ports->samples);
    }
    for (int i = 0; i < npz_count(file); i++) {
        const struct npz_array *array = npz_at(file, i);
        if (is_known(file, ports, array, with_outputs)) continue;
        wrong_use(command, "%s: array \"%s\" is of no %s of the model: it has %s", path, array->name,
            with_outputs ? "input and no output" : "input", names);
        fits = false;
    }
    return fits;
}

/* ------------------------------------------------------------------------------------------------- convert ---- */

static float float_at(const struct npz_array *array, size_t i)
{
    if (array->type == NPZ_F16) return half_to_float(((const uint16_t *)array->data)[i]);
    return array->type == NPZ_F64 ? (float)((const double *)array->data)[i] : ((const float *)array->data)[i];
}

/* False if the number does not fit int32. */
static bool whole_at(const struct npz_array *array, size_t i, int32_t *number)
{
    int64_t value = INT64_MAX;
    switch (array->type) {
    case NPZ_I8: value = ((const int8_t *)array->data)[i]; break;
    case NPZ_U8: value = ((const uint8_t *)array->data)[i]; break;
    case NPZ_I16: value = ((const int16_t *)array->data)[i]; break;
    case NPZ_U16: value = ((const uint16_t *)array->data)[i]; break;
    case NPZ_I32: value = ((const int32_t *)array->data)[i]; break;
    case NPZ_U32: value = ((const uint32_t *)array->data)[i]; break;
    case NPZ_I64: value = ((const int64_t *)array->data)[i]; break;
    default:
        if (((const uint64_t *)array->data)[i] <= INT32_MAX) value = (int64_t)((const uint64_t *)array->data)[i];
    }
    *number = (int32_t)value;
    return value >= INT32_MIN && value <= INT32_MAX;
}

/* The array in the type of the input. */
static tutti_status convert(const char *path, const struct npz_array *array, struct port *port)
{
    const size_t count = array->bytes / npz_type_size(array->type), bytes = tutti_dtype_bytes(port->info.dtype);
    port->data = memory_new(count, bytes);
    if (!port->data) return TUTTI_NO_MEMORY;
    if (port->info.dtype == TUTTI_DTYPE_U8 || port->info.dtype == TUTTI_DTYPE_BOOL)
        memcpy(port->data, array->data, count);
    for (size_t i = 0; i < count && port->info.dtype == TUTTI_DTYPE_F32; i++)
        ((float *)port->data)[i] = float_at(array, i);
    for (size_t i = 0; i < count && port->info.dtype == TUTTI_DTYPE_I32; i++)
        if (!whole_at(array, i, &((int32_t *)port->data)[i]))
            return fail(TUTTI_INVALID, "%s: element %zu of array \"%s\" does not fit int32", path, i, port->name);
    return TUTTI_OK;
}

int ports_read(
    const struct session *session, const char *path, const struct npz *file, bool with_outputs, struct ports *ports)
{
    tutti_status status = TUTTI_OK;
    if (!check_file(session->command, path, file, with_outputs, ports)) return EXIT_WRONG_USE;
    for (int i = 0; i < ports->input_count && status == TUTTI_OK; i++)
        status = convert(path, array_of(file, ports, &ports->inputs[i]), &ports->inputs[i]);
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
    return TUTTI_OK;
}

int ports_compute(struct session *session, struct ports *ports)
{
    const tutti_status status = compute(session, ports);
    return status == TUTTI_OK ? EXIT_DONE : work_failed(session->command, status, status_message());
}
