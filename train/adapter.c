/* Low-rank adapters in files: tutti_save_adapter(), as the Python package PEFT has them, and tutti_save_merged(). */
#include "base/file.h"
#include "base/memory.h"
#include "base/text.h"
#include "graph/network.h"
#include "graph/parameter_storage.h"
#include "parallel/ranks_notes.h"
#include "parallel/step.h"
#include "parallel/trainer.h"
#include "runtime/forked.h"
#include "train/checkpoint.h"
#include "train/checks.h"
#include "train/parameters.h"
#include "tutti_finetune.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* ------------------------------------------------------------------------------------------------- which ones ---- */

/* What a file has instead of the parameters: for each an array, or NULL if it is left out. */
struct selection {
    const float **arrays;
    float **merged; /* arrays of its own; NULL: the parameter's */
    size_t count;
};

static tutti_status selection_make(struct selection *selection, size_t count)
{
    *selection = (struct selection) { .arrays = memory_new(count, sizeof(*selection->arrays)),
        .merged = memory_new(count, sizeof(*selection->merged)),
        .count = count };
    return selection->arrays && selection->merged ? TUTTI_OK : TUTTI_NO_MEMORY;
}

static void selection_free(struct selection *selection)
{
    for (size_t i = 0; selection->merged && i < selection->count; i++) free(selection->merged[i]);
    free(selection->merged);
    free(selection->arrays);
}

/* What trains: the factors of adapters, and what was unfrozen. */
static tutti_status select_trained(const struct checkpoint *checkpoint, struct selection *selection)
{
    for (size_t i = 0; i < checkpoint->count; i++) {
        const struct parameter *parameter = &checkpoint->parameters[i];
        if (parameter->kind == PARAMETER_TRAINED) selection->arrays[i] = parameter_in(parameter, &checkpoint->weights);
    }
    return TUTTI_OK;
}

/* Writes weight + scale * up down, or with the transposed product, to a new array. */
static tutti_status merge(const struct checkpoint *checkpoint, const struct adapter *adapter, float **merged)
{
    const struct parameter *weight = &checkpoint->parameters[adapter->weight];
    const struct parameter *down = &checkpoint->parameters[adapter->down], *up = &checkpoint->parameters[adapter->up];
    const float *a = parameter_in(down, &checkpoint->weights), *b = parameter_in(up, &checkpoint->weights);
    const int64_t outputs = up->shape.sizes[0], rank = up->shape.sizes[1], inputs = down->shape.sizes[1];
    double *row = memory_new((size_t)inputs, sizeof(*row));
    *merged = memory_new((size_t)weight->elements, sizeof(**merged));
    if (!row || !*merged) {
        free(row);
        return TUTTI_NO_MEMORY;
    }
    parameter_get(weight, &checkpoint->weights, *merged);
    for (int64_t o = 0; o < outputs; o++) {
        memset(row, 0, (size_t)inputs * sizeof(*row));
        for (int64_t r = 0; r < rank; r++)
            for (int64_t i = 0; i < inputs; i++) row[i] += (double)b[o * rank + r] * (double)a[r * inputs + i];
        for (int64_t i = 0; i < inputs; i++) {
            const int64_t at = adapter->transposed ? i * outputs + o : o * inputs + i;
            (*merged)[at] = (float)((double)(*merged)[at] + (double)adapter->scale * row[i]);
        }
    }
    free(row);
    return TUTTI_OK;
}

/* All but the factors, which are added to their weights. */
static tutti_status select_merged(
    const tutti_network *network, const struct checkpoint *checkpoint, struct selection *selection)
{
    tutti_status status = TUTTI_OK;
    for (size_t i = 0; i < checkpoint->count; i++)
        selection->arrays[i] = parameter_in(&checkpoint->parameters[i], &checkpoint->weights);
    for (size_t i = 0; i < network->adapters.count; i++) {
        const struct adapter *adapter = &network->adapters.list[i];
        TRY(merge(checkpoint, adapter, &selection->merged[adapter->weight]));
        selection->arrays[adapter->weight] = selection->merged[adapter->weight];
        selection->arrays[adapter->down] = selection->arrays[adapter->up] = NULL;
    }
done:
    return status;
}

/* ---------------------------------------------------------------------------------------------- configuration ---- */

/* Name of the module that has the parameter, as PyTorch calls it; the caller frees it. */
static char *module_of(const struct parameter *parameter)
{
    const char *end = strrchr(parameter->name, '.');
    return memory_format("%.*s", end ? (int)(end - parameter->name) : (int)strlen(parameter->name), parameter->name);
}

static int add_adapter(
    const tutti_network *network, const struct adapter *adapter, json_t *modules, json_t *ranks, json_t *alphas)
{
    const int64_t rank = network->parameters[adapter->down].shape.sizes[0];
    char *module = module_of(&network->parameters[adapter->weight]);
    if (!module) return -1;
    const int failed = json_array_append_new(modules, json_string(module)) ||
        json_object_set_new(ranks, module, json_integer(rank)) ||
        json_object_set_new(alphas, module, json_real((double)adapter->scale * (double)rank));
    free(module);
    return failed ? -1 : 0;
}

