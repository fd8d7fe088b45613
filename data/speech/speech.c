/* Recordings with transcripts: a sample is the log mel spectrogram of a whole recording, standardised by itself, in
 * steps of several frames; its target are the labels of its transcript. */
#include "data/speech/speech.h"

#include "base/mel_scale.h"
#include "base/memory.h"
#include "base/numbers.h"
#include "base/status.h"
#include "data/resample.h"
#include "data/statistics.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static void free_speech(struct collection *collection)
{
    struct speech *speech = (struct speech *)collection;
    tutti_tokenizer_close(speech->tokenizer);
    names_free(&speech->names);
    mel_free(speech->mel);
    free(speech->utterances);
    free(speech->labels);
    free(speech->tokenizer_json);
    free(speech->column);
    free(speech->problem);
    free(collection->parts);
    free(speech);
}

static const char *path_of(const struct speech *speech, int64_t index)
{
    return names_at(&speech->names, speech->utterances[index].name);
}

static void name_file(const struct collection *collection, int64_t index, char *text, size_t size)
{
    snprintf(text, size, "%s", path_of((const struct speech *)collection, index));
}

/* ------------------------------------------------------------------------------------------------- samples ---- */

/* Short recordings are followed by silence. */
static int64_t padded(const struct speech *speech, int64_t samples)
{
    return samples > speech->window ? samples : speech->window;
}

static bool is_changed(const struct speech *speech, const struct draw *draw)
{
    return draw && draw->training && augment_is_random(&speech->augment);
}

static tutti_status read_waveform(const struct speech *speech, int64_t index, const struct draw *draw, float *samples)
{
    struct sound sound;
    const int64_t count = speech->utterances[index].samples;
    tutti_status status = resample_open(path_of(speech, index), speech->rate, &sound);
    if (status != TUTTI_OK) return status;
    if (speech->utterances[index].samples == 0)
        FAIL(TUTTI_FORMAT, "%s: it is empty, or has more than %d s: cut it into shorter ones", path_of(speech, index),
            SPEECH_MOST_SECONDS);
    if (resample_length(sound.rate, speech->rate, sound.frames) != count)
        FAIL(TUTTI_FORMAT, "%s: its length has changed since the data were opened", path_of(speech, index));
    TRY(resample_read(&sound, speech->rate, 0, count, samples));
    if (!is_changed(speech, draw)) goto done;
    augment_gain(&speech->augment, draw, (size_t)count, samples);
    TRY(augment_noise(&speech->augment, draw, (size_t)count, samples));
done:
    sound_close(&sound);
    return status;
}

/* Each band gets the mean 0, and all numbers together the deviation 1. */
static void standardise(float *spectrogram, int64_t frames)
{
    double squares = 0;
    for (int b = 0; b < SPEECH_BANDS; b++) {
        double sum = 0;
        float *band = spectrogram + b * frames;
        for (int64_t i = 0; i < frames; i++) sum += (double)band[i];
        const double mean = sum / (double)frames;
        for (int64_t i = 0; i < frames; i++) band[i] = (float)((double)band[i] - mean);
        for (int64_t i = 0; i < frames; i++) squares += (double)band[i] * (double)band[i];
    }
    const double deviation = sqrt(squares / ((double)frames * SPEECH_BANDS));
    if (!(deviation > 1e-6)) return;
    for (int64_t i = 0; i < SPEECH_BANDS * frames; i++) spectrogram[i] = (float)((double)spectrogram[i] / deviation);
}

/* Writes steps [length][SPEECH_FEATURES]: the frames from one before the step's first on. */
static void write_steps(const float *spectrogram, int64_t frames, int64_t steps, int64_t length, float *to)
{
    memset(to, 0, (size_t)length * SPEECH_FEATURES * sizeof *to);
    for (int64_t t = 0; t < steps; t++) {
        float *step = to + t * SPEECH_FEATURES;
        for (int f = 0; f < SPEECH_FRAMES; f++) {
            const int64_t frame = t * SPEECH_STRIDE - 1 + f;
            for (int b = 0; b < SPEECH_BANDS && frame >= 0 && frame < frames; b++)
                step[f * SPEECH_BANDS + b] = spectrogram[b * frames + frame];
        }
        step[SPEECH_FEATURES - 1] = 1;
    }
}

