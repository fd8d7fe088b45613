/* Transcripts as labels: characters, or tokens of a tokenizer. Label 0 is the blank of tutti_ctc(), and the token with
 * the number i is label i + 1. */
#include "data/speech/speech.h"

#include "base/memory.h"
#include "base/numbers.h"
#include "base/status.h"
#include "data/inspect.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_LABELS = 1 << 16 };

static const char *text_of(const struct speech *speech, int64_t index)
{
    return names_at(&speech->names, speech->utterances[index].text);
}

/* Learns the tokenizer from all transcripts: characters, unless the options say otherwise. */
static tutti_tokenizer *learn(const struct speech *speech, const char *kind)
{
    const tutti_tokenizer_options options = { .size = sizeof options, .kind = kind, .lowercase = true };
    const int64_t count = speech->collection.samples;
    const char **texts = memory_new((size_t)count + 1, sizeof *texts);
    if (!texts) return NULL;
    for (int64_t i = 0; i < count; i++) texts[i] = text_of(speech, i);
    tutti_tokenizer *made = tutti_tokenizer_train(texts, NULL, count, &options);
    free(texts);
    return made;
}

static bool is_learned(const char *given)
{
    static const char *const kinds[] = { "characters", "bpe", "wordpiece", "words" };
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (!strcmp(given, kinds[i])) return true;
    return false;
}

static tutti_tokenizer *open_given(const char *given)
{
    return *given == '{' ? tutti_tokenizer_parse(given) : tutti_tokenizer_open(given);
}

static tutti_status choose_tokenizer(struct speech *speech)
{
    const char *given = speech->options->tokenizer;
    if (speech->described && given && *given != '{')
        return fail(TUTTI_INVALID, "--tokenizer: the network was trained with one: leave it out");
    if (speech->described)
        speech->tokenizer = tutti_tokenizer_parse(speech->tokenizer_json);
    else if (given && !is_learned(given))
        speech->tokenizer = open_given(given);
    else
        speech->tokenizer = learn(speech, given ? given : "characters");
    if (!speech->tokenizer) return status_context(status_last(), "tokenizer");
    const int64_t size = tutti_tokenizer_size(speech->tokenizer);
    if (size < 1 || size >= MOST_LABELS)
        return fail(TUTTI_UNSUPPORTED, "the tokenizer has %lld tokens: transcripts are of 1 to %d", (long long)size,
            MOST_LABELS - 1);
    if (!speech->tokenizer_json) speech->tokenizer_json = tutti_tokenizer_json(speech->tokenizer);
    return speech->tokenizer_json ? TUTTI_OK : TUTTI_NO_MEMORY;
}

static size_t characters(const char *text)
{
    size_t count = 0;
    for (const char *c = text; *c; c++) count += ((unsigned char)*c & 0xc0) != 0x80;
    return count;
}

/* Counts transcripts that do not come back as they were. */
static void count_unknown(struct speech *speech, const char *text, const tutti_encoding *encoding)
{
    char *back = tutti_tokenizer_decode(speech->tokenizer, encoding->ids, encoding->count, false);
    if (back && characters(back) < characters(text)) speech->counts.unknown++;
    free(back);
}

static tutti_status encode(struct speech *speech, struct utterance *utterance)
{
    const tutti_encode_options options = { .size = sizeof options, .no_special = true };
    const char *text = names_at(&speech->names, utterance->text);
    tutti_encoding encoding = { 0 };
    tutti_status status;
    TRY(tutti_tokenizer_encode(speech->tokenizer, text, (int64_t)strlen(text), &options, &encoding));
    if (encoding.count > INT32_MAX - 1) FAIL(TUTTI_UNSUPPORTED, "a transcript has too many tokens");
    const size_t count = (size_t)encoding.count, begins = speech->label_count;
    TRY(memory_grow((void **)&speech->labels, &speech->label_room, begins + count + 1, sizeof *speech->labels));
    for (size_t i = 0; i < count; i++) speech->labels[begins + i] = encoding.ids[i] + 1;
    utterance->begins = begins;
    utterance->count = (int32_t)count;
    speech->label_count += count;
    count_unknown(speech, text, &encoding);
done:
    tutti_encoding_free(&encoding);
    return status;
}

