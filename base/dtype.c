#include "base/dtype.h"

static const struct {
    const char *name;
    size_t bytes;
} dtypes[] = {
    [TUTTI_DTYPE_F32] = { "f32", 4 },
    [TUTTI_DTYPE_F16] = { "f16", 2 },
    [TUTTI_DTYPE_BF16] = { "bf16", 2 },
    [TUTTI_DTYPE_I32] = { "i32", 4 },
    [TUTTI_DTYPE_I64] = { "i64", 8 },
    [TUTTI_DTYPE_U8] = { "u8", 1 },
    [TUTTI_DTYPE_BOOL] = { "bool", 1 },
};

static bool exists(tutti_dtype dtype)
{
    return (size_t)dtype < sizeof(dtypes) / sizeof(*dtypes);
}

const char *dtype_name(tutti_dtype dtype)
{
    return exists(dtype) ? dtypes[dtype].name : "that does not exist";
}

size_t tutti_dtype_bytes(tutti_dtype dtype)
{
    return exists(dtype) ? dtypes[dtype].bytes : 0;
}
