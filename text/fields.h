/* Members of JSON objects, with their types checked. Each function fails with TUTTI_FORMAT, naming the member. A member
 * that is null counts as missing. */
#ifndef TEXT_FIELDS_H
#define TEXT_FIELDS_H

#include "base/status.h"

#include <jansson.h>

/* The member, or NULL if it is missing or null. */
const json_t *field_get(const json_t *object, const char *name);
tutti_status field_flag(const json_t *object, const char *name, bool fallback, bool *value);
/* Strings are those of the JSON; *value is NULL if it is missing. */
tutti_status field_text(const json_t *object, const char *name, const char **value, size_t *size);
tutti_status field_integer(const json_t *object, const char *name, int64_t fallback, int64_t *value);
/* The member "type", which must be there; `where` is for messages. */
tutti_status field_type(const json_t *object, const char *where, const char **type);
/* Calls `read` for a part of a tokenizer, or for each part that the member `parts` of a "Sequence" lists, also of one
 * within another. json NULL: there is none. */
tutti_status field_sequence(
    const json_t *json, const char *parts, tutti_status (*read)(void *to, const json_t *json), void *to);
/* A string of exactly one character. */
tutti_status field_character(
    const json_t *object, const char *name, const char *fallback, const char **value, size_t *size);

#endif
