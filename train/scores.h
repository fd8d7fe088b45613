/* What tutti_scores.h counts. */
#ifndef TRAIN_SCORES_H
#define TRAIN_SCORES_H

#include "train/spans.h"
#include "tutti_scores.h"

/* Order of the exact counts: these, then for each class its labels, its predictions and the correct ones of these,
 * then the confusion matrix, if there is one. */
enum {
    SCORES_SEEN,
    SCORES_SAMPLES,
    SCORES_LABELS,
    SCORES_RIGHT,
    SCORES_TOP_RIGHT,
    SCORES_SPANS,
    SCORES_SPANS_PREDICTED,
    SCORES_SPANS_RIGHT,
    SCORES_EDITS, /* of characters, and of words */
    SCORES_WORD_EDITS,
    SCORES_WORDS,
    SCORES_TOTALS
};
enum { CLASS_SUPPORT, CLASS_PREDICTED, CLASS_RIGHT, CLASS_COUNTS };
/* Most classes of a confusion matrix: that of 4,096 classes has 128 MiB. */
enum { SCORES_MATRIX_CLASSES = 4096 };

/* For one number of a sample: the number of targets, their mean and the sum of squared differences from it (Welford
 * 1962); the sum of squared errors. */
struct moments {
    double count, mean, spread, squared;
};
struct score_sums {
    double loss, absolute;
};

struct tutti_scores {
    int64_t classes, labels;
    int top, worst;
    int64_t *counts, *of_classes, *confusion; /* the last two are parts of the first; confusion may be NULL */
    int64_t count;                            /* of them */
    struct score_sums sums;
    struct moments *moments; /* [labels] of numbers, else NULL */
    double *units;           /* [labels] of numbers, else NULL */
    struct span_tag *spans;  /* [classes] if these are tags of spans, else NULL */
    tutti_mistake *mistakes; /* [worst], the worst one first */
    int mistake_count;
    int64_t transcript; /* labels of a target; 0: samples are no transcripts */
    int blank;
    char *(*text)(void *user, const int32_t *labels, int64_t count);
    void *user;
};

/* Strides in the outputs of a sample: elements from one class to the next, and from one label to the next. `count`: how
 * many labels a sample of the batch has, at most as many as the scores are for. */
struct score_layout {
    int64_t classes, labels, count;
};
/* Does what tutti_scores_add() does, for outputs with this layout. */
tutti_status scores_take(tutti_scores *scores, const float *outputs, struct score_layout layout, const void *targets,
    const int64_t *indices, int64_t samples);
/* transcripts.c: counts one sample of `steps` steps. mistake->error: how many of its characters are wrong. */
tutti_status scores_add_transcript(
    tutti_scores *scores, const float *outputs, int64_t steps, const int32_t *target, tutti_mistake *mistake);
/* Keeps a mistake if it is one of the worst. */
void scores_keep(tutti_scores *scores, const tutti_mistake *mistake);
/* Joins the moments of other targets (Chan, Golub and LeVeque 1983). */
void moments_join(struct moments *to, const struct moments *more);

#endif
