/* Parameters of a network: their names, where they lie, and what the caller decides about them. */
#include "graph/network.h"

#include "base/memory.h"
#include "base/options.h"
#include "base/text.h"
#include "graph/parameter_storage.h"
#include "tutti_finetune.h"

#include <fnmatch.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* --------------------------------------------------------------------------------------------------- making ---- */

static tutti_status count_elements(struct parameter *parameter)
{
    parameter->elements = 1;
    for (int i = 0; i < parameter->shape.rank; i++) {
        size_t product;
        const int64_t size = parameter->shape.sizes[i];
        if (size == TUTTI_SEQUENCE)
            return fail(TUTTI_SHAPE,
                "%s would have the length of sequences, TUTTI_SEQUENCE, as its size in dimension %d: sizes of "
                "parameters and constants must be numbers",
                parameter->name, i);
        if (size < 1 || !size_multiply((size_t)parameter->elements, (size_t)size, &product) || product > INT64_MAX / 64)
            return fail(TUTTI_SHAPE,
                "%s would have size %" PRId64
                " in dimension %d: it must be positive, and the values must fit into memory",
                parameter->name, size, i);
        parameter->elements = (int64_t)product;
    }
    return TUTTI_OK;
}

static tutti_status check_parameter(const tutti_network *network, const struct parameter *parameter)
{
    if ((unsigned)parameter->init > TUTTI_INIT_ZEROS)
        return fail(TUTTI_INVALID,
            "%s: initialiser %d does not exist: use TUTTI_INIT_DEFAULT (0) to TUTTI_INIT_ZEROS (%d)", parameter->name,
            (int)parameter->init, (int)TUTTI_INIT_ZEROS);
    if (parameter->kind != PARAMETER_CONSTANT && network_find(network, parameter->name))
        return fail(TUTTI_INVALID, "two parameters have the name %s: give the layers different names", parameter->name);
    return TUTTI_OK;
}

/* Replaces the values that the parameter has, if `values` is not NULL. */
static tutti_status copy_values(struct parameter *parameter, const void *values)
{
    if (!values) return TUTTI_OK;
    float *copy = memory_new((size_t)parameter->elements, sizeof *copy);
    if (!copy) return TUTTI_NO_MEMORY;
    memcpy(copy, values, (size_t)parameter->elements * sizeof *copy);
    free(parameter->values);
    parameter->values = copy;
    return TUTTI_OK;
}

int network_add_parameter(tutti_network *network, struct parameter parameter, const void *values)
{
    tutti_status status = TUTTI_OK;
    if (!parameter.name) FAIL(TUTTI_NO_MEMORY, "there is no memory for the name of a parameter");
    TRY(count_elements(&parameter));
    TRY(check_parameter(network, &parameter));
    TRY(copy_values(&parameter, values));
    TRY(memory_grow((void **)&network->parameters, &network->parameter_capacity, network->parameter_count + 1,
        sizeof *network->parameters));
    const tutti_shape shape = parameter.shape.rank > 0 ? parameter.shape : TUTTI_SHAPE(1); /* of the tensor */
    parameter.value = graph_value(&network->graph, ROLE_PARAMETER, parameter.type, shape, false, parameter.name);
    TRY(network->graph.status);
    graph_at(&network->graph, parameter.value)->parameter = (int)network->parameter_count;
    network->parameters[network->parameter_count++] = parameter;
    return parameter.value;
done:
    free(parameter.name);
    free(parameter.values);
    network_fail(network, status);
    return NO_VALUE;
}

int network_parameter(
    tutti_network *network, int layer, const char *suffix, tutti_shape shape, const struct parameter *how)
{
    if (!network_ok(network) || layer < 0) return NO_VALUE;
    struct parameter parameter = *how;
    parameter.layer = layer;
    parameter.shape = shape;
    parameter.name = memory_format("%s.%s", network->layers[layer].name, suffix);
    return network_add_parameter(network, parameter, NULL);
}

/* Checks that running statistics are used only where a node updates them, and that nothing else is updated. */
static tutti_status check_kind(
    const tutti_network *network, const struct value *value, const char *suffix, bool updates)
{
    const bool statistic = value->parameter >= 0 && network->parameters[value->parameter].kind == PARAMETER_STATISTIC;
    if (statistic == updates) return TUTTI_OK;
    return fail(TUTTI_INVALID, "%s is '%s', which is %s running statistic: pass %s", suffix,
        value->name ? value->name : "a tensor", updates ? "not a" : "a",
        updates ? "that of another batch normalisation" : "a parameter");
}

