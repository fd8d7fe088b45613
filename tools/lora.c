#include "tools/lora.h"

#include "base/memory.h"
#include "base/status.h"
#include "tools/session.h"
#include "tutti_finetune.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

int lora_check(struct lora *lora, const struct lora *saved, const char *freeze, int folds)
{
    const char *merged = lora->merged;
    if (lora->rank == 0 && saved->rank > 0 && !lora->layers && lora->alpha == 0 && lora->dropout == 0 &&
        !lora->others) {
        *lora = *saved;
        lora->merged = merged;
    }
    const char *alone = lora->layers ? "lora-layers"
        : lora->alpha != 0           ? "lora-alpha"
        : lora->dropout != 0         ? "lora-dropout"
        : lora->others               ? "lora-train"
        : lora->merged               ? "merge"
                                     : NULL;
    if (lora->rank == 0 && alone) return wrong_use("train", "--%s needs --lora: the rank of the adapters", alone);
    if (lora->merged && folds)
        return wrong_use(
            "train", "--merge writes one file, but --folds trains %d networks: leave one of them out", folds);
    if (lora->rank > 0 && freeze)
        return wrong_use("train",
            "--lora and --freeze contradict each other: --lora freezes all weights but those of --lora-train; leave "
            "out "
            "--freeze");
    return EXIT_DONE;
}

/* Calls `use` for each pattern of a list, which is separated by commas. */
static int each_pattern(const struct session *session, const char *option, const char *list,
    tutti_status (*use)(const struct lora *lora, tutti_network *network, const char *pattern))
{
    int result = EXIT_DONE;
    char *copy = memory_copy_text(list), *rest = copy;
    if (!copy) return work_failed(session->command, TUTTI_NO_MEMORY, status_message());
    while (result == EXIT_DONE && rest) {
        const char *pattern = strsep(&rest, ",");
        if (use(&session->lora, session->network, pattern) != TUTTI_OK)
            result = wrong_use(session->command, "--%s: %s", option, tutti_message(session->runtime));
    }
    free(copy);
    return result;
}

static tutti_status add(const struct lora *lora, tutti_network *network, const char *pattern)
{
    const tutti_lora_options options = {
        .rank = lora->rank, .alpha = (float)lora->alpha, .dropout = (float)lora->dropout
    };
    return tutti_lora(network, pattern, &options);
}

static tutti_status unfreeze(const struct lora *lora, tutti_network *network, const char *pattern)
{
    (void)lora;
    return tutti_unfreeze(network, pattern);
}

int lora_network(const struct session *session)
{
    const struct lora *lora = &session->lora;
    if (lora->rank == 0) return EXIT_DONE;
    const int64_t before = tutti_network_parameters(session->network);
    int result = each_pattern(session, lora->layers ? "lora-layers" : "lora", lora->layers ? lora->layers : "*", add);
    if (result == EXIT_DONE && lora->others) result = each_pattern(session, "lora-train", lora->others, unfreeze);
    if (result == EXIT_DONE && session->rank == 0 && lora->tells)
        fprintf(stderr, "adapters of rank %lld: %lld parameters train instead of %lld\n", (long long)lora->rank,
            (long long)tutti_network_parameters(session->network), (long long)before);
    return result;
}

struct json_t *lora_describe(const struct lora *lora)
{
    if (lora->rank == 0) return NULL;
    return json_pack("{s:I, s:f, s:f, s:s*, s:s*}", "rank", (json_int_t)lora->rank, "alpha", lora->alpha, "dropout",
        lora->dropout, "layers", lora->layers, "train", lora->others);
}

bool lora_read(const struct json_t *object, struct lora *lora)
{
    if (!object) return true;
    *lora = (struct lora) { .rank = (int64_t)json_integer_value(json_object_get(object, "rank")),
        .alpha = json_number_value(json_object_get(object, "alpha")),
        .dropout = json_number_value(json_object_get(object, "dropout")),
        .layers = json_string_value(json_object_get(object, "layers")),
        .others = json_string_value(json_object_get(object, "train")) };
    return lora->rank > 0;
}
