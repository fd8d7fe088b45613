/* tutti_op(): finds an operation's schema by its name (layers/schema/schema.h), and reads its attributes from text. */
#include "layers/schema/op.h"
#include "base/invariant.h"
#include "base/memory.h"
#include "base/numbers.h"
#include "base/text.h"
#include "graph/network.h"
#include "layers/append.h"
#include "layers/schema/schema.h"

#include <limits.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The attributes read from the text. */
struct op_values {
    struct attribute_values attributes;
    _Alignas(int64_t) unsigned char options[OPTIONS_SIZE];
    char *name; /* of the layer */
};

/* --------------------------------------------------------------------------------------------- names of nodes ---- */

static enum activation activation_of(const struct node *node)
{
    const bool is = node->operation == &operation_activation;
    return is ? activation_attributes(node)->function.activation : ACTIVATION_NONE;
}

const char *op_name(const struct node *node)
{
    const enum activation activation = activation_of(node);
    return activation == ACTIVATION_NONE ? node->operation->name : activations[activation].name;
}

const char *op_attribute_name(const struct node *node, const struct attribute *attribute, const char **choices)
{
    bool known = false;
    *choices = NULL;
    const struct op_schema *schema;
    for (int i = 0; (schema = schema_at(i, NULL)); i++) {
        if (schema->operation != node->operation || schema->activation != activation_of(node)) continue;
        const struct op_attribute *a;
        known = true;
        for (int k = 0; (a = schema_attribute(schema, k)); k++)
            if (a->is_attribute && a->offset == attribute->offset) {
                *choices = a->choices;
                return a->name;
            }
    }
    return known && attribute->kind == ATTRIBUTE_NUMBER ? NULL : attribute->name;
}

/* ------------------------------------------------------------------------------------------- reading the text ---- */

enum { MOST_NUMBERS = REALS };

/* Reads "3,-1,5". Returns how many there are; 0: the text is invalid, or has too many. */
static int read_numbers(const char *text, size_t length, double numbers[MOST_NUMBERS])
{
    int count = 0;
    for (const char *at = text; count < MOST_NUMBERS; at++) {
        char *end = NULL;
        numbers[count++] = number_read(at, &end);
        if (end == at || end > text + length) return 0;
        at = end;
        if (at == text + length) return count;
        if (*at != ',') return 0;
    }
    return 0;
}

/* Returns the number that a word stands for; -1: the word is not among the choices. */
static int choice_of(const char *choices, const char *text, size_t length)
{
    int number = 0;
    for (const char *at = choices; *at != '\0'; at += strcspn(at, " "), at += strspn(at, " "), number++)
        if (strcspn(at, " ") == length && !memcmp(at, text, length)) return number;
    return -1;
}

/* The axis of the value for an axis number of the caller; -1 if it does not exist. */
static int axis_of(const struct value *x, double number)
{
    const int rank = x->shape.rank - x->batched;
    const double axis = number < 0 ? number + rank : number;
    return axis >= 0 && axis < rank && axis == floor(axis) ? (int)axis + x->batched : -1;
}

static bool set_axes(const struct value *x, tutti_attribute_type type, const double *numbers, int count, void *to)
{
    int axes[TUTTI_MAX_RANK] = { 0 };
    unsigned all = 0;
    for (int i = 0; i < count; i++) {
        if (i == TUTTI_MAX_RANK || (axes[i] = axis_of(x, numbers[i])) < 0 || all >> axes[i] & 1) return false;
        all |= 1u << axes[i];
    }
    if (type == TUTTI_ATTRIBUTE_AXIS) {
        *(int *)to = axes[0];
        return count == 1;
    }
    if (type == TUTTI_ATTRIBUTE_AXES) {
        *(unsigned *)to = all;
        return true;
    }
    if (count != x->shape.rank - x->batched) return false;
    for (int i = 0; i < count; i++) ((int *)to)[i + x->batched] = axes[i];
    return true;
}

