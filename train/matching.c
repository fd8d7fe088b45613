/* Weights of a network that is not quite this one: see tutti_load_matching(). */
#include "base/memory.h"
#include "base/options.h"
#include "base/text.h"
#include "formats/safetensors.h"
#include "parallel/ranks_notes.h"
#include "parallel/step.h"
#include "parallel/trainer.h"
#include "replica/run.h"
#include "runtime/forked.h"
#include "train/checks.h"
#include "train/parameters.h"
#include "tutti_finetune.h"

#include <stdlib.h>
#include <string.h>

/* What is matched, and the tensor of the file for each parameter; `taken` has one for each tensor. */
struct matching {
    const tutti_match_options *options;
    const struct checkpoint *checkpoint;
    struct parameter_store *store;
    const struct safetensors *file;
    const struct safetensors_tensor **found;
    bool *taken;
    tutti_match_result result;
};

/* Strips the prefixes of wrappers: DataParallel, Lightning and others, torch.compile(), PEFT; and those of
 * transformers' networks without a head, which some files have and others do not. */
static const char *bare(const char *name)
{
    static const char *const prefixes[] = { "module.", "model.", "_orig_mod.", "transformer.", "bert.", "roberta.",
        "distilbert.", "base_model." };
    for (size_t i = 0; i < sizeof(prefixes) / sizeof(*prefixes); i++) {
        const size_t length = strlen(prefixes[i]);
        if (!strncmp(name, prefixes[i], length) && name[length]) return bare(name + length);
    }
    return name;
}

/* Names without prefixes, sorted for a binary search. */
struct entry {
    const char *name;
    int position;
};

static int compare(const void *a, const void *b)
{
    return strcmp(((const struct entry *)a)->name, ((const struct entry *)b)->name);
}

static struct entry *sorted_entries(const struct safetensors *file)
{
    const int count = safetensors_count(file);
    struct entry *entries = memory_new((size_t)count + 1, sizeof(*entries));
    if (!entries) return NULL;
    for (int i = 0; i < count; i++) entries[i] = (struct entry) { bare(safetensors_at(file, i)->name), i };
    qsort(entries, (size_t)count, sizeof(*entries), compare);
    return entries;
}

/* Words, separated by dots, that two names have in common at their ends. */
static int common_words(const char *a, const char *b)
{
    int words = 0;
    const char *i = a + strlen(a), *j = b + strlen(b);
    while (i > a && j > b && i[-1] == j[-1]) {
        i--, j--;
        words += *i == '.';
    }
    return words + ((i == a || i[-1] == '.') && (j == b || j[-1] == '.') && *i != '.');
}

/* Returns the position of the tensor with exactly this name, or of one that differs only in prefixes: of several, that
 * with most words in common. -1: none; AMBIGUOUS: several are as good. */
enum { AMBIGUOUS = -2 };
static int find_name(const struct safetensors *file, const struct entry *entries, const char *name)
{
    const struct entry key = { bare(name), 0 };
    const struct entry *first = bsearch(&key, entries, (size_t)safetensors_count(file), sizeof(key), compare);
    int found = -1, most = -1;
    if (!first) return -1;
    while (first > entries && !strcmp(first[-1].name, key.name)) first--;
    for (const struct entry *e = first; e < entries + safetensors_count(file) && !strcmp(e->name, key.name); e++) {
        const char *other = safetensors_at(file, e->position)->name;
        const int words = common_words(other, name);
        if (!strcmp(other, name)) return e->position;
        found = words == most ? AMBIGUOUS : words > most ? e->position : found;
        most = words > most ? words : most;
    }
    return found;
}

/* BERT's older files call the parameters of norms as TensorFlow did. */
static int position_of(const struct safetensors *file, const struct entry *entries, const char *name)
{
    static const char *const ends[][2] = { { ".LayerNorm.weight", "gamma" }, { ".LayerNorm.bias", "beta" } };
    int position = find_name(file, entries, name);
    for (int i = 0; i < 2 && position == -1; i++) {
        if (!text_ends_with(name, ends[i][0])) continue;
        const int kept = (int)(strrchr(name, '.') - name) + 1;
        char *other = memory_format("%.*s%s", kept, name, ends[i][1]);
        if (other) position = find_name(file, entries, other);
        free(other);
    }
    return position;
}

static tutti_shape shape_of(const struct safetensors_tensor *tensor)
{
    tutti_shape shape = { .rank = tensor->rank };
    for (int i = 0; i < tensor->rank; i++) shape.sizes[i] = tensor->sizes[i];
    return shape;
}

static tutti_match fit_of(const struct safetensors_tensor *tensor, const struct parameter *parameter)
{
    if (!checkpoint_fits(tensor, parameter)) return TUTTI_MATCH_SHAPE;
    return safetensors_has_floats(tensor) ? TUTTI_MATCH_LOADED : TUTTI_MATCH_TYPE;
}

static void report_match(struct matching *m, tutti_match match, const char *name,
    const struct safetensors_tensor *tensor, const struct parameter *parameter)
{
    const tutti_shape in_file = tensor ? shape_of(tensor) : (tutti_shape) { 0 };
    m->result.loaded += match == TUTTI_MATCH_LOADED;
    m->result.missing += match == TUTTI_MATCH_MISSING;
    m->result.unused += match == TUTTI_MATCH_UNUSED;
    m->result.other += match == TUTTI_MATCH_SHAPE || match == TUTTI_MATCH_TYPE;
    if (match == TUTTI_MATCH_LOADED) m->result.loaded_elements += parameter->elements;
    if (m->options->report)
        m->options->report(
            m->options->user, match, name, tensor ? &in_file : NULL, parameter ? &parameter->shape : NULL);
}

