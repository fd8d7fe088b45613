#include "tools/lora.h"

#include "base/memory.h"
#include "base/status.h"
#include "tools/patterns.h"
#include "tutti_finetune.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

const char *const lora_bases[] = {
    [TUTTI_STORE_F32] = "fp32", [TUTTI_STORE_BF16] = "bf16", [TUTTI_STORE_INT8] = "int8", NULL
};

int lora_check(struct lora *lora, const struct lora *saved, const char *freeze, int folds)
{
    const char *merged = lora->merged;
    if (lora->rank == 0 && saved->rank > 0 && !lora->layers && lora->alpha == 0 && lora->dropout == 0 &&
        !lora->others) {
        const tutti_storage base = lora->base ? lora->base : saved->base;
        *lora = *saved;
        lora->merged = merged;
        lora->base = base;
    }
    const char *alone = lora->layers ? "lora-layers"
        : lora->alpha != 0           ? "lora-alpha"
        : lora->dropout != 0         ? "lora-dropout"
        : lora->others               ? "lora-train"
        : lora->base                 ? "lora-base"
        : lora->merged               ? "merge"
                                     : NULL;
    if (lora->rank == 0 && alone) return wrong_use("train", "--%s needs --lora: the rank of the adapters", alone);
    if (lora->merged && folds)
        return wrong_use(
            "train", "--merge writes one file, but --folds trains %d networks: leave one of them out", folds);
    if (lora->rank > 0 && freeze)
        return wrong_use(
            "train", "--lora and --freeze contradict each other: --lora freezes all weights but those of --lora-train");
    return EXIT_DONE;
}

static tutti_status add(const struct session *session, const char *pattern, double number)
{
    (void)number;
    const struct lora *lora = &session->lora;
    const tutti_lora_options options = {
        .rank = lora->rank, .alpha = (float)lora->alpha, .dropout = (float)lora->dropout
    };
    return tutti_lora(session->network, pattern, &options);
}

static tutti_status store(const struct session *session, const char *pattern, double number)
{
    (void)number;
    return tutti_store(session->network, pattern, session->lora.base);
}

static tutti_status unfreeze(const struct session *session, const char *pattern, double number)
{
    (void)number;
    return tutti_unfreeze(session->network, pattern);
}

int lora_network(const struct session *session)
{
    const struct lora *lora = &session->lora;
    if (lora->rank == 0) return EXIT_DONE;
    const int64_t before = tutti_network_parameters(session->network);
    int result =
        patterns_each(session, lora->layers ? "lora-layers" : "lora", lora->layers ? lora->layers : "*", false, add);
    if (result == EXIT_DONE && lora->others)
        result = patterns_each(session, "lora-train", lora->others, false, unfreeze);
    if (result == EXIT_DONE && lora->base) result = patterns_each(session, "lora-base", "*", false, store);
    if (result == EXIT_DONE && session->rank == 0 && lora->tells)
        fprintf(stderr, "adapters of rank %lld: %lld parameters train instead of %lld\n", (long long)lora->rank,
            (long long)tutti_network_parameters(session->network), (long long)before);
    return result;
}

struct json_t *lora_describe(const struct lora *lora)
{
    if (lora->rank == 0) return NULL;
    return json_pack("{s:I, s:f, s:f, s:s*, s:s*, s:s}", "rank", (json_int_t)lora->rank, "alpha", lora->alpha,
        "dropout", lora->dropout, "layers", lora->layers, "train", lora->others, "base", lora_bases[lora->base]);
}

/* Weights without the word are from before there was one. */
static tutti_storage read_base(const char *word)
{
    unsigned base = TUTTI_STORE_F32;
    while (word && lora_bases[base] && strcmp(lora_bases[base], word) != 0) base++;
    return lora_bases[base] ? (tutti_storage)base : TUTTI_STORE_F32;
}

bool lora_read(const struct json_t *object, struct lora *lora)
{
    if (!object) return true;
    *lora = (struct lora) { .rank = (int64_t)json_integer_value(json_object_get(object, "rank")),
        .alpha = json_number_value(json_object_get(object, "alpha")),
        .dropout = json_number_value(json_object_get(object, "dropout")),
        .layers = json_string_value(json_object_get(object, "layers")),
        .others = json_string_value(json_object_get(object, "train")),
        .base = read_base(json_string_value(json_object_get(object, "base"))) };
    return lora->rank > 0;
}
