/* What must be known to use a network that was trained on these data, as JSON. */
#include "data/data.h"

#include "base/status.h"
#include "base/text.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

static json_t *numbers(const float *values, int count)
{
    json_t *list = json_array();
    for (int i = 0; i < count; i++) json_array_append_new(list, json_real((double)values[i]));
    return list;
}

static json_t *doubles(const double *values, int count)
{
    json_t *list = json_array();
    for (int i = 0; i < count; i++) json_array_append_new(list, json_real(values[i]));
    return list;
}

static json_t *sizes(const tutti_shape *shape)
{
    json_t *list = json_array();
    for (int i = 0; i < shape->rank; i++) json_array_append_new(list, json_integer((json_int_t)shape->sizes[i]));
    return list;
}

static json_t *names(const tutti_data_info *info)
{
    json_t *list = json_array();
    for (int i = 0; i < info->classes; i++) json_array_append_new(list, json_string(info->class_names[i]));
    return list;
}

/* Names that are not UTF-8 cannot be in JSON. */
static tutti_status check_names(const tutti_data_info *info)
{
    for (int i = 0; i < info->classes; i++) {
        json_t *text = json_string(info->class_names[i]);
        json_decref(text);
        if (!text)
            return fail(TUTTI_INVALID, "the name of class %d, '%s', is not UTF-8", i,
                text_printable(info->class_names[i]).text);
    }
    return TUTTI_OK;
}

/* How many samples train and how many are held out, where this was drawn; NULL: the data say it. */
static json_t *divided(const tutti_data *data)
{
    const struct collection *collection = data->collection;
    json_int_t train = 0, val = 0;
    bool drawn = data->options.folds > 0;
    for (int64_t i = 0; i < collection->samples; i++) {
        drawn |= collection->parts[i] == PART_OPEN;
        train += data->part_of[i] == TUTTI_DATA_TRAIN;
        val += data->part_of[i] == TUTTI_DATA_VAL;
    }
    const json_int_t all = collection->samples;
    return drawn ? json_pack("{sIsIsI}", "train", train, "val", val, "all", all) : NULL;
}

char *tutti_data_json(const tutti_data *data)
{
    if (!data) {
        fail(TUTTI_INVALID, "the data are NULL");
        return NULL;
    }
    const struct collection *collection = data->collection;
    const tutti_data_info *info = &collection->info;
    if (info->class_names && check_names(info) != TUTTI_OK) return NULL;
    json_t *object = json_object();
    char *text = NULL;
    int failed = !object;
    failed |= json_object_set_new(object, "kind", json_string(info->kind));
    failed |= json_object_set_new(object, "shape", sizes(&info->shape));
    failed |= json_object_set_new(object, "bytes", json_boolean(info->dtype == TUTTI_DTYPE_U8 && !collection->floats));
    if (info->channels > 0) failed |= json_object_set_new(object, "mean", numbers(info->mean, info->channels));
    if (info->channels > 0) failed |= json_object_set_new(object, "std", numbers(info->std, info->channels));
    if (info->target_mean) {
        const int count = (int)info->target_shape.sizes[0];
        failed |= json_object_set_new(object, "target_mean", doubles(info->target_mean, count));
        failed |= json_object_set_new(object, "target_std", doubles(info->target_std, count));
    }
    if (info->class_names) failed |= json_object_set_new(object, "classes", names(info));
    failed |= json_object_set_new(object, "split", json_real(data->options.split));
    failed |= json_object_set_new(object, "seed", json_integer((json_int_t)data->options.seed));
    if (data->options.folds > 0) {
        failed |= json_object_set_new(object, "folds", json_integer(data->options.folds));
        failed |= json_object_set_new(object, "fold", json_integer(data->options.fold));
    }
    json_t *parts = divided(data);
    if (parts) failed |= json_object_set_new(object, "divided", parts);
    if (!failed && collection->describe) failed = collection->describe(collection, object);
    if (!failed) text = json_dumps(object, JSON_COMPACT | JSON_REAL_PRECISION(17));
    if (!text) fail(TUTTI_NO_MEMORY, "the data cannot be described: no memory");
    json_decref(object);
    return text;
}
