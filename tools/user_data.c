#include "tools/user_data.h"

#include "base/memory.h"
#include "base/numbers.h"
#include "base/status.h"
#include "base/text.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const own_normalisations[] = { "imagenet", "measured", "none", NULL };

static void print_note(void *user, const char *line)
{
    (void)user;
    fprintf(stderr, "%s\n", line);
}

/* Reads CxHxW of --input, else takes the given shape. */
static tutti_status read_size(const struct user_data_options *own, tutti_data_options *options)
{
    int used = 0;
    if (own->input) {
        if (sscanf(own->input, "%dx%dx%d%n", &options->channels, &options->height, &options->width, &used) < 3 ||
            own->input[used])
            return fail(TUTTI_INVALID, "--input needs CxHxW for images, such as 3x224x224, not \"%s\"", own->input);
    } else if (own->shape.rank == 3) {
        options->channels = (int)own->shape.sizes[0];
        options->height = (int)own->shape.sizes[1];
        options->width = (int)own->shape.sizes[2];
    }
    return TUTTI_OK;
}

tutti_status user_data_open(
    const char *where, const struct user_data_options *own, tutti_data **data, tutti_data_info *info)
{
    tutti_data_options options = own->data;
    options.note = own->quiet ? NULL : print_note;
    if (own->cache_given) options.cache = own->cache_mib ? own->cache_mib << 20 : -1;
    const tutti_status status = read_size(own, &options);
    if (status != TUTTI_OK) return status;
    *data = tutti_data_open(where, &options);
    if (!*data) return fail(TUTTI_FILE, "%s", tutti_message(NULL));
    *info = (tutti_data_info) { .size = sizeof *info };
    return tutti_data_describe(*data, info);
}

/* --------------------------------------------------------------------------------------------------- saved ---- */

enum { MOST_STATISTICS = 1 << 16 }; /* columns of a table */

/* "0.5,0.4,0.4/0.2,0.2,0.2" from two lists. */
static bool read_statistics(const json_t *mean, const json_t *std, char **text)
{
    const size_t channels = json_array_size(mean);
    struct text made = { 0 };
    if (channels == 0) return true;
    if (channels > MOST_STATISTICS || json_array_size(std) != channels) return false;
    for (size_t i = 0; i < 2 * channels; i++) {
        const json_t *number = json_array_get(i < channels ? mean : std, i % channels);
        char digits[40];
        number_print(digits, sizeof(digits), "%.17g", json_number_value(number));
        text_append(&made, "%s%s", i == 0 ? "" : i == channels ? "/" : ",", digits);
    }
    *text = text_take(&made);
    return *text != NULL;
}

static bool read_shape(const json_t *list, tutti_shape *shape)
{
    const size_t rank = json_array_size(list);
    if (rank > TUTTI_MAX_RANK) return false;
    for (size_t i = 0; i < rank; i++) {
        const json_int_t size = json_integer_value(json_array_get(list, i));
        if (size < 1 || size > INT32_MAX) return false;
        shape->sizes[i] = size;
    }
    shape->rank = (int)rank;
    return true;
}

static bool read_classes(const json_t *list, struct user_data_saved *saved)
{
    const size_t count = json_array_size(list);
    saved->classes = memory_new(count + 1, sizeof(*saved->classes));
    if (!saved->classes || count > INT32_MAX) return false;
    for (size_t i = 0; i < count; i++) {
        const char *name = json_string_value(json_array_get(list, i));
        if (!name || !(saved->classes[i] = memory_copy_text(name))) return false;
        saved->class_count++;
    }
    return true;
}

static bool read_fold(const json_t *object, struct user_data_saved *saved)
{
    const json_int_t folds = json_integer_value(json_object_get(object, "folds"));
    const json_int_t fold = json_integer_value(json_object_get(object, "fold"));
    if (folds < 0 || folds > INT32_MAX || fold < 0 || (folds > 0 && fold >= folds)) return false;
    saved->folds = (int)folds;
    saved->fold = (int)fold;
    return true;
}

