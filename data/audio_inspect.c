/* Rates, lengths and channels of recordings, from the headers of their files. */
#include "data/audio.h"
#include "data/inspect.h"

#include "base/memory.h"
#include "base/numbers.h"
#include "base/status.h"
#include "formats/sound.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct found {
    struct counts rates, channels, samples;
    double *seconds, total; /* [read] */
    int64_t read, damaged;
    char *example; /* why the first damaged one cannot be read */
};

/* How the samples are stored: of a WAV file its bits, of others their format. */
static void count_form(struct found *found, const struct sound *sound)
{
    static const char *const codes[] = { [WAV_FLOATS] = ", floats", [WAV_ALAW] = ", A-law", [WAV_MULAW] = ", mu-law" };
    const struct wav *wav = &sound->wav;
    const char *extension = strrchr(sound->path, '.');
    char text[COUNTED_TEXT];
    if (!wav->path) {
        counts_add(&found->samples, extension ? extension + 1 : sound->path);
        return;
    }
    snprintf(text, sizeof text, "%d", wav->channels);
    counts_add(&found->channels, wav->channels == 1 ? "mono" : wav->channels == 2 ? "stereo" : text);
    snprintf(text, sizeof text, "%d bits%s", wav->bits, wav->code == WAV_PCM ? "" : codes[wav->code]);
    counts_add(&found->samples, text);
}

static tutti_status read_file(struct found *found, const char *path)
{
    struct sound sound;
    char text[COUNTED_TEXT];
    const tutti_status status = sound_open(path, &sound);
    if (status == TUTTI_NO_MEMORY) return status;
    if (status != TUTTI_OK) {
        if (found->damaged++ == 0) found->example = memory_copy_text(status_message());
        return TUTTI_OK;
    }
    snprintf(text, sizeof text, "%d Hz", sound.rate);
    counts_add(&found->rates, text);
    count_form(found, &sound);
    found->seconds[found->read] = (double)sound.frames / sound.rate;
    found->total += found->seconds[found->read++];
    sound_close(&sound);
    return TUTTI_OK;
}

static json_t *spread(const struct found *found)
{
    const double *seconds = found->seconds;
    qsort(found->seconds, (size_t)found->read, sizeof *seconds, number_compare);
    return json_pack("{s:f, s:f, s:f, s:f}", "least", seconds[0], "median", seconds[found->read / 2], "largest",
        seconds[found->read - 1], "sum", found->total);
}

static int describe(const struct audio *audio, struct found *found, json_t *object)
{
    json_t *files = json_pack("{s:I, s:I, s:I}", "read", (json_int_t)(found->read + found->damaged), "all",
        (json_int_t)audio->collection.samples, "damaged", (json_int_t)found->damaged);
    int failed = 0;
    if (found->example) failed |= json_object_set_new(files, "example", inspect_text(found->example));
    failed |= json_object_set_new(object, "opened", files);
    failed |= json_object_set_new(object, "rate", json_integer(audio->rate));
    failed |= json_object_set_new(object, "piece_seconds", json_real((double)audio->length / audio->rate));
    if (found->read == 0) return failed;
    failed |= json_object_set_new(object, "rates", counts_json(&found->rates, COUNTED_MOST));
    failed |= json_object_set_new(object, "channels", counts_json(&found->channels, COUNTED_MOST));
    failed |= json_object_set_new(object, "stored", counts_json(&found->samples, COUNTED_MOST));
    return failed | json_object_set_new(object, "seconds", spread(found));
}

int audio_inspect(const struct collection *collection, int64_t most, json_t *object)
{
    const struct audio *audio = (const struct audio *)collection;
    const int64_t step = inspect_step(collection->samples, most);
    int failed = -1;
    tutti_status status = TUTTI_OK;
    struct found *found = memory_new(1, sizeof *found);
    if (!found) return failed;
    found->seconds = memory_new((size_t)(collection->samples / step) + 1, sizeof *found->seconds);
    if (!found->seconds) status = TUTTI_NO_MEMORY;
    for (int64_t i = 0; i < collection->samples && status == TUTTI_OK; i += step)
        status = read_file(found, names_at(&audio->names, audio->files[i].name));
    if (status == TUTTI_OK) failed = describe(audio, found, object);
    free(found->seconds);
    free(found->example);
    free(found);
    return failed;
}
