#include "runtime/check.h"

#include "base/clock.h"
#include "base/numbers.h"
#include "runtime/launch.h"
#include "runtime/memory.h"

#include <math.h>

enum { PROBE_ITEMS = 64 };

static float arithmetic_expected(const float *in, int i)
{
    float sum = 10; /* 1 + 2 + 3 + 4 */
    for (int j = 0; j < 4; j++) sum += 2 * in[(i + j) % PROBE_ITEMS];
    return fmaxf(sum, 0) + (float)((int)in[i] * 1000 / 7 % 13);
}

static float copy_expected(const float *in, int i)
{
    return in[i];
}

static float functions_expected(const float *in, int i)
{
    double x = ((double)in[i] + 1) / 64;
    return (float)(exp(x) + log(x) + sqrt(x) + 1 / (x + 1));
}

static float local_expected(const float *in, int i)
{
    float sum = 0;
    for (int j = 0; j < PROBE_ITEMS; j++) sum += in[j];
    return i == 0 ? sum : in[PROBE_ITEMS - 1 - i];
}

static const struct probe {
    const char *kernel, *what;
    float (*expected)(const float *in, int i);
    float tolerance; /* relative to 1 + |expected|; 0: exact, as all numbers are small integers */
    bool local;
} probes[] = {
    { "check_copy", "copies numbers", copy_expected, 0, false },
    { "check_arithmetic", "computes with small integers", arithmetic_expected, 0, false },
    { "check_functions", "computes exp, log and sqrt", functions_expected, 1e-5f, false },
    { "check_local", "uses local memory and barriers", local_expected, 0, true },
};

static tutti_status compare(const struct probe *probe, const struct device *device, const float *in, const float *out)
{
    for (int i = 0; i < PROBE_ITEMS; i++) {
        float expected = probe->expected(in, i);
        if (fabsf(out[i] - expected) <= probe->tolerance * (1 + fabsf(expected))) continue; /* false for NaN */
        return fail(TUTTI_WRONG_RESULT,
            "device %d, '%s' (driver %s), computes wrong numbers when it %s: element %d is %.9g, expected %.9g: update "
            "the driver, or exclude the device with TUTTI_DEVICES",
            device->index, device->can.name, device->can.driver, probe->what, i, (double)out[i], (double)expected);
    }
    return TUTTI_OK;
}

static tutti_status probe_run(struct device *device, const struct probe *probe, cl_mem in, cl_mem out)
{
    tutti_status status = TUTTI_OK;
    float sent[PROBE_ITEMS], got[PROBE_ITEMS];
    struct launch_list list;
    launch_list_init(&list, device);
    for (int i = 0; i < PROBE_ITEMS; i++) sent[i] = (float)(i * 37 % PROBE_ITEMS);
    struct launch *launch = launch_add(&list, "check", probe->kernel, "%s", "");
    launch_buffer(launch, in);
    launch_buffer(launch, out);
    if (probe->local) launch_local(launch, sizeof(sent));
    size_t group = device->can.group_max >= PROBE_ITEMS ? PROBE_ITEMS : 1;
    launch_grid(launch, 1, PROBE_ITEMS, 1, 1, group, 1, 1);
    TRY(buffer_write(device, in, 0, sent, sizeof(sent)));
    TRY(buffer_fill(device, out, 0, sizeof(got), 0x7fc00000)); /* NaN: what is not written is noticed */
    TRY(launch_list_realise(&list, NULL, NULL));
    TRY(launch_list_enqueue(&list, 0, 1, NULL));
    TRY(buffer_read(device, out, 0, got, sizeof(got)));
    TRY(compare(probe, device, sent, got));
done:
    launch_list_free(&list);
    return status;
}

tutti_status check_device(struct device *device)
{
    tutti_status status = TUTTI_OK;
    cl_mem in = NULL, out = NULL;
    TRY(buffer_new(device, PROBE_ITEMS * sizeof(float), &in));
    TRY(buffer_new(device, PROBE_ITEMS * sizeof(float), &out));
    for (size_t i = 0; i < sizeof(probes) / sizeof(probes[0]); i++) {
        /* A device without groups of that size has nothing for the tree to run on. */
        if (probes[i].local && device->can.group_max < PROBE_ITEMS) continue;
        TRY(probe_run(device, &probes[i], in, out));
    }
done:
    buffer_free(&in);
    buffer_free(&out);
    return status;
}

bool check_compiler(struct device *device)
{
    const char *text = "kernel void one(global float *out) { out[get_global_id(0)] = NUMBER; }";
    char options[64];
    cl_int error = CL_SUCCESS;
    number_print(options, sizeof(options), "-DNUMBER=%.9f", clock_seconds());
    cl_program program = clCreateProgramWithSource(device->context, 1, &text, NULL, &error);
    if (!program) return false;
    error = clBuildProgram(program, 1, &device->id, options, NULL, NULL);
    clReleaseProgram(program);
    return error == CL_SUCCESS;
}