/* Modules that train as a whole: PEFT's modules_to_save. */
static int add_unfrozen(const tutti_network *network, json_t *modules)
{
    int failed = 0;
    for (size_t i = 0; i < network->parameter_count && !failed; i++) {
        const struct parameter *parameter = &network->parameters[i];
        if (parameter->kind != PARAMETER_TRAINED || network_is_factor(network, (int)i)) continue;
        char *module = module_of(parameter);
        bool known = false;
        for (size_t m = 0; m < json_array_size(modules); m++)
            known |= module && !strcmp(json_string_value(json_array_get(modules, m)), module);
        failed = !module || (!known && json_array_append_new(modules, json_string(module)));
        free(module);
    }
    return failed;
}

/* PEFT's LoraConfig as text, freed by free(); NULL without memory. */
static char *configuration(const tutti_network *network)
{
    const struct adapter *first = &network->adapters.list[0];
    const int64_t rank = network->parameters[first->down].shape.sizes[0];
    json_t *modules = json_array(), *unfrozen = json_array(), *ranks = json_object(), *alphas = json_object();
    int failed = !modules || !unfrozen || !ranks || !alphas;
    for (size_t i = 0; i < network->adapters.count && !failed; i++)
        failed = add_adapter(network, &network->adapters.list[i], modules, ranks, alphas);
    failed = failed || add_unfrozen(network, unfrozen);
    json_t *object = json_pack("{s:s, s:n, s:n, s:b, s:s, s:I, s:f, s:f, s:b, s:O, s:O, s:O, s:O}", "peft_type", "LORA",
        "task_type", "base_model_name_or_path", "inference_mode", 1, "bias", "none", "r", (json_int_t)rank,
        "lora_alpha", (double)first->scale * (double)rank, "lora_dropout", (double)first->dropout, "fan_in_fan_out",
        (int)first->transposed, "target_modules", modules, "modules_to_save", unfrozen, "rank_pattern", ranks,
        "alpha_pattern", alphas);
    char *text = failed || !object ? NULL : json_dumps(object, JSON_INDENT(2));
    json_decref(object);
    json_decref(modules);
    json_decref(unfrozen);
    json_decref(ranks);
    json_decref(alphas);
    return text;
}

/* ------------------------------------------------------------------------------------------------------ saving ---- */

static tutti_status write_adapter(tutti_trainer *trainer, struct checkpoint *checkpoint, const char *folder)
{
    tutti_status status;
    struct selection selection = { 0 };
    char *weights = memory_format("%s/adapter_model.safetensors", folder);
    char *config = memory_format("%s/adapter_config.json", folder), *text = configuration(trainer->network);
    if (!weights || !config || !text) FAIL(TUTTI_NO_MEMORY, "there is no memory for the adapter's description");
    TRY(selection_make(&selection, checkpoint->count));
    TRY(select_trained(checkpoint, &selection));
    if (mkdir(folder, 0777) != 0 && errno != EEXIST)
        FAIL(TUTTI_FILE, "cannot make the folder %s: %s", folder, strerror(errno));
    checkpoint->arrays = selection.arrays;
    checkpoint->prefix = "base_model.model.";
    TRY(weights_save(checkpoint, weights));
    TRY(file_write(config, text, strlen(text)));
done:
    selection_free(&selection);
    free(weights);
    free(config);
    free(text);
    return status;
}

static tutti_status write_merged(tutti_trainer *trainer, struct checkpoint *checkpoint, const char *path)
{
    tutti_status status;
    struct selection selection = { 0 };
    TRY(selection_make(&selection, checkpoint->count));
    TRY(select_merged(trainer->network, checkpoint, &selection));
    checkpoint->arrays = selection.arrays;
    TRY(weights_save(checkpoint, path));
done:
    selection_free(&selection);
    return status;
}

static tutti_status check_adapters(const tutti_trainer *trainer)
{
    if (!trainer || trainer->network->adapters.count > 0) return TUTTI_OK;
    return fail(TUTTI_INVALID, "the network has no adapter: tutti_lora() adds them before tutti_compile()");
}

typedef tutti_status (*writer)(tutti_trainer *trainer, struct checkpoint *checkpoint, const char *path);

static tutti_status save(tutti_trainer *trainer, const char *path, writer write)
{
    tutti_status status;
    struct checkpoint checkpoint;
    struct metric_totals totals;
    TRY(forked_check());
    TRY(trainer_begin_file(trainer, path, check_adapters(trainer)));
    TRY(trainer_settle(trainer, &totals));
    trainer_lock(trainer);
    status = trainer_checkpoint(trainer, true, false, &checkpoint);
    if (status == TUTTI_OK && trainer_writes(trainer)) status = write(trainer, &checkpoint, path);
    trainer_unlock(trainer);
    status = ranks_agree(trainer, status);
done:
    return status;
}

tutti_status tutti_save_adapter(tutti_trainer *trainer, const char *folder)
{
    return save(trainer, folder, write_adapter);
}

tutti_status tutti_save_merged(tutti_trainer *trainer, const char *path)
{
    return save(trainer, path, write_merged);
}
