#include "formats/wav.h"

#include "base/file.h"
#include "base/memory.h"
#include "base/status.h"
#include "base/text.h"
#include "formats/little_endian.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { EXTENSIBLE = 0xfffe };
enum { RIFF_BYTES = 12, CHUNK_BYTES = 8, FORMAT_BYTES = 16, EXTENSIBLE_BYTES = 40, MOST_CHUNKS = 1000 };
enum { BLOCK = 1 << 16 };
#define UNKNOWN 0xffffffffu /* the size of a chunk that was written into a pipe */

/* --------------------------------------------------------------------------------------------------- header ---- */

static bool has_bits(enum wav_code code, uint32_t bits)
{
    switch (code) {
    case WAV_PCM: return bits == 8 || bits == 16 || bits == 24 || bits == 32;
    case WAV_FLOATS: return bits == 32 || bits == 64;
    default: return bits == 8;
    }
}

static tutti_status read_format(struct wav *wav, uint64_t at, uint32_t size)
{
    unsigned char bytes[EXTENSIBLE_BYTES] = { 0 };
    size_t got;
    const tutti_status status =
        file_read_at(wav->descriptor, wav->path, at, bytes, size < sizeof bytes ? size : sizeof bytes, &got);
    if (status != TUTTI_OK) return status;
    uint32_t code = read_le16(bytes);
    if (got < FORMAT_BYTES) return fail(TUTTI_FORMAT, "%s: its format is cut: it is damaged", wav->path);
    if (code == EXTENSIBLE && got == EXTENSIBLE_BYTES) code = read_le16(bytes + 24); /* the first bytes of its GUID */
    const uint32_t channels = read_le16(bytes + 2), rate = read_le32(bytes + 4), bits = read_le16(bytes + 14);
    if (code != WAV_PCM && code != WAV_FLOATS && code != WAV_ALAW && code != WAV_MULAW)
        return fail(TUTTI_FORMAT,
            "%s: it is coded as 0x%04x: WAV files of PCM, floats, A-law and mu-law can be read: convert it", wav->path,
            code);
    wav->code = (enum wav_code)code;
    if (!has_bits(wav->code, bits))
        return fail(TUTTI_FORMAT,
            "%s: its samples have %u bits: 8, 16, 24, 32, floats of 32 and 64, and A-law and mu-law of 8 can be read",
            wav->path, bits);
    if (channels < 1 || channels > WAV_MAX_CHANNELS || rate < 1 || rate > WAV_MOST_RATE ||
        read_le16(bytes + 12) != channels * bits / 8)
        return fail(TUTTI_FORMAT, "%s: %u channels of %u Hz in %u bytes: it is damaged", wav->path, channels, rate,
            read_le16(bytes + 12));
    wav->channels = (int)channels;
    wav->rate = (int)rate;
    wav->bits = (int)bits;
    return TUTTI_OK;
}

static tutti_status set_data(struct wav *wav, uint64_t at, uint32_t size, uint64_t end)
{
    const uint64_t frame = (uint64_t)wav->channels * (uint64_t)wav->bits / 8, left = end - at;
    if (!wav->channels) return fail(TUTTI_FORMAT, "%s: its samples come before their format: it is damaged", wav->path);
    if (size != UNKNOWN && size > left)
        return fail(TUTTI_FORMAT, "%s: it is cut: %" PRIu64 " of %u bytes of samples are there", wav->path, left, size);
    wav->begin = at;
    wav->frames = (int64_t)((size == UNKNOWN ? left : size) / frame);
    if (wav->frames == 0) return fail(TUTTI_FORMAT, "%s: it has no samples", wav->path);
    return TUTTI_OK;
}

static tutti_status read_chunks(struct wav *wav, uint64_t end)
{
    unsigned char head[RIFF_BYTES];
    uint64_t at = RIFF_BYTES;
    size_t got;
    tutti_status status = TUTTI_OK;
    TRY(file_read_at(wav->descriptor, wav->path, 0, head, RIFF_BYTES, &got));
    if (got < RIFF_BYTES || memcmp(head, "RIFF", 4) != 0 || memcmp(head + 8, "WAVE", 4) != 0)
        FAIL(TUTTI_FORMAT, "%s: this is not a WAV file: it does not begin with RIFF and WAVE", wav->path);
    for (int chunk = 0; chunk < MOST_CHUNKS && at < end && !wav->frames; chunk++) {
        TRY(file_read_at(wav->descriptor, wav->path, at, head, CHUNK_BYTES, &got));
        if (got < CHUNK_BYTES) break;
        const uint32_t size = read_le32(head + 4);
        at += CHUNK_BYTES;
        if (!memcmp(head, "fmt ", 4)) TRY(read_format(wav, at, size));
        if (!memcmp(head, "data", 4)) TRY(set_data(wav, at, size, end));
        at += (uint64_t)size + (size & 1);
    }
    if (!wav->frames) FAIL(TUTTI_FORMAT, "%s: it has no samples: it is cut or damaged", wav->path);
done:
    return status;
}

