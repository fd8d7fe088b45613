/* Reads the samples of a batch on several threads. A damaged sample is found when it is first read; another one of its
 * class stands in for it, which follows from the sample alone. Measurements leave it out: data_is_replaced(). */
#include "data/data.h"

#include "base/memory.h"
#include "base/status.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct job {
    struct tutti_data *data;
    tutti_data_part part;
    const int64_t *indices;
    unsigned char *samples, *targets; /* targets NULL: nobody wants them */
    size_t sample_bytes, target_bytes;
    int64_t length; /* of samples with several steps in this batch */
    bool to_float;  /* bytes become normalised floats */
    pthread_mutex_t lock;
    int failed; /* the first place of the batch that failed */
    tutti_status status;
    char message[1024];
};

size_t data_bytes(tutti_dtype dtype, const tutti_shape *shape)
{
    size_t bytes = tutti_dtype_bytes(dtype);
    for (int i = 0; i < shape->rank; i++) bytes *= (size_t)shape->sizes[i];
    return bytes;
}

/* ------------------------------------------------------------------------------------------------- damaged ---- */

static void report_damaged(struct tutti_data *data, int64_t sample)
{
    if (atomic_exchange(&data->damaged[sample], 1)) return;
    atomic_fetch_add(&data->damaged_count, 1);
    if (!data->options.note) return;
    char line[1200];
    snprintf(line, sizeof(line), "left out: %s", status_message());
    pthread_mutex_lock(&data->telling);
    data->options.note(data->options.user, line);
    pthread_mutex_unlock(&data->telling);
}

bool data_is_replaced(const struct tutti_data *data, tutti_data_part part, int64_t index)
{
    const struct data_part *all = &data->parts[part];
    return index >= 0 && index < all->count && atomic_load(&data->damaged[all->samples[index]]);
}

/* Zeros stand in where a class has nothing else. Training cannot use them; measurements leave them out. */
static void clear(const struct collection *collection, int64_t sample, void *to, void *target)
{
    const tutti_data_info *info = &collection->info;
    memset(to, 0, data_bytes(info->dtype, &info->shape));
    memset(target, 0, data_bytes(info->target_dtype, &info->target_shape));
    if (collection->labels && info->classes > 0 && info->target_shape.rank == 0)
        memcpy(target, &(int32_t) { collection->labels[sample] }, sizeof(int32_t));
}

/* Nothing stands in for a damaged sample of several steps, as another one may be longer than the batch: padding and no
 * label are. */
static void clear_steps(const struct collection *collection, int64_t length, float *sample, int32_t *target)
{
    const tutti_data_info *info = &collection->info;
    memset(sample, 0, (size_t)(length * info->shape.sizes[1]) * sizeof *sample);
    for (int64_t i = 0; i < info->target_shape.sizes[0]; i++) target[i] = -1;
}

static tutti_status read_steps(
    struct tutti_data *data, tutti_data_part number, int64_t position, int64_t length, void *sample, void *target)
{
    struct collection *collection = data->collection;
    const int64_t index = data->parts[number].samples[position];
    const struct draw draw = { .seed = data->options.seed,
        .epoch = atomic_load(&data->epoch),
        .sample = position,
        .training = number == TUTTI_DATA_TRAIN };
    if (!atomic_load(&data->damaged[index])) {
        const tutti_status status = collection->read_steps(collection, index, &draw, length, sample, target);
        if ((status != TUTTI_FORMAT && status != TUTTI_FILE) || !data->options.skip_damaged) return status;
        report_damaged(data, index);
    }
    clear_steps(collection, length, sample, target);
    return TUTTI_OK;
}

static tutti_status read_sound(
    struct tutti_data *data, tutti_data_part number, int64_t position, void *sample, void *target)
{
    const struct data_part *part = &data->parts[number];
    struct collection *collection = data->collection;
    const struct draw draw = { .seed = data->options.seed,
        .epoch = atomic_load(&data->epoch),
        .sample = position,
        .training = number == TUTTI_DATA_TRAIN };
    int64_t place = position;
    do {
        const int64_t index = part->samples[place];
        if (!atomic_load(&data->damaged[index])) {
            const tutti_status status = collection->read(collection, index, &draw, sample, target);
            if (status != TUTTI_FORMAT && status != TUTTI_FILE) return status;
            if (!data->options.skip_damaged) return status;
            report_damaged(data, index);
        }
        place = part->next[place];
    } while (place != position);
    if (number != TUTTI_DATA_TRAIN) {
        clear(collection, part->samples[position], sample, target);
        return TUTTI_OK;
    }
    return fail(TUTTI_FORMAT, "all samples of a class are damaged, among them this one: %s", status_message());
}

