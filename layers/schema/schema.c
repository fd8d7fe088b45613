#include "layers/schema/schema.h"

#include <limits.h>
#include <string.h>

static const struct op_group *const groups[] = { &schema_elementwise, &schema_axes, &schema_windows, &schema_indices,
    &schema_norms, &schema_products, &schema_random, &schema_constants, &schema_layers, &schema_losses };

const struct op_schema *schema_at(int position, const struct op_group **group)
{
    for (size_t g = 0; g < sizeof groups / sizeof *groups; g++) {
        int i = 0;
        if (group) *group = groups[g];
        for (const struct op_schema *s = groups[g]->schemas; s->name; s++)
            if (i++ == position) return s;
        position -= i;
    }
    return NULL;
}

static const struct op_schema *find(const char *name, bool by_onnx, int *position)
{
    int count = 0;
    for (size_t g = 0; g < sizeof groups / sizeof *groups; g++)
        for (const struct op_schema *s = groups[g]->schemas; s->name; s++, count++) {
            const char *own = !by_onnx ? s->name : s->onnx ? s->onnx->name : "";
            if (strcmp(own, name) != 0) continue;
            if (position) *position = count;
            return s;
        }
    return NULL;
}

const struct op_schema *schema_find(const char *name, int *position)
{
    return find(name, false, position);
}

const struct op_schema *schema_find_onnx(const char *name, int *position)
{
    return find(name, true, position);
}

const struct op_attribute *schema_attribute(const struct op_schema *schema, int position)
{
    const struct op_attribute *attribute = schema->attributes ? schema->attributes + position : NULL;
    return attribute && attribute->name ? attribute : NULL;
}

int schema_min_inputs(const struct op_schema *schema)
{
    int count = 0;
    while (schema->inputs[count].name && !schema->inputs[count].optional) count++;
    return count;
}

int schema_max_inputs(const struct op_schema *schema)
{
    int count = 0;
    while (schema->inputs[count].name) count++;
    if (count && schema->inputs[count - 1].any) return INT_MAX;
    return count && schema->inputs[count - 1].repeated ? OP_INPUTS : count;
}

const char *schema_type_text(tutti_attribute_type type)
{
    static const char *const texts[] = {
        [TUTTI_ATTRIBUTE_NUMBER] = "a number",
        [TUTTI_ATTRIBUTE_NUMBERS] = "numbers with commas between them",
        [TUTTI_ATTRIBUTE_FLAG] = "0 or 1",
        [TUTTI_ATTRIBUTE_INTEGER] = "a whole number",
        [TUTTI_ATTRIBUTE_INTEGERS] = "whole numbers with commas between them",
        [TUTTI_ATTRIBUTE_AXIS] = "an axis",
        [TUTTI_ATTRIBUTE_AXES] = "different axes with commas between them",
        [TUTTI_ATTRIBUTE_ORDER] = "all axes in another order, with commas between them",
        [TUTTI_ATTRIBUTE_SHAPE] = "the sizes of a sample, with commas between them",
        [TUTTI_ATTRIBUTE_CHOICE] = "one of several words",
        [TUTTI_ATTRIBUTE_TEXT] = "a text without spaces",
    };
    return texts[type];
}
