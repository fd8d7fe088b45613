/* Einsum. The letter of the batch is taken out of the equation. */
#include "onnx/operators.h"

#include <ctype.h>
#include <string.h>

enum { EQUATION = 200, MOST = 8 };

/* Returns where the letters of input `number` begin; those of the output follow "->". NULL: there is no such input. */
static char *text_of(char *equation, size_t number)
{
    char *at = equation;
    for (size_t i = 0; i < number && at; i++) {
        at = strchr(at, ',');
        if (at) at++;
    }
    return at;
}

/* The letter of an axis of a file, or NULL if an ellipsis has it. */
static char *letter_of(char *text, int axis)
{
    for (; *text && *text != ',' && *text != '-'; text++) {
        if (*text == '.') return NULL;
        if (isalpha((unsigned char)*text) && axis-- == 0) return text;
    }
    return NULL;
}

static void take_out(char *equation, char letter)
{
    char *to = equation;
    for (const char *at = equation; *at; at++)
        if (*at != letter) *to++ = *at;
    *to = '\0';
}

/* Takes the batch's letter out of the equation. It must be the same in all inputs that have a batch, and occur in the
 * output. *batch_axis: that of the result. */
static tutti_status take_batch(
    char *equation, const struct operand *inputs, size_t count, struct batch_axis *batch_axis)
{
    char letter = '\0';
    for (size_t i = 0; i < count; i++) {
        char *text = text_of(equation, i);
        if (!text || !operand_has_batch_axis(&inputs[i])) continue;
        const char *mine = letter_of(text, inputs[i].batch.axis);
        if (!mine || (letter && letter != *mine) || inputs[i].batch.outer != 1)
            return node_refuse("the batch must have the same letter in all inputs");
        letter = *mine;
    }
    for (size_t i = 0; i < count && letter; i++) {
        char *text = text_of(equation, i);
        if (!inputs[i].batch.batched && text && memchr(text, letter, strcspn(text, ",-")))
            return node_refuse("input %zu does not depend on the samples, and has the letter of the batch", i);
    }
    if (!letter) return TUTTI_OK;
    char *output = strstr(equation, "->");
    const char *found = output ? strchr(output, letter) : NULL;
    if (!found) return node_refuse("the batch is summed over, or the equation has no output");
    batch_axis->axis = 0;
    for (const char *at = output; at < found; at++) {
        if (*at == '.') return node_refuse("the batch is after an ellipsis");
        batch_axis->axis += isalpha((unsigned char)*at) != 0;
    }
    take_out(equation, letter);
    return TUTTI_OK;
}

tutti_status build_einsum(struct onnx_node *node)
{
    struct operand inputs[MOST];
    tutti_tensor tensors[MOST];
    char equation[EQUATION];
    const Onnx__AttributeProto *attribute = node_attribute(node, "equation");
    const size_t count = node->proto->n_input;
    struct batch_axis batch_axis = NO_BATCH;
    tutti_status status = TUTTI_OK;
    if (!attribute || attribute->s.len >= EQUATION) return fail(TUTTI_FORMAT, "it needs an equation, not too long");
    if (count < 1 || count > MOST) return node_refuse("it has %zu inputs: at most %d are read", count, (int)MOST);
    if (attribute->s.len) memcpy(equation, attribute->s.data, attribute->s.len);
    equation[attribute->s.len] = '\0';
    for (size_t i = 0; i < count && status == TUTTI_OK; i++) {
        status = node_operand(node, i, &inputs[i]);
        if (status != TUTTI_OK) break;
        tensors[i] = inputs[i].tensor;
        if (inputs[i].batch.batched) batch_axis = inputs[i].batch;
    }
    if (status == TUTTI_OK) status = take_batch(equation, inputs, count, &batch_axis);
    if (status != TUTTI_OK) return status;
    return node_set_output(node, tutti_einsum(node->import->network, equation, tensors, (int)count), batch_axis);
}
