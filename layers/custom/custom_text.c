/* The texts of custom operations' kernels, and their launches. */
#include "layers/custom/custom.h"

#include "base/memory.h"
#include "base/numbers.h"
#include "base/text.h"
#include "layers/elementwise.h"
#include "runtime/source.h"

#include <ctype.h>
#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* ------------------------------------------------------------------------------------------------------ names ---- */

static bool is_word(const char *text, size_t length)
{
    if (length == 0 || isdigit((unsigned char)*text)) return false;
    for (size_t i = 0; i < length; i++)
        if (!isalnum((unsigned char)text[i]) && text[i] != '_') return false;
    return true;
}

/* Reads KEY=NUMBER. Returns the length of KEY; 0: it is something else, or too large for a float. */
static size_t attribute_key(const char *text, size_t length)
{
    const char *equals = memchr(text, '=', length);
    char *end = NULL;
    if (!equals || !is_word(text, (size_t)(equals - text))) return 0;
    if (equals + 1 + strspn(equals + 1, "+-.eE0123456789") < text + length) return 0; /* hexadecimal */
    const double number = number_read(equals + 1, &end);
    return end == text + length && end > equals + 1 && fabs(number) <= FLT_MAX ? (size_t)(equals - text) : 0;
}

static bool is_same(const char *word, const char *text, size_t length)
{
    return strlen(word) == length && memcmp(word, text, length) == 0;
}

/* Tells whether the text begins with the name of an array and continues as one of its sizes. */
static bool is_size_of(const char *array, const char *text, size_t length)
{
    const size_t name = strlen(array);
    if (length <= name || memcmp(array, text, name) != 0) return false;
    return is_same("_elements", text + name, length - name) ||
        (length == name + 6 && memcmp(text + name, "_size", 5) == 0 && isdigit((unsigned char)text[length - 1]));
}

/* Tells whether the word has a meaning in the kernels already, but for the names of the inputs. */
static bool is_taken(const struct custom *custom, const char *text, size_t length)
{
    static const char *const words[] = { "i", "y", "dy" };
    for (size_t k = 0; k < sizeof(words) / sizeof(*words); k++)
        if (is_same(words[k], text, length)) return true;
    for (int k = 0; k < custom->inputs; k++)
        if ((*text == 'd' && is_same(custom->names[k], text + 1, length - 1)) ||
            is_size_of(custom->names[k], text, length))
            return true;
    return is_size_of("y", text, length) || (length >= 7 && strncasecmp(text, "custom_", 7) == 0);
}

/* Tells whether an attribute before `at` has the same name. */
static bool is_repeated(const char *attributes, const char *at, size_t key)
{
    for (const char *other = attributes; (other += strspn(other, " ")) < at; other += strcspn(other, " "))
        if (strcspn(other, "=") == key && memcmp(other, at, key) == 0) return true;
    return false;
}

static tutti_status check_attribute(const struct custom *custom, const char *at, size_t length)
{
    char shown[CUSTOM_NAME];
    const size_t key = attribute_key(at, length);
    number_print(shown, sizeof shown, "%.*s", (int)(length < sizeof shown ? length : sizeof shown - 1), at);
    if (key == 0)
        return fail(TUTTI_INVALID,
            "custom operation '%s': the attribute '%s' is not of the form name=number, with a number of float32",
            custom->operation, text_printable(shown).text);
    if (custom_is_reserved(at, key))
        return fail(TUTTI_INVALID,
            "custom operation '%s': the attribute '%s' is named as a word or function of OpenCL C: give another name",
            custom->operation, shown);
    bool taken = is_taken(custom, at, key) || is_repeated(custom->attributes, at, key);
    for (int k = 0; k < custom->inputs; k++) taken |= is_same(custom->names[k], at, key);
    if (!taken) return TUTTI_OK;
    return fail(TUTTI_INVALID,
        "custom operation '%s': the attribute '%s' has a name that is taken: that of an array, a size, the item or "
        "another attribute, or one that begins with 'custom_'",
        custom->operation, shown);
}

static tutti_status check_attributes(const struct custom *custom)
{
    tutti_status status = TUTTI_OK;
    for (const char *at = custom->attributes; *(at += strspn(at, " ")) != '\0'; at += strcspn(at, " "))
        TRY(check_attribute(custom, at, strcspn(at, " ")));
done:
    return status;
}

