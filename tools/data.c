#include "tools/data.h"

#include "base/memory.h"
#include "base/status.h"
#include "base/text.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const char *data_default(bool numbers)
{
    const char *name = numbers ? "line" : "digits";
    if (access(name, F_OK) != 0) return name;
    return numbers ? "builtin:line" : "builtin:digits";
}

static struct samples samples_of(const struct data *data, tutti_data_part part)
{
    const tutti_source *source = tutti_data_source(data->opened, part);
    return source ? (struct samples) { source->samples, part, *source } : (struct samples) { .count = 0 };
}

struct samples *data_part(struct data *data, const char *part)
{
    if (!strcmp(part, "train")) return data->train.count > 0 ? &data->train : NULL;
    const bool val = !strcmp(part, "val"), all = !strcmp(part, "all");
    struct samples found = samples_of(data, all ? TUTTI_DATA_ALL : val ? TUTTI_DATA_VAL : TUTTI_DATA_TEST);
    if (found.count == 0) found = samples_of(data, val ? TUTTI_DATA_TEST : TUTTI_DATA_VAL);
    if (found.count == 0) return NULL;
    data->test = found;
    return &data->test;
}

tutti_status data_load(struct data *data, const char *where, const struct user_data_options *own)
{
    memset(data, 0, sizeof(*data));
    const tutti_status status = user_data_open(where, own, &data->opened, &data->info);
    if (status != TUTTI_OK) return status;
    data->train = samples_of(data, TUTTI_DATA_TRAIN);
    (void)data_part(data, "val"); /* what a training looks at */
    data->classes = data->info.classes;
    data->numbers = data->info.classes == 0;
    return TUTTI_OK;
}

int data_outputs(const struct data *data)
{
    if (!data->numbers) return data->classes;
    return data->info.target_shape.rank == 1 ? (int)data->info.target_shape.sizes[0] : 1;
}

struct model_facts data_facts(const struct data *data)
{
    struct model_facts facts = { .samples = data->train.count };
    for (; facts.code_count < data->info.code_count && facts.code_count < MODEL_CODES; facts.code_count++)
        facts.codes[facts.code_count] = data->info.codes[facts.code_count];
    facts.vocabulary = data_is_speech(data) ? 0 : data->info.vocabulary;
    facts.transcript = data_is_speech(data) ? data->info.target_shape.sizes[0] : 0;
    facts.length = data->info.length;
    facts.tokens_are_classes = data->info.tokens_are_classes;
    facts.pairs = data->info.pairs;
    facts.tags = data->info.tags;
    return facts;
}

bool data_is_text(const struct data *data)
{
    return data->info.length > 0 && !data_is_speech(data);
}

bool data_is_speech(const struct data *data)
{
    return !strcmp(data->info.kind, "speech");
}

double data_in_units(const struct data *data, int64_t number, double output)
{
    const tutti_data_info *info = &data->info;
    if (!info->target_mean || number >= data_outputs(data)) return output;
    return output * info->target_std[number] + info->target_mean[number];
}

int data_digits(const struct data *data, int64_t number)
{
    enum { LEAST = 9, MOST = 17 }; /* of floats and of doubles */
    const tutti_data_info *info = &data->info;
    if (!info->target_mean || number >= data_outputs(data)) return LEAST;
    const double far = log10(1 + fabs(info->target_mean[number]) / info->target_std[number]);
    return far < MOST - LEAST ? LEAST + (int)far : MOST;
}

const tutti_data_info *data_pixels(const struct data *data)
{
    return data->info.dtype == TUTTI_DTYPE_U8 ? &data->info : NULL;
}

const tutti_shape *data_masks(const struct data *data)
{
    return data->info.target_shape.rank == 2 ? &data->info.target_shape : NULL;
}

bool data_is_unlabelled(const struct data *data)
{
    return data->info.classes == 0 && data->info.target_dtype == TUTTI_DTYPE_I32;
}

bool data_mixes(const struct data *data)
{
    return data->info.target_dtype == TUTTI_DTYPE_F32 && data->info.classes > 0;
}

