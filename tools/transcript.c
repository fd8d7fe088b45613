#include "tools/transcript.h"

#include "base/memory.h"
#include "tutti_scores.h"

#include <stdlib.h>

char *transcript_text(void *user, const int32_t *labels, int64_t count)
{
    int32_t *ids = memory_new((size_t)count + 1, sizeof *ids);
    if (!ids) return NULL;
    for (int64_t i = 0; i < count; i++) ids[i] = labels[i] - 1;
    char *text = count > 0 ? tutti_tokenizer_decode(user, ids, count, false) : memory_copy_text("");
    free(ids);
    return text;
}

char *transcript_of(tutti_tokenizer *tokenizer, const float *logits, int64_t steps, int64_t classes)
{
    int32_t *labels = memory_new((size_t)steps + 1, sizeof *labels);
    if (!labels) return NULL;
    const int64_t count = tutti_ctc_labels(logits, steps, classes, 0, labels);
    char *text = transcript_text(tokenizer, labels, count);
    free(labels);
    return text;
}