/* Checks the name of an input, and that of its gradient. */
static tutti_status check_reserved(const struct custom *custom, const char *name)
{
    char gradient[CUSTOM_NAME + 1];
    number_print(gradient, sizeof gradient, "d%s", name);
    if (custom_is_reserved(name, strlen(name)))
        return fail(TUTTI_INVALID,
            "custom operation '%s': the input '%s' is named as a word or function of OpenCL C: give another name",
            custom->operation, name);
    if (custom_is_reserved(gradient, strlen(gradient)))
        return fail(TUTTI_INVALID,
            "custom operation '%s': the gradient of the input '%s' would be called '%s', a word or function of OpenCL "
            "C: "
            "give another name",
            custom->operation, name, gradient);
    return TUTTI_OK;
}

tutti_status custom_check_names(const struct custom *custom)
{
    tutti_status status = TUTTI_OK;
    if (!is_word(custom->operation, strlen(custom->operation)))
        return fail(TUTTI_INVALID, "custom operation '%s': its name must consist of letters, digits and '_'",
            text_printable(custom->operation).text);
    if (custom->inputs == 0) return fail(TUTTI_INVALID, "custom operation '%s' has no inputs", custom->operation);
    for (int i = 0; i < custom->inputs; i++) {
        const char *name = custom->names[i];
        TRY(check_reserved(custom, name));
        bool good = is_word(name, strlen(name)) && !is_taken(custom, name, strlen(name));
        for (int k = 0; k < custom->inputs; k++) good &= k == i || strcmp(name, custom->names[k]) != 0;
        if (!good)
            return fail(TUTTI_INVALID,
                "custom operation '%s': '%s' cannot be the name of an input: it must be a word of OpenCL C, and "
                "neither i, y, dy, another input, its gradient, a size, nor begin with 'custom_'",
                custom->operation, text_printable(name).text);
    }
    TRY(check_attributes(custom));
done:
    return status;
}

/* ------------------------------------------------------------------------------------------------------- text ---- */

/* Integers are printed without leading zeros, which would make them octal, and as floats if no long has them. */
static void print_attributes(struct text *text, const char *attributes)
{
    for (const char *at = attributes; *(at += strspn(at, " ")) != '\0'; at += strcspn(at, " ")) {
        const char *const end = at + strcspn(at, " ");
        const int key = (int)attribute_key(at, (size_t)(end - at));
        const char *number = at + key + 1;
        const char *const sign = *number == '-' ? "-" : "";
        const bool whole = number + strspn(number, "+-0123456789") == end;
        const bool is_long = fabs(number_read(number, NULL)) < 0x1p63;
        number += *number == '-' || *number == '+';
        while (*number == '0' && number + 1 < end && isdigit((unsigned char)number[1])) number++;
        text_append(text, "#define %.*s (%s%.*s%s)\n", key, at, sign, (int)(end - number), number,
            !whole        ? "f"
                : is_long ? ""
                          : ".f");
    }
}

static void print_number(struct text *text, const char *name, const char *what, int64_t number)
{
    text_append(text, "#define %s_%s %" PRId64 "%s\n", name, what, number, number > INT32_MAX ? "L" : "");
}

static void print_sizes(struct text *text, const char *name, const struct value *value)
{
    char what[16];
    print_number(text, name, "elements", custom_sample_elements(value));
    for (int i = value->batched; i < value->shape.rank; i++) {
        number_print(what, sizeof what, "size%d", i - value->batched);
        print_number(text, name, what, value->shape.sizes[i]);
    }
}

/* One array of a kernel. */
struct array {
    const char *prefix, *name;
    bool written, batched;
};
enum { ARRAYS = 2 * CUSTOM_INPUTS + 2 };

/* Lists the arrays in the order of arguments. */
static int list_arrays(const struct custom_values *values, bool backward, struct array arrays[ARRAYS])
{
    const struct custom *custom = values->custom;
    int count = 0;
    for (int i = 0; i < custom->inputs; i++)
        arrays[count++] = (struct array) { "", custom->names[i], false, values->x[i]->batched };
    arrays[count++] = (struct array) { "", "y", !backward, true };
    if (!backward) return count;
    arrays[count++] = (struct array) { "d", "y", false, true };
    for (int i = 0; i < custom->inputs; i++) arrays[count++] = (struct array) { "d", custom->names[i], true, true };
    return count;
}

static int64_t items_of(const struct custom_values *values, bool backward)
{
    const int64_t wanted = values->custom->items[backward];
    return wanted ? wanted : custom_sample_elements(backward ? values->x[0] : values->y);
}