/* ------------------------------------------------------------------------------------------------- mixing ---- */

/* Adds a sample's target, times its weight: a class as its probability. */
static tutti_status add_sample(
    struct tutti_data *data, tutti_data_part part, int64_t position, double weight, void *sample, float *sum)
{
    const tutti_data_info *info = &data->collection->info;
    int32_t label = 0;
    if (info->classes > 0) {
        const tutti_status status = read_sound(data, part, position, sample, &label);
        if (status == TUTTI_OK) sum[label] += (float)weight;
        return status;
    }
    const size_t bytes = data_bytes(TUTTI_DTYPE_F32, &info->target_shape);
    float *target = memory_new(bytes, 1);
    if (!target) return TUTTI_NO_MEMORY;
    const tutti_status status = read_sound(data, part, position, sample, target);
    for (size_t i = 0; i < bytes / sizeof *target && status == TUTTI_OK; i++) sum[i] += (float)weight * target[i];
    free(target);
    return status;
}

static void mix_samples(const tutti_data_info *info, const struct mix *mix, const void *partner, void *sample)
{
    const int64_t *sizes = info->shape.sizes;
    if (info->dtype == TUTTI_DTYPE_U8)
        augment_mix(mix, partner, (int)sizes[0], (int)sizes[1], (int)sizes[2], sample);
    else if (info->shape.rank == 3)
        augment_mix_floats(mix, partner, sizes[0], sizes[1], sizes[2], sample);
    else
        augment_mix_floats(
            mix, partner, 1, 1, (int64_t)(data_bytes(info->dtype, &info->shape) / sizeof(float)), sample);
}

/* Reads a sample and, where it is mixed, its partner. The partner's target is added after the sample's own. Samples
 * of other parts are mixed with nothing. */
static tutti_status read_mixed(
    struct tutti_data *data, tutti_data_part part, int64_t position, void *sample, float *target, size_t target_bytes)
{
    const tutti_data_info *info = &data->collection->info;
    const bool plane = info->shape.rank == 3; /* only these have cutmix */
    const struct draw draw = { .seed = data->options.seed,
        .epoch = atomic_load(&data->epoch),
        .sample = position,
        .training = part == TUTTI_DATA_TRAIN };
    const struct mix mix = augment_mix_of(&data->augment, &draw, data->parts[part].count,
        plane ? (int)info->shape.sizes[2] : 1, plane ? (int)info->shape.sizes[1] : 1);
    memset(target, 0, target_bytes);
    tutti_status status = add_sample(data, part, position, mix.weight, sample, target);
    if (status != TUTTI_OK || mix.weight >= 1) return status;
    void *partner = memory_new(data_bytes(info->dtype, &info->shape), 1);
    if (!partner) return TUTTI_NO_MEMORY;
    status = add_sample(data, part, mix.partner, 1 - mix.weight, partner, target);
    if (status == TUTTI_OK) mix_samples(info, &mix, partner, sample);
    free(partner);
    return status;
}

/* ------------------------------------------------------------------------------------------------- batches ---- */

/* In place, forward: the bytes lie in the last quarter of the floats, and each is read before it is overwritten. */
static void normalise(const struct tutti_data *data, const unsigned char *bytes, float *numbers, size_t count)
{
    const int channels = data->collection->info.channels;
    const size_t plane = count / (size_t)channels;
    for (int c = 0; c < channels; c++)
        for (size_t k = (size_t)c * plane; k < ((size_t)c + 1) * plane; k++) {
            const float number = data->values[c][bytes[k]];
            memcpy(numbers + k, &number, sizeof(number));
        }
}

