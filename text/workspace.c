/* What threads need to use a tokenizer; closing it, freeing an encoding, and the id of a token. */
#include "text/tokenizer.h"

#include <stdlib.h>

tutti_status workspace_take(tutti_tokenizer *tokenizer, struct workspace **result)
{
    pthread_mutex_lock(&tokenizer->lock);
    struct workspace *work = tokenizer->free;
    if (work) tokenizer->free = work->next;
    pthread_mutex_unlock(&tokenizer->lock);
    *result = work;
    if (work) return TUTTI_OK;
    work = memory_new(1, sizeof(*work));
    if (!work) return TUTTI_NO_MEMORY;
    const tutti_status status = pattern_matcher_new(&work->matcher);
    if (status != TUTTI_OK)
        workspace_free(work);
    else
        *result = work;
    return status;
}

void workspace_give(tutti_tokenizer *tokenizer, struct workspace *work)
{
    pthread_mutex_lock(&tokenizer->lock);
    work->next = tokenizer->free;
    tokenizer->free = work;
    pthread_mutex_unlock(&tokenizer->lock);
}

void workspace_free(struct workspace *work)
{
    pattern_matcher_free(work->matcher);
    byte_list_free(&work->repaired);
    byte_list_free(&work->normal.text);
    byte_list_free(&work->normal.spare);
    byte_list_free(&work->division.text);
    byte_list_free(&work->division.spare);
    free(work->division.pieces.data);
    free(work->division.others.data);
    model_work_free(&work->model);
    id_list_free(&work->ids[0]);
    id_list_free(&work->ids[1]);
    free(work);
}

void tutti_tokenizer_close(tutti_tokenizer *tokenizer)
{
    if (!tokenizer) return;
    for (struct workspace *work = tokenizer->free, *next; work; work = next) {
        next = work->next;
        workspace_free(work);
    }
    pthread_mutex_destroy(&tokenizer->lock);
    normalise_free(&tokenizer->normalisers);
    divide_free(&tokenizer->dividers);
    added_free(&tokenizer->added);
    model_free(&tokenizer->model);
    around_free(&tokenizer->around);
    undo_free(&tokenizer->undoers);
    free(tokenizer->json);
    free(tokenizer);
}

void tutti_encoding_free(tutti_encoding *encoding)
{
    if (!encoding) return;
    free(encoding->ids);
    free(encoding->types);
    *encoding = (tutti_encoding) { 0 };
}

int32_t tutti_tokenizer_id(const tutti_tokenizer *tokenizer, const char *token)
{
    if (!tokenizer || !token) return -1;
    const int32_t added = vocabulary_find(&tokenizer->added.ids, token, strlen(token));
    return added >= 0 ? tokenizer->added.tokens[added].id
                      : vocabulary_find(&tokenizer->model.vocabulary, token, strlen(token));
}
