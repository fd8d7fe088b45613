/* Options of `tutti train` for low-rank adapters: a few new parameters train instead of the weights. */
#ifndef TOOLS_LORA_H
#define TOOLS_LORA_H

#include "tools/options.h"
#include "tutti_finetune.h"

struct session;

#define LORA_FOLDER ".adapter" /* after the name of a checkpoint */

struct lora {
    int64_t rank; /* 0: no adapters */
    double alpha, dropout;
    const char *layers; /* patterns; NULL: all */
    const char *others; /* patterns of --lora-train; NULL: none */
    const char *merged; /* file to write; NULL: none */
    tutti_storage base; /* of frozen matrices */
    bool tells;         /* prints how many parameters train */
};

/* Lines of a table of options. */
#define LORA_OPTIONS(l)                                                                                             \
    OPTION_HEADING("Low-rank adapters"),                                                                            \
        { "lora", OPTION((l).rank), "RANK",                                                                         \
            "train adapters of this rank for dense layers, whose weights stay; --save also writes them alone, to "  \
            "the folder NAME.adapter, as PEFT does",                                                                \
            1, 65536 },                                                                                             \
        { "lora-layers", OPTION((l).layers), "PATTERN,...",                                                         \
            "only for weights whose names are like a PATTERN (default: all)" },                                     \
        { "lora-alpha", OPTION((l).alpha), "X", "multiply what an adapter adds by X / RANK (default RANK)", 1e-6,   \
            1e6 },                                                                                                  \
        { "lora-base", OPTION((l).base), "TYPE",                                                                    \
            "keep the frozen weights as fp32, bf16 or int8 with a scale for each 64 (default fp32)",                \
            .choices = lora_bases },                                                                                \
        { "lora-dropout", OPTION((l).dropout), "X", "dropout of an adapter's input", 0, 0.99 },                     \
        { "lora-train", OPTION((l).others), "PATTERN,...", "train these parameters, too, such as a new head" },     \
    {                                                                                                               \
        "merge", OPTION((l).merged), "FILE", "write weights to which the adapters are added", .file = OPTION_WRITES \
    }

extern const char *const lora_bases[];

/* Checks that the options fit each other, --freeze and --folds. Weights to begin with may have adapters, `saved`:
 * without options, the network gets the same. Returns an exit status, as do all functions that return int. */
int lora_check(struct lora *lora, const struct lora *saved, const char *freeze, int folds);
/* Adds the adapters of session->lora to the session's network; session_build() calls it. */
int lora_network(const struct session *session);
/* After the training: writes the adapters next to the checkpoint of this name, unless it is NULL, and the merged
 * weights if asked. */
int lora_save(const struct session *session, const char *name);

/* What weights say of the adapters of their network, as JSON; NULL: there are none, or there is no memory. */
struct json_t *lora_describe(const struct lora *lora);
/* Reads it; NULL: no adapters. Texts are the object's. Returns whether it is whole. */
bool lora_read(const struct json_t *object, struct lora *lora);

#endif
