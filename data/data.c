#include "data/data.h"

#include "base/memory.h"
#include "base/options.h"
#include "base/path.h"
#include "base/status.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* The first one that knows the path opens it. */
static tutti_status (*const openers[])(
    const char *path, const tutti_data_options *options, struct collection **made) = {
    line_open,
    sets_open,
    speech_open,
    table_open,
    arrays_open,
    tar_open,
    masks_open,
    folder_open,
    photos_open,
    speech_pairs_open,
    audio_open,
    text_open,
};

/* A word that is both a path and the name of built-in data could mean either, and a wrong guess would train on the
 * wrong samples. *path becomes the name without "builtin:". */
static tutti_status find_built_in(const char **path, bool *built_in)
{
    static const char prefix[] = "builtin:";
    const bool prefixed = !strncmp(*path, prefix, strlen(prefix));
    const char *name = prefixed ? *path + strlen(prefix) : *path;
    struct stat found;
    *built_in = !strcmp(name, "digits") || !strcmp(name, "line");
    if (prefixed && !*built_in)
        return fail(TUTTI_INVALID, "%s: there are no such built-in data: use builtin:digits or builtin:line", *path);
    if (*built_in && !prefixed && stat(name, &found) == 0)
        return fail(TUTTI_INVALID,
            "\"%s\" is a %s here and also the name of built-in data: write ./%s for the %s, or builtin:%s", name,
            S_ISDIR(found.st_mode) ? "folder" : "file", name, S_ISDIR(found.st_mode) ? "folder" : "file", name);
    *path = name;
    return TUTTI_OK;
}

/* The description says what files of samples are. */
static tutti_status open_files(
    const struct description *description, const tutti_data_options *options, struct collection **made)
{
    if (options->texts && !(description->kind && !strcmp(description->kind, "text")))
        return fail(TUTTI_MISMATCH, "the network was not trained on texts: these are some");
    if (options->files ? options->file_count < 1 : options->text_count < 1)
        return fail(TUTTI_INVALID, "a list of %s has at least one", options->files ? "files" : "texts");
    const bool recordings = description->kind && !strcmp(description->kind, "recordings");
    if (description->kind && !strcmp(description->kind, "text")) return text_open(NULL, options, made);
    if (description->kind && !strcmp(description->kind, "speech")) return speech_open(NULL, options, made);
    return recordings ? audio_open(NULL, options, made) : photos_open(NULL, options, made);
}

static tutti_status refuse_missing(const char *path, int reason)
{
    static const char *const names[] = { "digits", "line", NULL };
    struct suggestion near = path_suggest(path, NULL);
    if (!near.text[0]) near = text_suggest(path, names);
    if (reason != ENOENT) return fail(TUTTI_FILE, "%s: this cannot be opened: %s", path, strerror(reason));
    return fail(TUTTI_FILE, "%s: there is no such file or folder%s", path,
        near.text[0] ? near.text : ": name one that exists, digits or line");
}

static tutti_status open_collection(const struct description *description, const char *path,
    const tutti_data_options *options, struct collection **made)
{
    struct stat found;
    bool built_in;
    if (options->files || options->texts) return open_files(description, options, made);
    const tutti_status known = find_built_in(&path, &built_in);
    if (known != TUTTI_OK) return known;
    const bool texts = options->text || (description->kind && !strcmp(description->kind, "text"));
    if (!strcmp(path, "-")) return texts ? text_open(path, options, made) : table_open(path, options, made);
    if (!built_in && stat(path, &found) != 0) return refuse_missing(path, errno);
    if (texts && !built_in) {
        const tutti_status spoken = speech_open(path, options, made);
        if (spoken != TUTTI_OK || *made) return spoken;
        const tutti_status status = text_open(path, options, made);
        if (status != TUTTI_OK || *made) return status;
    }
    for (size_t i = 0; i < sizeof(openers) / sizeof(openers[0]) && !*made; i++) {
        const tutti_status status = openers[i](path, options, made);
        if (status != TUTTI_OK) return status;
    }
    return *made ? TUTTI_OK : data_unknown(path);
}

/* Options of texts say what data are meant to be. */
static tutti_status check_text_options(const tutti_data_options *options, const tutti_data_info *info)
{
    const bool tokenizer = options->tokenizer && *options->tokenizer != '{'; /* JSON is what weights said */
    const char *option = options->text ? "--text" : tokenizer ? "--tokenizer" : "--length";
    if ((!options->text && !tokenizer && options->length == 0) || info->tokenizer) return TUTTI_OK;
    return fail(TUTTI_INVALID, "%s is an option of texts, but these data are %s%s", option,
        strcmp(info->kind, "table") ? info->kind : "a table",
        strcmp(info->kind, "table") ? "" : ": name its column of texts by --text");
}

