#include "runtime/shuffle.h"

#include <stdio.h>

#include "base/random.h"
#include "runtime/memory.h"
#include "runtime/verdicts.h"

/* Candidates in the order in which they are tried, each with the extension that makes it worth a trial: the
 * standard's own, or one that only one vendor's drivers name, as in matrix.c. */
static const struct candidate {
    enum shuffle_form form;
    const char *name, *extension;
} candidates[] = {
    { SHUFFLE_KHR, "khr", "cl_khr_subgroup_shuffle_relative" },
    { SHUFFLE_PTX, "ptx", "cl_nv_device_attribute_query" },
    { SHUFFLE_PERMUTE, "permute", "cl_amd_device_attribute_query" },
};

/* Several groups, each of more lanes than a subgroup has; sums of small integers are exact. */
enum { GROUP = 256, GROUPS = 5, COUNT = GROUP * GROUPS, LARGEST = 1000 };

/* Appends the trial. The form is among its options, since built programs are known by their options. */
static void add_trial(struct launch_list *list, cl_mem numbers, cl_mem results)
{
    struct launch *launch =
        launch_add(list, "shuffle", "shuffle_trial", "-DSHUFFLE=%d -DGROUP=%d", (int)list->device->can.shuffle, GROUP);
    launch_buffer(launch, numbers);
    launch_buffer(launch, results);
    launch_grid(launch, 1, COUNT, 1, 1, GROUP, 1, 1);
}

static tutti_status compare(const float *numbers, const float (*results)[2])
{
    for (int first = 0; first < COUNT; first += GROUP) {
        float sum = 0, most = numbers[first];
        for (int i = first; i < first + GROUP; i++) {
            sum += numbers[i];
            most = numbers[i] > most ? numbers[i] : most;
        }
        for (int i = first; i < first + GROUP; i++)
            if (!(results[i][0] == sum && results[i][1] == most))
                return fail(TUTTI_WRONG_RESULT, "a sum is %g, expected %g; a maximum is %g, expected %g",
                    (double)results[i][0], (double)sum, (double)results[i][1], (double)most);
    }
    return TUTTI_OK;
}

/* Compares sums and maxima by the form that device->can.shuffle has with the host's. */
static tutti_status try_sums(struct device *device, const char *name, const void *unused)
{
    (void)unused;
    tutti_status status = TUTTI_OK;
    float numbers[COUNT], results[COUNT][2];
    cl_mem in = NULL, out = NULL;
    struct launch_list list;
    launch_list_init(&list, device);
    for (int i = 0; i < COUNT; i++)
        numbers[i] = (float)((int)(random_uniform(5, 3, (size_t)i) * (2 * LARGEST)) - LARGEST);
    TRY(buffer_new(device, sizeof numbers, &in));
    TRY(buffer_new(device, sizeof results, &out));
    TRY(buffer_write(device, in, 0, numbers, sizeof numbers));
    TRY(buffer_fill(device, out, 0, sizeof results, 0x7fc00000)); /* NaN: what is not written is noticed */
    check_trial_begins(device, name);
    add_trial(&list, in, out);
    TRY(launch_list_realise(&list, NULL, NULL));
    TRY(launch_list_enqueue(&list, 0, list.count, NULL));
    TRY(buffer_read(device, out, 0, results, sizeof results));
    TRY(compare(numbers, (const float(*)[2])results));
done:
    launch_list_free(&list);
    buffer_free(&in);
    buffer_free(&out);
    return status;
}

void shuffle_prove(struct device *device)
{
    char name[64];
    for (size_t i = 0; i < sizeof candidates / sizeof *candidates && !device->can.shuffle; i++) {
        if (!device_has_extension(device->id, candidates[i].extension)) continue;
        snprintf(name, sizeof name, "shuffle/%s", candidates[i].name);
        device->can.shuffle = candidates[i].form;
        if (device->can.group_max < GROUP || check_trial(device, name, try_sums, NULL))
            device->can.shuffle = SHUFFLE_NONE;
    }
}

void shuffle_emit_trial(struct launch_list *list)
{
    add_trial(list, NULL, NULL);
}
