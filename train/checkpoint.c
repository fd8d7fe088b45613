/* How two files are replaced as if they were one
 *
 *   1  the new weights are written, flushed and renamed to NAME.safetensors.new
 *   2  the new state, which holds a hash of the new weights, is written, flushed and renamed to NAME.state.safetensors
 *   3  NAME.safetensors.new is renamed to NAME.safetensors
 *
 * Step 2 decides. If the process is killed before this rename, the older state and NAME.safetensors belong together,
 * and a complete or partial .new is ignored because its hash is not the state's. If it is killed after the rename,
 * the state's hash is that of NAME.safetensors.new, which loading therefore takes. The next save first finishes a
 * step 3 that was not reached, before it overwrites the .new. At every moment NAME.safetensors, if it was there, is a
 * whole file of weights for others to read, and no array is stored twice.
 *
 * Two processes that save to one NAME do so one after the other: NAME.lock is there during a save.
 *
 * The hash covers names and contents of the tensors, whatever their order: a file that another program has read and
 * written again unchanged still belongs to its state. */
#include "train/checkpoint.h"

#include "base/memory.h"
#include "base/numbers.h"
#include "base/options.h"
#include "base/text.h"
#include "formats/safetensors.h"
#include "graph/parameter_storage.h"
#include "graph/stored.h"
#include "tutti_finetune.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

#define STATE_KIND "tutti training state 1"

struct names {
    char *weights, *pending, *state, *lock;
};

static tutti_status names_make(struct names *names, const char *name)
{
    names->weights = memory_format("%s.safetensors", name);
    names->pending = memory_format("%s.safetensors.new", name);
    names->state = memory_format("%s.state.safetensors", name);
    names->lock = memory_format("%s.lock", name);
    return names->weights && names->pending && names->state && names->lock ? TUTTI_OK : TUTTI_NO_MEMORY;
}

static void names_free(struct names *names)
{
    free(names->weights);
    free(names->pending);
    free(names->state);
    free(names->lock);
}

tutti_status checkpoint_check_name(const char *name)
{
    if (!name) return fail(TUTTI_INVALID, "the name of the file or checkpoint is NULL: pass one");
    const char *slash = strrchr(name, '/'), *last = slash ? slash + 1 : name;
    if (*last) return TUTTI_OK;
    return fail(
        TUTTI_INVALID, "the name of the file or checkpoint is '%s': it needs a last part, as in '%smodel'", name, name);
}

/* ------------------------------------------------------------------------------------------------- tensors ---- */

/* A list of tensors to be written. Names are owned. */
struct list {
    struct safetensors_tensor *tensors;
    int count;
};

static void list_free(struct list *list)
{
    for (int i = 0; i < list->count; i++) free((char *)list->tensors[i].name);
    free(list->tensors);
}

static tutti_status list_add(struct list *list, const struct safetensors_tensor *tensor)
{
    if (!tensor->name) return TUTTI_NO_MEMORY;
    list->tensors[list->count++] = *tensor;
    return TUTTI_OK;
}

static struct safetensors_tensor tensor_of(const struct parameter *parameter, char *name, const void *values)
{
    struct safetensors_tensor tensor = { .name = name,
        .type = SAFETENSORS_F32,
        .rank = parameter->shape.rank,
        .data = values,
        .bytes = (size_t)parameter->elements * sizeof(float) };
    for (int i = 0; i < parameter->shape.rank; i++) tensor.sizes[i] = parameter->shape.sizes[i];
    return tensor;
}

static void make_floats(const struct safetensors_tensor *tensor, void *data)
{
    const int64_t row = tensor->sizes[tensor->rank - 1];
    const int64_t elements = (int64_t)(tensor->bytes / sizeof(float));
    stored_read(TYPE_INT8, elements / row, row, tensor->made_of, data);
}

/* bfloat16 numbers are saved as they are, bytes with scales as the floats that they stand for. */
static struct safetensors_tensor stored_tensor_of(const struct parameter *parameter, char *name, const void *values)
{
    struct safetensors_tensor tensor = tensor_of(parameter, name, values);
    if (parameter_type(parameter) == TYPE_BF16) {
        tensor.type = SAFETENSORS_BF16;
        tensor.bytes = parameter_bytes(parameter);
    } else if (parameter_type(parameter) == TYPE_INT8) {
        tensor.data = NULL;
        tensor.make = make_floats;
        tensor.made_of = values;
    }
    return tensor;
}

