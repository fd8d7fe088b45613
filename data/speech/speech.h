/* Inside of speech: recordings with transcripts. speech.c opens and reads them. */
#ifndef DATA_SPEECH_SPEECH_H
#define DATA_SPEECH_SPEECH_H

#include "base/text.h"
#include "data/collection.h"
#include "data/mel.h"
#include "data/names.h"
#include "tutti_text.h"

/* A step of a sample has SPEECH_FRAMES frames of the spectrogram, and the next one begins SPEECH_STRIDE frames later:
 * a dense layer over steps is a convolution over time with this stride. */
enum { SPEECH_BANDS = 40, SPEECH_FRAMES = 4, SPEECH_STRIDE = 2, SPEECH_MOST_SECONDS = 60 };
/* Numbers of a step. The last one is 1, and 0 in padding. */
enum { SPEECH_FEATURES = SPEECH_BANDS * SPEECH_FRAMES + 1 };

struct utterance {
    size_t name, text;
    int64_t samples; /* at the rate of all */
    int64_t steps;
    int64_t row;   /* of a table, from 1 on; 0: none */
    size_t begins; /* its first label */
    int32_t count; /* labels */
};

/* What is left out, by its reason. */
struct speech_counts {
    int64_t unreadable, empty, long_labels, long_files;
    int64_t unknown; /* transcripts with characters that the tokenizer does not know: these stay */
};

struct speech {
    struct collection collection; /* first: they are one */
    const tutti_data_options *options;
    struct names names;
    struct utterance *utterances; /* [samples] */
    size_t room, part_room;
    int32_t *labels;
    size_t label_count, label_room;
    bool described, unlabelled; /* as in the training of a network; files to transcribe */
    bool foreign;               /* the network was trained on other data: transcripts are ignored */
    tutti_tokenizer *tokenizer;
    char *tokenizer_json, *column; /* column: that of the transcripts, as it was asked for, or NULL */
    int rate;
    struct mel *mel;
    int window;
    struct augment augment;
    struct speech_counts counts;
    char *problem; /* why the first unreadable one is so */
};

/* utterances.c: adds a recording; text NULL: it has no transcript. */
tutti_status speech_add(struct speech *speech, const char *path, const char *text, int part, int64_t row);

/* transcript_table.c: reads DIR/metadata.csv, DIR/train.tsv and so on, or the table of this name. There are none if
 * the first row names no recording. */
tutti_status speech_read_tables(struct speech *speech, const char *path, bool folder);
/* transcripts.c: reads NAME.txt or NAME.lab next to NAME.wav, and ID.trans.txt of LibriSpeech, in and below a folder.
 */
tutti_status speech_read_folder(struct speech *speech, const char *path);
tutti_status speech_read_given(struct speech *speech);

/* labels.c: opens or learns the tokenizer, and sets the labels of all utterances. */
tutti_status speech_set_labels(struct speech *speech);
/* Sets the description of the training. */
tutti_status speech_restore(struct speech *speech, const char *description);
/* collection.describe and collection.inspect */
int speech_describe(const struct collection *collection, struct json_t *object);
int speech_inspect(const struct collection *collection, int64_t most, struct json_t *object);

#endif
