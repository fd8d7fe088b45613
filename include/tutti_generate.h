/* Texts from a language model, token by token. docs/generation.md describes it; `tutti generate` is the command. The
 * conventions are those of tutti.h. */
#ifndef TUTTI_GENERATE_H
#define TUTTI_GENERATE_H

#include <tutti.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A network in the form that continues texts: a device keeps what each token leaves for those after it, keys and values
 * of attention and states of recurrent layers, so a token costs one pass over the weights, however long the text is.
 * One thread at a time may use a generator. */
typedef struct tutti_generator tutti_generator;
typedef struct tutti_generator_options {
    size_t size;    /* sizeof(tutti_generator_options), or 0 */
    int64_t length; /* tokens of the longest text, with its beginning. Caches have room for them. 0: 1024 */
    int64_t texts;  /* that are continued together, at most; 0: 1 */
    /* Precision, shares and the rest of what tutti_compile() gets; loss, batch, sequence, outputs and carries are the
     * generator's. parameters_of: a trainer of the network, whose newest parameters are used, also while it trains.
     * Without it, the generator has parameters of its own, which tutti_load_weights() and the like load into
     * tutti_generator_trainer(). May be NULL. */
    const tutti_training *training;
} tutti_generator_options;

/* Makes a generator of any network whose `logits` [TUTTI_SEQUENCE, vocabulary] are those of each next token, and whose
 * only input is `ids`, int32 [TUTTI_SEQUENCE]. A token may see others only in causal attention, as of tutti_attention()
 * or written by hand with a mask, and in recurrent layers of one direction. The network is not changed, and may be
 * freed afterwards. options may be NULL. Returns NULL on failure. Errors: TUTTI_UNSUPPORTED, with the layer's name,
 * where a layer joins tokens in another way; TUTTI_SHAPE, TUTTI_INVALID. */
TUTTI_API tutti_generator *tutti_generator_new(
    tutti_network *network, tutti_tensor ids, tutti_tensor logits, const tutti_generator_options *options);
TUTTI_API void tutti_generator_free(tutti_generator *generator);
/* The trainer with the generator's parameters; it infers only. It lives as long as the generator. */
TUTTI_API tutti_trainer *tutti_generator_trainer(tutti_generator *generator);
/* Size of the vocabulary; tokens of each text so far. 0 for NULL. */
TUTTI_API int64_t tutti_generator_vocabulary(const tutti_generator *generator);
TUTTI_API int64_t tutti_generator_length(const tutti_generator *generator);
/* Begins new texts. */
TUTTI_API tutti_status tutti_generator_reset(tutti_generator *generator);
/* Adds `count` tokens to each of `texts` texts: ids [texts][count]. logits [texts][vocabulary] gets those of the token
 * after the last one; NULL: they are not wanted. All texts have the same number of tokens, and the number of texts
 * stays the same until tutti_generator_reset(). After a failure the texts are as they were. Errors: TUTTI_INVALID if a
 * token is not in the vocabulary, or a text would have more than tutti_generator_options.length; those of
 * tutti_infer(). */
TUTTI_API tutti_status tutti_generator_feed(
    tutti_generator *generator, const int32_t *ids, int64_t texts, int64_t count, float *logits);

/* How the next token is drawn. */
typedef struct tutti_sampling {
    size_t size;       /* sizeof(tutti_sampling), or 0 */
    float temperature; /* logits are divided by it; 0: the token with the largest one is taken */
    int64_t top_k;     /* only that many of the likeliest tokens are drawn; 0: all */
    float top_p;       /* only the likeliest tokens whose probabilities add up to it are drawn; 0: all */
    uint64_t seed;
} tutti_sampling;
/* Draws a token from logits [count], by a number that depends on the seed and on `draw` alone. A negative number: the
 * options are wrong, or no logit is finite. sampling NULL: the likeliest token. Of equally likely ones, the first. */
TUTTI_API int32_t tutti_sample(const float *logits, int64_t count, const tutti_sampling *sampling, uint64_t draw);

typedef struct tutti_generation {
    size_t size;           /* sizeof(tutti_generation), or 0 */
    const int32_t *prompt; /* [prompt_count], at least one token */
    int64_t prompt_count;
    int64_t tokens;      /* how many to add, at most; 0: until the text has tutti_generator_options.length */
    const int32_t *ends; /* [end_count]: tokens that end a text; they are not given */
    int64_t end_count;
    tutti_sampling sampling;
    /* Called for each token as it is drawn. Another result than 0 ends the text. May be NULL. */
    int (*token)(void *user, int32_t id);
    void *user;
} tutti_generation;
/* Continues a text: resets the generator, reads the prompt and draws tokens. Writes them to ids [tokens], which may be
 * NULL, and their number to *made, which may be NULL. Errors: as tutti_generator_feed(). */
TUTTI_API tutti_status tutti_generate(
    tutti_generator *generator, const tutti_generation *generation, int32_t *ids, int64_t *made);

#ifdef __cplusplus
}
#endif
#endif
