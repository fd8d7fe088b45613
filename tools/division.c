#include "tools/division.h"

#include "base/status.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define DEFAULT_SPLIT 0.2 /* which weights record as 0 */

static double split_of(double split)
{
    return split > 0 ? split : DEFAULT_SPLIT;
}

static double saved_split(const json_t *object)
{
    return split_of(json_number_value(json_object_get(object, "split")));
}

static bool is_other_split(const json_t *object, const tutti_data_options *options)
{
    return options->split > 0 && fabs(options->split - saved_split(object)) > 1e-9;
}

static long long whole(const json_t *object, const char *name)
{
    return (long long)json_integer_value(json_object_get(object, name));
}

static tutti_status check_folds(const json_t *object, const char *name, const tutti_data_options *options)
{
    const long long folds = whole(object, "folds"), fold = whole(object, "fold");
    if (options->folds == 0 || (options->folds == folds && options->fold == fold)) return TUTTI_OK;
    if (folds == 0)
        return fail(TUTTI_MISMATCH,
            "--folds %d: %s was not trained as a fold: samples that were held out would train; leave --folds out",
            options->folds, name);
    return fail(TUTTI_MISMATCH,
        "--folds %d: %s is fold %lld of %lld, not fold %d of %d: samples that were held out would train; give --folds "
        "%lld",
        options->folds, name, fold + 1, folds, options->fold + 1, options->folds, folds);
}

static tutti_status check_options(
    const json_t *object, const char *name, const tutti_data_options *options, bool seed_given)
{
    const long long seed = whole(object, "seed");
    if (is_other_split(object, options))
        return fail(TUTTI_MISMATCH,
            "--split %g: %s was trained with %g of the data held out: samples that were held out would train; leave "
            "--split out",
            options->split, name, saved_split(object));
    if (seed_given && (long long)options->seed != seed)
        return fail(TUTTI_MISMATCH,
            "--seed %lld: %s was trained with the seed %lld, by which its data are divided and shuffled; leave --seed "
            "out",
            (long long)options->seed, name, seed);
    return check_folds(object, name, options);
}

tutti_status division_check_options(
    const struct user_data_saved *saved, const char *name, const tutti_data_options *options, bool seed_given)
{
    if (!saved) return TUTTI_OK;
    json_t *object = json_loads(saved->text, 0, NULL);
    const tutti_status status = check_options(object, name, options, seed_given);
    json_decref(object);
    return status;
}

tutti_status division_check_samples(const struct user_data_saved *saved, const char *name, const tutti_data *data)
{
    tutti_status status = TUTTI_OK;
    if (!saved) return TUTTI_OK;
    char *text = tutti_data_json(data);
    json_t *object = json_loads(saved->text, 0, NULL), *present = text ? json_loads(text, 0, NULL) : NULL;
    const json_t *was = json_object_get(object, "divided"), *is = json_object_get(present, "divided");
    if (!text)
        status = fail(TUTTI_NO_MEMORY, "%s", tutti_message(NULL));
    else if (was && is && !json_equal(was, is))
        status = fail(TUTTI_MISMATCH,
            "the data have %lld training samples and %lld that are held out, but %lld and %lld in the training of %s: "
            "divided anew, samples that were held out would train; continue with the data that it trained on",
            whole(is, "train"), whole(is, "val"), whole(was, "train"), whole(was, "val"), name);
    json_decref(object);
    json_decref(present);
    free(text);
    return status;
}

void division_report_split(const struct user_data_saved *saved, const char *weights, const tutti_data_options *options)
{
    json_t *object = saved ? json_loads(saved->text, 0, NULL) : NULL;
    if (object && is_other_split(object, options))
        fprintf(stderr,
            "warning: --split %g is not that of the training of %s, %g: of the same data, samples that it trained on "
            "are "
            "measured\n",
            options->split, weights, saved_split(object));
    json_decref(object);
}

/* How many samples there were; 0: it is not known, or the data say the parts. */
static long long divided(const json_t *object)
{
    return whole(json_object_get(object, "divided"), "all");
}

static bool is_other_division(const json_t *was, const json_t *is)
{
    static const char *const numbers[] = { "seed", "folds", "fold" };
    bool other = fabs(saved_split(was) - saved_split(is)) > 1e-9;
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        other |= whole(was, numbers[i]) != whole(is, numbers[i]);
    return other;
}

void division_report_weights(const char *weights, const tutti_data *data)
{
    char *before = user_data_saved_text(weights), *now = before ? tutti_data_json(data) : NULL;
    json_t *was = now ? json_loads(before, 0, NULL) : NULL, *is = now ? json_loads(now, 0, NULL) : NULL;
    const long long folds = whole(was, "folds");
    if (divided(was) > 0 && divided(was) == divided(is) && is_other_division(was, is))
        fprintf(stderr,
            "warning: %s was trained on as many samples, divided by --split %g --seed %lld%s: if they are the same, "
            "some "
            "that are held out here have trained there; divide them as then\n",
            weights, saved_split(was), whole(was, "seed"), folds ? " and --folds" : "");
    json_decref(was);
    json_decref(is);
    free(before);
    free(now);
}
