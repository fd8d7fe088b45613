/* The operations of tutti_op() for programs: what tutti_inspect.h tells of the schemas. */
#include "base/options.h"
#include "base/status.h"
#include "layers/schema/schema.h"
#include "tutti_inspect.h"

#include <string.h>

int tutti_operations(void)
{
    int count = 0;
    while (schema_at(count, NULL)) count++;
    return count;
}

int tutti_operation_find(const char *name)
{
    int position = -1;
    return name && schema_find(name, &position) ? position : -1;
}

int tutti_operation_find_onnx(const char *name)
{
    int position = -1;
    return name && *name && schema_find_onnx(name, &position) ? position : -1;
}

static tutti_status no_operation(int position)
{
    return fail(
        TUTTI_INVALID, "operation %d does not exist: there are %d, counted from 0", position, tutti_operations());
}

static int input_count(const struct op_schema *schema)
{
    int count = 0;
    while (schema->inputs[count].name) count++;
    return count;
}

static int attribute_count(const struct op_schema *schema)
{
    int count = 0;
    while (schema_attribute(schema, count)) count++;
    return count;
}

tutti_status tutti_operation(int position, tutti_operation_info *info)
{
    const struct op_group *group = NULL;
    const struct op_schema *schema = position < 0 ? NULL : schema_at(position, &group);
    if (!schema) return no_operation(position);
    const tutti_operation_info known = { .name = schema->name,
        .text = schema->text,
        .group = group->title,
        .input_count = input_count(schema),
        .attribute_count = attribute_count(schema),
        .min_inputs = schema_min_inputs(schema),
        .max_inputs = schema_max_inputs(schema),
        .onnx = schema->onnx ? schema->onnx->name : NULL,
        .onnx_form = schema->onnx ? schema->onnx->form : TUTTI_ONNX_NONE,
        .onnx_opset = schema->onnx ? schema->onnx->opset : 0,
        .onnx_overflows = schema->onnx && schema->onnx->overflows };
    return RESULT_WRITE(info, &known, tutti_operation_info);
}

tutti_status tutti_operation_input(int position, int index, tutti_operation_input_info *info)
{
    const struct op_schema *schema = position < 0 ? NULL : schema_at(position, NULL);
    if (!schema) return no_operation(position);
    if (index < 0 || index >= input_count(schema))
        return fail(
            TUTTI_INVALID, "%s has no input %d: it has %d, counted from 0", schema->name, index, input_count(schema));
    const struct op_input *input = &schema->inputs[index];
    const tutti_operation_input_info known = { .name = input->name,
        .text = input->text,
        .optional = index >= schema_min_inputs(schema),
        .repeated = input->repeated };
    return RESULT_WRITE(info, &known, tutti_operation_input_info);
}

tutti_status tutti_operation_attribute(int position, int index, tutti_operation_attribute_info *info)
{
    const struct op_schema *schema = position < 0 ? NULL : schema_at(position, NULL);
    if (!schema) return no_operation(position);
    if (index < 0 || index >= attribute_count(schema))
        return fail(TUTTI_INVALID, "%s has no attribute %d: it has %d, counted from 0", schema->name, index,
            attribute_count(schema));
    const struct op_attribute *attribute = schema_attribute(schema, index);
    const tutti_operation_attribute_info known = { .name = attribute->name,
        .text = attribute->text,
        .type = attribute->type,
        .values = schema_type_text(attribute->type),
        .default_value = attribute->default_value,
        .choices = attribute->choices,
        .required = attribute->required,
        .onnx = schema->onnx ? attribute->onnx : NULL };
    return RESULT_WRITE(info, &known, tutti_operation_attribute_info);
}