static void write_labels(const struct speech *speech, int64_t index, int32_t *target)
{
    const struct utterance *utterance = &speech->utterances[index];
    const int64_t room = speech->collection.info.target_shape.sizes[0];
    for (int64_t i = 0; i < room; i++)
        target[i] = i < utterance->count ? speech->labels[utterance->begins + (size_t)i] : -1;
}

static tutti_status read_steps(
    struct collection *collection, int64_t index, const struct draw *draw, int64_t length, float *sample, void *target)
{
    const struct speech *speech = (const struct speech *)collection;
    const struct utterance *utterance = &speech->utterances[index];
    const int64_t count = padded(speech, utterance->samples), frames = mel_frames(speech->mel, count);
    tutti_status status = TUTTI_NO_MEMORY;
    if (utterance->steps > length)
        return fail(TUTTI_INVALID, "%s has %lld steps, but the batch has room for %lld", path_of(speech, index),
            (long long)utterance->steps, (long long)length);
    float *samples = memory_new((size_t)count, sizeof *samples);
    float *spectrogram = memory_new((size_t)frames * SPEECH_BANDS, sizeof *spectrogram);
    if (!samples || !spectrogram) goto done;
    TRY(read_waveform(speech, index, draw, samples));
    TRY(mel_compute(speech->mel, samples, count, spectrogram));
    standardise(spectrogram, frames);
    if (is_changed(speech, draw)) augment_masks(&speech->augment, draw, SPEECH_BANDS, (int)frames, spectrogram);
    write_steps(spectrogram, frames, utterance->steps, length, sample);
    if (target) write_labels(speech, index, target);
done:
    free(samples);
    free(spectrogram);
    return status;
}

static tutti_status read_whole(
    struct collection *collection, int64_t index, const struct draw *draw, void *sample, void *target)
{
    return read_steps(collection, index, draw, collection->info.length, sample, target);
}

static int64_t length_of(const struct collection *collection, int64_t index)
{
    return ((const struct speech *)collection)->utterances[index].steps;
}

/* ------------------------------------------------------------------------------------------------- opening ---- */

/* Reads the length of a recording; the first one may set the rate of all. */
static tutti_status measure(struct speech *speech, int64_t index)
{
    struct utterance *utterance = &speech->utterances[index];
    struct sound sound;
    const tutti_status status = resample_open(path_of(speech, index), speech->rate, &sound);
    if (status != TUTTI_OK) return status;
    if (speech->rate == 0) speech->rate = sound.rate;
    utterance->samples = resample_length(sound.rate, speech->rate, sound.frames);
    sound_close(&sound);
    return TUTTI_OK;
}

static tutti_status set_windows(struct speech *speech)
{
    const int window = mel_window_length(speech->rate) / 2;
    if (speech->mel) return TUTTI_OK;
    speech->window = window < 16 ? 16 : window;
    return mel_new(&speech->mel, speech->rate, speech->window, speech->window / 2, SPEECH_BANDS);
}

/* Labels that a path through so many steps can have: equal neighbours need a blank between them. */
static bool is_possible(const struct speech *speech, const struct utterance *utterance)
{
    const int32_t *labels = speech->labels + utterance->begins;
    int64_t needed = utterance->count;
    for (int32_t i = 1; i < utterance->count; i++) needed += labels[i] == labels[i - 1];
    return needed <= utterance->steps;
}

/* Keeps the samples for which `good` is true. */
static void keep(struct speech *speech, int64_t index, bool good, int64_t *kept)
{
    if (!good) return;
    speech->utterances[*kept] = speech->utterances[index];
    speech->collection.parts[*kept] = speech->collection.parts[index];
    ++*kept;
}

