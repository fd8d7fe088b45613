/* k-fold evaluation: the training samples in K parts, each of which is once the test. */
#ifndef TOOLS_FOLDS_H
#define TOOLS_FOLDS_H

#include "tools/labels.h"
#include "tools/results.h"

enum { FOLDS_MOST = 100 };

/* Some samples of a source. */
struct chosen {
    const tutti_source *of;
    int64_t *indices, *room; /* room: for those of a read */
    int64_t count;
    void (*begin_epoch)(void *user, int64_t epoch); /* of the source, or NULL */
    tutti_source source;                            /* reads from this struct: do not move it */
};

struct folds {
    int64_t count;
    int *fold_of; /* [samples], from 0 */
    struct chosen train, test;
    double losses[FOLDS_MOST], accuracies[FOLDS_MOST];
};

/* Divides the samples by the seed; labels: so that each fold has its part of each class, or NULL. The source must
 * outlive the folds. */
tutti_status folds_open(
    struct folds *folds, int64_t count, const tutti_source *source, const struct labels *labels, uint64_t seed);
void folds_close(struct folds *folds);
/* Makes `test` the samples of this fold, from 0, and `train` all others. */
void folds_select(struct folds *folds, int fold);
/* For tutti_fitting.begin_epoch. */
void folds_begin_epoch(void *chosen, int64_t epoch);

/* A line for each fold, and the means with their deviations, on standard error; the means as a JSON line. */
void folds_text(const struct folds *folds);
tutti_status folds_json(const struct folds *folds);

#endif