static bool set_integers(const double *numbers, int count, int64_t *to)
{
    for (int i = 0; i < count; i++) {
        if (numbers[i] != floor(numbers[i]) || fabs(numbers[i]) > (double)OP_MAX_INTEGER) return false;
        to[i] = (int64_t)numbers[i];
    }
    return true;
}

static bool set_shape(const struct value *x, const double *numbers, int count, tutti_shape *shape)
{
    if (count + x->batched > TUTTI_MAX_RANK) return false;
    *shape = (tutti_shape) { .rank = count + x->batched, .sizes = { x->shape.sizes[0] } };
    return set_integers(numbers, count, shape->sizes + x->batched);
}

/* The end of a slice can be INT64_MAX or INT64_MIN, which set_integers() refuses: returns a smaller number that is
 * still beyond every size. */
static double limited(double number)
{
    return fabs(number) == 0x1p63 ? copysign((double)OP_MAX_INTEGER, number) : number;
}

static bool set_list(const double *numbers, int count, struct integers *list)
{
    double limits[TUTTI_MAX_RANK];
    if (count > TUTTI_MAX_RANK) return false;
    list->count = count;
    for (int i = 0; i < count; i++) limits[i] = limited(numbers[i]);
    return set_integers(limits, count, list->numbers);
}

static bool set_reals(const double *numbers, int count, struct reals *reals)
{
    reals->count = count;
    memcpy(reals->numbers, numbers, (size_t)count * sizeof *numbers);
    return true;
}

/* Returns a member of the node's attributes that the text cannot set. */
static void *member_of(const struct op_schema *schema, struct op_values *parsed, const char *name)
{
    const struct attribute *member = attribute_members(schema->operation->attributes);
    while (member->name && strcmp(member->name, name)) member++;
    INVARIANT(member->name);
    return parsed->attributes.bytes + member->offset;
}

/* Sets a member from the numbers of its text. False: they are invalid for this type. */
static bool set_numbers(
    const struct value *x, const struct op_attribute *attribute, const double *numbers, int count, void *to)
{
    switch (attribute->type) {
    case TUTTI_ATTRIBUTE_NUMBER:
        if (attribute->wide)
            *(double *)to = numbers[0];
        else
            *(float *)to = (float)numbers[0];
        return count == 1;
    case TUTTI_ATTRIBUTE_FLAG: *(bool *)to = numbers[0] != 0; return count == 1 && (numbers[0] == 0 || numbers[0] == 1);
    case TUTTI_ATTRIBUTE_INTEGER: return count == 1 && set_integers(numbers, 1, to);
    case TUTTI_ATTRIBUTE_AXIS:
    case TUTTI_ATTRIBUTE_AXES:
    case TUTTI_ATTRIBUTE_ORDER: return set_axes(x, attribute->type, numbers, count, to);
    case TUTTI_ATTRIBUTE_SHAPE: return set_shape(x, numbers, count, to);
    case TUTTI_ATTRIBUTE_NUMBERS: return set_reals(numbers, count, to);
    default: return set_list(numbers, count, to);
    }
}

/* Sets the member from the text of the value. False: it is invalid for this type and an input x. */
static bool set(const struct value *x, const struct op_attribute *attribute, const char *text, size_t length,
    struct op_values *parsed)
{
    void *to = (attribute->is_attribute ? parsed->attributes.bytes : parsed->options) + attribute->offset;
    double numbers[MOST_NUMBERS];
    if (attribute->type == TUTTI_ATTRIBUTE_CHOICE)
        return (*(int *)to = choice_of(attribute->choices, text, length)) >= 0;
    if (attribute->type == TUTTI_ATTRIBUTE_TEXT) {
        if (length == 0 || length >= OP_TEXT) return false;
        memcpy(to, text, length);
        ((char *)to)[length] = '\0';
        return true;
    }
    const int count = read_numbers(text, length, numbers);
    const bool number = attribute->type == TUTTI_ATTRIBUTE_SHAPE && x->batched && length == 0; /* no axes */
    return (count > 0 || number) && set_numbers(x, attribute, numbers, count, to);
}

