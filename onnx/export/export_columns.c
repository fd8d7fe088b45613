/* Nodes that make features of a table's columns, as data/column_*.c makes them. */
#include "onnx/export/export.h"

#include "base/table_words.h"

#include <jansson.h>
#include <math.h>
#include <string.h>

enum { MOST_WORDS = 128 }; /* for missing values and truths, with all their letters upper and lower case */

static tutti_shape shape_of(size_t count)
{
    return (tutti_shape) { .rank = 1, .sizes = { (int64_t)count } };
}

static const char *concatenate(struct source *source, const char *const *inputs, size_t count)
{
    const char *output = source_temporary(source);
    made_integer(source_node_of(source, "Concat", inputs, (int)count, output), "axis", 1);
    return output;
}

/* ------------------------------------------------------------------------------------------------- numbers ---- */

/* Puts the features into the network's order: each column's number, followed by whether it is missing. */
static const char *interleave(
    struct source *source, const struct export_column *columns, size_t count, const char *numbers, const char *missing)
{
    const char *flags = source_cast(source, missing, ONNX_FLOAT), *output = source_temporary(source);
    const char *both = concatenate(source, (const char *const[]) { numbers, flags }, 2);
    int64_t *order = export_new(source->export, 2 * count, sizeof *order);
    size_t used = 0;
    for (size_t i = 0; i < count && order; i++) {
        order[used++] = (int64_t)i;
        if (columns[i].indicator) order[used++] = (int64_t)(count + i);
    }
    const tutti_shape shape = shape_of(used);
    const char *at = order ? source_constant(source, ONNX_INT64, &shape, order) : "";
    made_integer(source_node(source, "Gather", both, at, NULL, output), "axis", 1);
    return output;
}

/* Features of columns of doubles, [N, count], in which NaN is missing. */
static const char *standardise(struct source *source, const char *x, const struct export_column *columns, size_t count)
{
    static const double limits[] = { -1e9, 1e9 };
    struct export *export = source->export;
    const tutti_shape shape = shape_of(count), none = { 0 };
    double *numbers = export_new(export, 3 * count, sizeof *numbers);
    bool indicators = false;
    for (size_t i = 0; i < count && numbers; i++) {
        const double *mean = export_data_numbers(export, columns[i].object, "mean", 1, false);
        const double *std = export_data_numbers(export, columns[i].object, "std", 1, true);
        if (!mean || !std) return "";
        numbers[i] = json_number_value(json_object_get(columns[i].object, "median"));
        numbers[count + i] = *mean;
        numbers[2 * count + i] = *std;
        indicators |= columns[i].indicator;
    }
    if (!numbers) return "";
    const char *missing = source_step(source, "IsNaN", x, NULL), *filled = source_temporary(source);
    (void)source_node(source, "Where", missing, source_constant(source, ONNX_DOUBLE, &shape, numbers), x, filled);
    const char *mean = source_constant(source, ONNX_DOUBLE, &shape, numbers + count);
    const char *std = source_constant(source, ONNX_DOUBLE, &shape, numbers + 2 * count);
    const char *scaled = source_step(source, "Div", source_step(source, "Sub", filled, mean), std);
    const char *least = source_constant(source, ONNX_DOUBLE, &none, &limits[0]);
    const char *most = source_constant(source, ONNX_DOUBLE, &none, &limits[1]), *limited = source_temporary(source);
    (void)source_node(source, "Clip", scaled, least, most, limited);
    const char *features = source_cast(source, limited, ONNX_FLOAT);
    return indicators ? interleave(source, columns, count, features, missing) : features;
}

/* --------------------------------------------------------------------------------------------------- texts ---- */

/* Texts, and the number that each becomes. */
struct keys {
    struct export *export;
    const char **texts;
    int64_t *numbers;
    size_t count;
};

static struct keys keys_new(struct export *export, size_t most)
{
    return (
        struct keys) { export, export_new(export, most, sizeof(char *)), export_new(export, most, sizeof(int64_t)), 0 };
}

static void add_key(struct keys *keys, const char *text, int64_t number)
{
    if (!keys->texts || !keys->numbers) return;
    keys->texts[keys->count] = text;
    keys->numbers[keys->count++] = number;
}

static bool is_letter(char character)
{
    return character >= 'a' && character <= 'z';
}

/* Adds a word of small letters with each of them upper or lower case. */
static void add_word(struct keys *keys, const char *word, int64_t number)
{
    unsigned letters = 0;
    for (const char *at = word; *at; at++) letters += is_letter(*at);
    for (unsigned upper = 0; upper < 1U << letters; upper++) {
        char *text = export_new(keys->export, strlen(word) + 1, 1);
        unsigned letter = 0;
        if (!text) return;
        for (size_t i = 0; word[i]; i++)
            text[i] = (char)(is_letter(word[i]) && upper >> letter++ & 1 ? word[i] - 'a' + 'A' : word[i]);
        add_key(keys, text, number);
    }
}

static void add_missing(struct keys *keys, int64_t number)
{
    static const char *const words[] = { "", TABLE_MISSING_SIGNS, TABLE_MISSING_WORDS };
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) add_word(keys, words[i], number);
}

/* The number of each text; `fallback` for all others. */
static const char *encode(struct source *source, const char *x, const struct keys *keys, int64_t fallback)
{
    const char *output = source_temporary(source);
    const struct made made = source_node(source, "LabelEncoder", x, NULL, NULL, output);
    made.node->domain = "ai.onnx.ml";
    source->export->uses_ml = true;
    if (!keys->texts || !keys->numbers) return output;
    made_texts(made, "keys_strings", keys->texts, (int)keys->count);
    made_integers(made, "values_int64s", keys->numbers, (int)keys->count);
    made_integer(made, "default_int64", fallback);
    return output;
}