/* Counts a recording that cannot be read or is too long, and says whether it is left out. */
static bool is_left_out(struct speech *speech, int64_t index, tutti_status status)
{
    struct utterance *utterance = &speech->utterances[index];
    const bool bad = status != TUTTI_OK, is_long = utterance->samples > (int64_t)SPEECH_MOST_SECONDS * speech->rate;
    if (is_long) utterance->samples = 0;
    if (speech->unlabelled) return false; /* it fails when it is read, alone */
    speech->counts.long_files += is_long;
    speech->counts.unreadable += !is_long && (bad || utterance->samples == 0);
    if (bad && !speech->problem) speech->problem = memory_copy_text(status_message());
    if (!bad && !is_long && utterance->samples == 0 && !speech->problem)
        speech->problem = memory_format("%s: it has no samples", path_of(speech, index));
    return bad || utterance->samples == 0;
}

/* Reads the lengths of all recordings, and leaves out those without a transcript, too. */
static tutti_status measure_all(struct speech *speech)
{
    struct collection *collection = &speech->collection;
    int64_t kept = 0;
    for (int64_t i = 0; i < collection->samples; i++) {
        const bool good = speech->unlabelled || *names_at(&speech->names, speech->utterances[i].text);
        speech->counts.empty += !good;
        const tutti_status status = good ? measure(speech, i) : TUTTI_OK;
        if (status != TUTTI_OK && status != TUTTI_FORMAT && status != TUTTI_FILE && status != TUTTI_UNSUPPORTED)
            return status;
        keep(speech, i, good && !is_left_out(speech, i, status), &kept);
    }
    collection->samples = kept;
    return TUTTI_OK;
}

/* Leaves out transcripts that no path through the steps can have: their loss is infinite. */
static void drop_impossible(struct speech *speech)
{
    struct collection *collection = &speech->collection;
    int64_t kept = 0;
    for (int64_t i = 0; i < collection->samples; i++) {
        const struct utterance *utterance = &speech->utterances[i];
        const bool labelled = speech->unlabelled || utterance->count > 0,
                   good = labelled && is_possible(speech, utterance);
        speech->counts.empty += !labelled;
        speech->counts.long_labels += labelled && !good;
        keep(speech, i, good, &kept);
    }
    collection->samples = kept;
}

static void note(const struct speech *speech, char *line)
{
    if (line && speech->options->note) speech->options->note(speech->options->user, line);
    free(line);
}

static void note_count(const struct speech *speech, int64_t count, const char *what)
{
    if (count > 0)
        note(speech, memory_format("left out: %lld recording%s %s", (long long)count, count == 1 ? "" : "s", what));
}

static tutti_status report(struct speech *speech, const char *path)
{
    const struct speech_counts *counts = &speech->counts;
    const long long bad = (long long)counts->unreadable, unknown = (long long)counts->unknown;
    if (bad > 0 && !speech->options->skip_damaged)
        return fail(
            TUTTI_FORMAT, "%s; --skip-damaged leaves such recordings out", speech->problem ? speech->problem : path);
    if (bad > 0)
        note(speech, memory_format("left out: %lld recordings that cannot be read, such as: %s", bad, speech->problem));
    note_count(speech, counts->empty, "without a transcript");
    note_count(speech, counts->long_labels, "whose transcript is longer than its steps: CTC has no path for it");
    if (counts->long_files > 0)
        note(speech,
            memory_format(
                "left out: %lld recordings of more than %d s", (long long)counts->long_files, SPEECH_MOST_SECONDS));
    if (unknown > 0)
        note(speech,
            memory_format("%lld transcript%s characters that the tokenizer does not know: they are left out", unknown,
                unknown == 1 ? " has" : "s have"));
    if (speech->collection.samples > 0) return TUTTI_OK;
    return fail(TUTTI_FORMAT, "%s: no recording with a transcript is left", path);
}

static tutti_status set_steps(struct speech *speech)
{
    tutti_data_info *info = &speech->collection.info;
    int64_t longest = 1, most = 1;
    if (speech->rate == 0) return TUTTI_OK; /* nothing could be read */
    const tutti_status status = set_windows(speech);
    if (status != TUTTI_OK) return status;
    for (int64_t i = 0; i < speech->collection.samples; i++) {
        struct utterance *utterance = &speech->utterances[i];
        const int64_t frames = mel_frames(speech->mel, padded(speech, utterance->samples));
        utterance->steps = divide_up(frames, SPEECH_STRIDE);
        if (utterance->steps > longest) longest = utterance->steps;
        if (utterance->count > most) most = utterance->count;
    }
    info->length = longest;
    info->shape = (tutti_shape) { .rank = 2, .sizes = { longest, SPEECH_FEATURES } };
    info->target_shape = (tutti_shape) { .rank = 1, .sizes = { most } };
    return TUTTI_OK;
}

