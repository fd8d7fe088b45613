/* Scores of predictions. Their formulas are scikit-learn's: tests/train/scores.py compares. */
#include "train/scores.h"

#include "base/memory.h"
#include "base/options.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { DEFAULT_TOP = 5, DEFAULT_WORST = 16, MAX_WORST = 1 << 16 };

/* -------------------------------------------------------------------------------------------- making, freeing ---- */

static tutti_status check(const tutti_scores_options *options)
{
    if (options->classes < 0 || options->classes > INT32_MAX || options->labels < 0 || options->labels > INT32_MAX)
        return fail(TUTTI_INVALID, "classes and labels are %" PRId64 " and %" PRId64 ": they must be from 0 to %d",
            options->classes, options->labels, INT32_MAX);
    if (options->top < 0 || (options->classes && options->top > options->classes))
        return fail(TUTTI_INVALID, "top is %d: it must be from 1 to the number of classes, or 0", options->top);
    if (options->worst < 0 || options->worst > MAX_WORST)
        return fail(TUTTI_INVALID, "worst is %d: it must be from 0 to %d", options->worst, MAX_WORST);
    if (options->transcript < 0 || options->transcript > INT32_MAX)
        return fail(
            TUTTI_INVALID, "transcript is %" PRId64 ": it is the number of labels of a target", options->transcript);
    if (options->transcript && (options->blank < 0 || options->blank >= options->classes))
        return fail(TUTTI_INVALID, "blank is %d: it must be one of the classes", options->blank);
    for (int64_t i = 0; options->units && !options->classes && i < (options->labels ? options->labels : 1); i++)
        if (!(options->units[i] > 0 && isfinite(options->units[i])))
            return fail(TUTTI_INVALID, "unit %" PRId64 " is %g: it must be above 0", i, (double)options->units[i]);
    return TUTTI_OK;
}

static tutti_status allocate(tutti_scores *scores, const float *units, const char *const *tags)
{
    const int64_t classes = scores->classes;
    const bool matrix = classes > 0 && classes <= SCORES_MATRIX_CLASSES && !scores->transcript;
    scores->count = SCORES_TOTALS + CLASS_COUNTS * classes + (matrix ? classes * classes : 0);
    scores->counts = memory_new((size_t)scores->count, sizeof(*scores->counts));
    scores->mistakes = memory_new((size_t)scores->worst, sizeof(*scores->mistakes));
    if (!scores->counts || !scores->mistakes) return TUTTI_NO_MEMORY;
    if (classes == 0) {
        scores->moments = memory_new((size_t)scores->labels, sizeof(*scores->moments));
        scores->units = memory_new((size_t)scores->labels, sizeof(*scores->units));
        if (!scores->moments || !scores->units) return TUTTI_NO_MEMORY;
        for (int64_t i = 0; i < scores->labels; i++) scores->units[i] = units ? (double)units[i] : 1;
    }
    if (tags && spans_new(tags, classes, &scores->spans) != TUTTI_OK) return TUTTI_NO_MEMORY;
    scores->of_classes = scores->counts + SCORES_TOTALS;
    scores->confusion = matrix ? scores->of_classes + CLASS_COUNTS * classes : NULL;
    return TUTTI_OK;
}

tutti_scores *tutti_scores_new(const tutti_scores_options *given)
{
    tutti_scores_options options;
    if (OPTIONS_READ(&options, given, tutti_scores_options) != TUTTI_OK || check(&options) != TUTTI_OK) return NULL;
    tutti_scores *scores = memory_new(1, sizeof(*scores));
    if (!scores) return NULL;
    scores->classes = options.classes;
    scores->labels = options.labels ? options.labels : 1;
    scores->top = options.top ? options.top : options.classes < DEFAULT_TOP ? (int)options.classes : DEFAULT_TOP;
    scores->transcript = options.transcript;
    scores->blank = options.blank;
    scores->text = options.text;
    scores->user = options.user;
    scores->worst = options.worst ? options.worst : DEFAULT_WORST;
    if (allocate(scores, options.units, options.tags) == TUTTI_OK) return scores;
    tutti_scores_free(scores);
    return NULL;
}

