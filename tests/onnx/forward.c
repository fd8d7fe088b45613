/* Opens a node test, reads its model, computes its outputs, and compares them. */
#include "tests/onnx/conform.h"

#include "base/memory.h"
#include "base/status.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void outcome_set(struct outcome *outcome, enum verdict verdict, const char *format, ...)
{
    va_list arguments;
    outcome->verdict = verdict;
    va_start(arguments, format);
    vsnprintf(outcome->text, sizeof outcome->text, format, arguments);
    va_end(arguments);
    for (char *at = outcome->text; *at; at++)
        if (*at == '\n') *at = ' ';
}

/* ---------------------------------------------------------------------------------------------------- the test ---- */

/* The array's number among inputs or outputs: "input.3.x" is 3. */
static int number_of(const char *name, const char *prefix, const char **rest)
{
    char *end = NULL;
    if (strncmp(name, prefix, strlen(prefix))) return -1;
    const long number = strtol(name + strlen(prefix), &end, 10);
    *rest = *end ? end + 1 : end;
    return number >= 0 && number < TUTTI_ONNX_PORTS ? (int)number : -1;
}

static void find_arrays(struct conform_test *test)
{
    for (int i = 0; i < safetensors_count(test->arrays); i++) {
        const struct safetensors_tensor *array = safetensors_at(test->arrays, i);
        const char *rest = NULL;
        const int input = number_of(array->name, "input.", &rest);
        if (input >= 0) {
            test->inputs[input] = array;
            test->input_names[input] = rest;
            if (input >= test->input_count) test->input_count = input + 1;
            continue;
        }
        const int output = number_of(array->name, "output.", &rest);
        if (output < 0) continue;
        test->outputs[output] = array;
        if (output >= test->output_count) test->output_count = output + 1;
    }
    for (int i = 0; i < test->input_count; i++) test->incomplete |= !test->inputs[i];
    for (int i = 0; i < test->output_count; i++) test->incomplete |= !test->outputs[i];
}

tutti_status conform_open(struct conform_test *test, const char *folder, const char *name)
{
    char path[CONFORM_PATH];
    *test = (struct conform_test) { .folder = folder, .scale = 1 };
    snprintf(test->name, sizeof test->name, "%s", name);
    snprintf(path, sizeof path, "%s/%s.safetensors", folder, name);
    const tutti_status status = safetensors_open(path, &test->arrays);
    if (status == TUTTI_OK) find_arrays(test);
    return status;
}

void conform_close(struct conform_test *test)
{
    safetensors_close(test->arrays);
    *test = (struct conform_test) { 0 };
}

/* ----------------------------------------------------------------------------------------------------- reading ---- */

/* Integers of a file are int64 here, truths and bytes are themselves. */
static tutti_dtype known_dtype(const struct safetensors_tensor *array)
{
    return array_is_float(array)          ? TUTTI_DTYPE_F32
        : array->type == SAFETENSORS_BOOL ? TUTTI_DTYPE_BOOL
                                          : TUTTI_DTYPE_I64;
}

static tutti_status add_known(struct conform_test *test, int input, tutti_onnx_known *known, char *name)
{
    const struct safetensors_tensor *array = test->inputs[input];
    const bool moved = test->roles[input] == ROLE_MOVED;
    if (array->rank > TUTTI_MAX_RANK) return fail(TUTTI_UNSUPPORTED, "an input has %d axes", array->rank);
    snprintf(name, CONFORM_NAME, "%s%s", test->input_names[input], moved ? VARIANT_ZERO : "");
    *known = (tutti_onnx_known) { .name = name,
        .dtype = known_dtype(array),
        .shape.rank = array->rank,
        .values = moved ? memory_new((size_t)array_elements(array) + 1, sizeof(float))
                        : array_as(array, known_dtype(array), test->scale),
        .trains = array_is_float(array) };
    memcpy(known->shape.sizes, array->sizes, (size_t)array->rank * sizeof *array->sizes);
    return known->values ? TUTTI_OK : TUTTI_NO_MEMORY;
}