static bool read_object(const json_t *object, struct user_data_saved *saved)
{
    saved->split = json_number_value(json_object_get(object, "split"));
    saved->seed = json_integer_value(json_object_get(object, "seed"));
    const json_int_t rate = json_integer_value(json_object_get(object, "rate"));
    if (!(saved->split >= 0 && saved->split < 1) || rate < 0 || rate > INT32_MAX) return false;
    saved->rate = (int)rate;
    if (!read_fold(object, saved)) return false;
    if (!read_statistics(json_object_get(object, "mean"), json_object_get(object, "std"), &saved->normalise))
        return false;
    if (!read_statistics(
            json_object_get(object, "target_mean"), json_object_get(object, "target_std"), &saved->normalise_targets))
        return false;
    if (!saved->normalise_targets && !(saved->normalise_targets = memory_copy_text("none"))) return false;
    const char *target = json_string_value(json_object_get(object, "target"));
    if (target && !(saved->target = memory_copy_text(target))) return false;
    return read_shape(json_object_get(object, "shape"), &saved->shape) &&
        read_classes(json_object_get(object, "classes"), saved);
}

tutti_status user_data_saved_read(const char *weights, struct user_data_saved **made)
{
    char *text = tutti_weights_metadata(weights, "data");
    *made = NULL;
    if (!text) return TUTTI_OK; /* a file that cannot be read fails when it is loaded */
    json_t *object = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
    struct user_data_saved *saved = memory_new(1, sizeof(*saved));
    const bool good = saved && json_is_object(object) && read_object(object, saved);
    json_decref(object);
    free(text);
    *made = saved;
    if (good) return TUTTI_OK;
    user_data_saved_free(saved);
    *made = NULL;
    return fail(TUTTI_FORMAT, "%s: what it says of its data is damaged", weights);
}

tutti_status user_data_saved_read_checkpoint(const char *name, struct user_data_saved **saved)
{
    char *weights = memory_format("%s.safetensors", name);
    const tutti_status status = weights ? user_data_saved_read(weights, saved) : TUTTI_NO_MEMORY;
    free(weights);
    return status;
}

void user_data_saved_free(struct user_data_saved *saved)
{
    if (!saved) return;
    for (int i = 0; i < saved->class_count; i++) free(saved->classes[i]);
    free(saved->classes);
    free(saved->normalise);
    free(saved->normalise_targets);
    free(saved->target);
    free(saved);
}

void user_data_saved_apply(const struct user_data_saved *saved, struct user_data_options *options)
{
    if (!saved) return;
    if (saved->shape.rank == 3) options->shape = saved->shape;
    tutti_data_options *data = &options->data;
    if (!data->normalise) data->normalise = saved->normalise;
    data->normalise_targets = saved->normalise_targets;
    if (!data->target) data->target = saved->target;
    if (data->split == 0) data->split = saved->split;
    data->seed = (uint64_t)saved->seed;
    data->rate = saved->rate;
    data->folds = saved->folds;
    data->fold = saved->fold;
}

tutti_status user_data_saved_check(
    const struct user_data_saved *saved, const char *weights, const tutti_data_info *info)
{
    if (!saved) return TUTTI_OK;
    const bool recordings = !strcmp(info->kind, "recordings");
    if (recordings != (saved->rate > 0))
        return fail(TUTTI_MISMATCH, "%s was%s trained on recordings, but these data are %s: use %s", weights,
            recordings ? " not" : "", info->kind, recordings ? "the kind of data it was trained on" : "WAV files");
    for (int i = 0; i < info->classes || (info->classes > 0 && i < saved->class_count); i++) {
        const char *have = i < info->classes ? info->class_names[i] : NULL;
        const char *want = i < saved->class_count ? saved->classes[i] : NULL;
        if (have && want && !strcmp(have, want)) continue;
        return fail(TUTTI_MISMATCH,
            "class %d is %s%s%s in %s, but %s%s%s in these data: use data with the same classes", i, want ? "'" : "",
            text_printable(want ? want : "missing").text, want ? "'" : "", weights, have ? "'" : "",
            text_printable(have ? have : "missing").text, have ? "'" : "");
    }
    return TUTTI_OK;
}
