#include "tools/folds.h"

#include <math.h>
#include <string.h>

bool folds_name(char *name, size_t size, const char *of, int fold)
{
    const int length = snprintf(name, size, "%s.fold%d", of, fold + 1);
    return length >= 0 && (size_t)length < size;
}

size_t folds_position(const char *path)
{
    const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path, *dot = strrchr(base, '.');
    return dot && dot != base ? (size_t)(dot - path) : strlen(path);
}

double folds_mean(const double *values, int64_t count, double *deviation)
{
    double sum = 0, squares = 0;
    for (int64_t i = 0; i < count; i++) sum += values[i];
    const double mean = sum / (double)count;
    for (int64_t i = 0; i < count; i++) squares += (values[i] - mean) * (values[i] - mean);
    *deviation = sqrt(squares / (double)(count - 1));
    return mean;
}

void folds_text(const struct folds *folds)
{
    double of_loss, of_accuracy;
    const double loss = folds_mean(folds->losses, folds->count, &of_loss);
    const double accuracy = folds_mean(folds->accuracies, folds->count, &of_accuracy);
    for (int64_t i = 0; i < folds->count; i++) {
        fprintf(stderr, "fold %lld of %lld: ", (long long)i + 1, (long long)folds->count);
        if (isfinite(folds->accuracies[i])) fprintf(stderr, "accuracy %.2f %%, ", 100 * folds->accuracies[i]);
        fprintf(stderr, "loss %.6g\n", folds->losses[i]);
    }
    fprintf(stderr, "mean of %lld folds: ", (long long)folds->count);
    if (isfinite(accuracy)) fprintf(stderr, "accuracy %.2f +- %.2f %%, ", 100 * accuracy, 100 * of_accuracy);
    fprintf(stderr, "loss %.6g +- %.6g\n", loss, of_loss);
}

tutti_status folds_json(const struct folds *folds)
{
    struct json_line line;
    double deviation;
    json_line_begin(&line, stdout);
    json_line_integer(&line, "folds", folds->count);
    json_line_number(&line, "test_accuracy", folds_mean(folds->accuracies, folds->count, &deviation));
    json_line_number(&line, "test_accuracy_deviation", deviation);
    json_line_number(&line, "test_loss", folds_mean(folds->losses, folds->count, &deviation));
    json_line_number(&line, "test_loss_deviation", deviation);
    return json_line_end(&line);
}