static tutti_status unknown_attribute(const struct op_schema *schema, const char *name, size_t length)
{
    struct text known = { 0 };
    const struct op_attribute *attribute;
    for (int i = 0; (attribute = schema_attribute(schema, i)); i++) text_append(&known, "%s, ", attribute->name);
    const tutti_status status = fail(TUTTI_INVALID, "%s: there is no attribute '%.*s': it has %sname", schema->name,
        (int)length, name, known.data ? known.data : "");
    text_free(&known);
    return status;
}

/* Says what the value of an attribute must be. `word` is the "key=value". */
static tutti_status wrong_value(const struct op_schema *schema, const struct op_attribute *attribute,
    const struct value *x, const char *word, int size)
{
    const int rank = x->shape.rank - x->batched;
    switch (attribute->type) {
    case TUTTI_ATTRIBUTE_CHOICE:
        return fail(TUTTI_INVALID, "%s: '%.*s': %s can be one of: %s", schema->name, size, word, attribute->name,
            attribute->choices);
    case TUTTI_ATTRIBUTE_AXIS:
    case TUTTI_ATTRIBUTE_AXES:
    case TUTTI_ATTRIBUTE_ORDER:
    case TUTTI_ATTRIBUTE_SHAPE:
        return fail(TUTTI_INVALID, "%s: '%.*s': %s must be %s, and the input has %d axes", schema->name, size, word,
            attribute->name, schema_type_text(attribute->type), rank);
    default:
        return fail(TUTTI_INVALID, "%s: '%.*s': %s must be %s", schema->name, size, word, attribute->name,
            schema_type_text(attribute->type));
    }
}

/* Reads one "key=value" of the text. */
static tutti_status read_word(const struct op_schema *schema, const struct value *x, const char *text, size_t size,
    struct op_values *parsed, unsigned *seen)
{
    const char *equals = memchr(text, '=', size);
    const size_t key = equals ? (size_t)(equals - text) : size, length = equals ? size - key - 1 : 0;
    const struct op_attribute *attribute;
    if (equals && key == 4 && !memcmp(text, "name", 4)) {
        free(parsed->name);
        parsed->name = memory_format("%.*s", (int)length, equals + 1);
        return parsed->name ? TUTTI_OK : TUTTI_NO_MEMORY;
    }
    for (int i = 0; (attribute = schema_attribute(schema, i)); i++) {
        if (strlen(attribute->name) != key || memcmp(attribute->name, text, key) != 0) continue;
        *seen |= 1u << i;
        if (equals && set(x, attribute, equals + 1, length, parsed)) return TUTTI_OK;
        return wrong_value(schema, attribute, x, text, (int)size);
    }
    return unknown_attribute(schema, text, key);
}

static tutti_status read_text(
    const struct op_schema *schema, const struct value *x, const char *text, struct op_values *parsed)
{
    tutti_status status = TUTTI_OK;
    unsigned seen = 0, unset = 0; /* attributes, as bits; those whose default is invalid for x */
    const struct op_attribute *attribute;
    for (int i = 0; (attribute = schema_attribute(schema, i)); i++)
        if (attribute->default_value &&
            !set(x, attribute, attribute->default_value, strlen(attribute->default_value), parsed))
            unset |= 1u << i; /* an axis that x does not have */
    for (const char *at = text ? text : ""; *(at += strspn(at, " ")) != '\0'; at += strcspn(at, " "))
        TRY(read_word(schema, x, at, strcspn(at, " "), parsed, &seen));
    for (int i = 0; (attribute = schema_attribute(schema, i)); i++)
        if (attribute->required && !(seen >> i & 1))
            FAIL(TUTTI_INVALID, "%s: it needs the attribute '%s': %s", schema->name, attribute->name, attribute->text);
    for (int i = 0; (attribute = schema_attribute(schema, i)); i++)
        if (unset & ~seen & 1u << i)
            TRY(wrong_value(schema, attribute, x, attribute->default_value, (int)strlen(attribute->default_value)));
    if (schema->activation) *(enum activation *)member_of(schema, parsed, "activation") = schema->activation;
    if (schema->complete) status = schema->complete(x, parsed->options, parsed->attributes.bytes);
done:
    return status;
}