tutti_status wav_open(const char *path, struct wav *wav)
{
    struct stat info;
    tutti_status status = TUTTI_OK;
    *wav = (struct wav) { .descriptor = -1, .path = memory_copy_text(path) };
    if (!wav->path) return TUTTI_NO_MEMORY;
    wav->descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (wav->descriptor < 0 || fstat(wav->descriptor, &info) != 0)
        FAIL(TUTTI_FILE, "cannot read '%s': %s", path, strerror(errno));
    if (!S_ISREG(info.st_mode)) FAIL(TUTTI_FILE, "cannot read '%s': it is not a file", path);
    status = read_chunks(wav, (uint64_t)info.st_size);
done:
    if (status != TUTTI_OK) wav_close(wav);
    return status;
}

void wav_close(struct wav *wav)
{
    if (wav->descriptor >= 0) close(wav->descriptor);
    free(wav->path);
    *wav = (struct wav) { .descriptor = -1 };
}

/* -------------------------------------------------------------------------------------------------- samples ---- */

static double one_float(const unsigned char *at, int bits)
{
    double wide = 0;
    float narrow = 0;
    if (bits == 64) memcpy(&wide, at, sizeof wide);
    if (bits == 32) memcpy(&narrow, at, sizeof narrow);
    return bits == 64 ? wide : (double)narrow;
}

/* ITU-T G.711: a sign, a segment and four bits; 1 is 32768. */
static double one_law(unsigned byte, bool alaw)
{
    byte ^= alaw ? 0xd5 : 0xff;
    const int segment = byte >> 4 & 7, bits = byte & 15;
    int level = alaw ? 16 * bits + 8 : ((8 * bits + 132) << segment) - 132;
    if (alaw && segment > 0) level = (level + 256) << (segment - 1);
    return (byte & 0x80 ? -level : level) / 32768.0;
}

/* PCM: bytes are unsigned, wider samples signed. */
static double one_sample(const struct wav *wav, const unsigned char *at)
{
    if (wav->code == WAV_FLOATS) return one_float(at, wav->bits);
    if (wav->code != WAV_PCM) return one_law(at[0], wav->code == WAV_ALAW);
    switch (wav->bits) {
    case 8: return (at[0] - 128) / 128.0;
    case 16: return (int16_t)read_le16(at) / 32768.0;
    case 24: return (int32_t)(read_le16(at) << 8 | (uint32_t)at[2] << 24) / 2147483648.0;
    default: return (int32_t)read_le32(at) / 2147483648.0;
    }
}

tutti_status wav_read(const struct wav *wav, int64_t first, int64_t count, float *mono)
{
    const size_t sample = (size_t)wav->bits / 8, frame = sample * (size_t)wav->channels;
    const int64_t at_once = BLOCK / (int64_t)frame;
    unsigned char *block = malloc(BLOCK);
    tutti_status status = TUTTI_OK;
    size_t got;
    if (!block) return fail(TUTTI_NO_MEMORY, "no memory for samples of '%s'", wav->path);
    for (int64_t done = 0; done < count;) {
        const int64_t frames = count - done < at_once ? count - done : at_once;
        TRY(file_read_at(wav->descriptor, wav->path, wav->begin + (uint64_t)(first + done) * frame, block,
            (size_t)frames * frame, &got));
        if (got < (size_t)frames * frame) FAIL(TUTTI_FILE, "'%s' has become shorter while it was read", wav->path);
        for (int64_t i = 0; i < frames; i++) {
            double sum = 0;
            for (int c = 0; c < wav->channels; c++)
                sum += one_sample(wav, block + (size_t)i * frame + (size_t)c * sample);
            mono[done + i] = (float)(sum / wav->channels);
            if (!(fabs(sum) <= WAV_MOST_LEVEL))
                FAIL(TUTTI_FORMAT, "%s: its sample %" PRId64 " is %g: it is damaged", wav->path, first + done + i, sum);
        }
        done += frames;
    }
done:
    free(block);
    return status;
}

bool wav_has_name(const char *name)
{
    return text_has_extension(name, ".wav");
}
