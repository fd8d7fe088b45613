/* Targets of arrays that are numbers to predict. */
#include "data/arrays.h"

#include "base/half.h"
#include "base/memory.h"
#include "base/status.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_STANDARDISED = 1 << 16, MOST_MEASURED = 100000 };

/* Reads a number; elements may be unaligned. */
static double number_at(enum npz_type type, const char *elements, size_t at)
{
    double number;
    float single;
    uint16_t half;
    if (type == NPZ_F64) {
        memcpy(&number, elements + at * sizeof number, sizeof number);
        return number;
    }
    if (type == NPZ_F32) {
        memcpy(&single, elements + at * sizeof single, sizeof single);
        return (double)single;
    }
    memcpy(&half, elements + at * sizeof half, sizeof half);
    return (double)half_to_float(half);
}

/* Reads the numbers of a row. `values` has room for them and, after them, for the row as it is stored. */
static tutti_status read_row(
    const struct array_targets *targets, const struct array_rows *from, int64_t row, double *values)
{
    char *elements = (char *)(values + targets->count);
    const tutti_status status = array_rows_read(from, row, 1, elements);
    if (status != TUTTI_OK) return status;
    for (size_t i = 0; i < targets->count; i++) {
        values[i] = number_at(targets->type, elements, i);
        if (!isfinite((float)values[i]))
            return fail(TUTTI_FORMAT, "%s[%" PRId64 "] has numbers that are not finite", from->name, row);
    }
    return TUTTI_OK;
}

tutti_status array_targets_read(
    const struct array_targets *targets, const struct array_rows *from, int64_t row, float *target)
{
    double *values = memory_new(targets->count, 2 * sizeof *values);
    if (!values) return TUTTI_NO_MEMORY;
    const tutti_status status = read_row(targets, from, row, values);
    for (size_t i = 0; status == TUTTI_OK && i < targets->count; i++)
        target[i] =
            targets->standards.count ? standards_apply(&targets->standards, (int)i, values[i]) : (float)values[i];
    free(values);
    return status;
}

tutti_status array_targets_open(struct array_targets *targets, const struct npz_array *array,
    const tutti_data_options *options, tutti_data_info *info)
{
    targets->type = array->type;
    targets->count = array->bytes / (size_t)array->sizes[0] / npz_type_size(array->type);
    info->target_dtype = TUTTI_DTYPE_F32;
    info->target_shape = (tutti_shape) { .rank = 1, .sizes = { (int64_t)targets->count } };
    if (targets->count > MOST_STANDARDISED) return TUTTI_OK;
    return standards_read_targets(&targets->standards, options, (int)targets->count, info);
}

tutti_status array_targets_measure(
    struct array_targets *targets, const struct array_rows *from, const int64_t *begins, const signed char *part)
{
    tutti_status status = TUTTI_NO_MEMORY;
    int64_t training = 0, seen = 0;
    if (!targets->standards.measure) return TUTTI_OK;
    double *values = memory_new(targets->count, 2 * sizeof *values);
    struct statistics *columns = memory_new(targets->count, sizeof *columns);
    if (!values || !columns) goto done;
    for (int64_t i = 0; i < begins[ARRAYS_SLOTS]; i++) training += part[i] == TUTTI_DATA_TRAIN;
    const int64_t step = 1 + (training - 1) / MOST_MEASURED;
    for (int slot = 0; slot < ARRAYS_SLOTS; slot++)
        for (int64_t i = begins[slot]; i < begins[slot + 1]; i++) {
            if (part[i] != TUTTI_DATA_TRAIN || seen++ % step) continue;
            status = read_row(targets, &from[slot], i - begins[slot], values);
            if (status == TUTTI_FORMAT) continue; /* a damaged sample, which is told when it is read */
            if (status != TUTTI_OK) goto done;
            for (size_t k = 0; k < targets->count; k++) statistics_add(&columns[k], values[k]);
        }
    standards_end(&targets->standards, columns);
    status = TUTTI_OK;
done:
    free(values);
    free(columns);
    return status;
}