void tutti_scores_free(tutti_scores *scores)
{
    if (!scores) return;
    free(scores->counts);
    free(scores->moments);
    free(scores->units);
    free(scores->spans);
    free(scores->mistakes);
    free(scores);
}

void tutti_scores_reset(tutti_scores *scores)
{
    if (!scores) return;
    memset(scores->counts, 0, (size_t)scores->count * sizeof(*scores->counts));
    if (scores->moments) memset(scores->moments, 0, (size_t)scores->labels * sizeof(*scores->moments));
    scores->sums = (struct score_sums) { 0 };
    scores->mistake_count = 0;
}

/* ---------------------------------------------------------------------------------------------------- adding ---- */

/* NaN is worst; equal losses are in the order of the samples, so that no division over ranks changes them. */
static bool is_worse(const tutti_mistake *a, const tutti_mistake *b)
{
    const double x = isnan(a->loss) ? INFINITY : a->loss, y = isnan(b->loss) ? INFINITY : b->loss;
    return x > y || (x == y && a->index < b->index);
}

void scores_keep(tutti_scores *scores, const tutti_mistake *mistake)
{
    tutti_mistake *const list = scores->mistakes;
    int place = scores->mistake_count;
    while (place > 0 && is_worse(mistake, &list[place - 1])) place--;
    if (place == scores->worst) return;
    if (scores->mistake_count < scores->worst) scores->mistake_count++;
    memmove(list + place + 1, list + place, (size_t)(scores->mistake_count - 1 - place) * sizeof(*list));
    list[place] = *mistake;
}

/* As in numpy.argmax(), a NaN is the largest. */
static bool is_above(float a, float b)
{
    return isnan(a) ? !isnan(b) : a > b;
}

/* What the logits of a label say. */
struct guess {
    int64_t predicted;        /* the first of the largest */
    int64_t before;           /* classes that are likelier than the right one, or as likely and before it */
    double loss, probability; /* of the right class; of the predicted one */
};

static struct guess guess_of(const float *x, int64_t classes, int64_t step, int64_t label)
{
    struct guess guess = { 0 };
    double sum = 0;
    const float own = x[label * step];
    for (int64_t c = 1; c < classes; c++)
        if (is_above(x[c * step], x[guess.predicted * step])) guess.predicted = c;
    const double most = (double)x[guess.predicted * step];
    for (int64_t c = 0; c < classes; c++) {
        const float v = x[c * step];
        sum += exp((double)v - most);
        guess.before += is_above(v, own) || (c < label && !is_above(own, v));
    }
    guess.loss = log(sum) + (most - (double)own);
    guess.probability = 1 / sum;
    return guess;
}

static void count_label(tutti_scores *scores, int64_t label, const struct guess *guess)
{
    const bool right = guess->predicted == label;
    scores->counts[SCORES_LABELS]++;
    scores->counts[SCORES_RIGHT] += right;
    scores->counts[SCORES_TOP_RIGHT] += guess->before < scores->top;
    scores->of_classes[CLASS_COUNTS * label + CLASS_SUPPORT]++;
    scores->of_classes[CLASS_COUNTS * guess->predicted + CLASS_PREDICTED]++;
    scores->of_classes[CLASS_COUNTS * label + CLASS_RIGHT] += right;
    if (scores->confusion) scores->confusion[label * scores->classes + guess->predicted]++;
}

