/* Transcripts next to their recordings, in and below a folder. */
#include "data/speech/speech.h"

#include "base/file.h"
#include "base/memory.h"
#include "base/status.h"
#include "data/listing.h"
#include "formats/lines.h"
#include "formats/sound.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { MOST_DEPTH = 8 };

static const char *const ends[] = { ".txt", ".lab" };
static const char libri[] = ".trans.txt";

/* Whether the listing has this file. Entries are sorted by name. */
static bool has_file(const struct listing *listing, const char *name)
{
    size_t low = 0, high = listing->count;
    while (low < high) {
        const size_t middle = (low + high) / 2;
        const int order = strcmp(name, listing_name(listing, middle));
        if (order == 0) return !listing->entries[middle].folder;
        if (order > 0)
            low = middle + 1;
        else
            high = middle;
    }
    return false;
}

/* Reads a whole transcript, whose lines are joined by blanks. */
static tutti_status add_pair(struct speech *speech, const char *recording, const char *transcript, int part)
{
    struct lines *lines = NULL;
    struct text text = { 0 };
    const char *line;
    size_t bytes;
    tutti_status status = lines_open(transcript, &lines);
    if (status != TUTTI_OK) return status;
    while ((status = lines_next(lines, &line, &bytes)) == TUTTI_OK && line) {
        if (strlen(line) != bytes) {
            status = fail(TUTTI_FORMAT, "%s: a byte of the transcript is 0", transcript);
            break;
        }
        text_append(&text, "%s%s", text.size ? " " : "", line);
    }
    lines_close(lines);
    if (status == TUTTI_OK && text.failed) status = fail(TUTTI_NO_MEMORY, "no memory for %s", transcript);
    if (status == TUTTI_OK) status = speech_add(speech, recording, text.data ? text.data : "", part, 0);
    text_free(&text);
    return status;
}

/* Reads lines "ID TEXT" of LibriSpeech: ID.flac lies next to the file. */
static tutti_status add_libri(
    struct speech *speech, const struct listing *listing, const char *folder, const char *name, int part)
{
    static const char *const sounds[] = { "flac", "wav", "mp3", "ogg", "opus" };
    struct lines *lines = NULL;
    const char *line;
    size_t bytes;
    char file[512];
    char *path = memory_format("%s/%s", folder, name);
    tutti_status status = path ? lines_open(path, &lines) : TUTTI_NO_MEMORY;
    while (status == TUTTI_OK && (status = lines_next(lines, &line, &bytes)) == TUTTI_OK && line) {
        if (strlen(line) != bytes) {
            status = fail(TUTTI_FORMAT, "%s: a byte of a transcript is 0", path);
            break;
        }
        const size_t id = strcspn(line, " \t");
        bool found = false;
        for (size_t i = 0; i < sizeof sounds / sizeof *sounds && !found && id > 0 && id < 400; i++) {
            snprintf(file, sizeof file, "%.*s.%s", (int)id, line, sounds[i]);
            found = has_file(listing, file);
        }
        if (!found) {
            if (id == 0 && bytes == 0) continue;
            speech->counts.unreadable++;
            if (!speech->problem)
                speech->problem = memory_format(
                    "%s: there is no recording of '%.*s'", path, id < 60 ? (int)id : 60, text_printable(line).text);
            continue;
        }
        char *sound = memory_format("%s/%s", folder, file);
        status = sound ? speech_add(speech, sound, line + id, part, 0) : TUTTI_NO_MEMORY;
        free(sound);
    }
    lines_close(lines);
    free(path);
    return status;
}

/* Adds a recording if a transcript has its name. */
static tutti_status add_named(
    struct speech *speech, const struct listing *listing, const char *folder, const char *name, int part)
{
    const char *dot = strrchr(name, '.');
    tutti_status status = TUTTI_OK;
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        char *other = memory_format("%.*s%s", (int)(dot - name), name, ends[i]);
        if (!other) return TUTTI_NO_MEMORY;
        const bool found = has_file(listing, other);
        char *recording = found ? memory_format("%s/%s", folder, name) : NULL;
        char *transcript = found ? memory_format("%s/%s", folder, other) : NULL;
        if (found) status = recording && transcript ? add_pair(speech, recording, transcript, part) : TUTTI_NO_MEMORY;
        free(recording);
        free(transcript);
        free(other);
        if (found || status != TUTTI_OK) return status;
    }
    return TUTTI_OK;
}

/* The part that a folder at the top is: train/, or train-clean-100/ of LibriSpeech. */
static int part_of(const char *name, int depth, int part)
{
    static const struct {
        const char *begin;
        int part;
    } names[] = { { "train", TUTTI_DATA_TRAIN }, { "dev", TUTTI_DATA_VAL }, { "val", TUTTI_DATA_VAL },
        { "valid", TUTTI_DATA_VAL }, { "validation", TUTTI_DATA_VAL }, { "test", TUTTI_DATA_TEST } };
    for (size_t i = 0; i < sizeof names / sizeof *names && depth == 0; i++) {
        const size_t size = strlen(names[i].begin);
        if (!strncmp(name, names[i].begin, size) && (!name[size] || name[size] == '-')) return names[i].part;
    }
    return part;
}

static tutti_status walk(struct speech *speech, const char *folder, int depth, int part)
{
    struct listing listing;
    tutti_status status = listing_read(&listing, folder);
    if (status != TUTTI_OK) return status;
    for (size_t i = 0; i < listing.count && status == TUTTI_OK; i++) {
        const char *name = listing_name(&listing, i);
        if (listing.entries[i].folder && depth < MOST_DEPTH) {
            char *below = memory_format("%s/%s", folder, name);
            status = below ? walk(speech, below, depth + 1, part_of(name, depth, part)) : TUTTI_NO_MEMORY;
            free(below);
        } else if (!listing.entries[i].folder && text_ends_with(name, libri))
            status = add_libri(speech, &listing, folder, name, part);
        else if (!listing.entries[i].folder && sound_has_name(name))
            status = add_named(speech, &listing, folder, name, part);
    }
    listing_free(&listing);
    return status;
}

/* Parts count if one of them trains: a folder of train-clean-100 alone is divided. */
tutti_status speech_read_folder(struct speech *speech, const char *path)
{
    bool train = false, other = false;
    const tutti_status status = walk(speech, path, 0, PART_OPEN);
    signed char *parts = speech->collection.parts;
    for (int64_t i = 0; i < speech->collection.samples; i++) {
        train |= parts[i] == TUTTI_DATA_TRAIN;
        other |= parts[i] == TUTTI_DATA_VAL || parts[i] == TUTTI_DATA_TEST;
    }
    for (int64_t i = 0; i < speech->collection.samples; i++)
        if (train && !other) parts[i] = PART_OPEN;
    return status;
}

tutti_status speech_read_given(struct speech *speech)
{
    tutti_status status = TUTTI_OK;
    for (int64_t i = 0; i < speech->options->file_count && status == TUTTI_OK; i++)
        status = speech_add(speech, speech->options->files[i], NULL, TUTTI_DATA_TEST, 0);
    return status;
}
