/* The first-use check of a custom operation on a device: its forward is compared with the program's reference, and its
 * backward with finite differences of the reference or, without one, of the forward. */
#include "layers/custom/custom.h"

#include "base/memory.h"
#include "base/numbers.h"
#include "base/random.h"
#include "runtime/memory.h"
#include "runtime/verdicts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SAMPLES = 3, PROBES = 64, FEWEST_PROBES = 8, GUARD = 64 };
/* Numbers of y that the differences of all probes of an input read, at most where there are more than FEWEST_PROBES. */
#define READ_NUMBERS ((int64_t)1 << 22)
#define NOT_A_NUMBER 0x7fc00000
/* Tolerances are relative to the largest element: of the forward, as in plan/trial.c; of differences of floats; of
 * differences of doubles. */
#define FORWARD_TOLERANCE 1e-3
#define FLOAT_TOLERANCE 1e-2
#define DOUBLE_TOLERANCE 1e-3

/* A small problem with random numbers. */
struct check {
    struct device *device;
    struct custom_values values;
    const struct custom *custom;
    double *x[CUSTOM_INPUTS], *dy, *y, *changed; /* changed: y of a changed x */
    float *copy;                                 /* of any of the arrays, with its guard */
    cl_mem buffers[2 * CUSTOM_INPUTS + 2];       /* as custom_launch() takes them */
    struct launch_list forward, backward;
};

static int64_t samples_of(const struct value *value)
{
    return value->batched ? SAMPLES : 1;
}

static size_t numbers_of(const struct value *value)
{
    return (size_t)(samples_of(value) * custom_sample_elements(value));
}

static void free_check(struct check *c)
{
    launch_list_free(&c->forward);
    launch_list_free(&c->backward);
    for (size_t i = 0; i < sizeof(c->buffers) / sizeof(*c->buffers); i++) buffer_free(&c->buffers[i]);
    for (int i = 0; i < CUSTOM_INPUTS; i++) free(c->x[i]);
    free(c->dy);
    free(c->y);
    free(c->changed);
    free(c->copy);
}

/* ------------------------------------------------------------------------------------------- arrays and buffers ----
 */

static tutti_status upload(struct check *c, const double *numbers, size_t count, cl_mem *buffer)
{
    tutti_status status = TUTTI_OK;
    for (size_t i = 0; i < count; i++) c->copy[i] = (float)numbers[i];
    TRY(buffer_new(c->device, count * sizeof(float), buffer));
    TRY(buffer_write(c->device, *buffer, 0, c->copy, count * sizeof(float)));
done:
    return status;
}

/* Makes a buffer that is written, with NaN in it and in a guard after its end. */
static tutti_status make_written(struct check *c, size_t count, cl_mem *buffer)
{
    const size_t bytes = (count + GUARD) * sizeof(float);
    const tutti_status status = buffer_new(c->device, bytes, buffer);
    return status == TUTTI_OK ? buffer_fill(c->device, *buffer, 0, bytes, NOT_A_NUMBER) : status;
}

static double *random_numbers(size_t count, uint32_t stream, float low, float high)
{
    double *numbers = memory_new(count, sizeof *numbers);
    for (size_t i = 0; numbers && i < count; i++)
        numbers[i] = (double)(low + (high - low) * random_uniform(11, stream, i));
    return numbers;
}

static tutti_status make_arrays(struct check *c)
{
    size_t most = numbers_of(c->values.y);
    c->dy = random_numbers(most, CUSTOM_INPUTS, 0.5f, 1.5f);
    c->y = memory_new(most, sizeof *c->y);
    c->changed = memory_new(most, sizeof *c->changed);
    for (int i = 0; i < c->custom->inputs; i++) {
        const size_t count = numbers_of(c->values.x[i]), gradient = (size_t)SAMPLES * count;
        c->x[i] = random_numbers(count, (uint32_t)i, c->custom->low, c->custom->high);
        if (!c->x[i]) return TUTTI_NO_MEMORY;
        if (gradient > most) most = gradient;
    }
    c->copy = memory_new(most + GUARD, sizeof *c->copy);
    return c->dy && c->y && c->changed && c->copy ? TUTTI_OK : TUTTI_NO_MEMORY;
}