/* Targets of mixed samples are probabilities where they are classes. */
static tutti_status prepare_mixing(struct tutti_data *data)
{
    const tutti_data_info *info = &data->collection->info;
    const char *text = data->options.augment;
    const tutti_status status = augment_parse(text, data->collection->augments, &data->augment);
    if (status != TUTTI_OK) return status;
    data->mixes = data->augment.mixup > 0 || data->augment.cutmix > 0;
    if (!data->mixes || (info->classes > 0 && info->target_shape.rank == 0)) return TUTTI_OK;
    if (info->classes == 0 && info->target_dtype == TUTTI_DTYPE_F32) return TUTTI_OK;
    return fail(TUTTI_INVALID, "mixup and cutmix need samples with one class each, or with numbers to predict");
}

/* The functions of a part's source, which know its number. */
#define PART_FUNCTIONS(NAME, PART)                                                                                     \
    static int read_##NAME(void *user, const int64_t *indices, int64_t count, const tutti_buffer *buffers, int listed) \
    {                                                                                                                  \
        const struct tutti_data *data = user;                                                                          \
        return data->collection->read_tokens ? data_read_tokens(user, PART, indices, count, buffers, listed)           \
                                             : data_read(user, PART, indices, count, buffers, listed);                 \
    }                                                                                                                  \
    static bool is_replaced_##NAME(void *user, int64_t index)                                                          \
    {                                                                                                                  \
        return data_is_replaced(user, PART, index);                                                                    \
    }                                                                                                                  \
    static int64_t length_##NAME(void *user, const int64_t *indices, int64_t count)                                    \
    {                                                                                                                  \
        return data_batch_length(user, PART, indices, count);                                                          \
    }

PART_FUNCTIONS(train, TUTTI_DATA_TRAIN)
PART_FUNCTIONS(val, TUTTI_DATA_VAL)
PART_FUNCTIONS(test, TUTTI_DATA_TEST)
PART_FUNCTIONS(all, TUTTI_DATA_ALL)

/* `samples` of a source is set when the data are divided. */
static const tutti_source sources[DATA_PARTS] = {
    { .read = read_train, .is_replaced = is_replaced_train, .batch_length = length_train },
    { .read = read_val, .is_replaced = is_replaced_val, .batch_length = length_val },
    { .read = read_test, .is_replaced = is_replaced_test, .batch_length = length_test },
    { .read = read_all, .is_replaced = is_replaced_all, .batch_length = length_all },
};

/* Sequences of different lengths form batches of similar ones; devices keep eight plans. */
static void set_lengths(const tutti_data_info *info, tutti_source *source)
{
    enum { MOST_BUCKETS = 6, LEAST_RANGE = 16 };
    const int64_t buckets = info->length / LEAST_RANGE;
    source->length = info->length;
    if (info->length == 0 || info->tokens_are_classes) source->batch_length = NULL;
    if (source->batch_length) source->buckets = buckets < MOST_BUCKETS ? (int)buckets : MOST_BUCKETS;
}

/* Computes what each byte of each channel becomes for networks of floats. */
static void fill_values(struct tutti_data *data)
{
    const tutti_data_info *info = &data->collection->info;
    if (info->dtype != TUTTI_DTYPE_U8) return;
    for (int c = 0; c < info->channels; c++)
        for (int v = 0; v < 256; v++) data->values[c][v] = ((float)v / 255 - info->mean[c]) / info->std[c];
}

static tutti_status prepare(struct tutti_data *data, const char *path)
{
    tutti_status status;
    TRY(description_open(&data->description, data->options.description));
    TRY(description_apply(&data->description, &data->options));
    TRY(open_collection(&data->description, path, &data->options, &data->collection));
    status = description_match(&data->description, &data->options, data->collection);
    if (status != TUTTI_OK) return status_context(status, "%s", strcmp(path, "-") ? path : "standard input");
    TRY(check_text_options(&data->options, &data->collection->info));
    TRY(prepare_mixing(data));
    data->damaged = memory_new((size_t)data->collection->samples, sizeof(*data->damaged));
    if (!data->damaged) return TUTTI_NO_MEMORY;
    TRY(data_divide(data));
    for (int part = 0; part < DATA_PARTS; part++) {
        data->parts[part].source = sources[part];
        data->parts[part].source.samples = data->parts[part].count;
        data->parts[part].source.user = data;
        set_lengths(&data->collection->info, &data->parts[part].source);
    }
    TRY(thread_pool_new(&data->pool, data->options.threads));
    if (data->collection->fit) TRY(data->collection->fit(data->collection, data->part_of));
    TRY(description_check_normalised(&data->description, data->collection));
    fill_values(data);
done:
    return status;
}

