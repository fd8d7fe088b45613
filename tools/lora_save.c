/* What a training with low-rank adapters writes at its end. */
#include "base/memory.h"
#include "base/status.h"
#include "tools/lora.h"
#include "tools/saved_model.h"
#include "tutti_finetune.h"

#include <stdlib.h>

/* The merged weights are of the network without adapters, and say so. */
static tutti_status save_merged(const struct session *session, const char *path)
{
    struct session plain = *session;
    plain.lora.rank = 0;
    tutti_status status = saved_model_keep(&plain);
    if (status == TUTTI_OK) status = tutti_save_merged(session->trainer, path);
    return status == TUTTI_OK ? saved_model_keep(session) : status;
}

int lora_save(const struct session *session, const char *name)
{
    const struct lora *lora = &session->lora;
    if (lora->rank == 0) return EXIT_DONE;
    char *folder = name ? memory_format("%s%s", name, LORA_FOLDER) : NULL;
    tutti_status status = name && !folder ? TUTTI_NO_MEMORY : TUTTI_OK;
    if (folder) status = tutti_save_adapter(session->trainer, folder);
    if (folder && status == TUTTI_OK && session->rank == 0) fprintf(stderr, "adapters saved in %s\n", folder);
    if (lora->merged && status == TUTTI_OK) status = save_merged(session, lora->merged);
    if (lora->merged && status == TUTTI_OK && session->rank == 0)
        fprintf(stderr, "merged weights saved as %s\n", lora->merged);
    free(folder);
    return status == TUTTI_OK ? EXIT_DONE : work_failed(session->command, status, tutti_message(session->runtime));
}
