/* k-fold evaluation: the training samples in K parts, each of which is once the test. */
#ifndef TOOLS_FOLDS_H
#define TOOLS_FOLDS_H

#include "tools/results.h"

enum { FOLDS_MOST = 100 };

/* The data divide themselves (tutti_data_options.folds). */
struct folds {
    int64_t count;
    double losses[FOLDS_MOST], accuracies[FOLDS_MOST];
};

/* "m" of the fold 0: "m.fold1". Returns false where it is too long. */
bool folds_name(char *name, size_t size, const char *of, int fold);

/* The mean, and the deviation as of a sample (divided by count - 1). */
double folds_mean(const double *values, int64_t count, double *deviation);
/* A line for each fold, and the means with their deviations, on standard error; the means as a JSON line. */
void folds_text(const struct folds *folds);
tutti_status folds_json(const struct folds *folds);

#endif