static tutti_status check_shared(
    const tutti_network *network, tutti_tensor given, const char *suffix, tutti_shape shape, bool updates)
{
    const struct value *value = graph_at(&network->graph, given.id);
    if (!value || value->batched || value->type != TYPE_F32)
        return fail(TUTTI_INVALID,
            "%s is tensor %d, which %s: pass what tutti_parameter() or tutti_find_parameter() returned, or what "
            "operations make of it",
            suffix, given.id,
            !value               ? "is not of this network"
                : value->batched ? "depends on the samples"
                                 : "is not of float32");
    const tutti_status status = check_kind(network, value, suffix, updates);
    if (status != TUTTI_OK || shape_equal(value->shape, shape)) return status;
    return fail(TUTTI_SHAPE, "%s%s%s has another shape than this layer's %s", value->name ? "the parameter '" : "",
        value->name ? value->name : "the tensor", value->name ? "'" : "", suffix);
}

int network_weight(tutti_network *network, int layer, const tutti_tensor *given, const char *suffix, tutti_shape shape,
    const struct parameter *how)
{
    if (!given) return network_parameter(network, layer, suffix, shape, how);
    if (!network_ok(network)) return NO_VALUE;
    const tutti_status status = check_shared(network, *given, suffix, shape, how->kind == PARAMETER_STATISTIC);
    if (status == TUTTI_OK) return given->id;
    network_fail(network, status);
    return NO_VALUE;
}

static tutti_status check_name(const char *name)
{
    if (name && *name) return TUTTI_OK;
    return fail(TUTTI_INVALID, "a parameter has no name: pass the name that files of weights shall have");
}

tutti_tensor tutti_parameter_sized(
    tutti_network *network, const char *name, const int64_t *sizes, int rank, const tutti_parameter_options *given)
{
    tutti_shape shape;
    tutti_status status = TUTTI_OK;
    tutti_parameter_options options;
    if (!network_grows(network)) return (tutti_tensor) { NO_VALUE };
    TRY(check_name(name));
    if (!text_is_utf8(name)) FAIL(TUTTI_INVALID, "a parameter has a name that is not UTF-8: files of weights need it");
    if (rank == 0)
        shape = (tutti_shape) { 0 };
    else if (!shape_read(sizes, rank, &shape))
        FAIL(TUTTI_SHAPE, "parameter %s has %d dimensions%s: 1 to %d are possible", name, rank, sizes ? "" : " at NULL",
            TUTTI_MAX_RANK);
    TRY(OPTIONS_READ(&options, given, tutti_parameter_options));
    const int value = network_add_parameter(network,
        (struct parameter) { .name = memory_format("%s%s", network->scope.text ? network->scope.text : "", name),
            .layer = -1,
            .shape = shape,
            .kind = options.frozen ? PARAMETER_FROZEN : PARAMETER_TRAINED,
            .init = options.init,
            .init_scale = options.init_scale,
            .fan_in = options.fan_in,
            .fan_out = options.fan_out },
        options.values);
    return (tutti_tensor) { value };
done:
    return network_fail(network, status);
}

tutti_tensor tutti_parameter(
    tutti_network *network, const char *name, tutti_shape shape, const tutti_parameter_options *options)
{
    if (network_ok(network) && shape.rank < 1) /* a shape that was forgotten */
        return network_fail(network,
            fail(TUTTI_SHAPE, "parameter %s has %d dimensions: 1 to %d are possible", name ? name : "", shape.rank,
                TUTTI_MAX_RANK));
    return tutti_parameter_sized(network, name, shape.sizes, shape.rank, options);
}

float parameter_momentum(float momentum, int uses)
{
    return uses > 1 ? (float)(1 - pow(1 - (double)momentum, uses)) : momentum;
}

/* --------------------------------------------------------------------------------------------------- finding ---- */

const struct parameter *network_find(const tutti_network *network, const char *name)
{
    for (size_t i = 0; i < network->parameter_count; i++)
        if (network->parameters[i].kind != PARAMETER_CONSTANT && !strcmp(network->parameters[i].name, name))
            return &network->parameters[i];
    return NULL;
}

bool network_is_factor(const tutti_network *network, int parameter)
{
    for (size_t i = 0; i < network->adapters.count; i++)
        if (network->adapters.list[i].down == parameter || network->adapters.list[i].up == parameter) return true;
    return false;
}

/* While a trainer uses the network, its parameters stay where they are. */
tutti_status network_check_idle(const tutti_network *network)
{
    if (!network) return fail(TUTTI_INVALID, "the network is NULL: make one with tutti_network_new()");
    if (network->status != TUTTI_OK) return tutti_network_status(network);
    if (network->trainers == 0) return TUTTI_OK;
    return fail(TUTTI_INVALID, "a trainer uses this network: call this before tutti_compile(), or free the trainer");
}

