/* Metrics of predictions: accuracy, top-k, precision, recall, F1, confusion, intersection over union, R2 and errors.
 */
#ifndef TUTTI_SCORES_H
#define TUTTI_SCORES_H

#include <tutti.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tutti_scores tutti_scores;

typedef struct tutti_scores_options {
    size_t size;     /* sizeof(tutti_scores_options), or 0 */
    int64_t classes; /* outputs [classes], targets int32; 0: outputs and targets are floats */
    /* Number of labels of a sample, such as one for each pixel: outputs [classes][labels], targets [labels]. Without
     * classes: how many numbers an output has. 0: 1. For a class of each position of sequences, an output
     * [TUTTI_SEQUENCE, classes]: the largest length; batches of tutti_evaluate_scores() may be shorter */
    int64_t labels;
    int top;   /* k of top-k; 0: 5, or the number of classes if that is smaller */
    int worst; /* samples with the largest losses that are kept, at most 65536; 0: 16 */
    /* Without classes: the factor from each output to the units of the reported errors, [labels], as
     * tutti_data_info.target_std; copied. NULL: 1 */
    const float *units;
    /* Names of the classes, [classes]. If all are O or tags of spans, such as B-PER and I-PER (also with E and S, or L
     * and U), the labels of a sample are those of its words, and spans are counted. Copied. NULL: none are */
    const char *const *tags;
    /* Transcripts: outputs are logits [labels, classes] of steps, as tutti_ctc() takes them, and targets lists of so
     * many classes that end at the first number below 0. Compared are the targets and the labels of
     * tutti_ctc_labels(). 0: outputs have a class for each label */
    int64_t transcript;
    int blank; /* of transcripts: the class of a step without a label */
    /* Returns the text of labels [count], UTF-8, which is freed by free(); NULL on failure. Then characters and words
     * between blanks are compared. NULL: each label is a character, and there are no words */
    char *(*text)(void *user, const int32_t *labels, int64_t count);
    void *user;
} tutti_scores_options;

typedef struct tutti_scores_summary {
    size_t size;             /* sizeof(tutti_scores_summary), or 0; set it before the call */
    int64_t samples, labels; /* only those that count: no labels below 0, no samples that have only such labels */
    double loss;             /* mean cross-entropy over the labels, or mean squared error */
    /* For classes, 0 to 1: the share of labels predicted correctly, and of labels whose class is among the `top`
     * likeliest; among equally likely classes, the first one wins. Precision, recall, F1 and intersection over union
     * are means over the classes that occur among targets or predictions, as scikit-learn's `macro` averages with
     * zero_division 0. */
    double accuracy, top_accuracy, precision, recall, f1, iou;
    /* For numbers: coefficient of determination (mean over the numbers of an output), mean absolute error, root of
     * the mean squared error; the errors times tutti_scores_options.units. */
    double r2, mae, rmse;
    /* For tags of spans, over all types, as conlleval and seqeval have them: a predicted span is right if its first and
     * last words and its type are those of a span of the targets. */
    double span_precision, span_recall, span_f1;
    /* For transcripts: how many characters, and words, must be inserted, left out or exchanged to get the targets, over
     * the number of those of the targets. `accuracy` is the share of samples without an error then, `labels` counts the
     * characters of the targets, and the loss of a mistake is its share of wrong characters. */
    double cer, wer;
} tutti_scores_summary; /* members that do not apply are NaN */

typedef struct tutti_class_scores {
    size_t size;                       /* sizeof(tutti_class_scores), or 0; set it before the call */
    int64_t support;                   /* labels of the class */
    double precision, recall, f1, iou; /* NaN where the class occurs neither among targets nor among predictions */
} tutti_class_scores;

typedef struct tutti_mistake {
    size_t size;               /* sizeof(tutti_mistake), or 0; set it before the call */
    int64_t index;             /* of the sample in its source */
    int64_t target, predicted; /* with several labels: of the wrong one with the largest loss; for numbers: -1 */
    double probability, loss;  /* of the predicted class; of the sample: the mean over its labels */
    double error;              /* for numbers: root of their mean squared error, times the units; for transcripts: wrong
                                * characters; for classes: NaN */
} tutti_mistake;

/* Decodes logits [steps, classes] of tutti_ctc(): the likeliest class of each step, without repeats and blanks, is
 * written to labels [steps]. Returns how many labels there are. */
TUTTI_API int64_t tutti_ctc_labels(const float *logits, int64_t steps, int64_t classes, int blank, int32_t *labels);

/* Returns NULL on failure. */
TUTTI_API tutti_scores *tutti_scores_new(const tutti_scores_options *options);
TUTTI_API void tutti_scores_free(tutti_scores *scores);
TUTTI_API void tutti_scores_reset(tutti_scores *scores);
/* Adds `samples` predictions; outputs are logits or numbers. indices: positions of the samples in their source; NULL:
 * the samples are counted. Labels below 0 do not count. Errors: TUTTI_INVALID if a label is not below `classes`;
 * nothing was added. */
TUTTI_API tutti_status tutti_scores_add(
    tutti_scores *scores, const float *outputs, const void *targets, const int64_t *indices, int64_t samples);
/* Computes the metrics of what was added. */
TUTTI_API tutti_status tutti_scores_summarise(const tutti_scores *scores, tutti_scores_summary *summary);
/* Errors: TUTTI_INVALID if there is no such class. */
TUTTI_API tutti_status tutti_scores_class(const tutti_scores *scores, int64_t number, tutti_class_scores *of_class);
/* Returns how many labels of each class were predicted as each class, [classes of targets][classes predicted]; NULL
 * without classes, or with more than 4096. Valid until tutti_scores_free(). */
TUTTI_API const int64_t *tutti_scores_confusion(const tutti_scores *scores);
/* Describes the wrongly predicted sample with the position-th largest loss, from 0. Errors: TUTTI_INVALID past the last
 * that is kept. */
TUTTI_API tutti_status tutti_scores_mistake(const tutti_scores *scores, int position, tutti_mistake *mistake);
/* Evaluates as tutti_evaluate_source() does and fills `scores`, which are reset first, over all ranks. The trainer's
 * output must be what its first loss reads, with the classes at the first or the last axis; targets that are
 * probabilities count as their likeliest class, and the label `ignored` of a loss does not count. All ranks get the
 * same: counts are exact, and equal on any mix of devices that gives the same predictions; the worst mistakes are
 * those of all ranks. Errors: TUTTI_INVALID if the scores are for other classes, labels or numbers than the
 * trainer's. */
TUTTI_API tutti_status tutti_evaluate_scores(
    tutti_trainer *trainer, const tutti_source *source, tutti_scores *scores, tutti_metrics *metrics);

#ifdef __cplusplus
}
#endif
#endif