tutti_status conform_import(tutti_runtime *runtime, struct conform_test *test, tutti_onnx *made)
{
    char path[CONFORM_PATH], names[TUTTI_ONNX_PORTS][CONFORM_NAME];
    tutti_onnx_known known[TUTTI_ONNX_PORTS] = { 0 };
    tutti_onnx_options options = { .whole = true, .known = known };
    bool varied = false;
    tutti_status status = TUTTI_OK;
    for (int i = 0; i < test->input_count && status == TUTTI_OK; i++) {
        varied |= test->roles[i] == ROLE_MOVED;
        if (test->roles[i] == ROLE_FED) continue;
        status = add_known(test, i, &known[options.known_count], names[i]);
        options.known_count++;
    }
    if (varied)
        snprintf(path, sizeof path, "%s/variant.%ld", test->folder, (long)getpid());
    else
        snprintf(path, sizeof path, "%s/%s.onnx", test->folder, test->name);
    if (varied && status == TUTTI_OK) status = variant_write(test, path);
    *made = (tutti_onnx) { .size = sizeof *made };
    options.size = sizeof options;
    if (status == TUTTI_OK) status = tutti_import_onnx(runtime, path, &options, made);
    if (varied) remove(path);
    for (int i = 0; i < options.known_count; i++) free((void *)(uintptr_t)known[i].values);
    return status;
}

/* The input that a refusal names: "input 1, 'axes', ..."; NAME~ is the moved NAME. -1: none. */
static int named_input(const struct conform_test *test, const char *message)
{
    for (const char *at = strstr(message, "input "); at; at = strstr(at + 1, "input ")) {
        const char *quote = strstr(at, ", '");
        if (!quote || strspn(at + 6, "0123456789") != (size_t)(quote - at - 6)) continue;
        for (int i = 0; i < test->input_count; i++) {
            const size_t length = strlen(test->input_names[i]);
            const char *rest = quote + 3 + length;
            if (strncmp(quote + 3, test->input_names[i], length)) continue;
            if (*rest == '\'' || (*rest == '~' && rest[1] == '\'')) return i;
        }
    }
    return -1;
}

/* Gives the inputs of this kind that were fed, from now on. Returns whether there are any. */
static bool give_all(struct conform_test *test, int first, bool floats)
{
    bool more = false;
    for (int i = first; i < test->input_count; i++) {
        if (array_is_float(test->inputs[i]) != floats || test->roles[i] == ROLE_GIVEN) continue;
        test->roles[i] = ROLE_GIVEN;
        more = true;
    }
    return more;
}

/* Gives the input that the refusal names; else all integers; else all floats but the first input, which then are
 * weights. Returns whether this gives a further input. */
static bool give_more(struct conform_test *test, const char *message)
{
    const int named = named_input(test, message);
    if (named < 0 || test->roles[named] == ROLE_GIVEN) return give_all(test, 0, false) || give_all(test, 1, true);
    test->roles[named] = ROLE_GIVEN;
    return true;
}

/* The message without the model's path. */
static const char *reason(const char *message)
{
    const char *at = strstr(message, ".onnx: ");
    return at ? at + 7 : message;
}

static bool import_by_trials(
    tutti_runtime *runtime, struct conform_test *test, tutti_onnx *made, struct outcome *outcome)
{
    tutti_status status = conform_import(runtime, test, made);
    while (status != TUTTI_OK && !test->incomplete && give_more(test, tutti_message(NULL)))
        status = conform_import(runtime, test, made);
    if (status == TUTTI_OK) return true;
    outcome_set(outcome, VERDICT_REFUSED, "%s", reason(tutti_message(NULL)));
    return false;
}

/* ----------------------------------------------------------------------------------------------------- running ---- */

void conform_feeds_free(tutti_feed *feeds, int count)
{
    for (int i = 0; i < count; i++) free((void *)(uintptr_t)feeds[i].data);
}

tutti_status conform_feeds(const struct conform_test *test, const tutti_onnx *made, tutti_feed *feeds, int *count)
{
    *count = 0;
    for (int i = 0; i < test->input_count; i++) {
        if (test->roles[i] == ROLE_GIVEN) continue;
        const tutti_dtype dtype = made->input_dtypes[*count];
        feeds[*count] = (tutti_feed) { test->input_names[i], dtype, array_as(test->inputs[i], dtype, test->scale), 0 };
        if (!feeds[(*count)++].data) return TUTTI_NO_MEMORY;
    }
    if (*count > 0 || made->input_count == 0) return TUTTI_OK;
    feeds[0] =
        (tutti_feed) { "sample", TUTTI_DTYPE_F32, memory_new(1, sizeof(float)), 0 }; /* of a file without inputs */
    return feeds[(*count)++].data ? TUTTI_OK : TUTTI_NO_MEMORY;
}

