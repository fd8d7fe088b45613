/* Inside of texts: tokens of all samples, and where each begins. text.c opens them; a reader of table.c, files.c or
 * stream.c finds them; samples.c keeps what is known of each, and tokens.c its tokens. */
#ifndef DATA_TEXT_TEXTS_H
#define DATA_TEXT_TEXTS_H

#include "base/text.h"
#include "base/threads.h"
#include "data/collection.h"
#include "data/column.h"
#include "data/names.h"
#include "data/statistics.h"
#include "tutti_text.h"

enum { TEXTS_FILES = 3, TEXTS_TOKENS = 512 };

/* Ids of all texts, one after the other. */
struct token_store {
    void *ids;
    int width; /* bytes of an id: 1, 2 or 4, as the vocabulary needs */
    size_t count, room;
    int32_t unknown;       /* the id of what the vocabulary does not have; -1: none */
    int64_t unknown_count; /* ... how many there are */
};

struct text_sample {
    int64_t begins, whole; /* its first token; how many there were before it was cut */
    int32_t count, first;  /* tokens; those of the first of two texts */
};

/* A word of a sample whose words have tags. */
struct text_word {
    size_t name;   /* in text_tags.names */
    int32_t token; /* its first token in the sample; -1: none, because the sample was cut or the word has no token */
    int32_t tag;   /* a class; -1: none */
};

struct text_tags {
    bool on; /* samples are sentences of words, and targets a tag for each */
    struct names names;
    struct text_word *words;
    size_t count, room;
    struct text_sentence {
        size_t begins, ends; /* among the words */
    } * sentences;           /* [samples] */
    size_t sentences_room;
    int32_t *before, *after; /* tokens that the tokenizer puts around a text */
    int64_t before_count, after_count;
    bool spaced;       /* words after the first are encoded with a blank before them */
    bool blank_alone;  /* ... which is a token of its own */
    struct names line; /* words of the sentence that is being read, with a NUL after each */
    int64_t cut_words; /* that have no token */
};

struct text_file {
    char *path;
    int part;       /* PART_OPEN: its samples are divided */
    int64_t begins; /* its first sample */
};

/* Blocks of one part of a stream: where the first one begins among samples, and among tokens. */
struct text_run {
    int64_t samples, tokens;
};

/* Room in what has one entry for each sample. */
struct text_room {
    size_t samples, rows, parts, names;
};

/* What is counted while texts are read. */
struct text_counts {
    int64_t bytes, cut, empty, broken, no_target;
    int64_t left_out;   /* texts without a token, besides empty fields of a table */
    struct text listed; /* ... names of the first ones */
};

/* Texts that wait to be encoded together. */
struct text_queue {
    struct thread_pool *pool;
    char *bytes; /* of texts that are copied */
    size_t used, room;
    struct queued *items;
    size_t count, items_room;
    const char *learns; /* the kind of the tokenizer that is learned from what waits; NULL: the tokenizer is open */
};

/* Targets, by class and by number until it is known which of them they are. */
struct text_targets {
    struct table_classes classes;
    double *numbers; /* [samples]; NaN: it is not one */
    size_t numbers_room, labels_room;
    /* They are classes (texts_end_targets() or the description decides); too many for it; some are not numbers. */
    bool by_class, many, words;
    struct text_tags tags;
};

struct texts {
    struct collection collection; /* first: they are one */
    tutti_tokenizer *tokenizer;
    char *tokenizer_json;
    const tutti_data_options *options; /* while it is opened */
    bool described;                    /* as in the training of a network */
    bool pairs, stream;                /* stream: blocks of one long text, of a language model */
    int64_t most;                      /* tokens of a sample */
    char *columns[2], *target;         /* names; NULL: none */
    struct token_store tokens;
    struct text_sample *samples; /* [samples]; NULL for a stream */
    struct text_targets targets;
    struct standards of_targets; /* of one number, or empty */
    const char **class_names;
    int64_t *rows; /* in their file, from 1 on; NULL: not of a table */
    struct names names;
    size_t *name_at; /* of files that are samples; NULL: a table or a stream */
    struct text_room room;
    struct text_file files[TEXTS_FILES];
    int file_count;
    struct text_run runs[TEXTS_FILES];
    int run_count;
    struct text_counts counts;
    struct text_queue queue;
};

/* tokenizer.c: opens the tokenizer, or learns it. */
/* Opens a tokenizer by its path, or by its JSON. */
tutti_tokenizer *texts_tokenizer(const char *given);
/* Whether a value of --tokenizer is the kind of one that is learned. */
bool texts_is_learned(const char *given);
/* Opens the one that the options or the description name, or has it learned. */
tutti_status texts_choose_tokenizer(struct texts *texts);
/* Opens it for a stream, for which none is learned. */
tutti_status texts_choose_for_stream(struct texts *texts);
/* Learns it from texts [count] with so many bytes. */
tutti_status texts_learn(struct texts *texts, const char *const *lines, const int64_t *bytes, int64_t count);

