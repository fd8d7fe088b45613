/* Tokenizers: text to ids and back, equal to those of Hugging Face's tokenizers. */
#ifndef TUTTI_TEXT_H
#define TUTTI_TEXT_H

#include <tutti.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tutti_tokenizer tutti_tokenizer;

/* Opens "bytes" (256 tokens, one for each byte of UTF-8), a tokenizer.json, a vocab.txt (WordPiece, as BERT's), a
 * merges.txt with a vocab.json next to it (byte-level BPE, as GPT-2's), a tokenizer.model (SentencePiece's), or a
 * folder with one of these. What the file asks for and this library does not know is refused by its name. Several
 * threads may use the tokenizer afterwards. Returns NULL on failure. */
TUTTI_API tutti_tokenizer *tutti_tokenizer_open(const char *path);
/* Reads the text of a tokenizer.json. Returns NULL on failure. */
TUTTI_API tutti_tokenizer *tutti_tokenizer_parse(const char *json);

typedef struct tutti_tokenizer_options {
    size_t size;      /* sizeof(tutti_tokenizer_options), or 0 */
    const char *kind; /* "bpe" (byte-level), "wordpiece", "characters" or "words"; NULL: bpe */
    int64_t tokens;   /* of the vocabulary, at most; 0: 8000, for words 32,000, for characters all that occur */
    int64_t least; /* pairs, characters and words seen less often than this become no token; 0: 2, for characters 1 */
    const char *const *special; /* tokens that stand for themselves, [special_count]; they have the first ids */
    int64_t special_count;
    bool lowercase; /* text becomes lower case first */
} tutti_tokenizer_options;

/* Learns a tokenizer from texts [count]. bytes: their sizes; NULL: they end with NUL. "bpe" learns the merges that
 * Hugging Face's trainer learns from the same texts. Returns NULL on failure. */
TUTTI_API tutti_tokenizer *tutti_tokenizer_train(
    const char *const *texts, const int64_t *bytes, int64_t count, const tutti_tokenizer_options *options);
TUTTI_API void tutti_tokenizer_close(tutti_tokenizer *tokenizer); /* takes NULL */

typedef struct tutti_encoding {
    int64_t count;
    int32_t *ids;   /* [count] */
    int32_t *types; /* [count]; 0: of the first text, 1: of the second */
} tutti_encoding;

typedef struct tutti_encode_options {
    size_t size;      /* sizeof(tutti_encode_options), or 0 */
    const char *pair; /* the second text; NULL: none */
    int64_t pair_bytes;
    bool no_special; /* without the tokens that the tokenizer puts around texts */
    int64_t most; /* longer texts are cut to so many ids at their ends, the longer text of a pair first; 0: no limit */
} tutti_encode_options;

/* Encodes a text. Bytes that are not UTF-8 count as U+FFFD, one for each longest beginning of a character, as Python's
 * errors="replace" has it. On success the caller frees the encoding by tutti_encoding_free(). */
TUTTI_API tutti_status tutti_tokenizer_encode(const tutti_tokenizer *tokenizer, const char *text, int64_t bytes,
    const tutti_encode_options *options, tutti_encoding *encoding);
TUTTI_API void tutti_encoding_free(tutti_encoding *encoding); /* takes NULL, and what is zero */
/* Returns the text of ids, which the caller frees by free(); NULL on failure. Ids below 0 are padding. keep_special:
 * with special tokens, such as [SEP]. Bytes that are not UTF-8 become U+FFFD. */
TUTTI_API char *tutti_tokenizer_decode(
    const tutti_tokenizer *tokenizer, const int32_t *ids, int64_t count, bool keep_special);

TUTTI_API int64_t tutti_tokenizer_size(const tutti_tokenizer *tokenizer);                  /* all ids are below it */
TUTTI_API int32_t tutti_tokenizer_id(const tutti_tokenizer *tokenizer, const char *token); /* -1: there is none */
/* Returns a token as the vocabulary writes it; NULL: there is none of this id. */
TUTTI_API const char *tutti_tokenizer_token(const tutti_tokenizer *tokenizer, int32_t id);
/* Returns the id that ends a text, such as </s>, <|endoftext|> or [SEP]; -1: there is none. */
TUTTI_API int32_t tutti_tokenizer_end(const tutti_tokenizer *tokenizer);
/* Returns the tokenizer as the text of a tokenizer.json, which the caller frees by free(); NULL on failure. */
TUTTI_API char *tutti_tokenizer_json(const tutti_tokenizer *tokenizer);

#ifdef __cplusplus
}
#endif

#endif