static tutti_tensor append(
    tutti_network *network, int layer, const struct op_schema *schema, struct op_values *parsed, int *values, int count)
{
    int made = NO_VALUE;
    const void *attributes = parsed->attributes.bytes;
    const struct append_context context = { network, &network->graph, layer };
    if (count > OP_INPUTS && network_ok(network)) {
        const int axis = ((const struct axis_attributes *)attributes)->axis;
        return network_close(network, layer, append_concat(&context, axis, values, count));
    }
    if (!schema->decompose && !schema->build)
        return network_append(network, layer, schema->operation, attributes, values, count);
    if (!network_ok(network)) return (tutti_tensor) { NO_VALUE };
    if (schema->decompose) return network_close(network, layer, schema->decompose(&context, attributes, values, count));
    const struct op_call call = { values, count, attributes, parsed->options };
    const tutti_status status = schema->build(&context, &call, &made);
    if (status != TUTTI_OK) return network_fail(network, status);
    return network_ok(network) ? network_close(network, layer, made) : (tutti_tensor) { NO_VALUE };
}

static tutti_status check_inputs(const struct op_schema *schema, int count)
{
    const int least = schema_min_inputs(schema), most = schema_max_inputs(schema);
    if (count >= least && count <= most) return TUTTI_OK;
    if (most == INT_MAX)
        return fail(TUTTI_INVALID, "%s: it got %d inputs: it takes at least %d", schema->name, count, least);
    return fail(TUTTI_INVALID, "%s: it got %d inputs: it takes %d to %d", schema->name, count, least, most);
}

/* Adds a layer by its public function. */
static tutti_tensor call_layer(tutti_network *network, const struct op_schema *schema, const struct op_values *parsed,
    const tutti_tensor *inputs, int count)
{
    network->layer_name = parsed->name;
    const tutti_tensor made = schema->layer(network, inputs, count, parsed->options);
    network->layer_name = NULL;
    return made;
}

/* Adds a layer of the schema's nodes; one that fails if the attributes could not be read. `values` has room for one
 * more. */
static tutti_tensor add_layer(tutti_network *network, const struct op_schema *schema, struct op_values *parsed,
    int *values, int count, tutti_status status)
{
    const int layer = network_layer_begin(network, parsed->name, schema->name);
    if (status != TUTTI_OK) return network_fail(network, status);
    if (schema->random) {
        *(int *)member_of(schema, parsed, "stream") = network->dropout_count++;
        values[count++] = graph_constants(&network->graph);
    }
    return append(network, layer, schema, parsed, values, count);
}

tutti_tensor tutti_op(
    tutti_network *network, const char *operation, const tutti_tensor *inputs, int input_count, const char *attributes)
{
    const int count = inputs ? input_count : 0;
    struct op_values parsed = { 0 };
    const struct value none = { 0 };
    tutti_tensor made = { NO_VALUE };
    if (!network_ok(network)) return made;
    const struct op_schema *schema = operation ? schema_find(operation, NULL) : NULL;
    if (!schema)
        return network_fail(network,
            fail(TUTTI_UNSUPPORTED,
                "tutti_op() got the operation '%s', which does not exist: `tutti op` and docs/operations.md list them",
                operation ? operation : "(NULL)"));
    const tutti_status counted = check_inputs(schema, count);
    if (counted != TUTTI_OK) return network_fail(network, counted);
    for (int i = 0; i < count; i++)
        if (!network_operand(network, inputs[i])) return made;
    int *values = memory_new((size_t)count + 1, sizeof *values);
    if (!values) return network_fail(network, TUTTI_NO_MEMORY);
    for (int i = 0; i < count; i++) values[i] = inputs[i].id;
    const tutti_status status =
        read_text(schema, count ? network_operand(network, inputs[0]) : &none, attributes, &parsed);
    made = schema->layer && status == TUTTI_OK ? call_layer(network, schema, &parsed, inputs, count)
                                               : add_layer(network, schema, &parsed, values, count, status);
    free(parsed.name);
    free(values);
    return made;
}