/* The gradient of an input has its numbers for each sample. */
static size_t gradient_numbers(const struct check *c, int input)
{
    return (size_t)(SAMPLES * custom_sample_elements(c->values.x[input]));
}

static tutti_status make_buffers(struct check *c)
{
    tutti_status status = TUTTI_OK;
    const int inputs = c->custom->inputs;
    for (int i = 0; i < inputs; i++) TRY(upload(c, c->x[i], numbers_of(c->values.x[i]), &c->buffers[i]));
    TRY(make_written(c, numbers_of(c->values.y), &c->buffers[inputs]));
    if (!c->values.backward) goto done;
    TRY(upload(c, c->dy, numbers_of(c->values.y), &c->buffers[inputs + 1]));
    for (int i = 0; i < inputs; i++) TRY(make_written(c, gradient_numbers(c, i), &c->buffers[inputs + 2 + i]));
done:
    return status;
}

static tutti_status make_launches(struct check *c)
{
    tutti_status status = TUTTI_OK;
    custom_launch(&c->values, false, SAMPLES, c->buffers, &c->forward);
    TRY(launch_list_realise(&c->forward, NULL, NULL));
    if (!c->values.backward) goto done;
    custom_launch(&c->values, true, SAMPLES, c->buffers, &c->backward);
    TRY(launch_list_realise(&c->backward, NULL, NULL));
done:
    return status;
}

static tutti_status run(struct check *c, struct launch_list *list)
{
    const tutti_status status = launch_list_enqueue(list, 0, list->count, NULL);
    return status == TUTTI_OK ? device_wait(c->device) : status;
}

static tutti_status wrong(const struct check *c, const char *what, const char *name, size_t at, size_t elements)
{
    return fail(TUTTI_WRONG_RESULT, "custom operation '%s' on device %d, '%s': element %zu of %s in sample %zu %s",
        c->custom->operation, c->device->index, c->device->can.name, at % elements, name, at / elements, what);
}

/* Reads a buffer that was written into c->copy, and checks that it was, and nothing after it. */
static tutti_status read_written(struct check *c, cl_mem buffer, const char *name, size_t count)
{
    tutti_status status = TUTTI_OK;
    const size_t elements = count / SAMPLES;
    char what[160];
    TRY(buffer_read(c->device, buffer, 0, c->copy, (count + GUARD) * sizeof(float)));
    for (size_t i = 0; i < GUARD; i++) {
        uint32_t bits;
        memcpy(&bits, &c->copy[count + i], sizeof bits);
        if (bits != NOT_A_NUMBER)
            FAIL(TUTTI_WRONG_RESULT, "custom operation '%s' on device %d, '%s': it writes past the end of %s",
                c->custom->operation, c->device->index, c->device->can.name, name);
    }
    for (size_t i = 0; i < count; i++) {
        if (!isnan(c->copy[i])) continue;
        number_print(what, sizeof what, "is not written, or NaN for numbers from %g to %g", (double)c->custom->low,
            (double)c->custom->high);
        TRY(wrong(c, what, name, i, elements));
    }
done:
    return status;
}

/* --------------------------------------------------------------------------------------------------- forward ---- */

/* Computes y by the program's reference. */
static void refer(const struct check *c, double *y)
{
    const double *x[CUSTOM_INPUTS];
    for (int64_t s = 0; s < SAMPLES; s++) {
        for (int i = 0; i < c->custom->inputs; i++)
            x[i] = c->x[i] + (c->values.x[i]->batched ? s * custom_sample_elements(c->values.x[i]) : 0);
        c->custom->reference(c->custom->user, x, y + s * custom_sample_elements(c->values.y));
    }
}

static tutti_status compare(const struct check *c, const double *expected)
{
    const size_t count = numbers_of(c->values.y);
    double largest = 0;
    char what[160];
    for (size_t i = 0; i < count; i++)
        if (isfinite(expected[i])) largest = fmax(largest, fabs(expected[i]));
    for (size_t i = 0; i < count; i++) {
        const double found = (double)c->copy[i];
        if (found == expected[i]) continue; /* infinite, too */
        if (isfinite(expected[i]) && fabs(found - expected[i]) <= FORWARD_TOLERANCE * largest + 1e-6) continue;
        number_print(what, sizeof what, "is %g: the reference gives %g", found, expected[i]);
        return wrong(c, what, "y", i, count / SAMPLES);
    }
    return TUTTI_OK;
}