static tutti_status read_one(struct job *job, int task)
{
    struct tutti_data *data = job->data;
    const int64_t position = job->indices[task];
    const size_t room = job->sample_bytes * (job->to_float ? sizeof(float) : 1);
    unsigned char *sample = job->samples + (size_t)task * room;
    unsigned char *bytes = sample + room - job->sample_bytes;
    void *target = job->targets ? job->targets + (size_t)task * job->target_bytes : NULL, *unwanted = NULL;
    if (position < 0 || position >= data->parts[job->part].count)
        return fail(TUTTI_INVALID, "there is no sample %lld", (long long)position);
    if (!target && !(target = unwanted = memory_new(job->target_bytes, 1))) return TUTTI_NO_MEMORY;
    const tutti_status status = job->length > 0 ? read_steps(data, job->part, position, job->length, bytes, target)
        : data->mixes ? read_mixed(data, job->part, position, bytes, target, job->target_bytes)
                      : read_sound(data, job->part, position, bytes, target);
    free(unwanted);
    if (status == TUTTI_OK && job->to_float) normalise(data, bytes, (float *)(void *)sample, job->sample_bytes);
    return status;
}

static void run_task(void *argument, int task)
{
    struct job *job = argument;
    const tutti_status status = read_one(job, task);
    if (status == TUTTI_OK) return;
    pthread_mutex_lock(&job->lock);
    if (task < job->failed) {
        job->failed = task;
        job->status = status;
        snprintf(job->message, sizeof(job->message), "%s", status_message());
    }
    pthread_mutex_unlock(&job->lock);
}

/* Compares what the network asks for with what the data have, and sets the job's buffers. */
static tutti_status set_buffers(struct job *job, const tutti_buffer *buffers, int count)
{
    const tutti_data_info *info = &job->data->collection->info;
    const bool soft = job->data->mixes && info->classes > 0;
    const tutti_dtype target = soft ? TUTTI_DTYPE_F32 : info->target_dtype;
    if (count < 1 || count > 2)
        return fail(TUTTI_INVALID, "the network has %d inputs and targets: these data fill one of each", count);
    job->sample_bytes = data_bytes(info->dtype, &info->shape);
    job->target_bytes = data_bytes(target, &info->target_shape);
    if (soft) job->target_bytes = (size_t)info->classes * sizeof(float);
    if (job->data->collection->read_steps) {
        job->length = buffers[0].length;
        if (job->length < 1 || job->length > info->length)
            return fail(TUTTI_INVALID, "the network's input '%s' takes no sequences of up to %lld steps",
                buffers[0].name ? buffers[0].name : "", (long long)info->length);
        job->sample_bytes = (size_t)(job->length * info->shape.sizes[1]) * sizeof(float);
    }
    job->to_float = info->dtype == TUTTI_DTYPE_U8 && buffers[0].dtype == TUTTI_DTYPE_F32;
    job->samples = buffers[0].data;
    job->targets = count > 1 ? buffers[1].data : NULL;
    const size_t wanted = job->sample_bytes * (job->to_float ? sizeof(float) : 1);
    if (buffers[0].bytes != wanted || (!job->to_float && buffers[0].dtype != info->dtype))
        return fail(TUTTI_INVALID, "the network's input '%s' takes %zu bytes for a sample, but these data have %zu",
            buffers[0].name ? buffers[0].name : "", buffers[0].bytes, wanted);
    if (count > 1 && (buffers[1].bytes != job->target_bytes || buffers[1].dtype != target))
        return fail(TUTTI_INVALID, "the network's targets have %zu bytes for a sample, but those of these data %zu",
            buffers[1].bytes, job->target_bytes);
    return TUTTI_OK;
}

int data_read(struct tutti_data *data, tutti_data_part part, const int64_t *indices, int64_t count,
    const tutti_buffer *buffers, int buffer_count)
{
    struct job job = { .data = data, .part = part, .indices = indices, .failed = INT_MAX };
    tutti_status status = set_buffers(&job, buffers, buffer_count);
    if (status == TUTTI_OK && count > INT_MAX - 1) status = fail(TUTTI_INVALID, "the batch is too large");
    if (status != TUTTI_OK) return (int)status;
    pthread_mutex_init(&job.lock, NULL);
    pthread_mutex_lock(&data->reading);
    thread_pool_run(data->pool, (int)count, run_task, &job);
    pthread_mutex_unlock(&data->reading);
    pthread_mutex_destroy(&job.lock);
    if (job.failed == INT_MAX) return 0;
    status_set(job.status, job.message);
    return (int)job.status;
}
