/* How good a network's predictions are, for people, as JSON and as a file. */
#ifndef TOOLS_SCORES_H
#define TOOLS_SCORES_H

#include "formats/json_lines.h"
#include "tools/data.h"
#include "tools/session.h"
#include "tutti_scores.h"
#include "tutti_text.h"

struct judge {
    tutti_scores *scores;
    int64_t classes;            /* 0: numbers */
    const char *const *names;   /* of classes; NULL: they have numbers only */
    const char *file;           /* --scores: a table of all, or NULL */
    bool tags;                  /* classes are tags of words: losses are means over the words */
    tutti_tokenizer *tokenizer; /* of transcripts, else NULL */
    bool tokens;                /* of a language model: there are no scores, `scores` is NULL */
    const tutti_data *data;     /* that the predictions are of, and their part */
    tutti_data_part part;
};

/* A line of a table of options, over a struct judge. */
#define SCORES_OPTION(j)                                                                                         \
    {                                                                                                            \
        "scores", OPTION((j).file), "FILE",                                                                      \
            "write the scores of each class and the confusion matrix to this file as CSV", .file = OPTION_WRITES \
    }

/* Makes scores for what the session's network predicts: classes, or numbers if the data have such targets, on a part
 * of the data, which must outlive it. Returns an exit status. */
int judge_open(
    struct judge *judge, const struct session *session, const struct data *data, const struct samples *samples);
void judge_close(struct judge *judge);
/* Evaluates a source, with the scores if there are some. */
tutti_status judge_evaluate(
    const struct judge *judge, tutti_trainer *trainer, const tutti_source *source, tutti_metrics *metrics);
/* e to the power of the loss of a language model, in nats; NaN of other networks. */
double judge_perplexity(const struct judge *judge, double loss);
/* Prints one line; prints everything: also the classes as a table, their confusion if it fits a terminal, and the
 * worst mistakes. */
void judge_line(FILE *file, const struct judge *judge);
void judge_text(FILE *file, const struct judge *judge);
/* Appends the object "scores": the scores of all predictions together; with judge_json_all() also each class, the
 * confusion matrix and the worst mistakes. */
void judge_json(struct json_line *line, const struct judge *judge);
void judge_json_all(struct json_line *line, const struct judge *judge);
/* Writes --scores, if it was given. Returns an exit status. */
int judge_write(const struct judge *judge, const char *command);

#endif