static void add_classes(
    tutti_scores *scores, const float *outputs, struct score_layout layout, const int32_t *targets, int64_t index)
{
    tutti_mistake worst = { .size = sizeof(worst), .index = index, .error = NAN };
    double sum = 0, most = -INFINITY;
    int64_t live = 0;
    bool wrong = false;
    const struct span_tag *spans = scores->spans;
    struct span_state state = { .same = false };
    int64_t *counts = scores->counts;
    const struct span_counts found = { counts + SCORES_SPANS, counts + SCORES_SPANS_PREDICTED,
        counts + SCORES_SPANS_RIGHT };
    for (int64_t i = 0; i < layout.count; i++) {
        if (targets[i] < 0) continue;
        const struct guess guess = guess_of(outputs + i * layout.labels, scores->classes, layout.classes, targets[i]);
        count_label(scores, targets[i], &guess);
        if (spans) spans_step(&state, &spans[targets[i]], &spans[guess.predicted], &found);
        live++;
        sum += guess.loss;
        if (guess.predicted == targets[i] || (wrong && guess.loss <= most)) continue;
        wrong = true;
        most = guess.loss;
        worst.target = targets[i];
        worst.predicted = guess.predicted;
        worst.probability = guess.probability;
    }
    if (live == 0) return;
    if (spans) spans_step(&state, NULL, NULL, &found);
    scores->counts[SCORES_SAMPLES]++;
    scores->sums.loss += sum;
    worst.loss = sum / (double)live;
    if (wrong) scores_keep(scores, &worst);
}

static void add_numbers(tutti_scores *scores, const float *outputs, const float *targets, int64_t index)
{
    double squared = 0, in_units = 0;
    for (int64_t i = 0; i < scores->labels; i++) {
        const double unit = scores->units[i];
        struct moments *m = &scores->moments[i];
        const double target = (double)targets[i], error = (double)outputs[i] - target, off = target - m->mean;
        squared += error * error;
        m->squared += error * error;
        in_units += unit * error * (unit * error);
        scores->sums.absolute += unit * fabs(error);
        m->count++;
        m->mean += off / m->count;
        m->spread += off * (target - m->mean);
    }
    scores->counts[SCORES_SAMPLES]++;
    scores->counts[SCORES_LABELS] += scores->labels;
    const tutti_mistake mistake = { .size = sizeof(mistake),
        .index = index,
        .target = -1,
        .predicted = -1,
        .probability = NAN,
        .loss = squared / (double)scores->labels,
        .error = sqrt(in_units / (double)scores->labels) };
    if (squared != 0) scores_keep(scores, &mistake);
}

static tutti_status check_labels(const tutti_scores *scores, int64_t labels, const int32_t *targets, int64_t samples)
{
    for (int64_t i = 0; i < samples * labels; i++)
        if (targets[i] >= scores->classes)
            return fail(TUTTI_INVALID, "sample %" PRId64 " has the class %d, but there are only %" PRId64 " classes",
                i / labels, targets[i], scores->classes);
    return TUTTI_OK;
}

static tutti_status take_transcripts(tutti_scores *scores, const float *outputs, int64_t steps, const int32_t *targets,
    const int64_t *indices, int64_t samples)
{
    const int64_t before = scores->counts[SCORES_SEEN];
    tutti_status status = check_labels(scores, scores->transcript, targets, samples);
    for (int64_t i = 0; i < samples && status == TUTTI_OK; i++) {
        tutti_mistake mistake = { .size = sizeof(mistake),
            .index = indices ? indices[i] : before + i,
            .target = -1,
            .predicted = -1,
            .probability = NAN };
        status = scores_add_transcript(
            scores, outputs + i * scores->classes * steps, steps, targets + i * scores->transcript, &mistake);
        if (status == TUTTI_OK && mistake.error > 0) scores_keep(scores, &mistake);
    }
    if (status == TUTTI_OK) scores->counts[SCORES_SEEN] += samples;
    return status;
}

