/* Recordings: a sample is the log mel spectrogram of a piece of a file, at random in training, else of its middle. */
#include "data/audio.h"

#include "base/mel_scale.h"
#include "base/memory.h"
#include "base/random.h"
#include "base/status.h"
#include "data/resample.h"
#include "data/statistics.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { MOST_SECONDS = 10, MOST_WIDTH = 1 << 14, MEASURED = 256 };

static void free_audio(struct collection *collection)
{
    struct audio *audio = (struct audio *)collection;
    for (size_t i = 0; i < audio->classes; i++) free(audio->class_names[i]);
    free(audio->class_names);
    free(audio->files);
    names_free(&audio->names);
    mel_free(audio->mel);
    free(collection->parts);
    free(collection->labels);
    free(audio);
}

static const char *path_of(const struct audio *audio, int64_t index)
{
    return names_at(&audio->names, audio->files[index].name);
}

static void name_file(const struct collection *collection, int64_t index, char *text, size_t size)
{
    snprintf(text, size, "%s", path_of((const struct audio *)collection, index));
}

/* ------------------------------------------------------------------------------------------------- samples ---- */

/* Returns where the piece begins in a file that is longer by `more` samples. */
static int64_t piece_begin(const struct draw *draw, int64_t more)
{
    if (!draw || !draw->training) return more / 2;
    const uint32_t stream = RANDOM_RECORDINGS + (uint32_t)(draw->epoch & 0xffffff);
    return (int64_t)random_below(draw->seed, stream, (uint64_t)draw->sample, (uint64_t)more + 1);
}

/* Tells whether the sample is changed at random. */
static bool is_changed(const struct audio *audio, const struct draw *draw)
{
    return audio->random && draw && draw->training;
}

/* Reads a piece of a file. A file that is shorter lies in the middle of silence. */
static tutti_status read_waveform(const struct audio *audio, int64_t index, const struct draw *draw, float *samples)
{
    struct sound sound;
    tutti_status status = resample_open(path_of(audio, index), audio->rate, &sound);
    if (status != TUTTI_OK) return status;
    const int64_t frames = resample_length(sound.rate, audio->rate, sound.frames), more = frames - audio->length;
    const int64_t count = more > 0 ? audio->length : frames;
    const size_t length = (size_t)audio->length;
    TRY(resample_read(
        &sound, audio->rate, more > 0 ? piece_begin(draw, more) : 0, count, samples + (audio->length - count) / 2));
    if (!is_changed(audio, draw)) goto done;
    augment_gain(&audio->augment, draw, length, samples);
    TRY(augment_noise(&audio->augment, draw, length, samples));
done:
    sound_close(&sound);
    return status;
}

/* Computes the spectrogram before it is standardised. */
static tutti_status read_piece(const struct audio *audio, int64_t index, const struct draw *draw, float *sample)
{
    float *samples = memory_new((size_t)audio->length, sizeof *samples);
    if (!samples) return fail(TUTTI_NO_MEMORY, "no memory for a piece of %s", path_of(audio, index));
    tutti_status status = read_waveform(audio, index, draw, samples);
    if (status == TUTTI_OK) status = mel_compute(audio->mel, samples, audio->length, sample);
    free(samples);
    return status;
}

static tutti_status read_sample(
    struct collection *collection, int64_t index, const struct draw *draw, void *sample, void *target)
{
    const struct audio *audio = (const struct audio *)collection;
    const tutti_data_info *info = &collection->info;
    const int bands = (int)info->shape.sizes[1], frames = (int)info->shape.sizes[2];
    float *numbers = sample;
    const tutti_status status = read_piece(audio, index, draw, numbers);
    if (status != TUTTI_OK) return status;
    for (int64_t i = 0; i < (int64_t)bands * frames; i++) numbers[i] = (numbers[i] - info->mean[0]) / info->std[0];
    if (is_changed(audio, draw)) augment_masks(&audio->augment, draw, bands, frames, numbers);
    memcpy(target, &collection->labels[index], sizeof *collection->labels);
    return TUTTI_OK;
}

/* Measures the mean and the deviation of some hundred training samples, evenly spaced; damaged ones do not count. */
static tutti_status measure(struct collection *collection, const signed char *part)
{
    struct audio *audio = (struct audio *)collection;
    tutti_data_info *info = &collection->info;
    const int64_t count = info->shape.sizes[1] * info->shape.sizes[2];
    struct statistics all = { 0 };
    int64_t training = 0, seen = 0;
    if (!audio->measure) return TUTTI_OK;
    float *sample = memory_new((size_t)count, sizeof *sample);
    if (!sample) return TUTTI_NO_MEMORY;
    for (int64_t i = 0; i < collection->samples; i++) training += part[i] == TUTTI_DATA_TRAIN;
    const int64_t step = 1 + training / MEASURED;
    tutti_status status = TUTTI_OK;
    for (int64_t i = 0; i < collection->samples && status == TUTTI_OK; i++) {
        if (part[i] != TUTTI_DATA_TRAIN || seen++ % step) continue;
        status = read_piece(audio, i, NULL, sample);
        for (int64_t k = 0; k < count && status == TUTTI_OK; k++) statistics_add(&all, (double)sample[k]);
        if (status == TUTTI_FORMAT || status == TUTTI_FILE) status = TUTTI_OK; /* refused or left out when it is read */
    }
    statistics_end(&all, &info->mean[0], &info->std[0]);
    free(sample);
    return status;
}

