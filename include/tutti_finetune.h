/* Training that begins from other trainings: frozen parameters and parameters with rates of their own, weights of a
 * network with another head, copies of a training in memory, and the range test of learning rates. docs/training.md
 * describes how to use them. */
#ifndef TUTTI_FINETUNE_H
#define TUTTI_FINETUNE_H

#include <tutti.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Freezes every parameter whose name matches a pattern, as "backbone.*": `*` stands for any text, `?` for a
 * character. A frozen parameter keeps its values: it has no gradient, no optimizer state and no weight decay, and
 * devices receive it once. Running statistics are not parameters and are still updated. tutti_unfreeze() lets
 * parameters train again. Errors: TUTTI_INVALID if no parameter matches, or a trainer uses the network. */
TUTTI_API tutti_status tutti_freeze(tutti_network *network, const char *pattern);
TUTTI_API tutti_status tutti_unfreeze(tutti_network *network, const char *pattern);

/* How frozen matrices are stored, on devices and in the host's copy. */
typedef enum tutti_storage {
    TUTTI_STORE_F32,
    TUTTI_STORE_BF16, /* rounded to bfloat16, in half the memory */
    /* Each 64 numbers along the last axis as bytes, with one scale: their largest magnitude / 127. 8.5 bits a number;
     * an error of at most 1/254 of that magnitude. */
    TUTTI_STORE_INT8
} tutti_storage;
/* Stores every frozen parameter of two dimensions and more whose name matches a pattern, as for tutti_freeze(), in
 * fewer bits, so that large networks are trained by adapters (tutti_lora()) and run in less memory. Products of samples
 * with such a matrix and rows of a table of embeddings read it as it is stored; all else, and the GPU class, converts
 * it for the time of an operation. Results are floats. Initial, loaded and set values are rounded;
 * tutti_get_parameter() and files have what is kept. tutti_view_parameter() refuses it. A parameter that trains is
 * stored in floats. Call it after tutti_freeze() or tutti_lora(), and before tutti_compile(). Errors: TUTTI_INVALID if
 * no frozen matrix matches, or a trainer uses the network. */
TUTTI_API tutti_status tutti_store(tutti_network *network, const char *pattern, tutti_storage storage);

typedef struct tutti_group_options {
    size_t size;           /* sizeof(tutti_group_options), or 0 */
    float rate_factor;     /* multiplies the learning rate of every step; 0: 1 */
    bool has_weight_decay; /* weight_decay replaces tutti_training.weight_decay */
    float weight_decay;
} tutti_group_options;
/* Gives every parameter whose name matches a pattern, as for tutti_freeze(), its own rate and decay in any optimizer:
 * a group, as PyTorch's parameter groups. After several calls for one parameter, the last one counts. NULL: as
 * without a group. Files do not contain groups: a program that resumes sets them again. Errors: TUTTI_INVALID if no
 * parameter matches, or a trainer uses the network. */
TUTTI_API tutti_status tutti_group(tutti_network *network, const char *pattern, const tutti_group_options *options);

/* Changes the group of parameters as tutti_group() sets it, for this trainer and the steps that follow. A group must
 * have had a rate or decay of its own when the trainer was made. tutti_fitting.progress may call it. With several
 * ranks, all make the same call. Errors: TUTTI_INVALID if there was no such group, or no parameter that trains
 * matches. */
TUTTI_API tutti_status tutti_set_group(tutti_trainer *trainer, const char *pattern, const tutti_group_options *options);

typedef struct tutti_lora_options {
    size_t size;   /* sizeof(tutti_lora_options), or 0 */
    int64_t rank;  /* of the adapters; 0: 8 */
    float alpha;   /* the adapter's result is multiplied by alpha / rank; 0: by 1 */
    float dropout; /* of the adapter's input in training; at least 0, below 1 */
} tutti_lora_options;
/* Low-rank adapters (LoRA; Hu et al. 2021): every product of samples with a weight [outputs, inputs] or its transpose
 * whose name matches a pattern, as for tutti_freeze(), gets two new parameters, "layer.lora_A.weight" [rank, inputs]
 * and "layer.lora_B.weight" [outputs, rank], for the weight "layer.weight": y = W x + alpha / rank * B A x. A begins as
 * the weight of tutti_dense(), B with zeros, so the network computes the same at first. A weight that is used otherwise
 * as well gets none, such as a table of embeddings that logits share. All parameters that trained
 * before are frozen: call tutti_unfreeze() afterwards for those that train as well, such as a new head. Call it when
 * all layers are added; tensors keep their meaning. Several calls with other patterns are possible. options may be
 * NULL. Errors: TUTTI_INVALID if no layer matches, one has an adapter, or a trainer uses the network. */
TUTTI_API tutti_status tutti_lora(tutti_network *network, const char *pattern, const tutti_lora_options *options);
/* Writes what trains, adapters and unfrozen parameters, into a folder, which is made if it does not exist:
 * adapter_model.safetensors with the names of the Python package PEFT, and adapter_config.json for it.
 * tutti_load_matching() reads the file into a network with such adapters. The former files are replaced. With several
 * ranks, all call it. Errors: TUTTI_INVALID if the network has no adapter, TUTTI_FILE. */
TUTTI_API tutti_status tutti_save_adapter(tutti_trainer *trainer, const char *folder);
/* As tutti_save_weights(), with every adapter added to its weight, and without the adapters: weights for the network
 * as it was before tutti_lora(). Errors: TUTTI_INVALID if the network has no adapter, TUTTI_FILE. */
TUTTI_API tutti_status tutti_save_merged(tutti_trainer *trainer, const char *path);