/* Runs the forward, and sets c->y: to the reference's results where there is one. */
static tutti_status check_forward(struct check *c)
{
    tutti_status status = TUTTI_OK;
    const size_t count = numbers_of(c->values.y);
    TRY(run(c, &c->forward));
    TRY(read_written(c, c->buffers[c->custom->inputs], "y", count));
    for (size_t i = 0; i < count; i++) c->y[i] = (double)c->copy[i];
    if (!c->custom->reference) goto done;
    refer(c, c->y);
    TRY(compare(c, c->y));
done:
    return status;
}

/* -------------------------------------------------------------------------------------------------- backward ---- */

/* A finite difference in each sample: the mean of those to either side, and how far that may be off. */
struct difference {
    double value, error;
};

/* Adds to the element, in every sample, and sets c->changed to the y of that. Sets back the element in the host's
 * array. *step: what was added in each sample. */
static tutti_status compute_changed(struct check *c, int input, int64_t element, double add, double step[SAMPLES])
{
    tutti_status status = TUTTI_OK;
    const int64_t each = custom_sample_elements(c->values.x[input]), samples = samples_of(c->values.x[input]);
    double before[SAMPLES];
    for (int64_t s = 0; s < samples; s++) {
        double *x = &c->x[input][s * each + element];
        const float rounded = (float)(*x + add);
        before[s] = *x;
        *x = c->custom->reference ? *x + add : (double)rounded;
        step[s] = *x - before[s];
        if (!c->custom->reference)
            TRY(buffer_write(
                c->device, c->buffers[input], (size_t)(s * each + element) * sizeof(float), &rounded, sizeof rounded));
    }
    for (int64_t s = samples; s < SAMPLES; s++) step[s] = step[0];
    if (c->custom->reference) {
        refer(c, c->changed);
    } else {
        const size_t count = numbers_of(c->values.y);
        TRY(run(c, &c->forward));
        TRY(buffer_read(c->device, c->buffers[c->custom->inputs], 0, c->copy, count * sizeof(float)));
        for (size_t i = 0; i < count; i++) c->changed[i] = (double)c->copy[i];
    }
    for (int64_t s = 0; s < samples; s++) {
        c->x[input][s * each + element] = before[s];
        const float rounded = (float)before[s];
        if (!c->custom->reference)
            TRY(buffer_write(
                c->device, c->buffers[input], (size_t)(s * each + element) * sizeof(float), &rounded, sizeof rounded));
    }
done:
    return status;
}

/* Returns the sum of dy times the change of y, divided by the step; *noise: the rounding errors in it. */
static double slope(const struct check *c, int64_t sample, double step, double *noise)
{
    const int64_t each = custom_sample_elements(c->values.y), first = sample * each;
    const double rounding = c->custom->reference ? 0x1p-48 : 0x1p-21;
    double sum = 0;
    *noise = 0;
    for (int64_t i = first; i < first + each; i++) {
        if (c->changed[i] == c->y[i]) continue;
        sum += c->dy[i] * (c->changed[i] - c->y[i]);
        *noise += c->dy[i] * fabs(c->y[i]) * rounding;
    }
    *noise /= fabs(step);
    return sum / step;
}

/* Where y has a bend within the step, the mean of the slopes to both sides is off by at most half their difference. */
static tutti_status differentiate(struct check *c, int input, int64_t element, struct difference differences[SAMPLES])
{
    tutti_status status = TUTTI_OK;
    const double h = (c->custom->reference ? 0x1p-20 : 0x1p-9) * ((double)c->custom->high - (double)c->custom->low);
    double step[SAMPLES], up[SAMPLES], noise[2];
    TRY(compute_changed(c, input, element, h, step));
    for (int s = 0; s < SAMPLES; s++) {
        up[s] = slope(c, s, step[s], &noise[0]);
        differences[s].error = noise[0];
    }
    TRY(compute_changed(c, input, element, -h, step));
    for (int s = 0; s < SAMPLES; s++) {
        const double down = slope(c, s, step[s], &noise[1]);
        differences[s].value = (up[s] + down) / 2;
        differences[s].error += noise[1] + fabs(up[s] - down);
    }
done:
    return status;
}