/* Returns how many classes have training samples; *class_number becomes the last of them. */
static int count_trained(const tutti_data_info *info, int *class_number)
{
    int count = 0;
    for (int c = 0; c < info->classes; c++) {
        if (info->class_counts[c] == 0) continue;
        *class_number = c;
        count++;
    }
    return count;
}

tutti_status data_check_training(const struct data *data, const char *where)
{
    const tutti_data_info *info = &data->info;
    if (data->train.count == 0)
        return fail(TUTTI_INVALID,
            "%s: these files have no classes to train with: put those of each class into a folder of its own, and name "
            "the folder of these folders",
            where);
    if (data->test.count == 0)
        return fail(TUTTI_INVALID, "%s: no sample is left to look at: %s needs at least two", where,
            data->numbers || !strcmp(info->kind, "speech") ? "it" : "each class");
    int last = 0;
    if (info->classes > 0 && info->class_counts && count_trained(info, &last) < 2)
        return fail(TUTTI_INVALID,
            "%s: all training samples are of one class, '%s': a network learns to tell apart at least two: add samples "
            "of "
            "another%s",
            where, text_printable(info->class_names[last]).text,
            strcmp(info->kind, "table") ? "" : ", or name another column by --target");
    return TUTTI_OK;
}

/* The first sample of each class, [at most classes], else sample 0. Returns how many there are. */
static int64_t list_first(const struct data *data, const struct samples *samples, int64_t *indices)
{
    const int classes = data->info.classes;
    int64_t found = 0;
    bool *seen = memory_new((size_t)classes + 1, sizeof *seen);
    for (int64_t i = 0; seen && i < samples->count && found < classes; i++) {
        const int label = tutti_data_label(data->opened, samples->part, i);
        if (label < 0) break;
        if (!seen[label]) indices[found++] = i;
        seen[label] = true;
    }
    free(seen);
    if (found == 0) indices[found++] = 0;
    return found;
}

static size_t bytes_of(const tutti_shape *shape, size_t each)
{
    size_t bytes = each;
    for (int i = 0; i < shape->rank; i++)
        if (!size_multiply(bytes, (size_t)shape->sizes[i], &bytes)) return 0;
    return bytes;
}

tutti_status data_check_first(const struct data *data, const struct samples *samples)
{
    enum { AT_ONCE = 16 };
    const tutti_data_info *info = &data->info;
    const size_t inputs = bytes_of(&info->shape, info->dtype == TUTTI_DTYPE_U8 ? 1 : sizeof(float));
    const size_t targets = bytes_of(&info->target_shape, sizeof(float));
    tutti_status status = TUTTI_OK;
    int64_t *indices = memory_new((size_t)info->classes + 1, sizeof *indices);
    void *input = memory_new(AT_ONCE, inputs), *target = memory_new(AT_ONCE, targets);
    if (!indices || !input || !target) FAIL(TUTTI_NO_MEMORY, "no memory for the first samples of each class");
    const int64_t length = info->length;
    const tutti_buffer buffers[] = { { "input", info->dtype, input, inputs, length },
        { "targets", info->target_dtype, target, targets, length } };
    const int64_t count = list_first(data, samples, indices);
    for (int64_t first = 0; first < count; first += AT_ONCE) {
        const int64_t some = count - first < AT_ONCE ? count - first : AT_ONCE;
        if (samples->source.read(samples->source.user, indices + first, some, buffers, 2))
            FAIL(TUTTI_FILE, "%s", tutti_message(NULL));
    }
done:
    free(indices);
    free(input);
    free(target);
    return status;
}

void data_report_left_out(const struct samples *samples, int64_t measured)
{
    const int64_t left_out = samples->count - measured;
    if (left_out > 0)
        fprintf(stderr, "measured without %lld damaged sample%s of %lld\n", (long long)left_out,
            left_out == 1 ? "" : "s", (long long)samples->count);
}

tutti_status data_keep(const struct data *data, tutti_trainer *trainer)
{
    char *text = tutti_data_json(data->opened);
    const tutti_status status = text ? tutti_set_metadata(trainer, "data", text) : TUTTI_INTERNAL;
    free(text);
    return status;
}

void data_free(struct data *data)
{
    tutti_data_free(data->opened);
    data->opened = NULL;
}
