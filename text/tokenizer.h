/* What a tokenizer.json describes, and what threads need to use it. */
#ifndef TEXT_TOKENIZER_H
#define TEXT_TOKENIZER_H

#include "text/added.h"
#include "text/around.h"
#include "text/divide.h"
#include "text/model.h"
#include "text/undo.h"

#include "tutti_text.h"

#include <pthread.h>

/* Of one thread at a time; a tokenizer keeps those that are free. */
struct workspace {
    struct workspace *next;
    struct pattern_matcher *matcher;
    struct byte_list repaired;
    struct normalised normal;
    struct division division;
    struct model_work model;
    struct id_list ids[2]; /* of the two texts */
};
struct tutti_tokenizer {
    char *json;
    struct normaliser_list normalisers;
    struct divider_list dividers;
    struct model model;
    struct added_list added;
    struct around around;
    struct undo_list undoers;
    int64_t size;
    int32_t end;
    pthread_mutex_t lock;
    struct workspace *free;
};

tutti_status workspace_take(tutti_tokenizer *tokenizer, struct workspace **work);
void workspace_give(tutti_tokenizer *tokenizer, struct workspace *work);
void workspace_free(struct workspace *work);

/* Makes a tokenizer of a tokenizer.json, whose text it keeps. */
tutti_status tokenizer_from_json(tutti_tokenizer **tokenizer, const json_t *json);
/* The JSON of what is at a path: "bytes", a file or a folder. */
tutti_status tokenizer_file(const char *path, json_t **json);
/* The JSON of the tokenizer "bytes". NULL: no memory. */
json_t *tokenizer_bytes(void);

#endif
