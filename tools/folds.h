/* k-fold evaluation: the training samples are divided into K parts, each of which is the test part once. */
#ifndef TOOLS_FOLDS_H
#define TOOLS_FOLDS_H

#include "tools/results.h"

enum { FOLDS_MOST = 100 };

/* The data source divides the samples (tutti_data_options.folds). */
struct folds {
    int64_t count;
    double losses[FOLDS_MOST], accuracies[FOLDS_MOST];
};

/* "m" of the fold 0: "m.fold1". Returns false if it is too long. */
bool folds_name(char *name, size_t size, const char *of, int fold);
/* Where the number of a fold stands in the name of a file, "a/b.html": before ".html". */
size_t folds_position(const char *path);

/* Returns the mean, and sets the standard deviation of a sample (divided by count - 1). */
double folds_mean(const double *values, int64_t count, double *deviation);
/* Prints a line for each fold, and the means with their deviations, to standard error; prints the means as a JSON
 * line. */
void folds_text(const struct folds *folds);
tutti_status folds_json(const struct folds *folds);

#endif
