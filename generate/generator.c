/* tutti_generator: feeds tokens to the network that decode.c makes. */
#include "base/memory.h"
#include "base/options.h"
#include "generate/decode.h"
#include "tutti_generate.h"
#include "tutti_sequences.h"

#include <stdlib.h>
#include <string.h>

enum { DEFAULT_LENGTH = 1024 };
/* Tokens of a text in a call. Each number needs a plan. */
static const int64_t pieces[] = { 64, 8, 1 };

struct tutti_generator {
    struct decoding decoding;
    tutti_trainer *trainer;
    int64_t vocabulary, capacity, most_texts;
    int64_t length, texts; /* of the present texts */
    bool broken;           /* a call failed after it had added tokens */
    float *logits;         /* [texts][tokens of a piece][vocabulary] */
    int32_t *ids, *positions;
};

static tutti_status make_arrays(tutti_generator *generator)
{
    size_t rows = 0, numbers = 0;
    if (!size_multiply((size_t)generator->most_texts, (size_t)pieces[0], &rows) ||
        !size_multiply(rows, (size_t)generator->vocabulary, &numbers))
        return fail(
            TUTTI_NO_MEMORY, "there is no memory for the logits of %lld texts", (long long)generator->most_texts);
    generator->logits = memory_new(numbers, sizeof *generator->logits);
    generator->ids = memory_new(rows, sizeof *generator->ids);
    generator->positions = memory_new(rows, sizeof *generator->positions);
    return generator->logits && generator->ids && generator->positions ? TUTTI_OK : TUTTI_NO_MEMORY;
}

static tutti_status compile(tutti_generator *generator, const tutti_generator_options *options)
{
    const struct decoding *decoding = &generator->decoding;
    tutti_tensor *outputs = memory_new(decoding->carry_count + 1, sizeof *outputs);
    if (!outputs) return TUTTI_NO_MEMORY;
    for (size_t i = 0; i < decoding->carry_count; i++) outputs[i] = decoding->carries[i].output;
    const tutti_training none = { 0 };
    tutti_training training = options->training ? *options->training : none;
    training.loss = TUTTI_LOSS_NONE;
    training.losses = NULL;
    training.batch = generator->most_texts;
    training.sequence = generator->capacity < pieces[0] ? generator->capacity : pieces[0];
    training.outputs = outputs;
    training.carries = decoding->carries;
    training.output_count = training.carry_count = (int)decoding->carry_count;
    generator->trainer = tutti_compile(decoding->network, decoding->logits, &training);
    free(outputs);
    return generator->trainer ? TUTTI_OK : tutti_last_status();
}

static tutti_status open_generator(tutti_generator *generator, const tutti_network *network, tutti_tensor ids,
    tutti_tensor logits, const tutti_generator_options *given)
{
    tutti_status status;
    tutti_generator_options options;
    TRY(OPTIONS_READ(&options, given, tutti_generator_options));
    if (!network) FAIL(TUTTI_INVALID, "the network of a generator is NULL: make one with tutti_network_new()");
    if (options.length < 0 || options.texts < 0)
        FAIL(TUTTI_INVALID, "the length or the number of texts of a generator is negative");
    generator->capacity = options.length ? options.length : DEFAULT_LENGTH;
    generator->most_texts = options.texts ? options.texts : 1;
    TRY(decode_make(network, ids, logits, generator->capacity, &generator->decoding));
    generator->vocabulary = value_size(graph_at(&network->graph, logits.id), 0);
    TRY(make_arrays(generator));
    status = compile(generator, &options);
done:
    return status;
}

tutti_generator *tutti_generator_new(
    tutti_network *network, tutti_tensor ids, tutti_tensor logits, const tutti_generator_options *options)
{
    tutti_generator *generator = memory_new(1, sizeof *generator);
    if (generator && open_generator(generator, network, ids, logits, options) == TUTTI_OK) return generator;
    tutti_generator_free(generator);
    return NULL;
}

void tutti_generator_free(tutti_generator *generator)
{
    if (!generator) return;
    tutti_trainer_free(generator->trainer);
    decode_free(&generator->decoding);
    free(generator->logits);
    free(generator->ids);
    free(generator->positions);
    free(generator);
}

tutti_trainer *tutti_generator_trainer(tutti_generator *generator)
{
    return generator ? generator->trainer : NULL;
}

int64_t tutti_generator_vocabulary(const tutti_generator *generator)
{
    return generator ? generator->vocabulary : 0;
}

int64_t tutti_generator_length(const tutti_generator *generator)
{
    return generator ? generator->length : 0;
}

tutti_status tutti_generator_reset(tutti_generator *generator)
{
    if (!generator) return fail(TUTTI_INVALID, "the generator is NULL: make one with tutti_generator_new()");
    generator->length = generator->texts = 0;
    generator->broken = false;
    return generator->decoding.carry_count > 0 ? tutti_reset_carried(generator->trainer) : TUTTI_OK;
}

/* --------------------------------------------------------------------------------------------------- tokens ---- */