tutti_status speech_set_labels(struct speech *speech)
{
    tutti_status status = choose_tokenizer(speech);
    for (int64_t i = 0; i < speech->collection.samples && status == TUTTI_OK; i++)
        status = encode(speech, &speech->utterances[i]);
    return status;
}

/* ------------------------------------------------------------------------------------------------ describe ---- */

int speech_describe(const struct collection *collection, json_t *object)
{
    const struct speech *speech = (const struct speech *)collection;
    json_t *text = json_pack("{s:s}", "tokenizer", speech->tokenizer_json);
    int failed = text ? 0 : -1;
    if (speech->column) failed |= json_object_set_new(text, "column", json_string(speech->column));
    failed |= json_object_set_new(object, "rate", json_integer(speech->rate));
    return failed | json_object_set_new(object, "text", text);
}

tutti_status speech_restore(struct speech *speech, const char *description)
{
    json_t *object = description ? json_loads(description, 0, NULL) : NULL;
    const char *kind = json_string_value(json_object_get(object, "kind"));
    const json_t *text = json_object_get(object, "text");
    const char *tokenizer = json_string_value(json_object_get(text, "tokenizer"));
    const char *column = json_string_value(json_object_get(text, "column"));
    tutti_status status = TUTTI_OK;
    speech->described = kind && !strcmp(kind, "speech");
    speech->foreign = kind && !speech->described;
    if (speech->described && !tokenizer)
        FAIL(TUTTI_FORMAT, "the description of the speech that the network was trained on is damaged");
    if (speech->described && !(speech->tokenizer_json = memory_copy_text(tokenizer)))
        FAIL(TUTTI_NO_MEMORY, "no memory for a tokenizer");
    if (speech->described && column && !speech->column && !(speech->column = memory_copy_text(column)))
        FAIL(TUTTI_NO_MEMORY, "no memory for the name of a column");
done:
    json_decref(object);
    return status;
}

/* ------------------------------------------------------------------------------------------------- inspect ---- */

static json_t *list_seconds(const struct speech *speech)
{
    const size_t count = (size_t)speech->collection.samples;
    double sum = 0, *seconds = memory_new(count + 1, sizeof *seconds);
    if (!seconds) return NULL;
    for (size_t i = 0; i < count; i++) {
        seconds[i] = (double)speech->utterances[i].samples / speech->rate;
        sum += seconds[i];
    }
    qsort(seconds, count, sizeof *seconds, number_compare);
    json_t *spread = json_pack("{s:f, s:f, s:f, s:f}", "least", seconds[0], "median", seconds[count / 2], "largest",
        seconds[count > 0 ? count - 1 : 0], "sum", sum);
    free(seconds);
    return spread;
}

int speech_inspect(const struct collection *collection, int64_t most, json_t *object)
{
    const struct speech *speech = (const struct speech *)collection;
    const struct speech_counts *counts = &speech->counts;
    int64_t labels = 0;
    (void)most;
    for (int64_t i = 0; i < collection->samples; i++) labels += speech->utterances[i].count;
    json_t *transcripts = json_pack("{s:I, s:I, s:I, s:I, s:I, s:I}", "vocabulary",
        (json_int_t)tutti_tokenizer_size(speech->tokenizer), "tokens", (json_int_t)labels, "empty",
        (json_int_t)counts->empty, "longer_than_frames", (json_int_t)counts->long_labels, "long_recordings",
        (json_int_t)counts->long_files, "unreadable", (json_int_t)counts->unreadable);
    int failed = json_object_set_new(object, "rate", json_integer(speech->rate));
    if (collection->samples > 0) failed |= json_object_set_new(transcripts, "first", inspect_text(text_of(speech, 0)));
    failed |= json_object_set_new(object, "transcripts", transcripts);
    return failed | json_object_set_new(object, "seconds", list_seconds(speech));
}
