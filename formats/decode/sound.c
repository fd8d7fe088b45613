/* Recordings by libsndfile: FLAC, Ogg Vorbis and Opus, MP3, AIFF, AU and so on. The declarations are those of
 * sndfile.h. */
#include "formats/decode/decode.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { READ = 0x10, BLOCK = 1 << 16, MOST_RATE = 1 << 20, MOST_LEVEL = 1 << 20 };

struct info {
    int64_t frames;
    int rate, channels, format, sections, seekable;
};
struct callbacks {
    int64_t (*size)(void *user);
    int64_t (*seek)(int64_t offset, int from, void *user);
    int64_t (*read)(void *to, int64_t count, void *user);
    int64_t (*write)(const void *from, int64_t count, void *user);
    int64_t (*tell)(void *user);
};
struct sound;
static struct sound *(*open_virtual)(struct callbacks *callbacks, int mode, struct info *info, void *user);
static int (*close_sound)(struct sound *sound);
static int64_t (*seek_sound)(struct sound *sound, int64_t frames, int from);
static int64_t (*read_floats)(struct sound *sound, float *to, int64_t frames);
static const char *(*error_text)(struct sound *sound);

/* The recording that is open. */
static struct {
    int descriptor; /* -1: none */
    int64_t bytes, at;
    struct sound *sound;
    int64_t frame; /* that is read next */
    int channels;
} now = { .descriptor = -1 };

static bool load(void)
{
    static const char *const files[] = { "libsndfile.so.1", NULL };
    const struct symbol symbols[] = { { "sf_open_virtual", (void *)&open_virtual },
        { "sf_close", (void *)&close_sound }, { "sf_seek", (void *)&seek_sound },
        { "sf_readf_float", (void *)&read_floats }, { "sf_strerror", (void *)&error_text } };
    return library_load(files, symbols, sizeof symbols / sizeof *symbols);
}

static int64_t size_file(void *user)
{
    (void)user;
    return now.bytes;
}

static int64_t seek_file(int64_t offset, int from, void *user)
{
    (void)user;
    const int64_t base = from == SEEK_SET ? 0 : from == SEEK_CUR ? now.at : now.bytes;
    if (offset >= -base && offset <= now.bytes - base) now.at = base + offset;
    return now.at;
}

static int64_t read_file(void *to, int64_t wanted, void *user)
{
    int64_t done = 0;
    (void)user;
    if (wanted > now.bytes - now.at) wanted = now.bytes - now.at;
    while (done < wanted) {
        const ssize_t got = pread(now.descriptor, (char *)to + done, (size_t)(wanted - done), now.at);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) break;
        done += got;
        now.at += got;
    }
    return done;
}

static int64_t write_nothing(const void *from, int64_t count, void *user)
{
    (void)from, (void)count, (void)user;
    return 0;
}

static int64_t tell_file(void *user)
{
    (void)user;
    return now.at;
}

static void close_now(void)
{
    if (now.sound) close_sound(now.sound);
    if (now.descriptor >= 0) close(now.descriptor);
    now.sound = NULL;
    now.descriptor = -1;
}

static bool open_sound(int descriptor, uint64_t bytes, struct decode_answer *answer)
{
    static struct callbacks callbacks = { size_file, seek_file, read_file, write_nothing, tell_file };
    struct info info = { 0 };
    close_now();
    now.descriptor = descriptor;
    now.bytes = bytes > INT64_MAX ? INT64_MAX : (int64_t)bytes;
    now.at = now.frame = 0;
    if (descriptor < 0) return refuse(answer, DECODE_DAMAGED, "its descriptor has not come");
    now.sound = open_virtual(&callbacks, READ, &info, NULL);
    if (!now.sound) return refuse(answer, DECODE_DAMAGED, "libsndfile: %s", error_text(NULL));
    if (info.channels < 1 || info.channels > DECODE_MOST_CHANNELS || info.rate < 1 || info.rate > MOST_RATE ||
        info.frames < 1)
        return refuse(answer, DECODE_DAMAGED, "%lld samples of %d channels at %d Hz: it is empty or damaged",
            (long long)info.frames, info.channels, info.rate);
    now.channels = answer->channels = info.channels;
    answer->rate = info.rate;
    answer->frames = info.frames;
    return true;
}

static bool average(const float *block, int64_t frames, int64_t first, float *mono, struct decode_answer *answer)
{
    for (int64_t i = 0; i < frames; i++) {
        double sum = 0;
        for (int c = 0; c < now.channels; c++) sum += (double)block[i * now.channels + c];
        if (!(fabs(sum) <= MOST_LEVEL))
            return refuse(answer, DECODE_DAMAGED, "its sample %lld is %g: it is damaged", (long long)(first + i), sum);
        mono[i] = (float)(sum / now.channels);
    }
    return true;
}

static bool read_sound(int64_t first, int64_t frames, float *mono, struct decode_answer *answer)
{
    if (!now.sound) return refuse(answer, DECODE_DAMAGED, "it is not open");
    if (first != now.frame && seek_sound(now.sound, first, SEEK_SET) != first)
        return refuse(
            answer, DECODE_DAMAGED, "its sample %lld cannot be found: it is cut or damaged", (long long)first);
    static float block[BLOCK];
    const int64_t most = BLOCK / now.channels;
    for (int64_t done = 0; done < frames;) {
        const int64_t count = frames - done < most ? frames - done : most, got = read_floats(now.sound, block, count);
        now.frame = first + done + (got > 0 ? got : 0);
        if (got != count)
            return refuse(answer, DECODE_DAMAGED, "it ends after %lld of its samples: it is cut or damaged",
                (long long)now.frame);
        if (!average(block, count, first + done, mono + done, answer)) return false;
        done += count;
    }
    return true;
}

const struct library library_sound = {
    .name = "sound", .load = load, .open_sound = open_sound, .read_sound = read_sound
};