tutti_data *tutti_data_open(const char *path, const tutti_data_options *given)
{
    tutti_status status;
    tutti_data_options options;
    if (!path) {
        fail(TUTTI_INVALID, "the path is NULL: name a folder or file");
        return NULL;
    }
    if (OPTIONS_READ(&options, given, tutti_data_options) != TUTTI_OK) return NULL;
    struct tutti_data *data = memory_new(1, sizeof(*data));
    if (!data) return NULL;
    data->options = options;
    pthread_mutex_init(&data->reading, NULL);
    pthread_mutex_init(&data->telling, NULL);
    status = prepare(data, path);
    data->options.augment = data->options.target = NULL; /* the caller's, until here */
    data->options.normalise = data->options.normalise_targets = data->options.description = NULL;
    data->options.files = data->options.texts = NULL;
    data->options.text = data->options.tokenizer = NULL;
    data->options.drop = data->options.only = data->options.row_names = NULL;
    if (status == TUTTI_OK) return data;
    tutti_data_free(data);
    return NULL;
}

void tutti_data_free(tutti_data *data)
{
    if (!data) return;
    thread_pool_free(data->pool);
    if (data->collection) data->collection->free(data->collection);
    description_close(&data->description);
    for (int i = 0; i < DATA_PARTS; i++) {
        free(data->parts[i].samples);
        free(data->parts[i].next);
    }
    free(data->part_of);
    free(data->class_counts);
    free(data->damaged);
    pthread_mutex_destroy(&data->reading);
    pthread_mutex_destroy(&data->telling);
    free(data);
}

tutti_status tutti_data_describe(const tutti_data *data, tutti_data_info *info)
{
    if (!data || !info) return fail(TUTTI_INVALID, "the data or the info is NULL: pass both");
    tutti_data_info told = data->collection->info;
    told.class_counts = data->class_counts;
    told.damaged += atomic_load(&data->damaged_count);
    if (data->collection->floats) told.dtype = TUTTI_DTYPE_F32;
    if (data->mixes && told.classes > 0) {
        told.target_dtype = TUTTI_DTYPE_F32;
        told.target_shape = (tutti_shape) { .rank = 1, .sizes = { told.classes } };
    }
    return RESULT_WRITE(info, &told, tutti_data_info);
}

const tutti_source *tutti_data_source(const tutti_data *data, tutti_data_part part)
{
    if (!data || (int)part < 0 || (int)part >= DATA_PARTS || data->parts[part].count == 0) return NULL;
    return &data->parts[part].source;
}

void tutti_data_epoch(void *data, int64_t epoch)
{
    if (data) atomic_store(&((struct tutti_data *)data)->epoch, (uint64_t)epoch);
}

tutti_status tutti_data_name(const tutti_data *data, tutti_data_part part, int64_t index, char *text, size_t size)
{
    if (!data || !text || !tutti_data_source(data, part) || index < 0 || index >= data->parts[part].count)
        return fail(TUTTI_INVALID, "there is no sample %lld in this part", (long long)index);
    data->collection->name(data->collection, data->parts[part].samples[index], text, size);
    return TUTTI_OK;
}

int64_t tutti_data_row(const tutti_data *data, tutti_data_part part, int64_t index)
{
    if (!tutti_data_source(data, part) || index < 0 || index >= data->parts[part].count) return 0;
    const struct collection *collection = data->collection;
    return collection->rows ? collection->rows[data->parts[part].samples[index]] : 0;
}

const char *tutti_data_file(const tutti_data *data, tutti_data_part part, int64_t index)
{
    if (!tutti_data_source(data, part) || index < 0 || index >= data->parts[part].count) return NULL;
    const struct collection *collection = data->collection;
    return collection->file ? collection->file(collection, data->parts[part].samples[index]) : NULL;
}

const char *tutti_data_word(const tutti_data *data, tutti_data_part part, int64_t index, int64_t word, int64_t *token)
{
    if (!tutti_data_source(data, part) || index < 0 || index >= data->parts[part].count) return NULL;
    const struct collection *collection = data->collection;
    return collection->word ? collection->word(collection, data->parts[part].samples[index], word, token) : NULL;
}

int tutti_data_label(const tutti_data *data, tutti_data_part part, int64_t index)
{
    if (!tutti_data_source(data, part) || index < 0 || index >= data->parts[part].count) return -1;
    const struct collection *collection = data->collection;
    if (!collection->labels || collection->info.classes < 1) return -1;
    return collection->labels[data->parts[part].samples[index]];
}
