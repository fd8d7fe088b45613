/* How good predictions are: accuracy, top-k, precision, recall, F1, confusion, intersection over union, R2 and errors.
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
    /* Labels of a sample, one for each pixel: outputs [classes][labels], targets [labels]; without classes, the numbers
     * of an output. 0: 1 */
    int64_t labels;
    int top;   /* of top-k; 0: 5, or fewer classes */
    int worst; /* samples with the largest losses that are kept; 0: 16 */
} tutti_scores_options;

typedef struct tutti_scores_summary {
    size_t size; /* sizeof(tutti_scores_summary), or 0; set it before the call */
    int64_t samples, labels;
    double loss; /* mean cross-entropy, or mean squared error */
    /* Of classes, 0 to 1: the share of right labels, and of labels whose class is among the `top` likeliest. Precision,
     * recall, F1 and intersection over union are means over the classes that occur. */
    double accuracy, top_accuracy, precision, recall, f1, iou;
    /* Of numbers: coefficient of determination, mean absolute error, root of the mean squared error. */
    double r2, mae, rmse;
} tutti_scores_summary; /* what does not apply is NaN */

typedef struct tutti_class_scores {
    size_t size;     /* sizeof(tutti_class_scores), or 0; set it before the call */
    int64_t support; /* labels of the class */
    double precision, recall, f1, iou;
} tutti_class_scores;

typedef struct tutti_mistake {
    size_t size;   /* sizeof(tutti_mistake), or 0; set it before the call */
    int64_t index; /* of the sample in its source */
    int64_t target, predicted;
    double probability, loss; /* of the predicted class; of the sample */
} tutti_mistake;

/* Returns NULL on failure. */
TUTTI_API tutti_scores *tutti_scores_new(const tutti_scores_options *options);
TUTTI_API void tutti_scores_free(tutti_scores *scores);
TUTTI_API void tutti_scores_reset(tutti_scores *scores);
/* Adds `samples` predictions; outputs are logits or numbers. indices: of the samples in their source, or NULL. Labels
 * below 0 do not count. */
TUTTI_API tutti_status tutti_scores_add(
    tutti_scores *scores, const float *outputs, const void *targets, const int64_t *indices, int64_t samples);
TUTTI_API tutti_status tutti_scores_summarise(const tutti_scores *scores, tutti_scores_summary *summary);
/* Errors: TUTTI_INVALID if there is no such class. */
TUTTI_API tutti_status tutti_scores_class(const tutti_scores *scores, int64_t number, tutti_class_scores *of_class);
/* Returns how many labels of each class were predicted as each class, [classes of targets][classes predicted]; NULL
 * without classes. Valid until tutti_scores_free(). */
TUTTI_API const int64_t *tutti_scores_confusion(const tutti_scores *scores);
/* Describes the wrongly predicted sample with the position-th largest loss. Errors: TUTTI_INVALID past the last that is
 * kept. */
TUTTI_API tutti_status tutti_scores_mistake(const tutti_scores *scores, int position, tutti_mistake *mistake);
/* tutti_evaluate_source() that also fills scores, over all ranks; they are reset first. */
TUTTI_API tutti_status tutti_evaluate_scores(
    tutti_trainer *trainer, const tutti_source *source, tutti_scores *scores, tutti_metrics *metrics);

#ifdef __cplusplus
}
#endif
#endif
