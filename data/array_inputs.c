/* Samples of arrays that are numbers, and are standardised where the options ask for it. */
#include "data/arrays.h"

#include "base/memory.h"
#include "base/status.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_STANDARDS = 1 << 16, MOST_MEASURED = 100000, FEWEST_MEASURED = 1000, MOST_NUMBERS = 1 << 28 };

tutti_status array_inputs_open(struct array_inputs *inputs, const tutti_shape *shape, size_t elements, const char *how)
{
    const size_t count = shape->rank == 1 ? elements : (size_t)shape->sizes[0];
    inputs->elements = elements;
    inputs->run = elements / count;
    if (!how || !strcmp(how, "none")) return TUTTI_OK;
    if (count > MOST_STANDARDS)
        return fail(TUTTI_INVALID, "samples of %zu %s are not standardised: there are at most %d means", count,
            shape->rank == 1 ? "numbers" : "channels", MOST_STANDARDS);
    return standards_read(&inputs->standards, how, (int)count);
}

tutti_status array_inputs_apply(
    const struct array_inputs *inputs, enum npz_type type, const void *row, float *sample, bool *finite)
{
    double *numbers = memory_new(inputs->elements, sizeof *numbers);
    if (!numbers) return TUTTI_NO_MEMORY;
    *finite = array_to_doubles(type, row, inputs->elements, numbers);
    for (size_t i = 0; *finite && i < inputs->elements; i++)
        sample[i] = standards_apply(&inputs->standards, (int)(i / inputs->run), numbers[i]);
    free(numbers);
    return TUTTI_OK;
}

/* One sample of the training part; one with numbers that are not finite is damaged, which is told when it is read. */
static tutti_status add_sample(const struct array_inputs *inputs, const struct array_rows *from, int64_t row,
    double *numbers, struct statistics *channels)
{
    char *stored = (char *)(numbers + inputs->elements);
    const tutti_status status = array_rows_read(from, row, 1, stored);
    if (status != TUTTI_OK || !array_to_doubles(from->array->type, stored, inputs->elements, numbers)) return status;
    for (size_t i = 0; i < inputs->elements; i++) statistics_add(&channels[i / inputs->run], numbers[i]);
    return TUTTI_OK;
}

/* How many training samples there are for each that is measured. */
static int64_t find_step(const struct array_inputs *inputs, int64_t samples, const signed char *part)
{
    int64_t training = 0, most = MOST_NUMBERS / (int64_t)inputs->elements;
    for (int64_t i = 0; i < samples; i++) training += part[i] == TUTTI_DATA_TRAIN;
    if (most < FEWEST_MEASURED) most = FEWEST_MEASURED;
    if (most > MOST_MEASURED) most = MOST_MEASURED;
    return 1 + (training - 1) / most;
}

tutti_status array_inputs_measure(
    struct array_inputs *inputs, const struct array_rows *from, const int64_t *begins, const signed char *part)
{
    tutti_status status = TUTTI_NO_MEMORY;
    if (!inputs->standards.measure) return TUTTI_OK;
    const int64_t step = find_step(inputs, begins[ARRAYS_SLOTS], part);
    int64_t seen = 0;
    double *numbers = memory_new(inputs->elements, 2 * sizeof *numbers);
    struct statistics *channels = memory_new((size_t)inputs->standards.count, sizeof *channels);
    if (!numbers || !channels) goto done;
    for (int slot = 0; slot < ARRAYS_SLOTS; slot++)
        for (int64_t i = begins[slot]; i < begins[slot + 1]; i++)
            if (part[i] == TUTTI_DATA_TRAIN && seen++ % step == 0)
                TRY(add_sample(inputs, &from[slot], i - begins[slot], numbers, channels));
    standards_end(&inputs->standards, channels);
    status = TUTTI_OK;
done:
    free(numbers);
    free(channels);
    return status;
}