static void print_parameters(struct text *text, const struct array *arrays, int count)
{
    for (int i = 0; i < count; i++)
        text_append(text, "%sglobal %sfloat *restrict %s%s", i ? ", " : "", arrays[i].written ? "" : "const ",
            arrays[i].prefix, arrays[i].name);
}

/* A task or work-item has `chunk` items. The loop over those of one sample is one that compilers turn into vectors. */
static void print_kernel(struct text *text, const struct array *arrays, int count, bool backward)
{
    text_append(text, "\n#line 1 \"kernel\"\nkernel void custom_%s(", backward ? "backward" : "forward");
    print_parameters(text, arrays, count);
    text_append(text,
        ", const long custom_count, const long custom_chunk)\n{\n"
        "    const long custom_begin = (long)get_global_id(0) * custom_chunk;\n"
        "    const long custom_end = min(custom_begin + custom_chunk, custom_count);\n"
        "    for (long custom_at = custom_begin; custom_at < custom_end;) {\n"
        "        const long custom_sample = custom_at / CUSTOM_ITEMS, custom_first = custom_sample * CUSTOM_ITEMS;\n"
        "        const int custom_last = (int)(min(custom_end, custom_first + CUSTOM_ITEMS) - custom_first);\n"
        "        for (int i = (int)(custom_at - custom_first); i < custom_last; i++)\n"
        "            custom_body(i");
    for (int i = 0; i < count; i++) {
        text_append(text, ", %s%s", arrays[i].prefix, arrays[i].name);
        if (arrays[i].batched) text_append(text, " + custom_sample * %s_elements", arrays[i].name);
    }
    text_append(text, ");\n        custom_at = custom_first + custom_last;\n    }\n}\n");
}

const char *custom_text(const struct custom_values *values, bool backward)
{
    const struct custom *custom = values->custom;
    struct array arrays[ARRAYS];
    const int count = list_arrays(values, backward, arrays);
    struct text text = { 0 };
    print_attributes(&text, custom->attributes);
    for (int i = 0; i < custom->inputs; i++) print_sizes(&text, custom->names[i], values->x[i]);
    print_sizes(&text, "y", values->y);
    text_append(&text, "#define CUSTOM_ITEMS %" PRId64 "\n", items_of(values, backward));
    if (*custom->source) text_append(&text, "#line 1 \"source of %s\"\n%s\n", custom->operation, custom->source);
    text_append(
        &text, "#line 1 \"kernel\"\nstatic inline __attribute__((always_inline)) void custom_body(const int i, ");
    print_parameters(&text, arrays, count);
    text_append(&text, ")\n{\n#line 1 \"%s of %s\"\n%s\n}\n", backward ? "backward" : "forward", custom->operation,
        backward ? custom->backward : custom->forward);
    print_kernel(&text, arrays, count, backward);
    char *made = text_take(&text);
    const char *name = made ? source_make(NULL, made) : NULL;
    free(made);
    return name;
}

/* ----------------------------------------------------------------------------------------------------- launch ---- */

/* Floats of a sample in all arrays of the kernel: a measure of its work. */
static int64_t floats_of(const struct custom_values *values, bool backward)
{
    const int times = backward ? 2 : 1;
    int64_t sum = times * custom_sample_elements(values->y);
    for (int i = 0; i < values->custom->inputs; i++) sum += times * custom_sample_elements(values->x[i]);
    return sum;
}

void custom_launch(
    const struct custom_values *values, bool backward, int64_t samples, const cl_mem *buffers, struct launch_list *list)
{
    enum { GROUP = 64 };
    struct array arrays[ARRAYS];
    const char *source = custom_text(values, backward);
    if (!source) {
        if (list->status == TUTTI_OK) list->status = TUTTI_NO_MEMORY;
        return;
    }
    const struct capabilities *device = &list->device->can;
    const int64_t items = items_of(values, backward), floats = floats_of(values, backward), all = items * samples;
    int64_t chunk = 1;
    if (device->class == DEVICE_CPU)
        chunk = divide_up(elementwise_task_floats(device, floats * samples), divide_up(floats, items));
    struct launch *launch = launch_add(list, source, backward ? "custom_backward" : "custom_forward", "%s", "");
    launch_buffers(launch, buffers, (size_t)list_arrays(values, backward, arrays));
    launch_long(launch, all);
    launch_long(launch, chunk);
    if (device->class == DEVICE_CPU)
        launch_tasks(launch, (size_t)divide_up(all, chunk), 1, 1);
    else
        items_launch(launch, device, GROUP, all, 0);
    launch_work(launch, 0, 4 * (double)floats * (double)samples);
}