/* Words become 0, 1 or NaN, and are standardised. */
static const char *read_truths(struct source *source, const char *x, const struct export_column *column)
{
    static const char *const words[][2] = { TABLE_TRUTH_WORDS };
    static const double values[] = { 0, 1, (double)NAN };
    const json_int_t format = json_integer_value(json_object_get(column->object, "format"));
    struct keys keys = keys_new(source->export, MOST_WORDS);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        for (int truth = 0; truth < 2; truth++)
            if (format >> i & 1) add_word(&keys, words[i][truth], truth);
    const tutti_shape shape = shape_of(3);
    const char *number = encode(source, x, &keys, 2);
    const char *numbers = source_step(source, "Gather", source_constant(source, ONNX_DOUBLE, &shape, values), number);
    return standardise(source, numbers, column, 1);
}

/* "4.0" for "4", another way to write this category; NULL: it is not a whole number. */
static const char *with_point(struct export *export, const char *name)
{
    const char *digits = name + (*name == '-');
    const size_t length = strlen(name);
    if (*digits == '0' ? length > 1 : !*digits) return NULL;
    if (strspn(digits, "0123456789") != strlen(digits)) return NULL;
    char *text = export_new(export, length + 3, 1);
    if (!text) return NULL;
    memcpy(text, name, length);
    memcpy(text + length, ".0", 2);
    return text;
}

/* One feature for each category, after one for other texts and before one for missing ones; or the number of that
 * feature. */
static const char *read_categories(struct source *source, const char *x, const struct export_column *column)
{
    struct export *export = source->export;
    const size_t width = column->categories + 1 + column->indicator;
    struct keys keys = keys_new(export, 2 * column->categories + MOST_WORDS);
    int64_t *numbers = export_new(export, width, sizeof *numbers);
    for (size_t i = 0; i < column->categories; i++) {
        const char *name = json_string_value(json_array_get(json_object_get(column->object, "categories"), i));
        const char *other = with_point(export, name);
        add_key(&keys, name, (int64_t)i + 1);
        if (other) add_key(&keys, other, (int64_t)i + 1);
    }
    add_missing(&keys, column->indicator ? (int64_t)width - 1 : 0);
    for (size_t i = 0; i < width && numbers; i++) numbers[i] = (int64_t)i;
    const tutti_shape shape = { .rank = 2, .sizes = { 1, (int64_t)width } };
    const char *number = encode(source, x, &keys, 0);
    if (column->code) return source_cast(source, number, ONNX_FLOAT);
    const char *all = numbers ? source_constant(source, ONNX_INT64, &shape, numbers) : "";
    return source_cast(source, source_step(source, "Equal", number, all), ONNX_FLOAT);
}

/* --------------------------------------------------------------------------------------------------- inputs ---- */

/* Outputs keep their names, which are the same for all tables. */
static const char *name_column(struct export *export, const char *name)
{
    static const char *const outputs[][2] = { { "probabilities", "probabilities.1" }, { "label", "label.1" },
        { "values", "values.1" } };
    const bool classes = json_array_size(json_object_get(export->data.object, "classes")) > 0;
    for (size_t i = classes ? 0 : 2; i < (classes ? 2 : 3); i++)
        if (!strcmp(name, outputs[i][0])) return export_name(export, outputs[i][1]);
    return export_name(export, name);
}

void export_name_columns(struct export *export)
{
    struct export_data *data = &export->data;
    if (data->numbers) {
        data->columns[0].port = export_name(export, "columns");
        return;
    }
    for (size_t i = 0; i < data->column_count; i++) data->columns[i].port = name_column(export, data->columns[i].name);
}

static void add_input(struct export *export, const char *name, bool text, size_t count)
{
    const tutti_shape shape = shape_of(count);
    Onnx__ValueInfoProto *port = export_port(export, name, text ? ONNX_STRING : ONNX_DOUBLE, &shape, true);
    port->doc_string = text ? "a text, empty where it is missing" : "numbers, NaN where they are missing";
    (void)export_add(export, &export->inputs, port);
}

static const char *read_column(struct export *export, const struct export_column *column)
{
    struct source source = { .export = export, .info = { .layer = column->port, .operation = "column" } };
    add_input(export, column->port, column->is != COLUMN_NUMBER, 1);
    if (column->is == COLUMN_CATEGORY) return read_categories(&source, column->port, column);
    if (column->is == COLUMN_TRUTH) return read_truths(&source, column->port, column);
    return standardise(&source, column->port, column, 1);
}

void export_columns(struct export *export)
{
    struct export_data *data = &export->data;
    struct source source = { .export = export, .info = { .layer = "columns", .operation = "columns" } };
    if (data->numbers) {
        add_input(export, data->columns[0].port, false, data->column_count);
        (void)standardise(&source, data->columns[0].port, data->columns, data->column_count);
        return;
    }
    const char **features = export_new(export, data->column_count, sizeof *features);
    size_t used = 0;
    for (int codes = 0; codes < 2; codes++) /* these are the last features */
        for (size_t i = 0; i < data->column_count && features; i++)
            if (data->columns[i].code == (codes > 0)) features[used++] = read_column(export, &data->columns[i]);
    if (features) (void)concatenate(&source, features, data->column_count);
}