/* tokens.c: encodes texts on several threads. */
tutti_status token_store_add(struct token_store *store, const int32_t *ids, int64_t count);
int32_t token_store_at(const struct token_store *store, int64_t position);
void token_store_read(const struct token_store *store, int64_t position, int64_t count, int32_t *ids);
/* Adds a text, or two, as the next sample's; pair NULL: one. They are copied. */
tutti_status texts_queue(struct texts *texts, const char *text, size_t bytes, const char *pair, size_t pair_bytes);
/* Encodes what waits, with a tokenizer that is learned from it before if it is not open. */
tutti_status texts_flush(struct texts *texts);
/* Adds a long text to a stream, in pieces that end where lines do. It stays where it is. */
tutti_status texts_stream(struct texts *texts, const char *text, size_t bytes);

/* samples.c: adds a sample to what has one entry for each; its text is queued next. `row` 0: it is a file with this
 * name, or a text in memory. */
tutti_status texts_add_sample(struct texts *texts, int part, int64_t row, const char *name);
/* Sets the target of the last sample by its text. A sample without one has the class -1 and the number 0. */
tutti_status texts_set_target(struct texts *texts, const char *text);
/* Decides what targets are, once all are there, and numbers the classes. */
tutti_status texts_end_targets(struct texts *texts);
/* Gives the classes their names, and labels, which are numbers in the order of their reading, those of the names. */
tutti_status texts_name_classes(struct texts *texts, int32_t *labels, size_t count);
/* Counts a text that has no token. */
void texts_leave_out(struct texts *texts, const char *name);
/* Leaves out samples that have no token. */
void texts_drop_empty(struct texts *texts);

/* The file of a row, and the name of a sample for people. */
const char *texts_path(const struct texts *texts, int64_t index);
void texts_name_sample(const struct collection *collection, int64_t index, char *text, size_t size);

/* words.c: encodes words one by one. Finds out how the tokenizer treats blanks, and what it puts around texts. */
tutti_status words_begin(struct text_tags *tags, const tutti_tokenizer *tokenizer);
/* Encodes words that have a NUL after each. types[i] of the encoding is the number of the word that begins at token i,
 * from 1 on, or 0. *whole: how many tokens there are before they are cut to `most`. */
tutti_status words_encode(const struct text_tags *tags, const tutti_tokenizer *tokenizer, const char *words,
    size_t bytes, int64_t most, tutti_encoding *encoding, int64_t *whole);
/* Sets the first tokens of a sample's words by what words_encode() said. */
void words_set_tokens(struct texts *texts, int64_t sample, const tutti_encoding *encoding);

/* tags.c: adds words to the sentence that is being read; tag NULL: it has none. */
tutti_status tags_add_word(struct texts *texts, const char *word, const char *tag);
/* Makes a sample of them, unless there are none. */
tutti_status tags_end_sentence(struct texts *texts, int part, int64_t row, const char *name);
/* Adds a sentence whose words are separated by blanks, without tags. */
tutti_status tags_add_text(struct texts *texts, int part, const char *name, const char *text);
/* Numbers the classes, once all words are there. */
tutti_status tags_end(struct texts *texts);
/* Writes the targets of a sample's tokens, [length]. */
void tags_read(const struct texts *texts, int64_t sample, int64_t length, int32_t *targets);
void tags_free(struct text_tags *tags);
/* collection.renumber and collection.word */
void tags_renumber(struct collection *collection, const int32_t *numbers);
const char *tags_word(const struct collection *collection, int64_t index, int64_t word, int64_t *token);

/* conll.c: finds and reads files with a word and its tag on each line. */
tutti_status text_conll_find(struct texts *texts, const char *path);
bool text_conll_is(const struct texts *texts);
tutti_status text_conll_read(struct texts *texts);

/* table.c: reads rows of tables and lines of JSON. */
bool text_table_has_name(const char *path);
/* Whether samples are rows of tables that have fields, not lines of JSON. */
bool text_table_has_rows(const struct texts *texts);
tutti_status text_table_find(struct texts *texts, const char *path);
tutti_status text_table_read(struct texts *texts);
/* files.c: reads folders of classes, and plain files. *found: whether there are some. */
static inline bool text_file_has_name(const char *path)
{
    return text_has_extension(path, ".txt");
}
tutti_status text_files_read(struct texts *texts, const char *path, bool *found);
/* Reads the files or texts of the options, which have no targets. */
tutti_status text_files_read_given(struct texts *texts);
/* stream.c: reads plain text for language models, and divides it into blocks. */
tutti_status text_stream_read(struct texts *texts, const char *path, bool *found);
/* The token where a block begins. */
int64_t text_stream_block(const struct texts *texts, int64_t index);

/* describe.c: what weights must know; and sets it from what they say. */
int texts_describe(const struct collection *collection, struct json_t *object);
tutti_status texts_restore(struct texts *texts, const char *description);
/* collection.inspect */
int texts_inspect(const struct collection *collection, int64_t most, struct json_t *object);

/* Tells a line, which memory_format() has made, to the caller, and frees it; NULL: there was no memory. */
void texts_note(const struct texts *texts, char *line);

#endif