static tutti_status find_parameter(const tutti_network *network, const char *name, struct parameter **parameter)
{
    tutti_status status = TUTTI_OK;
    TRY(check_name(name));
    *parameter = (struct parameter *)network_find(network, name);
    if (!*parameter) FAIL(TUTTI_INVALID, "the network has no parameter '%s': tutti_parameter_info() lists them", name);
done:
    return status;
}

tutti_tensor tutti_find_parameter(tutti_network *network, const char *name)
{
    struct parameter *parameter = NULL;
    if (!network_ok(network)) return (tutti_tensor) { NO_VALUE };
    const tutti_status status = find_parameter(network, name, &parameter);
    return status == TUTTI_OK ? (tutti_tensor) { parameter->value } : network_fail(network, status);
}

/* ------------------------------------------------------------------------------------- what the caller sets ---- */

tutti_status tutti_set_initial(tutti_network *network, const char *name, const float *values, int64_t count)
{
    tutti_status status = TUTTI_OK;
    struct parameter *parameter = NULL;
    TRY(network_check_idle(network));
    TRY(find_parameter(network, name, &parameter));
    if (!values) FAIL(TUTTI_INVALID, "the initial values of '%s' are NULL", name);
    if (count != parameter->elements)
        FAIL(TUTTI_INVALID,
            "'%s' has %" PRId64 " elements, but the array has %" PRId64 ": pass an array of the parameter's size", name,
            parameter->elements, count);
    TRY(copy_values(parameter, values));
done:
    return status;
}

bool parameter_matches(const struct parameter *parameter, const char *pattern)
{
    const bool is_one = parameter->kind == PARAMETER_TRAINED || parameter->kind == PARAMETER_FROZEN;
    return is_one && fnmatch(pattern, parameter->name, 0) == 0;
}

static tutti_status check_found(const tutti_network *network, int found, const char *pattern)
{
    enum { MOST_NAMED = 6 };
    struct text names = { 0 };
    int count = 0;
    if (found > 0) return TUTTI_OK;
    for (size_t i = 0; i < network->parameter_count; i++)
        if (parameter_matches(&network->parameters[i], "*") && count++ < MOST_NAMED)
            text_append(&names, "%s%s", count > 1 ? ", " : "", network->parameters[i].name);
    const tutti_status status = fail(TUTTI_INVALID, "no parameter has a name like '%s': there are %s%s", pattern,
        names.data ? names.data : "none", count > MOST_NAMED ? ", ..." : "");
    text_free(&names);
    return status;
}

static tutti_status set_kind(
    tutti_network *network, const char *pattern, enum parameter_kind from, enum parameter_kind to)
{
    tutti_status status = TUTTI_OK;
    int found = 0;
    TRY(network_check_idle(network));
    TRY(check_name(pattern));
    for (size_t i = 0; i < network->parameter_count; i++) {
        struct parameter *parameter = &network->parameters[i];
        if (!parameter_matches(parameter, pattern)) continue;
        found++;
        if (parameter->kind == from) parameter->kind = to;
    }
    TRY(check_found(network, found, pattern));
done:
    return status;
}

tutti_status tutti_freeze(tutti_network *network, const char *pattern)
{
    return set_kind(network, pattern, PARAMETER_TRAINED, PARAMETER_FROZEN);
}

tutti_status tutti_unfreeze(tutti_network *network, const char *pattern)
{
    return set_kind(network, pattern, PARAMETER_FROZEN, PARAMETER_TRAINED);
}

tutti_status tutti_store(tutti_network *network, const char *pattern, tutti_storage storage)
{
    static const enum value_type types[] = {
        [TUTTI_STORE_F32] = TYPE_F32, [TUTTI_STORE_BF16] = TYPE_BF16, [TUTTI_STORE_INT8] = TYPE_INT8
    };
    tutti_status status;
    int matching = 0, found = 0;
    TRY(network_check_idle(network));
    if (!pattern || !*pattern) FAIL(TUTTI_INVALID, "the pattern is empty: pass \"*\" for all frozen matrices");
    if ((unsigned)storage > TUTTI_STORE_INT8)
        FAIL(TUTTI_INVALID, "storage %d does not exist: use TUTTI_STORE_F32 (0) to TUTTI_STORE_INT8 (%d)", (int)storage,
            (int)TUTTI_STORE_INT8);
    for (size_t i = 0; i < network->parameter_count; i++) {
        struct parameter *parameter = &network->parameters[i];
        if (!parameter_matches(parameter, pattern)) continue;
        matching++;
        if (parameter->kind != PARAMETER_FROZEN || parameter->shape.rank < 2) continue;
        found++;
        parameter->stored = types[storage];
    }
    if (found == 0)
        FAIL(TUTTI_INVALID,
            "%s '%s': only frozen parameters of two dimensions and more are stored otherwise; "
            "tutti_freeze() freezes",
            matching ? "no matrix is frozen among the parameters with names like" : "no parameter has a name like",
            pattern);
done:
    return status;
}

