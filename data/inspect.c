/* What a person wants to know of data before a training, as JSON. */
#include "data/inspect.h"

#include "base/memory.h"
#include "base/status.h"
#include "data/data.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static json_t *count_parts(const struct tutti_data *data)
{
    return json_pack("{s:I, s:I, s:I}", "train", (json_int_t)data->parts[TUTTI_DATA_TRAIN].count, "val",
        (json_int_t)data->parts[TUTTI_DATA_VAL].count, "test", (json_int_t)data->parts[TUTTI_DATA_TEST].count);
}

static json_t *list_sizes(const tutti_shape *shape)
{
    json_t *list = json_array();
    for (int i = 0; i < shape->rank; i++) json_array_append_new(list, json_integer((json_int_t)shape->sizes[i]));
    return list;
}

/* Classes with their samples in all parts; without these where each pixel has a class. */
static json_t *list_classes(const struct tutti_data *data)
{
    const struct collection *collection = data->collection;
    const tutti_data_info *info = &collection->info;
    const bool counted = collection->labels && info->target_shape.rank == 0;
    json_t *list = json_array();
    json_int_t *counts = memory_new((size_t)info->classes, sizeof *counts);
    for (int64_t i = 0; counts && counted && i < collection->samples; i++) {
        const int32_t label = collection->labels[i];
        if (label >= 0 && label < info->classes && data->part_of[i] != DATA_UNUSED) counts[label]++;
    }
    for (int i = 0; counts && i < info->classes; i++) {
        json_t *class_ = json_object();
        json_object_set_new(class_, "name", inspect_text(info->class_names[i]));
        if (counted) json_object_set_new(class_, "samples", json_integer(counts[i]));
        if (counted && data->class_counts)
            json_object_set_new(class_, "train", json_integer((json_int_t)data->class_counts[i]));
        json_array_append_new(list, class_);
    }
    if (!counts) {
        json_decref(list);
        return NULL;
    }
    free(counts);
    return list;
}

static json_t *list_ignored(const struct ignored *ignored)
{
    json_t *examples = json_array();
    for (int i = 0; i < ignored->example_count; i++)
        json_array_append_new(examples, inspect_text(ignored->examples[i]));
    return json_pack("{s:o, s:o}", "text", inspect_text(ignored_list(ignored).text), "examples", examples);
}

/* ------------------------------------------------------------------------------------------------- numbers ---- */

struct range {
    double least, largest, sum;
    int64_t count;
};

static void add_number(struct range *range, double value)
{
    if (range->count == 0 || value < range->least) range->least = value;
    if (range->count == 0 || value > range->largest) range->largest = value;
    range->sum += value;
    range->count++;
}

static json_t *range_json(const struct range *range)
{
    json_t *object = json_object();
    json_object_set_new(object, "least", inspect_real(range->least));
    json_object_set_new(object, "mean", inspect_real(range->sum / (double)range->count));
    json_object_set_new(object, "largest", inspect_real(range->largest));
    return object;
}

/* Samples and targets of one read after another. */
struct measured {
    struct range inputs, targets;
    int64_t read, damaged;
    char *example; /* why the first damaged one cannot be read */
};

static void add_sample(const struct tutti_data *data, const void *sample, const void *target, struct measured *measured)
{
    const tutti_data_info *info = &data->collection->info;
    const bool bytes = info->dtype == TUTTI_DTYPE_U8;
    const size_t numbers = data_bytes(info->dtype, &info->shape) / tutti_dtype_bytes(info->dtype);
    const size_t targets = data_bytes(info->target_dtype, &info->target_shape) / sizeof(float);
    const unsigned char *pixels = sample;
    const float *values = sample, *of_target = target;
    for (size_t i = 0; i < numbers; i++) add_number(&measured->inputs, bytes ? (double)pixels[i] : (double)values[i]);
    for (size_t i = 0; info->target_dtype == TUTTI_DTYPE_F32 && i < targets; i++) {
        const double value = (double)of_target[i];
        add_number(&measured->targets, info->target_mean ? value * info->target_std[i] + info->target_mean[i] : value);
    }
    measured->read++;
}