static tutti_status check_feed(const tutti_generator *generator, const int32_t *ids, int64_t texts, int64_t count)
{
    if (!generator) return fail(TUTTI_INVALID, "the generator is NULL: make one with tutti_generator_new()");
    if (generator->broken)
        return fail(TUTTI_INVALID, "a call failed amid its tokens: call tutti_generator_reset() and begin again");
    if (!ids || count < 1) return fail(TUTTI_INVALID, "no tokens are given: pass at least one for each text");
    if (texts < 1 || texts > generator->most_texts || (generator->length > 0 && texts != generator->texts))
        return fail(TUTTI_INVALID, "%lld texts are given: %s%lld", (long long)texts,
            generator->length > 0 ? "the present ones are " : "at least 1 is needed, and the generator takes at most ",
            (long long)(generator->length > 0 ? generator->texts : generator->most_texts));
    if (count > generator->capacity - generator->length)
        return fail(TUTTI_INVALID,
            "%lld tokens after %lld are more than the generator was made for, %lld: set "
            "tutti_generator_options.length",
            (long long)count, (long long)generator->length, (long long)generator->capacity);
    for (int64_t i = 0; i < texts * count; i++)
        if (ids[i] < 0 || ids[i] >= generator->vocabulary)
            return fail(TUTTI_INVALID, "token %lld is %d: the vocabulary has %lld tokens, from 0 on", (long long)i,
                ids[i], (long long)generator->vocabulary);
    return TUTTI_OK;
}

/* Adds `count` tokens, a piece, to each text. `ids` is at the first one of them; a text has `all` in that array. */
static tutti_status feed_piece(tutti_generator *generator, const int32_t *ids, int64_t all, int64_t count)
{
    const struct decoding *decoding = &generator->decoding;
    for (int64_t text = 0; text < generator->texts; text++)
        for (int64_t i = 0; i < count; i++) {
            generator->ids[text * count + i] = ids[text * all + i];
            generator->positions[text * count + i] = (int32_t)(generator->length + i);
        }
    const tutti_feed feeds[] = { { "ids", TUTTI_DTYPE_I32, generator->ids, count },
        { "positions", TUTTI_DTYPE_I32, generator->positions, count } };
    const tutti_fetch fetch = { decoding->logits, TUTTI_DTYPE_F32, generator->logits };
    const tutti_status status = tutti_infer(generator->trainer, feeds, 2, generator->texts, &fetch, 1);
    if (status == TUTTI_OK) generator->length += count;
    return status;
}

static int64_t piece_of(int64_t left)
{
    int i = 0;
    while (pieces[i] > left) i++;
    return pieces[i];
}

tutti_status tutti_generator_feed(
    tutti_generator *generator, const int32_t *ids, int64_t texts, int64_t count, float *logits)
{
    int64_t done = 0, piece = 0;
    tutti_status status = check_feed(generator, ids, texts, count);
    if (status != TUTTI_OK) return status;
    generator->texts = texts;
    for (; done < count && status == TUTTI_OK; done += piece) {
        piece = piece_of(count - done);
        status = feed_piece(generator, ids + done, count, piece);
    }
    generator->broken = status != TUTTI_OK;
    const size_t vocabulary = (size_t)generator->vocabulary;
    for (int64_t text = 0; status == TUTTI_OK && logits && text < texts; text++)
        memcpy(logits + (size_t)text * vocabulary, generator->logits + (size_t)((text + 1) * piece - 1) * vocabulary,
            vocabulary * sizeof *logits);
    return status;
}

static bool ends(const tutti_generation *generation, int32_t token)
{
    for (int64_t i = 0; i < generation->end_count; i++)
        if (generation->ends[i] == token) return true;
    return false;
}

tutti_status tutti_generate(tutti_generator *generator, const tutti_generation *given, int32_t *ids, int64_t *made)
{
    tutti_status status;
    tutti_generation generation;
    float *logits = NULL;
    int64_t count = 0;
    if (made) *made = 0;
    TRY(OPTIONS_READ(&generation, given, tutti_generation));
    TRY(tutti_generator_reset(generator));
    if (generation.tokens < 0 || generation.end_count < 0 || (generation.end_count > 0 && !generation.ends))
        FAIL(TUTTI_INVALID, "the number of tokens or of ends is negative, or the ends are NULL");
    logits = memory_new((size_t)generator->vocabulary, sizeof *logits);
    if (!logits) return TUTTI_NO_MEMORY;
    TRY(tutti_generator_feed(generator, generation.prompt, 1, generation.prompt_count, logits));
    const int64_t room = generator->capacity - generator->length + 1; /* the last token is not fed */
    if (generation.tokens > room)
        FAIL(TUTTI_INVALID, "%lld tokens after %lld are more than the generator was made for, %lld",
            (long long)generation.tokens, (long long)generation.prompt_count, (long long)generator->capacity);
    const int64_t most = generation.tokens > 0 ? generation.tokens : room;
    for (bool goes_on = true; goes_on; goes_on = goes_on && count < most) {
        const int32_t token = tutti_sample(logits, generator->vocabulary, &generation.sampling, (uint64_t)count);
        if (token < 0) status = tutti_last_status();
        if (token < 0 || ends(&generation, token)) break;
        if (ids) ids[count] = token;
        count++;
        goes_on = !generation.token || generation.token(generation.user, token) == 0;
        if (goes_on && count < most) TRY(tutti_generator_feed(generator, &token, 1, 1, logits));
    }
done:
    free(logits);
    if (made) *made = count;
    return status;
}