static tutti_status check_group(const tutti_group_options *options)
{
    if (!(options->rate_factor >= 0 && options->rate_factor <= 1e30f))
        return fail(TUTTI_INVALID, "rate_factor is %g: it must be positive and finite, or 0 for 1",
            (double)options->rate_factor);
    if (!(options->weight_decay >= 0 && options->weight_decay <= 1e30f))
        return fail(
            TUTTI_INVALID, "weight_decay is %g: it must be at least 0 and finite", (double)options->weight_decay);
    if (options->weight_decay > 0 && !options->has_weight_decay)
        return fail(TUTTI_INVALID, "weight_decay is %g, but has_weight_decay is false: set both",
            (double)options->weight_decay);
    return TUTTI_OK;
}

tutti_status network_read_group(tutti_group_options *options, const tutti_group_options *given)
{
    const tutti_status status = OPTIONS_READ(options, given, tutti_group_options);
    return status == TUTTI_OK ? check_group(options) : status;
}

tutti_status tutti_group(tutti_network *network, const char *pattern, const tutti_group_options *given)
{
    tutti_status status = TUTTI_OK;
    tutti_group_options options;
    int found = 0;
    TRY(network_check_idle(network));
    TRY(check_name(pattern));
    TRY(network_read_group(&options, given));
    for (size_t i = 0; i < network->parameter_count; i++) {
        struct parameter *parameter = &network->parameters[i];
        if (!parameter_matches(parameter, pattern)) continue;
        found++;
        parameter->rate_factor = options.rate_factor;
        parameter->has_weight_decay = options.has_weight_decay;
        parameter->weight_decay = options.weight_decay;
    }
    TRY(check_found(network, found, pattern));
done:
    return status;
}

/* ----------------------------------------------------------------------------------------------------- places ---- */

/* Places the parameters of this kind from *floats on, and advances *floats. */
static tutti_status place_kind(tutti_network *network, enum parameter_kind kind, int64_t *floats)
{
    for (size_t i = 0; i < network->parameter_count; i++) {
        struct parameter *p = &network->parameters[i];
        if (p->kind != kind) continue;
        const int64_t own = divide_up((int64_t)parameter_bytes(p), (int64_t)sizeof(float));
        if (own > INT64_MAX / 8 - *floats)
            return fail(TUTTI_SHAPE, "the network has more parameters than can be counted: make its layers smaller");
        p->offset = *floats;
        *floats += divide_up(own, PARAMETER_ALIGNMENT) * PARAMETER_ALIGNMENT;
    }
    return TUTTI_OK;
}

tutti_status network_layout(tutti_network *network)
{
    tutti_status status = TUTTI_OK;
    network->trained_floats = network->frozen_floats = 0;
    TRY(place_kind(network, PARAMETER_TRAINED, &network->trained_floats));
    network->total_floats = network->trained_floats;
    TRY(place_kind(network, PARAMETER_STATISTIC, &network->total_floats));
    TRY(place_kind(network, PARAMETER_FROZEN, &network->frozen_floats));
    TRY(place_kind(network, PARAMETER_CONSTANT, &network->frozen_floats));
done:
    return status;
}

/* ---------------------------------------------------------------------------------------- what is in a network ---- */

int64_t tutti_network_parameters(const tutti_network *network)
{
    int64_t count = 0;
    for (size_t i = 0; i < network->parameter_count; i++)
        if (network->parameters[i].kind == PARAMETER_TRAINED) count += network->parameters[i].elements;
    return count;
}

tutti_status tutti_parameter_info(
    const tutti_network *network, int position, const char **name, tutti_shape *shape, bool *trained)
{
    const struct parameter *parameter = NULL;
    int count = 0;
    for (size_t i = 0; i < network->parameter_count; i++) {
        if (network->parameters[i].kind == PARAMETER_CONSTANT) continue;
        if (count++ == position) parameter = &network->parameters[i];
    }
    if (!parameter)
        return fail(TUTTI_INVALID, "parameter %d does not exist: the network has %d parameters, counted from 0",
            position, count);
    if (name) *name = parameter->name;
    if (shape) *shape = parameter->shape;
    if (trained) *trained = parameter->kind == PARAMETER_TRAINED;
    return TUTTI_OK;
}