static tutti_status measure(const struct tutti_data *data, int64_t most, struct measured *measured)
{
    struct collection *collection = data->collection;
    const tutti_data_info *info = &collection->info;
    const int64_t step = inspect_step(collection->samples, most);
    tutti_status status = TUTTI_OK;
    void *sample = memory_new(data_bytes(info->dtype, &info->shape), 1);
    void *target = memory_new(data_bytes(info->target_dtype, &info->target_shape), 1);
    if (!sample || !target) FAIL(TUTTI_NO_MEMORY, "there is no memory for a sample");
    for (int64_t i = 0; i < collection->samples; i += step) {
        const struct draw draw = { .seed = data->options.seed, .sample = i };
        status = collection->read(collection, i, &draw, sample, target);
        if (status == TUTTI_OK) add_sample(data, sample, target, measured);
        if (status == TUTTI_OK) continue;
        if (status != TUTTI_FORMAT && status != TUTTI_FILE) goto done;
        status = TUTTI_OK;
        if (measured->damaged++ == 0) measured->example = memory_copy_text(status_message());
    }
done:
    free(sample);
    free(target);
    return status;
}

/* Describes data without an `inspect` of their own: arrays, digits, the files of MNIST and CIFAR. */
static int describe_numbers(const struct tutti_data *data, int64_t most, json_t *object)
{
    struct measured measured = { .read = 0 };
    const tutti_status status = measure(data, most, &measured);
    json_t *files = json_pack("{s:I, s:I, s:I}", "read", (json_int_t)(measured.read + measured.damaged), "all",
        (json_int_t)data->collection->samples, "damaged", (json_int_t)measured.damaged);
    int failed = status != TUTTI_OK;
    if (measured.example) failed |= json_object_set_new(files, "example", inspect_text(measured.example));
    failed |= json_object_set_new(object, "opened", files);
    if (measured.inputs.count > 0) failed |= json_object_set_new(object, "values", range_json(&measured.inputs));
    if (measured.targets.count > 0) failed |= json_object_set_new(object, "targets", range_json(&measured.targets));
    free(measured.example);
    return failed;
}

/* ----------------------------------------------------------------------------------------------- the object ---- */

static int describe(const struct tutti_data *data, int64_t most, json_t *object)
{
    const struct collection *collection = data->collection;
    const tutti_data_info *info = &collection->info;
    int failed = json_object_set_new(object, "kind", json_string(info->kind));
    failed |= json_object_set_new(object, "samples", json_integer((json_int_t)collection->samples));
    failed |= json_object_set_new(object, "damaged", json_integer((json_int_t)info->damaged));
    failed |= json_object_set_new(object, "parts", count_parts(data));
    failed |= json_object_set_new(object, "shape", list_sizes(&info->shape));
    failed |= json_object_set_new(object, "bytes", json_boolean(info->dtype == TUTTI_DTYPE_U8));
    if (info->target_shape.rank > 0)
        failed |= json_object_set_new(object, "target_shape", list_sizes(&info->target_shape));
    if (info->classes > 0 && info->class_names) failed |= json_object_set_new(object, "classes", list_classes(data));
    if (ignored_any(&collection->ignored))
        failed |= json_object_set_new(object, "ignored", list_ignored(&collection->ignored));
    if (failed) return failed;
    return collection->inspect ? collection->inspect(collection, most, object) : describe_numbers(data, most, object);
}

char *tutti_data_inspect(const tutti_data *data, int64_t most)
{
    char *text = NULL;
    if (!data || most < 0) {
        fail(TUTTI_INVALID, "the data are NULL, or fewer than 0 files are to be opened");
        return NULL;
    }
    json_t *object = json_object();
    if (object && describe(data, most, object) == 0) text = json_dumps(object, JSON_COMPACT | JSON_REAL_PRECISION(17));
    json_decref(object);
    if (!text) fail(TUTTI_NO_MEMORY, "there is no memory to describe the data");
    return text;
}
