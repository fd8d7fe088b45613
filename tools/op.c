/* tutti op: lists the operations of tutti_op(), or explains one. */
#include "base/memory.h"
#include "base/text.h"
#include "formats/json_lines.h"
#include "tools/commands.h"
#include "tutti_inspect.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void print_list(void)
{
    const char *group = "";
    tutti_operation_info operation = { 0 };
    for (int i = 0; i < tutti_operations() && tutti_operation(i, &operation) == TUTTI_OK; i++) {
        if (strcmp(group, operation.group) != 0) printf("%s%s:\n", *group ? "\n" : "", operation.group);
        group = operation.group;
        printf("  %-22s %s\n", operation.name, operation.text);
    }
    printf("\n`tutti op NAME` explains an operation.\n");
}

static void print_inputs(int position, const tutti_operation_info *operation)
{
    tutti_operation_input_info input = { 0 };
    if (operation->max_inputs > 0) printf("\nInputs:\n");
    for (int i = 0; i < operation->input_count && tutti_operation_input(position, i, &input) == TUTTI_OK; i++)
        printf("  %-12s %s%s%s\n", input.name, input.text ? input.text : "any shape",
            input.optional ? "; optional" : "", input.repeated ? "; may be repeated" : "");
    if (operation->max_inputs == INT_MAX)
        printf("  any number of inputs\n");
    else if (operation->max_inputs > operation->input_count)
        printf("  %d inputs at most\n", operation->max_inputs);
}

/* Prints the words of a choice, or how a value is written. */
static void print_values(const tutti_operation_attribute_info *attribute)
{
    for (const char *at = attribute->choices ? attribute->choices : attribute->values; *at; at++)
        if (*at == ' ' && attribute->choices)
            printf(", ");
        else
            putchar(*at);
}

static void print_attributes(int position, const tutti_operation_info *operation)
{
    tutti_operation_attribute_info attribute = { 0 };
    printf("\nAttributes:\n");
    for (int i = 0; i < operation->attribute_count; i++) {
        if (tutti_operation_attribute(position, i, &attribute) != TUTTI_OK) return;
        printf("  %s: %s\n      ", attribute.name, attribute.text);
        print_values(&attribute);
        if (attribute.default_value)
            printf("; default: %s", attribute.default_value);
        else
            printf("%s", attribute.required ? "; required" : "");
        printf("\n");
    }
    printf("  name: the name of the layer\n");
}

/* Prints a call with the inputs and attributes that the operation needs. */
static void print_call(int position, const tutti_operation_info *operation)
{
    tutti_operation_input_info input = { 0 };
    tutti_operation_attribute_info attribute = { 0 };
    const char *space = "";
    printf("\ntutti_op(network, \"%s\", %s", operation->name, operation->min_inputs ? "(tutti_tensor[]) {" : "NULL");
    for (int i = 0; i < operation->min_inputs && tutti_operation_input(position, i, &input) == TUTTI_OK; i++)
        printf("%s %s", i ? "," : "", input.name);
    printf("%s, %d, \"", operation->min_inputs ? " }" : "", operation->min_inputs);
    for (int i = 0; i < operation->attribute_count; i++) {
        if (tutti_operation_attribute(position, i, &attribute) != TUTTI_OK || !attribute.required) continue;
        printf("%s%s=...", space, attribute.name);
        space = " ";
    }
    printf("\");\n");
}

static void print_operation(int position, const tutti_operation_info *operation)
{
    printf("%s: %s\n", operation->name, operation->text);
    if (operation->onnx) printf("ONNX: %s\n", operation->onnx);
    print_inputs(position, operation);
    print_attributes(position, operation);
    print_call(position, operation);
}

static void json_inputs(struct json_line *line, int position, const tutti_operation_info *operation)
{
    tutti_operation_input_info input = { 0 };
    json_line_print(line, "inputs [");
    for (int i = 0; i < operation->input_count && tutti_operation_input(position, i, &input) == TUTTI_OK; i++)
        json_line_print(line, "{ name %s text %s optional %hhd repeated %hhd }", input.name, input.text, input.optional,
            input.repeated);
    json_line_print(line, "]");
}

static void json_attributes(struct json_line *line, int position, const tutti_operation_info *operation)
{
    static const char *const types[] = { "number", "numbers", "flag", "integer", "integers", "axis", "axes", "order",
        "shape", "choice", "text" };
    tutti_operation_attribute_info attribute = { 0 };
    json_line_print(line, "attributes [");
    for (int i = 0; i < operation->attribute_count; i++) {
        if (tutti_operation_attribute(position, i, &attribute) != TUTTI_OK) break;
        json_line_print(line, "{ name %s text %s type %s default %s choices %s required %hhd onnx %s }", attribute.name,
            attribute.text, types[attribute.type], attribute.default_value, attribute.choices, attribute.required,
            attribute.onnx);
    }
    json_line_print(line, "]");
}

static tutti_status print_json(int position, const tutti_operation_info *operation)
{
    struct json_line line;
    json_line_begin(&line, stdout);
    json_line_print(&line, "operation %s text %s group %s onnx %s min_inputs %d max_inputs %d", operation->name,
        operation->text, operation->group, operation->onnx, operation->min_inputs, operation->max_inputs);
    json_inputs(&line, position, operation);
    json_attributes(&line, position, operation);
    return json_line_end(&line);
}

/* Prints the operations first .. end - 1 as JSON. */
static int print_range(int first, int end)
{
    tutti_operation_info operation = { 0 };
    tutti_status status = TUTTI_OK;
    for (int i = first; i < end && status == TUTTI_OK; i++) {
        status = tutti_operation(i, &operation);
        if (status == TUTTI_OK) status = print_json(i, &operation);
    }
    return status == TUTTI_OK ? EXIT_DONE : EXIT_WORK_FAILED;
}

static int unknown_operation(const char *name)
{
    const int count = tutti_operations();
    tutti_operation_info operation;
    const char **names = memory_new((size_t)count + 1, sizeof *names);
    struct suggestion suggestion = { "" };
    for (int i = 0; names && i < count; i++) {
        operation = (tutti_operation_info) { 0 };
        names[i] = tutti_operation(i, &operation) == TUTTI_OK ? operation.name : "";
    }
    if (names) suggestion = text_suggest(name, names);
    free(names);
    return wrong_use(
        "op", "there is no operation \"%s\"%s `tutti op` lists them", name, suggestion.text[0] ? suggestion.text : ":");
}

int command_op(int argc, char **argv)
{
    const char *name = NULL;
    bool json = false;
    const struct option options[] = {
        { "json", OPTION(json), NULL, "print a JSON object per operation" },
    };
    const struct usage usage = { .command = "op",
        .summary = "Lists the operations of tutti_op(), or explains the inputs and attributes of NAME",
        .argument = "NAME",
        .argument_optional = true,
        .details = "Axes count within a sample: 0 is the first one after the batch, -1 the last one.",
        OPTION_ROWS(options) };
    const enum parsed parsed = options_parse(&usage, argc, argv, &name);
    if (parsed != PARSED_RUN) return parsed_exit(parsed);
    const int position = name ? tutti_operation_find(name) : 0;
    if (position < 0) return unknown_operation(name);
    if (json) return print_range(position, name ? position + 1 : tutti_operations());
    tutti_operation_info operation = { 0 };
    if (!name)
        print_list();
    else if (tutti_operation(position, &operation) == TUTTI_OK)
        print_operation(position, &operation);
    return EXIT_DONE;
}