/* The type in Tutti for a type of the file. */
static tutti_dtype dtype_of(const struct safetensors_tensor *array)
{
    if (array_is_float(array)) return TUTTI_DTYPE_F32;
    switch (array->type) {
    case SAFETENSORS_BOOL: return TUTTI_DTYPE_BOOL;
    case SAFETENSORS_U8: return TUTTI_DTYPE_U8;
    case SAFETENSORS_U32:
    case SAFETENSORS_U64:
    case SAFETENSORS_I64: return TUTTI_DTYPE_I64;
    default: return TUTTI_DTYPE_I32;
    }
}

static bool has_type(const struct conform_test *test, const tutti_onnx *made, int output, struct outcome *outcome)
{
    const tutti_dtype got = made->output_dtypes[output], wanted = dtype_of(test->outputs[output]);
    if (got != wanted) outcome_set(outcome, VERDICT_FAIL, "output %d is of type %d, not %d", output, got, wanted);
    return got == wanted;
}

static bool has_shape(const struct conform_test *test, const tutti_onnx *made, int output, struct outcome *outcome)
{
    tutti_shape shape = { 0 };
    const struct safetensors_tensor *wanted = test->outputs[output];
    bool same = tutti_shape_of(made->network, made->outputs[output], &shape) == TUTTI_OK && shape.rank == wanted->rank;
    for (int i = 0; same && i < shape.rank; i++) same = shape.sizes[i] == wanted->sizes[i];
    if (!same) outcome_set(outcome, VERDICT_FAIL, "output %d has %d axes and another shape", output, shape.rank);
    return same;
}

static void compare_outputs(const struct conform_test *test, const tutti_fetch *fetches, struct outcome *outcome)
{
    outcome_set(outcome, VERDICT_PASS, "%s", "");
    for (int i = 0; i < test->output_count; i++)
        if (!array_equals(test->outputs[i], fetches[i].data, &outcome->difference))
            outcome_set(outcome, VERDICT_FAIL, "output %d is off by %g", i, outcome->difference);
}

static void run(const struct conform_test *test, const tutti_onnx *made, struct outcome *outcome)
{
    tutti_feed feeds[TUTTI_ONNX_PORTS];
    tutti_fetch fetches[TUTTI_ONNX_PORTS] = { 0 };
    int count = 0;
    tutti_status status = conform_feeds(test, made, feeds, &count);
    for (int i = 0; i < test->output_count; i++) {
        fetches[i] = (tutti_fetch) { made->outputs[i], TUTTI_DTYPE_F32,
            memory_new((size_t)array_elements(test->outputs[i]) + 1, sizeof(float)) };
        if (!fetches[i].data) status = TUTTI_NO_MEMORY;
    }
    tutti_trainer *trainer = tutti_compile(made->network, made->outputs[0],
        &(tutti_training) { .loss = TUTTI_LOSS_NONE,
            .batch = 1,
            .outputs = made->outputs + 1,
            .output_count = made->output_count - 1 });
    if (status == TUTTI_OK && trainer) status = tutti_infer(trainer, feeds, count, 1, fetches, made->output_count);
    if (status != TUTTI_OK || !trainer)
        outcome_set(outcome, VERDICT_FAIL, "%s", tutti_message(NULL));
    else
        compare_outputs(test, fetches, outcome);
    tutti_trainer_free(trainer);
    conform_feeds_free(feeds, count);
    for (int i = 0; i < test->output_count; i++) free(fetches[i].data);
}

void conform_forward(tutti_runtime *runtime, struct conform_test *test, struct outcome *outcome)
{
    tutti_onnx made;
    *outcome = (struct outcome) { 0 };
    if (!import_by_trials(runtime, test, &made, outcome)) return;
    bool good = !test->incomplete && made.output_count == test->output_count;
    if (!good) outcome_set(outcome, VERDICT_FAIL, "the test has arrays of types that its file does not have");
    for (int i = 0; good && i < test->output_count; i++)
        good = has_shape(test, &made, i, outcome) && has_type(test, &made, i, outcome);
    if (good) run(test, &made, outcome);
    tutti_network_free(made.network);
}
