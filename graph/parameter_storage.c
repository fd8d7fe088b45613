#include "graph/parameter_storage.h"

#include "base/memory.h"
#include "graph/stored.h"

enum value_type parameter_type(const struct parameter *parameter)
{
    const bool stored = parameter->kind == PARAMETER_FROZEN && parameter->shape.rank >= 2;
    return stored ? parameter->stored : parameter->type;
}

int64_t parameter_row(const struct parameter *parameter)
{
    return parameter->shape.rank > 0 ? parameter->shape.sizes[parameter->shape.rank - 1] : 1;
}

int64_t parameter_rows(const struct parameter *parameter)
{
    return parameter->elements / parameter_row(parameter);
}

size_t parameter_bytes(const struct parameter *parameter)
{
    const enum value_type type = parameter_type(parameter);
    return (size_t)parameter_rows(parameter) *
        stored_row_bytes(type == TYPE_I32 ? TYPE_F32 : type, parameter_row(parameter));
}

void *parameter_bytes_in(const struct parameter *parameter, const struct parameter_arenas *arenas)
{
    return (parameter_is_fixed(parameter) ? arenas->frozen : arenas->parameters) + parameter->offset;
}

void parameter_get(const struct parameter *parameter, const struct parameter_arenas *arenas, float *to)
{
    stored_read(parameter_type(parameter), parameter_rows(parameter), parameter_row(parameter),
        parameter_bytes_in(parameter, arenas), to);
}

void parameter_set(const struct parameter *parameter, const struct parameter_arenas *arenas, const float *from)
{
    const int64_t length = parameter_row(parameter);
    for (int64_t r = 0; r < parameter_rows(parameter); r++)
        parameter_set_part(parameter, arenas, r, 0, length, from + r * length);
}

void parameter_set_part(const struct parameter *parameter, const struct parameter_arenas *arenas, int64_t row,
    int64_t first, int64_t count, const float *from)
{
    const enum value_type type = parameter_type(parameter);
    const int64_t length = parameter_row(parameter);
    unsigned char *to = parameter_bytes_in(parameter, arenas);
    stored_write(type, length, first, count, from, to + (size_t)row * stored_row_bytes(type, length));
}
