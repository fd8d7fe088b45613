#include "tools/prepare.h"

#include "base/memory.h"
#include "base/status.h"
#include "base/text.h"
#include "tools/user_data.h"
#include "tutti_onnx.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* --------------------------------------------------------------------------------------------------- read ---- */

enum { MOST_NUMBERS = 1 << 16 };

/* Reads two lists of equally many numbers. */
static bool read_numbers(
    const json_t *object, const char *means, const char *deviations, double **mean, double **std, int *count)
{
    const json_t *first = json_object_get(object, means), *second = json_object_get(object, deviations);
    const size_t numbers = json_array_size(first);
    if (numbers > MOST_NUMBERS || json_array_size(second) != numbers) return false;
    *mean = memory_new(numbers + 1, sizeof **mean);
    *std = memory_new(numbers + 1, sizeof **std);
    if (!*mean || !*std) return false;
    for (size_t i = 0; i < numbers; i++) {
        (*mean)[i] = json_number_value(json_array_get(first, i));
        (*std)[i] = json_number_value(json_array_get(second, i));
        if (!isfinite((*mean)[i]) || !((*std)[i] > 0)) return false;
    }
    *count = (int)numbers;
    return true;
}

static bool read_object(const json_t *object, struct preparation *p)
{
    static const char *const images[] = { "images", "masks", "IDX", "CIFAR-10", "CIFAR-100", "digits" };
    const char *kind = json_string_value(json_object_get(object, "kind"));
    if (!kind) return false;
    p->known = true;
    p->bytes = json_is_true(json_object_get(object, "bytes"));
    for (size_t i = 0; i < sizeof(images) / sizeof(images[0]); i++) p->bytes = p->bytes || !strcmp(kind, images[i]);
    p->recordings = !strcmp(kind, "recordings");
    p->table = !strcmp(kind, "table");
    p->texts = p->table && json_object_get(object, "prepared") && !json_object_get(object, "mean");
    return read_numbers(object, "mean", "std", &p->mean, &p->std, &p->count) &&
        read_numbers(object, "target_mean", "target_std", &p->target_mean, &p->target_std, &p->target_count);
}

tutti_status preparation_read(const char *weights, struct preparation *preparation)
{
    *preparation = (struct preparation) { .known = false };
    char *text = weights ? user_data_saved_text(weights) : NULL;
    if (!text) return TUTTI_OK;
    char *begin = text_ends_with(weights, ".onnx") ? tutti_onnx_metadata(weights, "tutti.network_input") : NULL;
    preparation->nodes = begin != NULL;
    free(begin);
    json_t *object = json_loads(text, 0, NULL);
    const bool good = read_object(object, preparation);
    json_decref(object);
    free(text);
    return good ? TUTTI_OK : fail(TUTTI_FORMAT, "%s: what it says of its data is damaged", weights);
}

void preparation_free(struct preparation *preparation)
{
    free(preparation->mean);
    free(preparation->std);
    free(preparation->target_mean);
    free(preparation->target_std);
}

/* -------------------------------------------------------------------------------------------------- apply ---- */

/* What is done to a number x. */
static const char *formula(const struct preparation *p)
{
    if (p->recordings) return "a log mel spectrogram, standardised";
    if (p->bytes) return p->count ? "(x / 255 - mean) / std" : "x / 255";
    return p->count ? "(x - mean) / std" : "x";
}

void preparation_report(const struct preparation *p, const char *weights, bool prepares)
{
    const bool nothing = !p->bytes && !p->recordings && !p->texts && p->count == 0;
    if (p->nodes)
        fprintf(stderr, "inputs are prepared by nodes of the file, and so are outputs\n");
    else if (!p->known)
        fprintf(stderr, "inputs are not prepared: %s not record what was done in training\n",
            weights && !text_ends_with(weights, ".onnx") ? "the weights do" : "the network does");
    else if (prepares)
        fprintf(stderr, "inputs are prepared as in training: %s%s\n", formula(p),
            p->target_count ? "; outputs are in the units of the data" : "");
    else if (nothing && p->target_count == 0)
        fprintf(stderr, "inputs are not prepared, nor were they in training\n");
    else if (p->texts)
        fprintf(stderr,
            "inputs are not prepared: the training's table has texts, dates or missing values, which became other "
            "inputs%s; --data does so here\n",
            p->target_count ? ", and outputs are standardised" : "");
    else
        fprintf(stderr, "inputs are not prepared: in training a number x became %s%s; --prepare does so here\n",
            formula(p), p->target_count ? ", and outputs are standardised" : "");
}

int preparation_apply(
    const struct preparation *p, const char *weights, const struct npz_array *array, struct port *input)
{
    enum { MOST = 1000000000 };
    if (!p->known)
        return wrong_use("infer", "--prepare: %s what was done to samples in training",
            weights ? "these weights do not record" : "without --weights of a training it is not known");
    if (p->recordings)
        return wrong_use("infer", "--prepare makes no spectrograms: name the recordings instead of --inputs");
    if (p->texts)
        return wrong_use("infer", "--prepare: the training's table has texts, dates or missing values: use --data");
    if (p->bytes && array->type != NPZ_U8)
        return wrong_use("infer", "--prepare needs bytes from 0 to 255, as in training: the array is %s, not uint8",
            npz_type_name(array->type));
    if (p->count && input->elements % p->count)
        return wrong_use("infer", "--prepare: a sample has %lld numbers, but %d means are recorded",
            (long long)input->elements, p->count);
    const int64_t count = (int64_t)(array->bytes / npz_type_size(array->type));
    const int64_t run = p->count ? input->elements / p->count : 1;
    const double scale = array->type == NPZ_U8 && !p->table ? 255 : 1;
    float *numbers = input->data;
    for (int64_t i = 0; i < count; i++) {
        const int64_t channel = i % input->elements / run;
        const double x = npz_number(array, (size_t)i) / scale;
        if (p->count && !isfinite(x))
            return wrong_use("infer", "--prepare: a number of sample %lld is not finite: training refuses such samples",
                (long long)(i / input->elements));
        numbers[i] = (float)(p->count ? fmax(-MOST, fmin(MOST, (x - p->mean[channel]) / p->std[channel])) : x);
    }
    return EXIT_DONE;
}

void preparation_undo(const struct preparation *p, int64_t samples, struct port *output)
{
    float *numbers = output->data;
    if (p->target_count == 0 || output->elements != p->target_count) return;
    for (int64_t i = 0; i < samples * output->elements; i++) {
        const int64_t target = i % output->elements;
        numbers[i] = (float)((double)numbers[i] * p->target_std[target] + p->target_mean[target]);
    }
}
