#include "tools/finetune.h"

#include "base/memory.h"
#include "base/numbers.h"
#include "base/status.h"
#include "tools/patterns.h"
#include "tutti_finetune.h"
#include "tutti_hosts.h"

#include <stdlib.h>
#include <string.h>

int finetune_check(const struct finetune *f, const char *resume)
{
    if (f->weights && resume && !f->folds)
        return wrong_use("train", "--weights and --resume contradict each other: a checkpoint has its weights");
    if (f->unfreeze_after && !f->freeze)
        return wrong_use("train", "--unfreeze-after needs --freeze: what is trained later");
    if (f->unfreeze && !f->unfreeze_after)
        return wrong_use("train", "--unfreeze needs --unfreeze-after: the epoch after which it is trained");
    if (f->find_rate && (resume || f->folds))
        return wrong_use("train", "--find-lr trains nothing: leave out %s%s", resume ? "--resume" : "--folds",
            resume ? ", or begin with --weights" : "");
    return EXIT_DONE;
}

/* -------------------------------------------------------------------------------------------------- patterns ---- */

static tutti_status freeze(const struct session *session, const char *pattern, double number)
{
    (void)number;
    return tutti_freeze(session->network, pattern);
}

static tutti_status unfreeze(const struct session *session, const char *pattern, double number)
{
    (void)number;
    return tutti_unfreeze(session->network, pattern);
}

static tutti_status set_rate(const struct session *session, const char *pattern, double number)
{
    return tutti_group(session->network, pattern, &(tutti_group_options) { .rate_factor = (float)number });
}

static int count_trained(const tutti_network *network, int *all)
{
    bool trained;
    int count = 0;
    for (*all = 0; tutti_parameter_info(network, *all, NULL, NULL, &trained) == TUTTI_OK; ++*all) count += trained;
    return count;
}

static int unfreeze_all(struct finetune *f, const struct session *session)
{
    f->thawed = true;
    return f->unfreeze ? patterns_each(session, "unfreeze", f->unfreeze, false, unfreeze)
                       : patterns_each(session, "freeze", f->freeze, false, unfreeze);
}

static int freeze_all(const struct finetune *f, const struct session *session)
{
    int all;
    const int before = count_trained(session->network, &all);
    const int result = patterns_each(session, "freeze", f->freeze, false, freeze);
    if (result != EXIT_DONE) return result;
    const int left = count_trained(session->network, &all);
    if (left == 0)
        return wrong_use(
            "train", "--freeze %s: no parameter is left to train: leave the last layer out of it", f->freeze);
    if (session->rank == 0) fprintf(stderr, "froze %d of %d parameter tensors\n", before - left, before);
    return EXIT_DONE;
}

/* Only the first rank has the file. It tells the others through tutti_hosts_agree(). */
void finetune_begin(struct finetune *f, const char *resume, tutti_hosts *hosts)
{
    tutti_checkpoint_info info = { .size = sizeof(info) };
    f->thawed = false;
    if (!f->unfreeze_after || !resume) return;
    const bool past = tutti_hosts_rank(hosts) == 0 && tutti_checkpoint_read(resume, &info) == TUTTI_OK &&
        info.epochs >= f->unfreeze_after;
    f->thawed = tutti_hosts_agree(hosts, past ? TUTTI_CANCELLED : TUTTI_OK) != TUTTI_OK;
}

int finetune_network(struct finetune *f, const struct session *session)
{
    int result = f->rates ? patterns_each(session, "rate", f->rates, true, set_rate) : EXIT_DONE;
    if (result == EXIT_DONE && f->freeze) result = freeze_all(f, session);
    return result == EXIT_DONE && f->thawed ? unfreeze_all(f, session) : result;
}

/* ------------------------------------------------------------------------------------------------------ loss ---- */

/* Weight of a class: samples / (present classes * samples of the class). The mean over the samples is 1. */
static tutti_status balance(
    struct finetune *f, const struct session *session, const struct data *data, const tutti_source *source)
{
    struct labels labels = { 0 };
    int64_t present = 0, samples = 0;
    int64_t *counts = memory_new((size_t)session->classes, sizeof(*counts));
    tutti_status status = counts ? labels_read(session, data, source, &labels) : TUTTI_NO_MEMORY;
    if (status != TUTTI_OK) goto done;
    labels_count(&labels, session->classes, counts);
    if (f->loss.has_ignored && f->loss.ignored < session->classes) counts[f->loss.ignored] = 0;
    for (int64_t c = 0; c < session->classes; c++) {
        samples += counts[c];
        present += counts[c] > 0;
    }
    for (int64_t c = 0; c < session->classes; c++)
        f->weight_of[c] = counts[c] > 0 ? (float)((double)samples / ((double)present * (double)counts[c])) : 0;
done:
    labels_free(&labels);
    free(counts);
    return status;
}

static int read_weights(struct finetune *f, const struct session *session)
{
    int64_t count = 0;
    for (const char *rest = f->class_weights; rest; count++) {
        char *end = NULL;
        const double value = number_read(rest, &end);
        if (end == rest || (*end && *end != ',') || !(value >= 0 && value <= 1e6))
            return wrong_use("train", "--class-weights needs balanced, or numbers separated by commas, not \"%s\"",
                f->class_weights);
        if (count < session->classes) f->weight_of[count] = (float)value;
        rest = *end ? end + 1 : NULL;
    }
    if (count == session->classes) return EXIT_DONE;
    return wrong_use("train", "--class-weights has %lld numbers for %lld classes; it needs one for each class",
        (long long)count, (long long)session->classes);
}

