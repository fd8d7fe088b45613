/* Compares networks of ONNX files with what differential.py recorded of onnxruntime and PyTorch: outputs, the first
 * gradients, and parameters after some steps.
 *
 *   differ [--interpret | --read] FOLDER [NAME...]
 *
 * Without names, they are read from standard input. --interpret: outputs and the first gradients are those of the
 * interpreter, which needs no kernel and leaves running statistics as they are: a test of the importer. --read: the
 * file is only read. Prints a line for each: "NAME VERDICT TEXT", where VERDICT is right, refused (or a warning says
 * that a parameter does not train, and all else is right), or what is wrong: failed, types, outputs, parameters,
 * gradients, steps. FOLDER/NAME.onnx is the file, FOLDER/NAME.safetensors the record:
 *
 *   input.I.NAME, output.I.NAME     samples, and the outputs of inference
 *   target, rate                    what the first output is trained to by the mean square error, and with which rate
 *   gradient.NAME, after.NAME       of each trained parameter: in the first step, and its values after all steps
 *   optional.NAME                   as gradient.NAME, of a parameter that may be a constant: it has one element
 *   alias.NAME                      a name of the file for one of them, whose own the file does not tell
 *   limit.output.I, limit.gradient.NAME, ...    how far an element may be off
 *   known.NAME                      values that an input gets when the file is read
 *   precision, steps, whole         whole: not 0 where a sample is all of each input
 *
 * An array of another size than the network's has probes: elements that are spread evenly, and a signed sum. shape.I
 * has the sizes of such an output. Without any gradient that is recorded, the steps must only succeed. */
#include "tests/onnx/differ.h"

#include "base/memory.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_SIZES = 4 * TUTTI_ONNX_PORTS };

