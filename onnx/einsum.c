/* Einsum. The letter of the batch is taken out of the equation. */
#include "onnx/operators.h"

#include <ctype.h>
#include <string.h>

enum { EQUATION = 200, MOST = 8 };

/* Where the text of input `number` begins; the output's is behind "->". NULL: there is none. */
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
 * output. *place: that of the result. */
static tutti_status take_batch(char *equation, const struct operand *inputs, size_t count, struct place *place)
{
    char letter = '\0';
    for (size_t i = 0; i < count; i++) {
        char *text = text_of(equation, i);
        if (!text || !inputs[i].place.batched || inputs[i].place.axis == HIDDEN) continue;
        const char *mine = letter_of(text, inputs[i].place.axis);
        if (!mine || (letter && letter != *mine) || inputs[i].place.ahead != 1)
            return step_refuse("the batch must have the same letter in all inputs");
        letter = *mine;
    }
    for (size_t i = 0; i < count && letter; i++) {
        char *text = text_of(equation, i);
        if (!inputs[i].place.batched && text && memchr(text, letter, strcspn(text, ",-")))
            return step_refuse("input %zu does not depend on the samples, and has the letter of the batch", i);
    }
    if (!letter) return TUTTI_OK;
    char *output = strstr(equation, "->");
    const char *found = output ? strchr(output, letter) : NULL;
    if (!found) return step_refuse("the batch is summed over, or the equation has no output");
    place->axis = 0;
    for (const char *at = output; at < found; at++) {
        if (*at == '.') return step_refuse("the batch is behind an ellipsis");
        place->axis += isalpha((unsigned char)*at) != 0;
    }
    take_out(equation, letter);
    return TUTTI_OK;
}

tutti_status build_einsum(struct step *step)
{
    struct operand inputs[MOST];
    tutti_tensor tensors[MOST];
    char equation[EQUATION];
    const Onnx__AttributeProto *attribute = step_attribute(step, "equation");
    const size_t count = step->node->n_input;
    struct place place = { .batched = false };
    tutti_status status = TUTTI_OK;
    if (!attribute || attribute->s.len >= EQUATION) return fail(TUTTI_FORMAT, "it needs an equation, not too long");
    if (count < 1 || count > MOST) return step_refuse("it has %zu inputs: at most %d are read", count, (int)MOST);
    if (attribute->s.len) memcpy(equation, attribute->s.data, attribute->s.len);
    equation[attribute->s.len] = '\0';
    for (size_t i = 0; i < count && status == TUTTI_OK; i++) {
        status = step_operand(step, i, &inputs[i]);
        if (status != TUTTI_OK) break;
        tensors[i] = inputs[i].tensor;
        if (inputs[i].place.batched) place = inputs[i].place;
    }
    if (status == TUTTI_OK) status = take_batch(equation, inputs, count, &place);
    if (status != TUTTI_OK) return status;
    return step_done(step, tutti_einsum(step->import->network, equation, tensors, (int)count), place);
}