static const char statistic_end[] = ".running_var", counter_end[] = ".num_batches_tracked";

/* PyTorch's batch normalisation also counts its steps, in a scalar next to the running statistics. */
static tutti_status add_counter(struct list *list, const char *statistic, const int64_t *steps)
{
    const int length = (int)(strlen(statistic) - strlen(statistic_end));
    return list_add(list,
        &(struct safetensors_tensor) { .name = memory_format("%.*s%s", length, statistic, counter_end),
            .type = SAFETENSORS_I64,
            .data = steps,
            .bytes = sizeof(*steps) });
}

static tutti_status list_weights(const struct checkpoint *checkpoint, struct list *list)
{
    tutti_status status = TUTTI_OK;
    list->tensors = memory_new(2 * checkpoint->count, sizeof(*list->tensors));
    if (!list->tensors) return TUTTI_NO_MEMORY;
    for (size_t i = 0; i < checkpoint->count; i++) {
        const struct parameter *parameter = &checkpoint->parameters[i];
        if (parameter->kind == PARAMETER_CONSTANT) continue;
        const void *own = parameter_bytes_in(parameter, &checkpoint->weights);
        const void *values = checkpoint->arrays ? checkpoint->arrays[i] : own;
        if (!values) continue;
        char *name = memory_format("%s%s", checkpoint->prefix ? checkpoint->prefix : "", parameter->name);
        const struct safetensors_tensor tensor =
            values == own ? stored_tensor_of(parameter, name, values) : tensor_of(parameter, name, values);
        TRY(list_add(list, &tensor));
        if (parameter->kind == PARAMETER_STATISTIC && text_ends_with(parameter->name, statistic_end))
            TRY(add_counter(list, parameter->name, &checkpoint->position.steps));
    }
done:
    return status;
}

static tutti_status list_states(const struct checkpoint *checkpoint, struct list *list)
{
    tutti_status status = TUTTI_OK;
    const struct optimizer *optimizer = checkpoint->optimizer;
    list->tensors = memory_new(OPTIMIZER_STATES * checkpoint->count, sizeof(*list->tensors));
    if (!list->tensors) return TUTTI_NO_MEMORY;
    for (int s = 0; s < optimizer_states(optimizer); s++)
        for (size_t i = 0; i < checkpoint->count; i++) {
            const struct parameter *parameter = &checkpoint->parameters[i];
            if (parameter->kind != PARAMETER_TRAINED) continue;
            const struct safetensors_tensor tensor =
                tensor_of(parameter, memory_format("%s.%s", optimizer_state_name(optimizer, s), parameter->name),
                    checkpoint->states[s] + parameter->offset);
            TRY(list_add(list, &tensor));
        }
done:
    return status;
}

static uint64_t hash_of_tensor(const struct safetensors_tensor *tensor, const void *data)
{
    return XXH3_64bits_withSeed(data, tensor->bytes, XXH3_64bits(tensor->name, strlen(tensor->name)));
}

static tutti_status hash_list(const struct list *list, uint64_t *hash)
{
    *hash = 0; /* a sum: in any order */
    for (int i = 0; i < list->count; i++) {
        void *memory;
        const void *data = safetensors_data(&list->tensors[i], &memory);
        if (!data) return TUTTI_NO_MEMORY;
        *hash += hash_of_tensor(&list->tensors[i], data);
        free(memory);
    }
    return TUTTI_OK;
}

static uint64_t hash_of_file(const struct safetensors *file)
{
    uint64_t hash = 0;
    for (int i = 0; i < safetensors_count(file); i++)
        hash += hash_of_tensor(safetensors_at(file, i), safetensors_at(file, i)->data);
    return hash;
}

/* -------------------------------------------------------------------------------------------------- saving ---- */

static tutti_status write_weights(const struct checkpoint *checkpoint, const char *path, const struct list *list)
{
    const size_t own = checkpoint->metadata ? checkpoint->metadata->count : 0;
    struct safetensors_metadata *metadata = memory_new(own + 1, sizeof(*metadata));
    if (!metadata) return TUTTI_NO_MEMORY;
    metadata[0] = (struct safetensors_metadata) { .key = "format", .value = "pt" }; /* for libraries built on PyTorch */
    if (own > 0) memcpy(metadata + 1, checkpoint->metadata->entries, own * sizeof(*metadata));
    const tutti_status status = safetensors_save(path, list->tensors, list->count, metadata, (int)own + 1);
    free(metadata);
    return status;
}

