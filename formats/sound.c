#include "formats/sound.h"

#include "base/memory.h"
#include "base/status.h"
#include "formats/decoder.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

static const struct {
    const char *end, *what;
} names[] = { { ".flac", "FLAC" }, { ".mp3", "MP3" }, { ".ogg", "Ogg" }, { ".oga", "Ogg" }, { ".opus", "Opus" },
    { ".aif", "AIFF" }, { ".aiff", "AIFF" }, { ".aifc", "AIFF" }, { ".au", "AU" }, { ".snd", "AU" },
    { ".caf", "CAF" } };

/* Returns what the file is by its name; NULL: a WAV file, or no recording. */
static const char *what_is(const char *path)
{
    const char *end = strrchr(path, '.');
    for (size_t i = 0; end && i < sizeof(names) / sizeof(*names); i++)
        if (!strcasecmp(end, names[i].end)) return names[i].what;
    return NULL;
}

bool sound_has_name(const char *name)
{
    return wav_has_name(name) || what_is(name);
}

static tutti_status ask_header(struct sound *sound, int file)
{
    tutti_status status = TUTTI_OK;
    struct stat info;
    struct decode_answer answer;
    if (fstat(file, &info) != 0 || !S_ISREG(info.st_mode))
        FAIL(TUTTI_FILE, "cannot read '%s': it is not a file", sound->path);
    const struct decode_request request = { .task = DECODE_OPEN, .bytes = (uint64_t)info.st_size };
    TRY(decoder_ask(sound->decoder, sound->path, &request, NULL, file, &answer));
    if (answer.rate < 1 || answer.rate > WAV_MOST_RATE || answer.frames < 1 || answer.frames > INT64_MAX / 8)
        FAIL(TUTTI_FORMAT, "%s: its decoder answers nonsense: the file is hostile", sound->path);
    sound->rate = answer.rate;
    sound->frames = answer.frames;
done:
    return status;
}

/* Has a helper open the file, and once more another one where a file before this one may have harmed it. The helper
 * gets the descriptor, which is open for reading only. */
static tutti_status open_decoded(struct sound *sound, const char *what)
{
    tutti_status status = TUTTI_OK;
    const int file = open(sound->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (file < 0) return fail(TUTTI_FILE, "cannot read '%s': %s", sound->path, strerror(errno));
    for (bool again = true; again;) {
        TRY(decoder_take(DECODER_SOUND, sound->path, what, &sound->decoder));
        status = ask_header(sound, file);
        again = decoder_was_used(sound->decoder);
        if (status == TUTTI_OK) break;
        decoder_give(sound->decoder, false);
        sound->decoder = NULL;
    }
done:
    close(file);
    return status;
}

tutti_status sound_open(const char *path, struct sound *sound)
{
    tutti_status status;
    const char *what = what_is(path);
    *sound = (struct sound) { .wav = { .descriptor = -1 }, .path = memory_copy_text(path) };
    if (!sound->path) return TUTTI_NO_MEMORY;
    if (what) {
        status = open_decoded(sound, what);
    } else {
        status = wav_open(path, &sound->wav);
        sound->rate = sound->wav.rate;
        sound->frames = sound->wav.frames;
    }
    if (status != TUTTI_OK) sound_close(sound);
    return status;
}

void sound_close(struct sound *sound)
{
    if (sound->decoder) decoder_give(sound->decoder, sound->broken);
    if (sound->wav.path) wav_close(&sound->wav);
    free(sound->path);
    *sound = (struct sound) { .wav = { .descriptor = -1 } };
}

static tutti_status read_decoded(struct sound *sound, int64_t first, int64_t count, float *mono)
{
    tutti_status status;
    struct decode_answer answer;
    const struct decode_request request = { .task = DECODE_SAMPLES, .first = first, .frames = count };
    TRY(decoder_ask(sound->decoder, sound->path, &request, NULL, -1, &answer));
    sound->broken = true; /* until all has come */
    TRY(decoder_receive(sound->decoder, sound->path, mono, (size_t)count * sizeof(*mono)));
    sound->broken = false;
    for (int64_t i = 0; i < count; i++)
        if (!(fabsf(mono[i]) <= WAV_MOST_LEVEL))
            FAIL(TUTTI_FORMAT, "%s: its decoder answers nonsense: the file is hostile", sound->path);
done:
    return status;
}

tutti_status sound_read(struct sound *sound, int64_t first, int64_t count, float *mono)
{
    if (!sound->decoder) return wav_read(&sound->wav, first, count, mono);
    for (int64_t done = 0; done < count;) {
        const int64_t frames = count - done < DECODE_MOST_FRAMES ? count - done : DECODE_MOST_FRAMES;
        const tutti_status status = read_decoded(sound, first + done, frames, mono + done);
        if (status != TUTTI_OK) return status;
        done += frames;
    }
    return TUTTI_OK;
}