int finetune_loss(struct finetune *f, struct session *session, const struct data *data, const tutti_source *source)
{
    if (f->loss.label_smoothing == 0 && !f->class_weights && !f->loss.has_ignored) return EXIT_DONE;
    if (data_is_speech(data))
        return wrong_use("train", "--%s: transcripts have a loss of their own, CTC: leave it out",
            f->loss.label_smoothing != 0 ? "label-smoothing"
                : f->class_weights       ? "class-weights"
                                         : "ignore-label");
    if (data->info.tags && f->class_weights && !strcmp(f->class_weights, "balanced"))
        return wrong_use("train",
            "--class-weights balanced counts samples of classes, but these are tags of words: "
            "write a number for each class");
    if (data->info.tokens_are_classes && f->class_weights)
        return wrong_use("train", "--class-weights: the classes of a language model are tokens: leave it out");
    if (data->numbers)
        return wrong_use("train", "--%s needs classes: the targets of %s are numbers",
            f->loss.label_smoothing != 0 ? "label-smoothing"
                : f->class_weights       ? "class-weights"
                                         : "ignore-label",
            session->model->name);
    if (session->soft && f->loss.has_ignored)
        return wrong_use("train",
            "--ignore-label cannot be used with mixup and cutmix: targets of mixed samples are probabilities, without "
            "a label to ignore; leave out --ignore-label, or mixup and cutmix in --augment");
    session->loss_options = f->loss;
    if (!f->class_weights) return EXIT_DONE;
    finetune_free(f);
    f->weight_of = memory_new((size_t)session->classes, sizeof(*f->weight_of));
    if (!f->weight_of) return work_failed("train", TUTTI_NO_MEMORY, status_message());
    if (!strcmp(f->class_weights, "balanced")) {
        const tutti_status status = balance(f, session, data, source);
        if (status != TUTTI_OK) return work_failed("train", status, status_message());
    } else {
        const int result = read_weights(f, session);
        if (result != EXIT_DONE) return result;
    }
    session->loss_options.class_weights = f->weight_of;
    session->loss_options.class_weight_count = (int)session->classes;
    return EXIT_DONE;
}

void finetune_free(struct finetune *f)
{
    free(f->weight_of);
    f->weight_of = NULL;
}

/* --------------------------------------------------------------------------------------------------- weights ---- */

enum { LINES = 12 }; /* of what does not fit */

struct listing {
    int lines;
    bool silent;
};

static void print_match(
    void *user, tutti_match match, const char *name, const tutti_shape *in_file, const tutti_shape *in_network)
{
    char found[128], wanted[128];
    struct listing *listing = user;
    if (match == TUTTI_MATCH_LOADED || listing->silent || ++listing->lines > LINES) return;
    if (match == TUTTI_MATCH_MISSING)
        fprintf(stderr, "  not in the file: %s\n", name);
    else if (match == TUTTI_MATCH_UNUSED)
        fprintf(stderr, "  not in the network: %s\n", name);
    else if (match == TUTTI_MATCH_TYPE)
        fprintf(stderr, "  not of floats: %s\n", name);
    else
        fprintf(stderr, "  another shape: %s is %s, in the file %s\n", name,
            format_shape(in_network, wanted, sizeof(wanted)), format_shape(in_file, found, sizeof(found)));
}

int finetune_load(const struct finetune *f, const struct session *session)
{
    struct listing listing = { .silent = session->rank > 0 };
    tutti_match_result result = { .size = sizeof(result) };
    if (!f->weights) return EXIT_DONE;
    const tutti_status status = tutti_load_matching(
        session->trainer, f->weights, &(tutti_match_options) { .report = print_match, .user = &listing }, &result);
    if (status != TUTTI_OK) return work_failed("train", status, tutti_message(session->runtime));
    if (session->rank > 0) return EXIT_DONE;
    if (listing.lines > LINES) fprintf(stderr, "  and %d more\n", listing.lines - LINES);
    fprintf(stderr,
        "loaded %lld arrays from %s: %.2f %% of the network's numbers; %lld missing, %lld not used, %lld of another "
        "shape or type\n",
        (long long)result.loaded, f->weights, 100 * (double)result.loaded_elements / (double)result.elements,
        (long long)result.missing, (long long)result.unused, (long long)result.other);
    if (2 * result.loaded_elements < result.elements)
        fprintf(
            stderr, "warning: most of the network begins with random weights: is %s of this network?\n", f->weights);
    return EXIT_DONE;
}

/* ---------------------------------------------------------------------------------------------------- thawing ---- */

int64_t finetune_pause(const struct finetune *f)
{
    return f->thawed ? 0 : f->unfreeze_after;
}

int finetune_thaw(struct finetune *f, struct session *session)
{
    int all;
    tutti_snapshot *snapshot = tutti_snapshot_take(session->trainer);
    if (!snapshot) return work_failed("train", TUTTI_INTERNAL, tutti_message(session->runtime));
    tutti_trainer_free(session->trainer);
    session->trainer = NULL;
    const int before = count_trained(session->network, &all);
    int result = unfreeze_all(f, session);
    if (result == EXIT_DONE && session->rank == 0)
        fprintf(stderr, "after %lld epochs: %d parameter tensors more train\n", (long long)f->unfreeze_after,
            count_trained(session->network, &all) - before);
    if (result == EXIT_DONE) result = session_compile(session);
    if (result == EXIT_DONE) {
        const tutti_status status = tutti_snapshot_restore(session->trainer, snapshot);
        if (status != TUTTI_OK) result = work_failed("train", status, tutti_message(session->runtime));
    }
    tutti_snapshot_free(snapshot);
    return result;
}