static int describe(const struct collection *collection, json_t *object)
{
    const struct audio *audio = (const struct audio *)collection;
    return json_object_set_new(object, "rate", json_integer(audio->rate));
}

/* ------------------------------------------------------------------------------------------------- opening ---- */

/* Sets the rate to the one that is asked for, else to that of the first file that can be read; and the lengths of all
 * files at this rate. */
static tutti_status read_headers(struct audio *audio, int rate)
{
    tutti_status status = TUTTI_OK;
    bool any = false;
    if (rate < 0 || rate > WAV_MOST_RATE)
        return fail(TUTTI_INVALID, "recordings have 1 to %d samples a second, not %d", WAV_MOST_RATE, rate);
    audio->rate = rate;
    for (int64_t i = 0; i < audio->collection.samples; i++) {
        struct sound sound;
        status = sound_open(path_of(audio, i), &sound);
        if (status == TUTTI_NO_MEMORY || status == TUTTI_UNSUPPORTED) return status;
        if (status != TUTTI_OK) continue; /* told when it is read */
        if (!audio->rate) audio->rate = sound.rate;
        if (resample_is_possible(sound.rate, audio->rate))
            audio->files[i].frames = resample_length(sound.rate, audio->rate, sound.frames);
        any = true;
        sound_close(&sound);
    }
    return any ? TUTTI_OK : status;
}

static int compare_lengths(const void *a, const void *b)
{
    const int64_t first = *(const int64_t *)a, second = *(const int64_t *)b;
    return first < second ? -1 : first > second;
}

/* Finds the median length: half of the files are not shorter. */
static tutti_status median_length(const struct audio *audio, int64_t *length)
{
    const size_t samples = (size_t)audio->collection.samples;
    size_t count = 0;
    int64_t *lengths = memory_new(samples, sizeof *lengths);
    if (!lengths) return TUTTI_NO_MEMORY;
    for (size_t i = 0; i < samples; i++)
        if (audio->files[i].frames) lengths[count++] = audio->files[i].frames;
    qsort(lengths, count, sizeof *lengths, compare_lengths);
    *length = lengths[count / 2];
    free(lengths);
    return TUTTI_OK;
}

/* Sets the windows; pieces as long as the median file, or what the options ask for. */
static tutti_status set_length(struct audio *audio, const tutti_data_options *options)
{
    tutti_shape *shape = &audio->collection.info.shape;
    const int64_t most = (int64_t)MOST_SECONDS * audio->rate;
    const int window = mel_window_length(audio->rate), hop = window / MEL_WINDOW_HOPS;
    tutti_status status = mel_new(&audio->mel, audio->rate, window, hop, MEL_BANDS);
    if (status == TUTTI_OK) status = median_length(audio, &audio->length);
    if (status != TUTTI_OK) return status;
    if (audio->length > most) audio->length = most;
    if (options->channels == 1 && options->height == MEL_BANDS && options->width > 0) {
        if (options->width > MOST_WIDTH)
            return fail(TUTTI_INVALID, "spectrograms have at most %d frames, not %d", MOST_WIDTH, options->width);
        audio->length = (int64_t)(options->width - 1) * hop;
    }
    if (audio->length < window) audio->length = window;
    *shape = (tutti_shape) { .rank = 3, .sizes = { 1, MEL_BANDS, mel_frames(audio->mel, audio->length) } };
    return TUTTI_OK;
}

static tutti_status finish(struct audio *audio, const tutti_data_options *options)
{
    struct collection *collection = &audio->collection;
    tutti_data_info *info = &collection->info;
    tutti_status status = TUTTI_OK;
    TRY(read_headers(audio, options->rate));
    TRY(augment_parse(options->augment, AUGMENT_RECORDINGS, &audio->augment));
    TRY(set_length(audio, options));
    TRY(statistics_read(options->normalise, 1, info->mean, info->std, &audio->measure));
    info->kind = "recordings";
    info->dtype = TUTTI_DTYPE_F32;
    info->target_dtype = TUTTI_DTYPE_I32;
    info->classes = (int)audio->classes;
    info->class_names = (const char *const *)audio->class_names;
    info->channels = 1;
    audio->random = augment_is_random(&audio->augment);
    collection->augments = AUGMENT_RECORDINGS;
    collection->read = read_sample;
    collection->name = name_file;
    collection->fit = measure;
    collection->describe = describe;
    collection->inspect = audio_inspect;
done:
    return status;
}

tutti_status audio_open(const char *path, const tutti_data_options *options, struct collection **made)
{
    struct stat found;
    *made = NULL;
    if (!options->files && stat(path, &found) != 0) return TUTTI_OK;
    struct audio *audio = memory_new(1, sizeof *audio);
    if (!audio) return TUTTI_NO_MEMORY;
    audio->collection.free = free_audio;
    tutti_status status =
        options->files ? audio_list_files(audio, options) : audio_list(audio, path, S_ISDIR(found.st_mode), options);
    const bool any = status == TUTTI_OK && audio->collection.samples > 0;
    if (any) status = finish(audio, options);
    if (any && status == TUTTI_OK)
        *made = &audio->collection;
    else
        free_audio(&audio->collection);
    return status;
}