static tutti_status check_options(const struct speech *speech)
{
    const tutti_data_options *options = speech->options;
    const char *option = options->target ? "target"
        : options->length                ? "length"
        : options->normalise             ? "normalise"
        : options->oversample            ? "oversample"
        : options->drop                  ? "drop"
        : options->only                  ? "only"
        : options->row_names             ? "id"
                                         : NULL;
    if (options->rate < 0 || options->rate > WAV_MOST_RATE)
        return fail(TUTTI_INVALID, "recordings have 1 to %d samples a second, not %d", WAV_MOST_RATE, options->rate);
    if (!option) return TUTTI_OK;
    return fail(TUTTI_INVALID, "--%s is no option of recordings with transcripts: leave it out", option);
}

static tutti_status finish(struct speech *speech, const char *path)
{
    struct collection *collection = &speech->collection;
    tutti_data_info *info = &collection->info;
    tutti_status status;
    TRY(check_options(speech));
    TRY(augment_parse(speech->options->augment, AUGMENT_RECORDINGS, &speech->augment));
    speech->rate = speech->options->rate;
    TRY(measure_all(speech));
    if (collection->samples == 0) TRY(report(speech, path));
    TRY(speech_set_labels(speech));
    TRY(set_steps(speech));
    drop_impossible(speech);
    TRY(report(speech, path));
    TRY(set_steps(speech));
    info->kind = "speech";
    info->dtype = TUTTI_DTYPE_F32;
    info->target_dtype = TUTTI_DTYPE_I32;
    info->vocabulary = tutti_tokenizer_size(speech->tokenizer);
    info->classes = (int)info->vocabulary + 1;
    info->tokenizer = speech->tokenizer_json;
    info->damaged = speech->counts.unreadable;
    collection->augments = AUGMENT_RECORDINGS;
    collection->read = read_whole;
    collection->read_steps = read_steps;
    collection->length = length_of;
    collection->name = name_file;
    collection->describe = speech_describe;
    collection->inspect = speech_inspect;
    speech->options = NULL; /* the caller's, until here */
done:
    return status;
}

static tutti_status begin(struct speech *speech, const tutti_data_options *options)
{
    const tutti_status status = speech_restore(speech, options->description);
    speech->options = options;
    speech->collection.free = free_speech;
    if (status != TUTTI_OK || !options->text) return status;
    free(speech->column);
    speech->column = memory_copy_text(options->text);
    return speech->column ? TUTTI_OK : TUTTI_NO_MEMORY;
}

static tutti_status open_by(const char *path, const tutti_data_options *options, bool pairs, struct collection **made)
{
    struct stat found;
    tutti_status status;
    *made = NULL;
    if (!options->files && stat(path, &found) != 0) return TUTTI_OK;
    struct speech *speech = memory_new(1, sizeof *speech);
    if (!speech) return TUTTI_NO_MEMORY;
    TRY(begin(speech, options));
    if (speech->foreign) goto done;
    speech->unlabelled = options->files != NULL;
    if (options->files)
        TRY(speech_read_given(speech));
    else if (!pairs)
        TRY(speech_read_tables(speech, path, S_ISDIR(found.st_mode)));
    else if (S_ISDIR(found.st_mode))
        TRY(speech_read_folder(speech, path));
    if (speech->collection.samples == 0) goto done;
    TRY(finish(speech, path ? path : "these files"));
    *made = &speech->collection;
    return TUTTI_OK;
done:
    speech->collection.free = free_speech;
    free_speech(&speech->collection);
    return status;
}

tutti_status speech_open(const char *path, const tutti_data_options *options, struct collection **made)
{
    return open_by(path, options, false, made);
}

tutti_status speech_pairs_open(const char *path, const tutti_data_options *options, struct collection **made)
{
    return open_by(path, options, true, made);
}
