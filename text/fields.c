#include "text/fields.h"

#include "text/utf8.h"

const json_t *field_get(const json_t *object, const char *name)
{
    const json_t *member = json_object_get(object, name);
    return json_is_null(member) ? NULL : member;
}

tutti_status field_flag(const json_t *object, const char *name, bool fallback, bool *value)
{
    const json_t *member = field_get(object, name);
    if (member && !json_is_boolean(member))
        return fail(TUTTI_FORMAT, "\"%s\" of the tokenizer must be true or false", name);
    *value = member ? json_is_true(member) : fallback;
    return TUTTI_OK;
}

tutti_status field_text(const json_t *object, const char *name, const char **value, size_t *size)
{
    const json_t *member = field_get(object, name);
    if (member && !json_is_string(member)) return fail(TUTTI_FORMAT, "\"%s\" of the tokenizer must be a string", name);
    *value = json_string_value(member);
    *size = member ? json_string_length(member) : 0;
    return TUTTI_OK;
}

tutti_status field_integer(const json_t *object, const char *name, int64_t fallback, int64_t *value)
{
    const json_t *member = field_get(object, name);
    if (member && !json_is_integer(member))
        return fail(TUTTI_FORMAT, "\"%s\" of the tokenizer must be an integer", name);
    *value = member ? (int64_t)json_integer_value(member) : fallback;
    return TUTTI_OK;
}

tutti_status field_type(const json_t *object, const char *where, const char **type)
{
    *type = json_string_value(json_object_get(object, "type"));
    return *type ? TUTTI_OK : fail(TUTTI_FORMAT, "the tokenizer's %s has no \"type\"", where);
}

tutti_status field_character(
    const json_t *object, const char *name, const char *fallback, const char **value, size_t *size)
{
    tutti_status status = field_text(object, name, value, size);
    if (status != TUTTI_OK) return status;
    if (!*value && fallback) *value = fallback, *size = strlen(fallback);
    if (!*value || *size == 0 || utf8_size(**value) != *size)
        return fail(TUTTI_FORMAT, "\"%s\" of the tokenizer must be one character", name);
    return TUTTI_OK;
}

tutti_status field_sequence(
    const json_t *json, const char *parts, tutti_status (*read)(void *to, const json_t *json), void *to)
{
    const char *type = json_string_value(json_object_get(json, "type"));
    if (!json) return TUTTI_OK;
    if (!type || strcmp(type, "Sequence")) return read(to, json);
    const json_t *all = json_object_get(json, parts);
    if (!json_is_array(all)) return fail(TUTTI_FORMAT, "\"%s\" of the tokenizer must be a list", parts);
    for (size_t i = 0; i < json_array_size(all); i++) {
        const tutti_status status = field_sequence(json_array_get(all, i), parts, read, to);
        if (status != TUTTI_OK) return status;
    }
    return TUTTI_OK;
}