static bool outcome(struct session *s, const char *verdict, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static bool outcome(struct session *s, const char *verdict, const char *format, ...)
{
    char text[CONFORM_TEXT];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    for (char *at = text; *at; at++)
        if (*at == '\n') *at = ' ';
    if (!s->verdict) printf("%s %s %s\n", s->test.name, verdict, text);
    s->verdict = true;
    return false;
}

/* ------------------------------------------------------------------------------------------------------- record ----
 */

const struct safetensors_tensor *record_find(const struct session *s, const char *kind, const char *name)
{
    char key[2 * CONFORM_NAME];
    snprintf(key, sizeof key, "%s%s", kind, name);
    return safetensors_find(s->test.arrays, key);
}

static double number(const struct session *s, const char *kind, const char *name, double fallback)
{
    const struct safetensors_tensor *array = record_find(s, kind, name);
    return array && array_elements(array) > 0 ? array_at(array, 0) : fallback;
}

/* Sum of elements with signs that depend on their positions, as differential.py takes it. */
static double signed_sum(const float *values, int64_t count)
{
    double sum = 0;
    for (int64_t i = 0; i < count; i++)
        sum += ((uint32_t)i * 2654435761u) >> 31 ? -(double)values[i] : (double)values[i];
    return sum;
}

/* Returns the error of the values in units of the limit; HUGE_VAL if they are not finite where the record is. */
static double error_of(const struct safetensors_tensor *wanted, const float *got, int64_t count, double limit)
{
    const int64_t recorded = array_elements(wanted);
    const bool all = recorded == count;
    double worst = 0;
    for (int64_t i = 0; i < (all ? count : recorded - 1); i++) {
        const double one = (double)got[all ? i : i * count / (recorded - 1)], right = array_at(wanted, i);
        const double apart = one == right || (isnan(one) && isnan(right)) ? 0 : fabs(one - right) / limit;
        worst = isnan(apart) ? HUGE_VAL : fmax(worst, apart);
    }
    if (!all && recorded > 0)
        worst = fmax(
            worst, fabs(signed_sum(got, count) - array_at(wanted, recorded - 1)) / limit / (4 * sqrt((double)count)));
    return worst;
}

static bool compare(
    struct session *s, const char *verdict, const char *kind, const char *name, const float *got, int64_t count)
{
    char limit_kind[32];
    const struct safetensors_tensor *wanted = record_find(s, kind, name);
    snprintf(limit_kind, sizeof limit_kind, "limit.%s", kind);
    const double error = error_of(wanted, got, count, number(s, limit_kind, name, 0) + 1e-30);
    s->worst = fmax(s->worst, error);
    return error <= 1 || outcome(s, verdict, "%s%s is off by %.3g limits", kind, name, error);
}

/* ------------------------------------------------------------------------------------------------------ network ----
 */

static bool is_unsupported(tutti_status status)
{
    return status == TUTTI_UNSUPPORTED || status == TUTTI_SHAPE || status == TUTTI_INVALID || status == TUTTI_FORMAT;
}

/* What a message says, without the file's path. */
static const char *message(void)
{
    const char *at = strstr(tutti_message(NULL), ".onnx: ");
    return at ? at + 7 : tutti_message(NULL);
}

static bool failed(struct session *s, tutti_status status)
{
    return status == TUTTI_OK || outcome(s, is_unsupported(status) ? "refused" : "failed", "%s", message());
}

/* Sizes of inputs besides the batch, by axis: "x.1". */
static void add_sizes(
    const struct session *s, tutti_onnx_options *options, tutti_onnx_size *sizes, char (*names)[CONFORM_NAME])
{
    options->sizes = sizes;
    for (int i = 0; i < s->test.input_count; i++)
        for (int k = s->whole ? 0 : 1; k < s->test.inputs[i]->rank && options->size_count < MOST_SIZES; k++) {
            snprintf(names[options->size_count], CONFORM_NAME, "%s.%d", s->test.input_names[i], k);
            sizes[options->size_count] = (tutti_onnx_size) { names[options->size_count], s->test.inputs[i]->sizes[k] };
            options->size_count++;
        }
}

static tutti_status add_known(const struct session *s, tutti_onnx_options *options, tutti_onnx_known *known)
{
    options->known = known;
    for (int i = 0; i < safetensors_count(s->test.arrays) && options->known_count < TUTTI_ONNX_PORTS; i++) {
        const struct safetensors_tensor *array = safetensors_at(s->test.arrays, i);
        if (strncmp(array->name, "known.", 6)) continue;
        tutti_onnx_known *one = &known[options->known_count++];
        *one = (tutti_onnx_known) { .name = array->name + 6,
            .dtype = array_is_float(array) ? TUTTI_DTYPE_F32 : TUTTI_DTYPE_I64,
            .shape.rank = array->rank };
        memcpy(one->shape.sizes, array->sizes, (size_t)array->rank * sizeof *array->sizes);
        one->values = array_as(array, one->dtype, 1);
        if (!one->values) return TUTTI_NO_MEMORY;
    }
    return TUTTI_OK;
}

static void keep_warning(void *user, const char *line)
{
    struct session *s = user;
    const size_t length = strlen(s->warnings);
    if (!strncmp(line, "warning: ", 9)) snprintf(s->warnings + length, sizeof s->warnings - length, "%s ", line);
}

/* Whether a warning says that something was computed from the parameter and others: "computed x from a, b: ". */
static bool is_computed_with_others(const struct session *s, const char *name)
{
    const size_t length = strlen(name);
    for (const char *at = strstr(s->warnings, " computed "); at; at = strstr(at + 1, " computed ")) {
        const char *from = strstr(at, " from "), *end = from ? strchr(from, ':') : NULL;
        for (const char *one = from; one && one < end; one = strstr(one + 1, name))
            if (one > from && (one[-1] == ' ') && (one[length] == ',' || one[length] == ':')) return true;
    }
    return false;
}

/* Whether a warning says that several parameters are in it: "computed name from a, b: ". */
static bool holds_several(const struct session *s, const char *name)
{
    char text[2 * CONFORM_NAME];
    snprintf(text, sizeof text, " computed %s from ", name);
    const char *at = strstr(s->warnings, text), *end = at ? strchr(at, ':') : NULL;
    return end && memchr(at, ',', (size_t)(end - at));
}

/* Whether a warning says that the parameter does not train, or not everywhere, or that what was computed from it
 * trains, unless the record has the gradient of this. */
static bool is_told_untrained(const struct session *s, const char *name)
{
    char text[2 * CONFORM_NAME], label[CONFORM_NAME];
    snprintf(text, sizeof text, "folded the parameter %s into", name);
    if (strstr(s->warnings, text)) return true;
    snprintf(text, sizeof text, "of which %s has elements, too", name);
    if (strstr(s->warnings, text)) return true;
    snprintf(text, sizeof text, " from %s: ", name);
    const char *end = strstr(s->warnings, text), *begin = end;
    if (!end) return is_computed_with_others(s, name);
    while (begin > s->warnings && begin[-1] != ' ') begin--;
    snprintf(label, sizeof label, "%.*s", (int)(end - begin), begin);
    return !record_find(s, "alias.", label);
}

static bool import(struct session *s)
{
    char path[CONFORM_PATH], names[MOST_SIZES][CONFORM_NAME];
    tutti_onnx_size sizes[MOST_SIZES];
    tutti_onnx_known known[TUTTI_ONNX_PORTS] = { 0 };
    tutti_onnx_options options = { .whole = s->whole, .note = keep_warning, .user = s };
    add_sizes(s, &options, sizes, names);
    tutti_status status = add_known(s, &options, known);
    snprintf(path, sizeof path, "%s/%s.onnx", s->test.folder, s->test.name);
    s->model.size = sizeof s->model;
    if (status == TUTTI_OK) status = tutti_import_onnx(s->runtime, path, &options, &s->model);
    for (int i = 0; i < options.known_count; i++) free((void *)(uintptr_t)known[i].values);
    return failed(s, status);
}

static bool check_type(struct session *s, int output)
{
    static const enum safetensors_type types[] = { SAFETENSORS_F32, SAFETENSORS_I32, SAFETENSORS_I64,
        SAFETENSORS_BOOL };
    static const tutti_dtype dtypes[] = { TUTTI_DTYPE_F32, TUTTI_DTYPE_I32, TUTTI_DTYPE_I64, TUTTI_DTYPE_BOOL };
    tutti_shape shape = { 0 };
    const struct safetensors_tensor *wanted = s->test.outputs[output];
    for (int i = 0; i < 4; i++)
        if (wanted->type == types[i] && s->model.output_dtypes[output] != dtypes[i])
            return outcome(s, "types", "output %d has the type %d", output, (int)s->model.output_dtypes[output]);
    if (!failed(s, tutti_shape_of(s->model.network, s->model.outputs[output], &shape))) return false;
    char key[32];
    snprintf(key, sizeof key, "%d", output);
    const struct safetensors_tensor *sizes = record_find(s, "shape.", key);
    const int first = s->whole ? 0 : 1, rank = sizes ? (int)array_elements(sizes) : wanted->rank;
    bool same = rank == shape.rank + first;
    for (int k = 0; same && k < rank; k++) {
        const int64_t size = sizes ? (int64_t)array_at(sizes, k) : wanted->sizes[k];
        same = size == (k < first ? s->samples : shape.sizes[k - first]);
    }
    return same || outcome(s, "types", "output %d has %d axes and another shape", output, shape.rank + first);
}

static bool has_gradients(const struct session *s)
{
    for (int i = 0; i < safetensors_count(s->test.arrays); i++)
        if (strstr(safetensors_at(s->test.arrays, i)->name, "limit.gradient.") ||
            strstr(safetensors_at(s->test.arrays, i)->name, "limit.optional."))
            return true;
    return false;
}

/* Every trained parameter has a record, and every record a parameter, by its name or its alias. */
static bool check_parameters(struct session *s)
{
    const char *name, *extra = NULL, *missing = NULL;
    int found = 0, wanted = 0, extras = 0;
    bool trained;
    for (int i = 0; tutti_parameter_info(s->model.network, i, &name, NULL, &trained) == TUTTI_OK; i++) {
        if (!trained || record_find(s, "optional.", name)) continue;
        if (holds_several(s, name)) {
            s->untrained = name;
            continue;
        }
        found++;
        if (record_find(s, "gradient.", name) || record_find(s, "alias.", name)) continue;
        extras++;
        extra = name;
    }
    for (int i = 0; i < safetensors_count(s->test.arrays); i++) {
        const char *key = safetensors_at(s->test.arrays, i)->name;
        if (strncmp(key, "gradient.", 9)) continue;
        bool there = false;
        for (int p = 0; tutti_parameter_info(s->model.network, p, &name, NULL, &trained) == TUTTI_OK; p++)
            there |= trained && !strcmp(name, key + 9);
        if (is_told_untrained(s, key + 9)) s->untrained = key + 9;
        if (!there && s->untrained == key + 9) continue;
        wanted++;
        if (!there) missing = key + 9;
    }
    if (found == wanted && extras == 0) return true;
    return outcome(s, "parameters", "%d trained, %d expected; '%s' is missing, '%s' is new", found, wanted,
        missing ? missing : "", extra ? extra : "");
}

static bool compile(struct session *s)
{
    const bool trains = record_find(s, "target", "") != NULL;
    if (s->interprets) return true;
    s->trainer = tutti_compile(s->model.network, s->model.outputs[0],
        &(tutti_training) { .loss = trains ? TUTTI_MSE : TUTTI_LOSS_NONE,
            .batch = s->samples,
            .learning_rate = (float)number(s, "rate", "", 0.01),
            .precision = (tutti_precision)number(s, "precision", "", TUTTI_FP32),
            .outputs = s->model.outputs + 1,
            .output_count = s->model.output_count - 1 });
    if (!s->trainer) return outcome(s, "failed", "%s", message());
    for (int i = 0; i < s->test.input_count; i++) {
        const tutti_dtype dtype = s->model.input_dtypes[i];
        s->feeds[i] = (tutti_feed) { s->test.input_names[i], dtype, array_as(s->test.inputs[i], dtype, 1), 0 };
        s->feed_count++;
    }
    if (trains)
        s->feeds[s->feed_count++] =
            (tutti_feed) { "targets", TUTTI_DTYPE_F32, array_as(record_find(s, "target", ""), TUTTI_DTYPE_F32, 1), 0 };
    return true;
}

/* ---------------------------------------------------------------------------------------------------- comparing ----
 */

static bool infer(struct session *s)
{
    tutti_fetch fetches[TUTTI_ONNX_PORTS] = { 0 };
    int64_t counts[TUTTI_ONNX_PORTS] = { 0 };
    bool good = true;
    for (int i = 0; i < s->model.output_count; i++) {
        tutti_shape shape = { 0 };
        tutti_shape_of(s->model.network, s->model.outputs[i], &shape);
        counts[i] = s->samples;
        for (int k = 0; k < shape.rank; k++) counts[i] *= shape.sizes[k];
        fetches[i] =
            (tutti_fetch) { s->model.outputs[i], TUTTI_DTYPE_F32, memory_new((size_t)counts[i] + 1, sizeof(float)) };
        good &= fetches[i].data != NULL;
    }
    good = good &&
        failed(s,
            s->interprets
                ? interpreted_infer(s, fetches)
                : tutti_infer(s->trainer, s->feeds, s->test.input_count, s->samples, fetches, s->model.output_count));
    for (int i = 0; i < s->model.output_count && good; i++) {
        char key[32];
        const struct safetensors_tensor *wanted = s->test.outputs[i];
        snprintf(key, sizeof key, "%d", i);
        const double error = error_of(wanted, fetches[i].data, counts[i], number(s, "limit.output.", key, 0) + 1e-30);
        s->worst = fmax(s->worst, error);
        if (error > 1) good = outcome(s, "outputs", "output %d is off by %.3g limits", i, error);
    }
    for (int i = 0; i < s->model.output_count; i++) free(fetches[i].data);
    return good;
}

/* Gradients, or values, of all parameters that have a record of this kind. */
static bool compare_all(struct session *s, const char *verdict, const char *kind,
    tutti_status (*get)(struct session *s, const char *name, float *values, int64_t count))
{
    const char *name;
    tutti_shape shape;
    bool good = true, trained;
    for (int i = 0; good && tutti_parameter_info(s->model.network, i, &name, &shape, &trained) == TUTTI_OK; i++) {
        int64_t count = 1;
        for (int k = 0; k < shape.rank; k++) count *= shape.sizes[k];
        if (!record_find(s, kind, name) || (!trained && (s->interprets || !strcmp(verdict, "gradients")))) continue;
        if (is_told_untrained(s, name) || holds_several(s, name)) continue;
        float *values = memory_new((size_t)count + 1, sizeof *values);
        good = values && failed(s, get(s, name, values, count)) && compare(s, verdict, kind, name, values, count);
        free(values);
    }
    return good;
}

static tutti_status get_gradient(struct session *s, const char *name, float *values, int64_t count)
{
    return s->interprets ? interpreted_gradient_of(s, name, values, count)
                         : tutti_get_gradient(s->trainer, name, values, count);
}

static tutti_status get_value(struct session *s, const char *name, float *values, int64_t count)
{
    return s->interprets ? interpreted_value_of(s, name, values, count)
                         : tutti_get_parameter(s->trainer, name, values, count);
}

static bool compare_gradients(struct session *s)
{
    return compare_all(s, "gradients", "gradient.", get_gradient) &&
        compare_all(s, "gradients", "optional.", get_gradient) && compare_all(s, "gradients", "alias.", get_gradient);
}

static tutti_status take_step(struct session *s, int step)
{
    if (!s->interprets) return tutti_train_step(s->trainer, s->feeds, s->feed_count, s->samples, NULL);
    return step == 0 ? interpreted_train(s) : interpreted_again(s);
}

static bool train(struct session *s)
{
    if (!record_find(s, "target", "")) return true;
    if (has_gradients(s) && !check_parameters(s)) return false;
    const int steps = (int)number(s, "steps", "", 1);
    for (int step = 0; step < steps; step++) {
        const tutti_status status = take_step(s, step);
        if (status != TUTTI_OK) return outcome(s, "failed", "step %d: %s", step, message());
        if (step == 0 && !compare_gradients(s)) return false;
        if (s->untrained) return true;
        if (s->interprets) interpreted_update(s, number(s, "rate", "", 0.01));
    }
    return compare_all(s, "steps", "after.", get_value);
}

static bool open_test(struct session *s, const char *folder, const char *name)
{
    if (conform_open(&s->test, folder, name) != TUTTI_OK || s->test.incomplete || s->test.input_count == 0)
        return outcome(s, "failed", "%s", tutti_message(NULL));
    s->whole = number(s, "whole", "", 0) != 0;
    s->samples = s->whole ? 1 : s->test.inputs[0]->sizes[0];
    return true;
}

enum mode { MODE_COMPUTE, MODE_INTERPRET, MODE_READ };

static enum mode mode_of(const char *word)
{
    return !word || strncmp(word, "--", 2) ? MODE_COMPUTE : strcmp(word, "--read") ? MODE_INTERPRET : MODE_READ;
}

static bool run(tutti_runtime *runtime, const char *folder, const char *name, enum mode mode)
{
    struct session s = { .runtime = runtime, .interprets = mode == MODE_INTERPRET };
    bool good = open_test(&s, folder, name) && import(&s);
    if (good && s.model.output_count != s.test.output_count)
        good = outcome(&s, "types", "%d outputs", s.model.output_count);
    for (int i = 0; good && i < s.model.output_count; i++) good = check_type(&s, i);
    if (mode != MODE_READ) good = good && compile(&s) && infer(&s) && train(&s);
    if (good && s.untrained) good = outcome(&s, "refused", "%s", s.warnings);
    if (good) outcome(&s, "right", "%.3g", s.worst);
    for (int i = 0; i < s.feed_count; i++) free((void *)(uintptr_t)s.feeds[i].data);
    interpreted_free(&s.made);
    tutti_trainer_free(s.trainer);
    tutti_network_free(s.model.network);
    conform_close(&s.test);
    fflush(stdout);
    return good;
}

int main(int count, char **words)
{
    char name[CONFORM_NAME];
    const enum mode mode = mode_of(words[1]);
    const int first = mode == MODE_COMPUTE ? 1 : 2;
    int wrong = 0;
    if (count <= first) {
        fprintf(stderr, "usage: differ [--interpret | --read] FOLDER [NAME...]\n");
        return 2;
    }
    tutti_runtime *runtime = tutti_open(&(tutti_runtime_options) { .devices = "0", .log_level = TUTTI_LOG_ERROR });
    if (!runtime) {
        fprintf(stderr, "differ: %s\n", tutti_message(NULL));
        return 2;
    }
    for (int i = first + 1; i < count; i++) wrong += !run(runtime, words[first], words[i], mode);
    while (count == first + 1 && scanf("%159s", name) == 1) wrong += !run(runtime, words[first], name, mode);
    tutti_close(runtime);
    return wrong > 0;
}