static tutti_status compare_gradient(struct check *c, int input, const float *dx)
{
    tutti_status status = TUTTI_OK;
    struct difference differences[PROBES][SAMPLES];
    int64_t elements[PROBES], each = custom_sample_elements(c->values.x[input]);
    int64_t probes = READ_NUMBERS / (int64_t)numbers_of(c->values.y);
    char what[200], name[CUSTOM_NAME + 1];
    double largest = 0;
    probes = probes < FEWEST_PROBES ? FEWEST_PROBES : probes > PROBES ? PROBES : probes;
    if (probes > each) probes = each;
    for (int64_t p = 0; p < probes; p++) {
        elements[p] = probes == each ? p : (int64_t)random_below(13, (uint32_t)input, (uint64_t)p, (uint64_t)each);
        TRY(differentiate(c, input, elements[p], differences[p]));
        for (int s = 0; s < SAMPLES; s++)
            if (isfinite(differences[p][s].value)) largest = fmax(largest, fabs(differences[p][s].value));
    }
    const double tolerance = c->custom->reference ? DOUBLE_TOLERANCE : FLOAT_TOLERANCE;
    number_print(name, sizeof name, "d%s", c->custom->names[input]);
    for (int64_t p = 0; p < probes; p++)
        for (int s = 0; s < SAMPLES; s++) {
            const struct difference *d = &differences[p][s];
            const int64_t at = s * each + elements[p];
            if (fabs((double)dx[at] - d->value) <= tolerance * largest + d->error + 1e-6) continue; /* NaN goes on */
            number_print(what, sizeof what, "is %g: finite differences of %s give %g", (double)dx[at],
                c->custom->reference ? "the reference" : "its forward", d->value);
            return wrong(c, what, name, (size_t)at, (size_t)each);
        }
done:
    return status;
}

static tutti_status check_gradient(struct check *c, int input)
{
    tutti_status status = TUTTI_OK;
    char name[CUSTOM_NAME + 1];
    const size_t count = gradient_numbers(c, input);
    float *dx = memory_new(count, sizeof *dx);
    if (!dx) return TUTTI_NO_MEMORY;
    number_print(name, sizeof name, "d%s", c->custom->names[input]);
    TRY(read_written(c, c->buffers[c->custom->inputs + 2 + input], name, count));
    memcpy(dx, c->copy, count * sizeof *dx);
    TRY(compare_gradient(c, input, dx));
done:
    free(dx);
    return status;
}

/* ------------------------------------------------------------------------------------------------------ check ---- */

static tutti_status check(struct device *device, const struct custom_values *values)
{
    tutti_status status = TUTTI_OK;
    struct check c = { .device = device, .values = *values, .custom = values->custom };
    launch_list_init(&c.forward, device);
    launch_list_init(&c.backward, device);
    TRY(make_arrays(&c));
    TRY(make_buffers(&c));
    TRY(make_launches(&c));
    TRY(check_forward(&c));
    if (!values->backward) goto done;
    TRY(run(&c, &c.backward));
    for (int i = 0; i < c.custom->inputs; i++) TRY(check_gradient(&c, i));
done:
    free_check(&c);
    return status;
}

tutti_status custom_check(struct device *device, const struct problem *problem)
{
    const struct custom_values values = custom_values(problem);
    const struct custom *custom = values.custom;
    char key[96];
    if (custom->no_check) return TUTTI_OK;
    const char *text = custom_text(&values, values.backward);
    if (!text) return TUTTI_NO_MEMORY;
    number_print(key, sizeof key, "%s/%g/%g/%s", text, (double)custom->low, (double)custom->high,
        custom->reference ? "reference" : "");
    if (check_is_decided(device, key)) return TUTTI_OK;
    const tutti_status status = check(device, &values);
    if (status == TUTTI_OK) check_passed(device, key);
    return status;
}
