/* The list of recordings and their transcripts. */
#include "data/speech/speech.h"

#include "base/memory.h"
#include "base/status.h"

#include <stdlib.h>
#include <string.h>

/* Adds a text whose runs of blanks are one, without those at its ends. */
static tutti_status add_text(struct speech *speech, const char *text, size_t *at)
{
    if (!strncmp(text, "\xef\xbb\xbf", 3)) text += 3; /* a byte order mark */
    char *copy = memory_copy_text(text), *to = copy;
    if (!copy) return TUTTI_NO_MEMORY;
    for (const char *from = text; *from; from++) {
        const bool blank = strchr(" \t\r\n\v\f", *from) != NULL;
        if (!blank)
            *to++ = *from;
        else if (to > copy && to[-1] != ' ')
            *to++ = ' ';
    }
    if (to > copy && to[-1] == ' ') to--;
    *to = '\0';
    const tutti_status status = names_add(&speech->names, copy, NULL, at);
    free(copy);
    return status;
}

tutti_status speech_add(struct speech *speech, const char *path, const char *text, int part, int64_t row)
{
    struct collection *collection = &speech->collection;
    const size_t count = (size_t)collection->samples + 1;
    tutti_status status;
    if (text && !text_is_utf8(text)) return fail(TUTTI_FORMAT, "%s: its transcript is not UTF-8: convert it", path);
    TRY(memory_grow((void **)&speech->utterances, &speech->room, count, sizeof *speech->utterances));
    TRY(memory_grow((void **)&collection->parts, &speech->part_room, count, sizeof *collection->parts));
    struct utterance *utterance = &speech->utterances[count - 1];
    *utterance = (struct utterance) { .row = row };
    TRY(names_add(&speech->names, path, NULL, &utterance->name));
    TRY(add_text(speech, text ? text : "", &utterance->text));
    collection->parts[count - 1] = (signed char)part;
    collection->samples++;
done:
    return status;
}