tutti_status scores_take(tutti_scores *scores, const float *outputs, struct score_layout layout, const void *targets,
    const int64_t *indices, int64_t samples)
{
    const int64_t labels = layout.count, before = scores->counts[SCORES_SEEN];
    if (scores->transcript) return take_transcripts(scores, outputs, labels, targets, indices, samples);
    if (scores->classes) {
        const tutti_status status = check_labels(scores, labels, targets, samples);
        if (status != TUTTI_OK) return status;
    }
    for (int64_t i = 0; i < samples; i++) {
        const int64_t index = indices ? indices[i] : before + i;
        if (scores->classes)
            add_classes(
                scores, outputs + i * scores->classes * labels, layout, (const int32_t *)targets + i * labels, index);
        else
            add_numbers(scores, outputs + i * labels, (const float *)targets + i * labels, index);
    }
    scores->counts[SCORES_SEEN] += samples;
    return TUTTI_OK;
}

tutti_status tutti_scores_add(
    tutti_scores *scores, const float *outputs, const void *targets, const int64_t *indices, int64_t samples)
{
    if (!scores || !outputs || !targets)
        return fail(TUTTI_INVALID, "the scores, the outputs or the targets are NULL: pass all of them");
    if (samples < 0) return fail(TUTTI_INVALID, "samples is %" PRId64 ": it cannot be negative", samples);
    return scores_take(
        scores, outputs, (struct score_layout) { scores->labels, 1, scores->labels }, targets, indices, samples);
}

void moments_join(struct moments *to, const struct moments *more)
{
    const double count = to->count + more->count, off = more->mean - to->mean;
    if (more->count == 0) return;
    to->squared += more->squared;
    to->spread += more->spread + off * off * (to->count * more->count / count);
    to->mean += off * (more->count / count);
    to->count = count;
}

/* --------------------------------------------------------------------------------------------------- results ---- */

static double share(int64_t part, int64_t whole)
{
    return whole > 0 ? (double)part / (double)whole : 0;
}

/* Returns whether a class has labels or predictions. If it has no predictions, its precision is 0, and so on. */
static bool occurs(const int64_t *counts)
{
    return counts[CLASS_SUPPORT] + counts[CLASS_PREDICTED] > 0;
}

static tutti_class_scores of_counts(const int64_t *counts)
{
    const int64_t support = counts[CLASS_SUPPORT], predicted = counts[CLASS_PREDICTED], right = counts[CLASS_RIGHT];
    tutti_class_scores of_class = { .size = sizeof(of_class), .support = support };
    of_class.precision = share(right, predicted);
    of_class.recall = share(right, support);
    of_class.f1 = share(2 * right, support + predicted);
    of_class.iou = share(right, support + predicted - right);
    if (!occurs(counts)) of_class.precision = of_class.recall = of_class.f1 = of_class.iou = NAN;
    return of_class;
}

static void summarise_classes(const tutti_scores *scores, tutti_scores_summary *summary)
{
    int64_t present = 0;
    const double labels = (double)summary->labels;
    double precision = 0, recall = 0, f1 = 0, iou = 0;
    for (int64_t i = 0; i < scores->classes; i++) {
        const tutti_class_scores of_class = of_counts(scores->of_classes + CLASS_COUNTS * i);
        if (!occurs(scores->of_classes + CLASS_COUNTS * i)) continue;
        present++;
        precision += of_class.precision;
        recall += of_class.recall;
        f1 += of_class.f1;
        iou += of_class.iou;
    }
    if (present == 0) return;
    summary->loss = scores->sums.loss / labels;
    summary->accuracy = (double)scores->counts[SCORES_RIGHT] / labels;
    summary->top_accuracy = (double)scores->counts[SCORES_TOP_RIGHT] / labels;
    summary->precision = precision / (double)present;
    summary->recall = recall / (double)present;
    summary->f1 = f1 / (double)present;
    summary->iou = iou / (double)present;
    if (!scores->spans) return;
    const int64_t *counts = scores->counts, right = counts[SCORES_SPANS_RIGHT];
    summary->span_precision = share(right, counts[SCORES_SPANS_PREDICTED]);
    summary->span_recall = share(right, counts[SCORES_SPANS]);
    summary->span_f1 = share(2 * right, counts[SCORES_SPANS] + counts[SCORES_SPANS_PREDICTED]);
}