static tutti_status refuse_match(const struct parameter *parameter, const char *what)
{
    return fail(TUTTI_MISMATCH,
        "%s '%s' but for prefixes such as \"module.\" or \"bert.\": give the array its full name", what,
        parameter->name);
}

/* Before anything is reported. */
static tutti_status check_names(struct matching *m, const struct entry *entries)
{
    tutti_status status = TUTTI_OK;
    bool *taken = memory_new((size_t)safetensors_count(m->file) + 1, sizeof(*taken));
    if (!taken) return TUTTI_NO_MEMORY;
    for (size_t i = 0; i < m->checkpoint->count && status == TUTTI_OK; i++) {
        const struct parameter *parameter = &m->checkpoint->parameters[i];
        if (parameter->kind == PARAMETER_CONSTANT) continue;
        const int position = position_of(m->file, entries, parameter->name);
        if (position == AMBIGUOUS) status = refuse_match(parameter, "several arrays have the name");
        if (position < 0) continue;
        if (taken[position]) status = refuse_match(parameter, "an array that has the name of another parameter has");
        taken[position] = true;
    }
    free(taken);
    return status;
}

static void match_all(struct matching *m, const struct entry *entries)
{
    for (size_t i = 0; i < m->checkpoint->count; i++) {
        const struct parameter *parameter = &m->checkpoint->parameters[i];
        if (parameter->kind == PARAMETER_CONSTANT) continue;
        const int position = position_of(m->file, entries, parameter->name);
        const struct safetensors_tensor *tensor = position < 0 ? NULL : safetensors_at(m->file, position);
        const tutti_match match = tensor ? fit_of(tensor, parameter) : TUTTI_MATCH_MISSING;
        m->result.elements += parameter->elements;
        if (tensor) m->taken[position] = true;
        if (match == TUTTI_MATCH_LOADED) m->found[i] = tensor;
        report_match(m, match, parameter->name, tensor, parameter);
    }
    for (int i = 0; i < safetensors_count(m->file); i++) {
        const struct safetensors_tensor *tensor = safetensors_at(m->file, i);
        if (!m->taken[i] && !checkpoint_is_counter(tensor->name))
            report_match(m, TUTTI_MATCH_UNUSED, tensor->name, tensor, NULL);
    }
}

static tutti_status load(struct matching *m, const char *path)
{
    tutti_status status;
    struct safetensors *file = NULL;
    struct entry *entries = NULL;
    TRY(safetensors_open(path, &file));
    m->file = file;
    m->found = memory_new(m->checkpoint->count + 1, sizeof(*m->found));
    m->taken = memory_new((size_t)safetensors_count(file) + 1, sizeof(*m->taken));
    entries = sorted_entries(file);
    if (!m->found || !m->taken || !entries) {
        status = TUTTI_NO_MEMORY;
        goto done;
    }
    TRY(check_names(m, entries));
    match_all(m, entries);
    if (m->result.loaded == 0)
        FAIL(TUTTI_MISMATCH,
            "none of the %d arrays in '%s' has the name and shape of a parameter of this network: use weights of a "
            "network of this kind, with its names",
            safetensors_count(file), path);
    for (size_t i = 0; i < m->checkpoint->count; i++) {
        const struct parameter *parameter = &m->checkpoint->parameters[i];
        if (!m->found[i]) continue;
        checkpoint_take(parameter, &m->checkpoint->weights, m->found[i]);
        if (parameter->kind == PARAMETER_TRAINED)
            parameters_begin_ema(m->store, parameter->offset, parameter->elements);
    }
done:
    free(entries);
    free(m->found);
    free(m->taken);
    safetensors_close(file);
    return status;
}

static tutti_status load_matching(
    tutti_trainer *trainer, const char *path, const tutti_match_options *given, tutti_match_result *result)
{
    tutti_status status;
    tutti_match_options options;
    struct checkpoint checkpoint;
    struct metric_totals totals;
    struct matching matching = { .options = &options, .checkpoint = &checkpoint };
    TRY(forked_check());
    if (!trainer) FAIL(TUTTI_INVALID, "the trainer is NULL: make one with tutti_compile()");
    status = checkpoint_check_name(path);
    if (status == TUTTI_OK) status = OPTIONS_READ(&options, given, tutti_match_options);
    TRY(ranks_report_failure(trainer, status));
    TRY(trainer_check_owns(trainer, "tutti_load_matching()"));
    matching.store = trainer->store;
    TRY(trainer_settle(trainer, &totals));
    TRY(ranks_agree(trainer, trainer_checkpoint(trainer, false, false, &checkpoint)));
    TRY(ranks_agree(trainer, trainer_writes(trainer) ? load(&matching, path) : TUTTI_OK));
    TRY(ranks_broadcast(trainer, &matching.result, sizeof(matching.result)));
    TRY(ranks_share_arenas(trainer));
    parameters_changed(trainer->store);
    if (result) status = RESULT_WRITE(result, &matching.result, tutti_match_result);
done:
    return status;
}

tutti_status tutti_load_matching(
    tutti_trainer *trainer, const char *path, const tutti_match_options *given, tutti_match_result *result)
{
    trainer_lock(trainer);
    const tutti_status status = load_matching(trainer, path, given, result);
    trainer_unlock(trainer);
    return status;
}