tutti_status weights_save(const struct checkpoint *checkpoint, const char *path)
{
    tutti_status status;
    struct list list = { 0 };
    TRY(list_weights(checkpoint, &list));
    TRY(write_weights(checkpoint, path, &list));
done:
    list_free(&list);
    return status;
}

enum { METADATA = 32, VALUE_BYTES = 32 };

/* The metadata of a state and the texts of its numbers. */
struct description {
    struct safetensors_metadata entries[METADATA];
    char values[METADATA][VALUE_BYTES];
    int count;
};

static void describe(struct description *description, const char *key, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static void describe(struct description *description, const char *key, const char *format, ...)
{
    char *value = description->values[description->count];
    va_list arguments;
    va_start(arguments, format);
    number_print_list(value, VALUE_BYTES, format, arguments);
    va_end(arguments);
    description->entries[description->count++] = (struct safetensors_metadata) { .key = key, .value = value };
}

static void describe_state(struct description *description, const struct checkpoint *checkpoint, uint64_t hash)
{
    const struct position *position = &checkpoint->position;
    const struct optimizer *optimizer = checkpoint->optimizer;
    describe(description, "kind", "%s", STATE_KIND);
    describe(description, "weights_hash", "%016" PRIx64, hash);
    describe(description, "steps", "%" PRId64, position->steps);
    describe(description, "epoch", "%" PRId64, position->epoch);
    describe(description, "position", "%" PRId64, position->samples);
    describe(description, "epoch_samples", "%" PRId64, position->epoch_samples);
    if (position->epoch_order != 0) describe(description, "epoch_order", "%" PRId64, position->epoch_order);
    describe(description, "epoch_loss", "%a", position->loss);
    describe(description, "epoch_correct", "%a", position->correct);
    if (position->excluded != 0) describe(description, "epoch_excluded", "%a", position->excluded);
    describe(description, "seed", "%" PRIu64, checkpoint->seed);
    describe(description, "optimizer", "%s", tutti_optimizer_name(optimizer->kind));
    describe(description, "learning_rate", "%.9g", optimizer->learning_rate);
    describe(description, "momentum", "%.9g", optimizer->momentum);
    describe(description, "nesterov", "%d", optimizer->nesterov);
    describe(description, "weight_decay", "%.9g", optimizer->weight_decay);
    describe(description, "beta1", "%.9g", optimizer->beta1);
    describe(description, "beta2", "%.9g", optimizer->beta2);
    describe(description, "epsilon", "%.9g", optimizer->epsilon);
    if (optimizer->amsgrad) describe(description, "amsgrad", "1");
    if (optimizer->centered) describe(description, "centered", "1");
}

/* Describes the plateau and the best epoch, if a schedule or an option needs them. */
static void describe_metrics(struct description *description, const struct position *position)
{
    const struct plateau *plateau = &position->plateau;
    const struct best *best = &position->best;
    if (plateau->any) describe(description, "plateau_best", "%a", plateau->best);
    if (plateau->bad > 0) describe(description, "plateau_bad", "%" PRId64, plateau->bad);
    if (plateau->reductions > 0) describe(description, "plateau_reductions", "%" PRId64, plateau->reductions);
    if (best->bad > 0) describe(description, "patience_bad", "%" PRId64, best->bad);
    if (best->epoch == 0) return;
    describe(description, "best_epoch", "%" PRId64, best->epoch);
    describe(description, "best_loss", "%a", best->loss);
    describe(description, "best_accuracy", "%a", best->accuracy);
}

static void describe_loss_scale(struct description *description, const struct loss_scale *loss_scale)
{
    if (loss_scale->on) {
        describe(description, "loss_scale", "%.9g", loss_scale->scale);
        describe(description, "loss_scale_steps", "%" PRId64, loss_scale->good);
    }
    if (loss_scale->skipped > 0) describe(description, "skipped_steps", "%" PRId64, loss_scale->skipped);
}

static bool hash_of_state(const struct safetensors *state, uint64_t *hash)
{
    const char *text = safetensors_metadata(state, "weights_hash");
    char *end;
    if (!text || !*text) return false;
    *hash = strtoull(text, &end, 16);
    return *end == '\0';
}

/* Does step 3 of an earlier save that was killed before it. Leaves a .new that does not belong to the state: it will
 * be overwritten. */
static tutti_status settle(const struct names *names)
{
    tutti_status status = TUTTI_OK;
    struct safetensors *state = NULL, *pending = NULL;
    uint64_t hash;
    if (access(names->pending, F_OK) != 0) return TUTTI_OK;
    if (safetensors_open(names->pending, &pending) == TUTTI_OK && safetensors_open(names->state, &state) == TUTTI_OK &&
        hash_of_state(state, &hash) && hash == hash_of_file(pending))
        status = file_rename(names->pending, names->weights);
    safetensors_close(pending);
    safetensors_close(state);
    return status;
}

tutti_status checkpoint_save(const struct checkpoint *checkpoint, const char *name)
{
    enum { LOCK_SECONDS = 60 };
    tutti_status status;
    struct names names = { 0 };
    struct file_lock *lock = NULL;
    struct list weights = { 0 }, states = { 0 };
    struct description description = { .count = 0 };
    bool undo = false;
    uint64_t hash;
    TRY(names_make(&names, name));
    TRY(list_weights(checkpoint, &weights));
    TRY(list_states(checkpoint, &states));
    TRY(hash_list(&weights, &hash));
    describe_state(&description, checkpoint, hash);
    describe_loss_scale(&description, &checkpoint->loss_scale);
    describe_metrics(&description, &checkpoint->position);
    TRY(file_lock_take(&lock, names.lock, LOCK_SECONDS));
    TRY(settle(&names));
    TRY(write_weights(checkpoint, names.pending, &weights));
    undo = true;
    TRY(safetensors_save(names.state, states.tensors, states.count, description.entries, description.count));
    undo = false;
    TRY(file_rename(names.pending, names.weights));
done:
    if (undo) unlink(names.pending); /* gives its room back to a full disk */
    file_lock_release(lock);
    names_free(&names);
    list_free(&weights);
    list_free(&states);
    return status;
}

tutti_status checkpoint_try(const char *name)
{
    tutti_status status;
    struct names names = { 0 };
    struct atomic_file *file = NULL;
    TRY(names_make(&names, name));
    status = atomic_file_open(&file, names.state);
    if (status == TUTTI_OK) atomic_file_abandon(file);
done:
    names_free(&names);
    return status;
}

/* ------------------------------------------------------------------------------------------------- loading ---- */

static const char *shape_text(const int64_t *sizes, int rank, char *buffer, size_t size)
{
    size_t used = (size_t)snprintf(buffer, size, "[");
    for (int i = 0; i < rank && used < size; i++)
        used += (size_t)snprintf(buffer + used, size - used, "%s%" PRId64, i ? ", " : "", sizes[i]);
    if (used < size) snprintf(buffer + used, size - used, "]");
    return buffer;
}

bool checkpoint_fits(const struct safetensors_tensor *tensor, const struct parameter *parameter)
{
    const tutti_shape *shape = &parameter->shape;
    if (tensor->rank == 0) return shape->rank == 0 || (shape->rank == 1 && shape->sizes[0] == 1);
    bool equal = tensor->rank == shape->rank;
    for (int i = 0; equal && i < tensor->rank; i++) equal = tensor->sizes[i] == shape->sizes[i];
    return equal;
}

/* Checks that the file has this parameter as floats of its shape. */
static tutti_status check_tensor(
    const struct safetensors *file, const char *path, const char *name, const struct parameter *parameter)
{
    char found[200], wanted[200];
    const struct safetensors_tensor *tensor = safetensors_find(file, name);
    if (!tensor)
        return fail(
            TUTTI_MISMATCH, "'%s' lacks '%s', which this network needs: use a file of this network", path, name);
    if (!safetensors_has_floats(tensor))
        return fail(TUTTI_MISMATCH, "'%s' in '%s' is of type %s: F32, F16, BF16 or F64 is needed", name, path,
            text_printable(tensor->dtype).text);
    if (checkpoint_fits(tensor, parameter)) return TUTTI_OK;
    return fail(TUTTI_MISMATCH, "'%s' is %s in '%s', but %s in this network: use a file of this network", name,
        shape_text(tensor->sizes, tensor->rank, found, sizeof(found)), path,
        shape_text(parameter->shape.sizes, parameter->shape.rank, wanted, sizeof(wanted)));
}

bool checkpoint_is_counter(const char *name)
{
    return text_ends_with(name, counter_end) || strcmp(name, counter_end + 1) == 0;
}

static bool is_known(const struct checkpoint *checkpoint, const char *name)
{
    if (checkpoint_is_counter(name)) return true;
    for (size_t i = 0; i < checkpoint->count; i++)
        if (checkpoint->parameters[i].kind != PARAMETER_CONSTANT && !strcmp(checkpoint->parameters[i].name, name))
            return true;
    return false;
}

static tutti_status check_weights(const struct checkpoint *checkpoint, const struct safetensors *file, const char *path)
{
    tutti_status status = TUTTI_OK;
    for (size_t i = 0; i < checkpoint->count; i++)
        if (checkpoint->parameters[i].kind != PARAMETER_CONSTANT)
            TRY(check_tensor(file, path, checkpoint->parameters[i].name, &checkpoint->parameters[i]));
    for (int i = 0; i < safetensors_count(file); i++)
        if (!is_known(checkpoint, safetensors_at(file, i)->name))
            FAIL(TUTTI_MISMATCH, "'%s' has '%s', which this network lacks: use a file of this network", path,
                text_printable(safetensors_at(file, i)->name).text);
done:
    return status;
}

void checkpoint_take(
    const struct parameter *parameter, const struct parameter_arenas *arenas, const struct safetensors_tensor *tensor)
{
    enum { PART = 64 * STORED_BLOCK };
    const int64_t row = parameter_row(parameter);
    const enum value_type type = parameter_type(parameter);
    if (type != TYPE_BF16 && type != TYPE_INT8) {
        safetensors_floats(tensor, parameter_in(parameter, arenas));
        return;
    }
    for (int64_t r = 0; r < parameter_rows(parameter); r++)
        for (int64_t i = 0; i < row; i += PART) {
            float numbers[PART];
            const int64_t count = row - i < PART ? row - i : PART;
            safetensors_some_floats(tensor, (size_t)(r * row + i), (size_t)count, numbers);
            parameter_set_part(parameter, arenas, r, i, count, numbers);
        }
}

static void copy_weights(const struct checkpoint *checkpoint, const struct safetensors *file)
{
    for (size_t i = 0; i < checkpoint->count; i++) {
        const struct parameter *parameter = &checkpoint->parameters[i];
        if (parameter->kind == PARAMETER_CONSTANT) continue;
        checkpoint_take(parameter, &checkpoint->weights, safetensors_find(file, parameter->name));
    }
}

tutti_status weights_load(const struct checkpoint *checkpoint, const char *path)
{
    tutti_status status;
    struct safetensors *file = NULL;
    TRY(safetensors_open(path, &file));
    TRY(check_weights(checkpoint, file, path));
    copy_weights(checkpoint, file);
done:
    safetensors_close(file);
    return status;
}

/* Finds a state of one parameter; NULL if the file has none, because the parameter was frozen. */
static tutti_status find_state(const struct checkpoint *checkpoint, const struct safetensors *file, const char *path,
    int state, const struct parameter *parameter, const struct safetensors_tensor **tensor)
{
    tutti_status status = TUTTI_OK;
    char *name = memory_format("%s.%s", optimizer_state_name(checkpoint->optimizer, state), parameter->name);
    if (!name) return TUTTI_NO_MEMORY;
    *tensor = safetensors_find(file, name);
    if (*tensor) status = check_tensor(file, path, name, parameter);
    free(name);
    return status;
}

void checkpoint_begin_state(struct checkpoint *checkpoint, const struct parameter *parameter, int state)
{
    float *values = checkpoint->states[state] + parameter->offset;
    const size_t bytes = (size_t)parameter->elements * sizeof(*values);
    if (state == optimizer_ema_state(checkpoint->optimizer))
        memcpy(values, parameter_in(parameter, &checkpoint->weights), bytes);
    else
        memset(values, 0, bytes);
}

/* Finds the states of a parameter; returns in *found how many the file has. */
static tutti_status find_states_of(const struct checkpoint *checkpoint, const struct safetensors *file,
    const char *path, const struct parameter *parameter, const struct safetensors_tensor **tensors, int *found)
{
    tutti_status status = TUTTI_OK;
    *found = 0;
    for (int s = 0; s < optimizer_states(checkpoint->optimizer); s++) {
        TRY(find_state(checkpoint, file, path, s, parameter, &tensors[s]));
        *found += tensors[s] != NULL;
    }
done:
    return status;
}

/* Finds the states of all parameters, OPTIMIZER_STATES tensors for each. *begun: number of parameters without. */
static tutti_status find_states(const struct checkpoint *checkpoint, const struct safetensors *file, const char *path,
    const struct safetensors_tensor **tensors, int *begun)
{
    tutti_status status = TUTTI_OK;
    const int states = optimizer_states(checkpoint->optimizer);
    int wanted = 0, found = 0, of_one;
    bool whole = true;
    for (size_t i = 0; i < checkpoint->count; i++) {
        if (checkpoint->parameters[i].kind != PARAMETER_TRAINED) continue;
        TRY(find_states_of(
            checkpoint, file, path, &checkpoint->parameters[i], tensors + OPTIMIZER_STATES * i, &of_one));
        wanted += states;
        found += of_one;
        whole &= of_one == 0 || of_one == states;
    }
    if (safetensors_count(file) != found || (found == 0 && wanted > 0) || !whole)
        FAIL(TUTTI_MISMATCH,
            "'%s' has %d arrays of optimizer state, of which this training has %d, and %d in all: resume with the same "
            "optimizer, its options and EMA, and freeze no more parameters than before",
            path, safetensors_count(file), found, wanted);
    *begun = states ? (wanted - found) / states : 0;
done:
    return status;
}

/* The weights must be copied before. */
static void copy_states(struct checkpoint *checkpoint, const struct safetensors_tensor *const *tensors)
{
    for (size_t i = 0; i < checkpoint->count; i++) {
        const struct parameter *parameter = &checkpoint->parameters[i];
        for (int s = 0; parameter->kind == PARAMETER_TRAINED && s < optimizer_states(checkpoint->optimizer); s++) {
            const struct safetensors_tensor *tensor = tensors[OPTIMIZER_STATES * i + (size_t)s];
            if (tensor)
                safetensors_floats(tensor, checkpoint->states[s] + parameter->offset);
            else
                checkpoint_begin_state(checkpoint, parameter, s);
        }
    }
}

void checkpoint_begin_states(struct checkpoint *checkpoint)
{
    if (!optimizer_counts_steps(checkpoint->optimizer)) return;
    for (int s = 0; s < optimizer_states(checkpoint->optimizer); s++)
        for (size_t i = 0; i < checkpoint->count; i++)
            if (checkpoint->parameters[i].kind == PARAMETER_TRAINED && s != optimizer_ema_state(checkpoint->optimizer))
                checkpoint_begin_state(checkpoint, &checkpoint->parameters[i], s);
    checkpoint->loss_scale.skipped = checkpoint->position.steps;
}

static tutti_status read_integer(const struct safetensors *file, const char *path, const char *key, int64_t *value)
{
    const char *text = safetensors_metadata(file, key);
    char *end = NULL;
    errno = 0;
    if (text) *value = strtoll(text, &end, 10);
    if (!text || end == text || *end || errno || *value < 0)
        return fail(TUTTI_FORMAT, "'%s': '%s' is %s: it must be a whole number", path, key,
            text_printable(text ? text : "missing").text);
    return TUTTI_OK;
}

static tutti_status read_real(const struct safetensors *file, const char *path, const char *key, double *value)
{
    const char *text = safetensors_metadata(file, key);
    char *end = NULL;
    if (text) *value = number_read(text, &end);
    if (!text || end == text || *end || !isfinite(*value))
        return fail(TUTTI_FORMAT, "'%s': '%s' is %s: it must be a finite number", path, key,
            text_printable(text ? text : "missing").text);
    return TUTTI_OK;
}

/* Most checkpoints have no loss scale: those of trainings without it, and those of older versions. */
static tutti_status read_loss_scale(
    const struct safetensors *file, const char *path, int64_t steps, struct loss_scale *loss_scale)
{
    tutti_status status = TUTTI_OK;
    int exponent;
    *loss_scale = (struct loss_scale) { .on = safetensors_metadata(file, "loss_scale") != NULL, .scale = 1 };
    if (loss_scale->on) {
        TRY(read_real(file, path, "loss_scale", &loss_scale->scale));
        TRY(read_integer(file, path, "loss_scale_steps", &loss_scale->good));
    }
    if (safetensors_metadata(file, "skipped_steps"))
        TRY(read_integer(file, path, "skipped_steps", &loss_scale->skipped));
    if (loss_scale->scale < 1 || loss_scale->scale > LOSS_SCALE_MOST || frexp(loss_scale->scale, &exponent) != 0.5)
        FAIL(TUTTI_FORMAT, "'%s' has a loss scale of %g: it must be a power of two, at most %g", path,
            loss_scale->scale, LOSS_SCALE_MOST);
    if (loss_scale->skipped > steps)
        FAIL(TUTTI_FORMAT, "'%s' has skipped %" PRId64 " of %" PRId64 " steps: the file is damaged", path,
            loss_scale->skipped, steps);
done:
    return status;
}

static tutti_status read_metrics(const struct safetensors *file, const char *path, struct position *position)
{
    tutti_status status = TUTTI_OK;
    struct plateau *plateau = &position->plateau;
    struct best *best = &position->best;
    *plateau = (struct plateau) { .any = safetensors_metadata(file, "plateau_best") != NULL };
    *best = (struct best) { 0 };
    if (plateau->any) TRY(read_real(file, path, "plateau_best", &plateau->best));
    if (safetensors_metadata(file, "plateau_bad")) TRY(read_integer(file, path, "plateau_bad", &plateau->bad));
    if (safetensors_metadata(file, "plateau_reductions"))
        TRY(read_integer(file, path, "plateau_reductions", &plateau->reductions));
    if (safetensors_metadata(file, "patience_bad")) TRY(read_integer(file, path, "patience_bad", &best->bad));
    if (!safetensors_metadata(file, "best_epoch")) return TUTTI_OK;
    TRY(read_integer(file, path, "best_epoch", &best->epoch));
    TRY(read_real(file, path, "best_loss", &best->loss));
    TRY(read_real(file, path, "best_accuracy", &best->accuracy));
    if (best->epoch > position->epoch)
        FAIL(TUTTI_FORMAT, "'%s': the best epoch is %" PRId64 " of %" PRId64 ": the file is damaged", path, best->epoch,
            position->epoch);
done:
    return status;
}

static tutti_status read_state(
    const struct checkpoint *checkpoint, const struct safetensors *file, const char *path, struct checkpoint *read)
{
    tutti_status status = TUTTI_OK;
    struct position *position = &read->position;
    const char *kind = safetensors_metadata(file, "kind"), *optimizer = safetensors_metadata(file, "optimizer");
    const char *seed = safetensors_metadata(file, "seed");
    char *end = NULL;
    if (!kind || strcmp(kind, STATE_KIND) != 0)
        FAIL(TUTTI_FORMAT,
            "'%s' is not a training state of this version: its kind is '%s'; use a file written by --save or "
            "tutti_save()",
            path, text_printable(kind ? kind : "missing").text);
    if (!optimizer || strcmp(optimizer, tutti_optimizer_name(checkpoint->optimizer->kind)) != 0)
        FAIL(TUTTI_MISMATCH, "the optimizer is %s in '%s', but %s in this training: resume with the same optimizer",
            text_printable(optimizer ? optimizer : "missing").text, path,
            tutti_optimizer_name(checkpoint->optimizer->kind));
    TRY(read_integer(file, path, "steps", &position->steps));
    TRY(read_integer(file, path, "epoch", &position->epoch));
    TRY(read_integer(file, path, "position", &position->samples));
    TRY(read_integer(file, path, "epoch_samples", &position->epoch_samples));
    position->epoch_order = 0;
    if (safetensors_metadata(file, "epoch_order")) TRY(read_integer(file, path, "epoch_order", &position->epoch_order));
    TRY(read_real(file, path, "epoch_loss", &position->loss));
    TRY(read_real(file, path, "epoch_correct", &position->correct));
    position->excluded = 0;
    if (safetensors_metadata(file, "epoch_excluded")) TRY(read_real(file, path, "epoch_excluded", &position->excluded));
    if (seed) read->seed = strtoull(seed, &end, 10);
    if (!seed || end == seed || *end) FAIL(TUTTI_FORMAT, "'%s': the seed is missing or not a number", path);
    if (position->samples > position->epoch_samples)
        FAIL(TUTTI_FORMAT, "'%s' is at sample %" PRId64 " of an epoch of %" PRId64, path, position->samples,
            position->epoch_samples);
    TRY(read_loss_scale(file, path, position->steps, &read->loss_scale));
    TRY(read_metrics(file, path, position));
done:
    return status;
}

/* Opens the weights that belong to the state: NAME.safetensors, or the .new of a save that was killed before its last
 * step. */
static tutti_status open_weights(
    const struct names *names, const struct safetensors *state, struct safetensors **weights, const char **path)
{
    tutti_status status;
    uint64_t hash;
    if (!hash_of_state(state, &hash))
        FAIL(TUTTI_FORMAT, "'%s' lacks the hash of its weights: the file is damaged", names->state);
    status = access(names->pending, F_OK) == 0 ? safetensors_open(names->pending, weights) : TUTTI_FILE;
    *path = names->pending;
    if (status == TUTTI_OK && hash_of_file(*weights) == hash) return TUTTI_OK;
    safetensors_close(*weights);
    *weights = NULL;
    *path = names->weights;
    TRY(safetensors_open(names->weights, weights));
    if (hash_of_file(*weights) != hash)
        FAIL(TUTTI_MISMATCH, "'%s' and '%s' are not from the same save: one of them was replaced", names->weights,
            names->state);
done:
    return status;
}

/* Returns whether a newer state has replaced the one that was opened. */
static bool was_replaced(const struct names *names, const struct safetensors *state)
{
    struct safetensors *newest = NULL;
    uint64_t hash, other;
    const bool replaced = safetensors_open(names->state, &newest) == TUTTI_OK && hash_of_state(state, &hash) &&
        hash_of_state(newest, &other) && hash != other;
    safetensors_close(newest);
    return replaced;
}

/* Opens a state and its weights. If another process has saved in between, opens the newer pair. */
static tutti_status open_pair(
    const struct names *names, struct safetensors **state, struct safetensors **weights, const char **path)
{
    enum { ATTEMPTS = 100 };
    tutti_status status;
    char message[512];
    for (int attempts = 1;; attempts++) {
        TRY(safetensors_open(names->state, state));
        status = open_weights(names, *state, weights, path);
        if (status == TUTTI_OK || attempts == ATTEMPTS) break;
        snprintf(message, sizeof(message), "%s", status_message());
        const bool replaced = was_replaced(names, *state);
        status_set(status, message);
        if (!replaced) break;
        safetensors_close(*state);
        safetensors_close(*weights);
        *state = *weights = NULL;
    }
done:
    return status;
}

tutti_status checkpoint_load(struct checkpoint *checkpoint, const char *name)
{
    tutti_status status;
    struct names names = { 0 };
    struct safetensors *state = NULL, *weights = NULL;
    struct checkpoint read = *checkpoint;
    const char *path = NULL;
    const struct safetensors_tensor **tensors = memory_new(OPTIMIZER_STATES * checkpoint->count, sizeof(*tensors));
    if (!tensors) return TUTTI_NO_MEMORY;
    TRY(names_make(&names, name));
    TRY(open_pair(&names, &state, &weights, &path));
    TRY(check_weights(checkpoint, weights, path));
    TRY(read_state(checkpoint, state, names.state, &read));
    TRY(find_states(checkpoint, state, names.state, tensors, &read.begun));
    if (checkpoint->metadata) TRY(metadata_adopt(checkpoint->metadata, weights)); /* from here on, nothing can fail */
    copy_weights(checkpoint, weights);
    copy_states(checkpoint, tensors);
    *checkpoint = read;
    if (read.begun > 0) checkpoint_begin_states(checkpoint);
done:
    free(tensors);
    safetensors_close(state);
    safetensors_close(weights);
    names_free(&names);
    return status;
}

tutti_status tutti_checkpoint_read(const char *name, tutti_checkpoint_info *info)
{
    tutti_status status;
    struct names names = { 0 };
    struct safetensors *state = NULL;
    tutti_checkpoint_info read = { 0 };
    if (!name || !info) FAIL(TUTTI_INVALID, "the name of the checkpoint or the result is NULL: pass both");
    TRY(names_make(&names, name));
    TRY(safetensors_open(names.state, &state));
    TRY(read_integer(state, names.state, "steps", &read.steps));
    TRY(read_integer(state, names.state, "epoch", &read.epochs));
    TRY(read_integer(state, names.state, "position", &read.samples));
    status = RESULT_WRITE(info, &read, tutti_checkpoint_info);
done:
    safetensors_close(state);
    names_free(&names);
    return status;
}