/* R2 of one number of a sample; if all targets are equal, it is 1 or 0, as in scikit-learn. */
static double determination(const struct moments *m)
{
    if (m->count < 2) return NAN;
    if (m->spread == 0) return m->squared == 0 ? 1 : 0;
    return 1 - m->squared / m->spread;
}

static void summarise_transcripts(const tutti_scores *scores, tutti_scores_summary *summary)
{
    const int64_t *counts = scores->counts;
    if (counts[SCORES_SAMPLES] > 0) summary->accuracy = share(counts[SCORES_RIGHT], counts[SCORES_SAMPLES]);
    if (counts[SCORES_LABELS] > 0) summary->cer = (double)counts[SCORES_EDITS] / (double)counts[SCORES_LABELS];
    if (counts[SCORES_WORDS] > 0) summary->wer = (double)counts[SCORES_WORD_EDITS] / (double)counts[SCORES_WORDS];
}

static void summarise_numbers(const tutti_scores *scores, tutti_scores_summary *summary)
{
    const double count = (double)summary->labels;
    double squared = 0, in_units = 0, r2 = 0;
    if (count == 0) return;
    for (int64_t i = 0; i < scores->labels; i++) {
        squared += scores->moments[i].squared;
        in_units += scores->units[i] * scores->units[i] * scores->moments[i].squared;
        r2 += determination(&scores->moments[i]);
    }
    summary->loss = squared / count;
    summary->r2 = r2 / (double)scores->labels;
    summary->mae = scores->sums.absolute / count;
    summary->rmse = sqrt(in_units / count);
}

tutti_status tutti_scores_summarise(const tutti_scores *scores, tutti_scores_summary *summary)
{
    if (!scores || !summary) return fail(TUTTI_INVALID, "the scores or the summary are NULL: pass both");
    tutti_scores_summary all = {
        .size = sizeof(all), .samples = scores->counts[SCORES_SAMPLES], .labels = scores->counts[SCORES_LABELS]
    };
    all.loss = all.accuracy = all.top_accuracy = all.precision = all.recall = all.f1 = all.iou = NAN;
    all.r2 = all.mae = all.rmse = all.span_precision = all.span_recall = all.span_f1 = all.cer = all.wer = NAN;
    if (scores->transcript)
        summarise_transcripts(scores, &all);
    else if (scores->classes)
        summarise_classes(scores, &all);
    else
        summarise_numbers(scores, &all);
    return RESULT_WRITE(summary, &all, tutti_scores_summary);
}

tutti_status tutti_scores_class(const tutti_scores *scores, int64_t number, tutti_class_scores *of_class)
{
    if (!scores || !of_class) return fail(TUTTI_INVALID, "the scores or the result are NULL: pass both");
    if (number < 0 || number >= scores->classes)
        return fail(TUTTI_INVALID, "there is no class %" PRId64 ": there are %" PRId64, number, scores->classes);
    const tutti_class_scores found = of_counts(scores->of_classes + CLASS_COUNTS * number);
    return RESULT_WRITE(of_class, &found, tutti_class_scores);
}

const int64_t *tutti_scores_confusion(const tutti_scores *scores)
{
    return scores ? scores->confusion : NULL;
}

tutti_status tutti_scores_mistake(const tutti_scores *scores, int position, tutti_mistake *mistake)
{
    if (!scores || !mistake) return fail(TUTTI_INVALID, "the scores or the mistake are NULL: pass both");
    if (position < 0 || position >= scores->mistake_count)
        return fail(TUTTI_INVALID, "there is no mistake %d: %d are kept", position, scores->mistake_count);
    return RESULT_WRITE(mistake, &scores->mistakes[position], tutti_mistake);
}