/* Outcome for a parameter or running statistic. */
typedef enum tutti_match {
    TUTTI_MATCH_LOADED,
    TUTTI_MATCH_MISSING, /* the network has it, the file does not */
    TUTTI_MATCH_UNUSED,  /* the file has it, the network does not */
    TUTTI_MATCH_SHAPE,   /* both have it, with other shapes */
    TUTTI_MATCH_TYPE     /* the file has it in another type than F64, F32, F16 and BF16 */
} tutti_match;

typedef struct tutti_match_options {
    size_t size; /* sizeof(tutti_match_options), or 0 */
    /* Called for each parameter and running statistic, in the order of the network, then for each array that only the
     * file has. Name and shapes are valid during the call. A shape is NULL if the file or the network does not have it.
     * With several ranks, only rank 0 calls it. */
    void (*report)(
        void *user, tutti_match match, const char *name, const tutti_shape *in_file, const tutti_shape *in_network);
    void *user;
} tutti_match_options;

typedef struct tutti_match_result {
    size_t size;                            /* sizeof(tutti_match_result), or 0; set it before the call */
    int64_t loaded, missing, unused, other; /* numbers of arrays; other: another shape or type */
    int64_t loaded_elements, elements;      /* elements of the loaded arrays, and of all in the network */
} tutti_match_result;

/* Loads every parameter and running statistic of a safetensors file whose name and shape fit, and does not change
 * the others: for weights of a network with another head. Numbers may be F64, F32, F16 or BF16. The prefixes "module.",
 * "model.", "_orig_mod." and "base_model." of PyTorch's wrappers, and "transformer.", "bert.", "roberta." and
 * "distilbert." of transformers, are ignored, in names of the file and of the network; LayerNorm.gamma and
 * LayerNorm.beta of a file are the weight and the bias. Of several arrays that differ only in prefixes, the one that
 * agrees most from the name's end is taken. options and result may be NULL. Errors: TUTTI_MISMATCH if nothing fits, or
 * one array fits several parameters or several fit one; TUTTI_FILE, TUTTI_FORMAT; nothing changes then. */
TUTTI_API tutti_status tutti_load_matching(
    tutti_trainer *trainer, const char *path, const tutti_match_options *options, tutti_match_result *result);

/* A copy of a training in memory: parameters, running statistics, states of the optimizer, step, epoch and seed.
 *
 * To freeze or unfreeze parameters within a training, take a snapshot, free the trainer, call tutti_unfreeze() or
 * tutti_freeze(), compile again and restore the snapshot. The next tutti_fit() continues the training, as after
 * tutti_resume(). Parameters that were frozen before have no optimizer states: their momentum begins at zero. Adam,
 * AdamW and NAdam then reset the states of all parameters and the number of steps in their bias correction: with the
 * old number, the first updates of these parameters would be up to ten times too large. tutti_resume() does the same
 * with a checkpoint that was saved while fewer parameters trained. States are matched by their names. With
 * tutti_training.ema_decay, a snapshot has the trained parameters as well as their averages: parameters that are frozen
 * keep what they have learnt, and averages that the snapshot lacks begin as the parameters. */
typedef struct tutti_snapshot tutti_snapshot;
/* Returns NULL on failure. Free it with tutti_snapshot_free(). With several ranks, all take one. */
TUTTI_API tutti_snapshot *tutti_snapshot_take(tutti_trainer *trainer);
/* Errors: TUTTI_MISMATCH if the trainer's network has other parameters; nothing changes then. */
TUTTI_API tutti_status tutti_snapshot_restore(tutti_trainer *trainer, const tutti_snapshot *snapshot);
TUTTI_API void tutti_snapshot_free(tutti_snapshot *snapshot);

typedef struct tutti_checkpoint_info {
    size_t size;           /* sizeof(tutti_checkpoint_info), or 0; set it before the call */
    int64_t steps, epochs; /* complete ones */
    int64_t samples;       /* trained in the epoch that is not complete */
} tutti_checkpoint_info;
/* Reads the progress of the training that tutti_save() saved. Errors: TUTTI_FILE, TUTTI_FORMAT. */
TUTTI_API tutti_status tutti_checkpoint_read(const char *name, tutti_checkpoint_info *info);

typedef struct tutti_rate_options {
    size_t size;      /* sizeof(tutti_rate_options), or 0 */
    double low, high; /* the rates of the first and the last step; 0: 1e-7 and 10 */
    int steps;        /* 10 to 1000; 0: 100 */
    int64_t batch;    /* as in tutti_fitting */
} tutti_rate_options;
typedef struct tutti_rate_result {
    size_t size;                       /* sizeof(tutti_rate_result), or 0; set it before the call */
    int count;                         /* number of steps */
    double *rates, *losses, *smoothed; /* [count]; free them with free() */
    /* Suggested rates: `steepest` has the steepest fall of the smoothed loss over the logarithm of the rate; `valley`
     * lies two thirds down the longest fall, and depends less on noise. 0: the loss never falls. */
    double steepest, valley;
} tutti_rate_result;
/* The range test of learning rates (Smith 2017, "Cyclical learning rates for training neural networks"): trains with
 * rates that grow exponentially, until the smoothed loss exceeds four times its minimum or is not finite, and restores
 * the training. The smoothed loss is a moving average with the factor 0.9. Errors: as tutti_fit_source(). */
TUTTI_API tutti_status tutti_find_rate(
    tutti_trainer *trainer, const tutti_source *source, const tutti_rate_options *options, tutti_rate_result *result);

#ifdef __cplusplus
}
#endif
#endif
