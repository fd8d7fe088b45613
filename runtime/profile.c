#include "runtime/profile.h"

#include "base/file.h"
#include "base/memory.h"
#include "base/text.h"
#include "runtime/memory.h"

#include <stdlib.h>
#include <string.h>

static tutti_status times_read(struct launch_list *list, const cl_event *events)
{
    tutti_status status = TUTTI_OK;
    cl_ulong first = 0;
    for (size_t i = 0; i < list->count; i++) {
        struct launch *launch = &list->launches[i];
        cl_ulong begin = 0, end = 0;
        launch->begin = launch->seconds = 0;
        if (!events[i]) continue; /* a call that found nothing to do */
        TRY(event_wait(list->device, events[i]));
        CL_TRY(clGetEventProfilingInfo(events[i], CL_PROFILING_COMMAND_START, sizeof(begin), &begin, NULL),
            "timing '%s'", launch->kernel_name);
        CL_TRY(clGetEventProfilingInfo(events[i], CL_PROFILING_COMMAND_END, sizeof(end), &end, NULL), "timing '%s'",
            launch->kernel_name);
        if (first == 0) first = begin;
        launch->begin = 1e-9 * (double)(begin - first);
        launch->seconds = 1e-9 * (double)(end - begin);
    }
done:
    return status;
}

tutti_status profile_run(struct launch_list *list)
{
    tutti_status status = TUTTI_OK;
    cl_event *events = memory_new(list->count, sizeof(cl_event));
    if (!events) return TUTTI_NO_MEMORY;
    TRY(launch_list_enqueue(list, 0, list->count, events));
    TRY(device_wait(list->device));
    TRY(times_read(list, events));
done:
    for (size_t i = 0; i < list->count; i++)
        if (events[i]) clReleaseEvent(events[i]);
    free(events);
    return status;
}

tutti_status profile_fastest(struct launch_list *list, int runs)
{
    for (int run = 0; run < runs; run++) {
        tutti_status status = profile_run(list);
        if (status != TUTTI_OK) return status;
        for (size_t i = 0; i < list->count; i++) {
            struct launch *launch = &list->launches[i];
            if (run == 0 || launch->seconds < launch->fastest) launch->fastest = launch->seconds;
        }
    }
    return TUTTI_OK;
}

/* A JSON string. */
static void append_string(struct text *text, const char *string)
{
    text_append(text, "\"");
    for (; *string; string++) {
        unsigned char c = (unsigned char)*string;
        if (c == '"' || c == '\\')
            text_append(text, "\\%c", c);
        else if (c < 0x20)
            text_append(text, "\\u%04x", c);
        else
            text_append(text, "%c", c);
    }
    text_append(text, "\"");
}

double profile_floor(double flops, double bytes, const struct peak *peak)
{
    double arithmetic = peak->flops > 0 ? flops / peak->flops : 0, memory = peak->bytes > 0 ? bytes / peak->bytes : 0;
    return arithmetic > memory ? arithmetic : memory;
}

static void append_argument(struct text *text, const char *name, const char *value)
{
    text_append(text, "\"%s\":", name);
    append_string(text, value ? value : "");
    text_append(text, ",");
}

/* The "trace event" format: https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU */
static void append_event(struct text *text, const struct launch *launch, const struct profile_label *label)
{
    text_append(text, "{\"ph\":\"X\",\"pid\":0,\"tid\":0,\"ts\":%.3f,\"dur\":%.3f,\"name\":", 1e6 * launch->begin,
        1e6 * launch->seconds);
    append_string(text, launch->kernel_name);
    text_append(text, ",\"args\":{");
    append_argument(text, "layer", label->layer);
    append_argument(text, "operation", label->operation);
    append_argument(text, "implementation", label->implementation);
    append_argument(text, "options", launch->options);
    double seconds = launch->fastest > 0 ? launch->fastest : launch->seconds > 0 ? launch->seconds : 1;
    text_append(text, "\"fastest_us\":%.3f,\"FLOP\":%.0f,\"bytes\":%.0f,\"GFLOP/s\":%.3f,\"GB/s\":%.3f}}",
        1e6 * seconds, launch->flops, launch->bytes, 1e-9 * launch->flops / seconds, 1e-9 * launch->bytes / seconds);
}

tutti_status profile_trace(
    const struct launch_list *list, const struct profile_label *labels, const struct peak *peak, const char *path)
{
    static const struct profile_label none;
    tutti_status status = TUTTI_OK;
    struct text text = { 0 };
    struct atomic_file *file = NULL;
    text_append(&text, "{\"otherData\":{\"GFLOP/s\":%.3f,\"GB/s\":%.3f},\"traceEvents\":[\n", 1e-9 * peak->flops,
        1e-9 * peak->bytes);
    text_append(&text, "{\"ph\":\"M\",\"pid\":0,\"name\":\"process_name\",\"args\":{\"name\":");
    append_string(&text, list->device->can.name);
    text_append(&text, "}}");
    for (size_t i = 0; i < list->count; i++) {
        const struct launch *launch = &list->launches[i];
        text_append(&text, ",\n");
        append_event(&text, launch, labels && launch->node >= 0 ? &labels[launch->node] : &none);
    }
    text_append(&text, "\n]}\n");
    if (text.failed) FAIL(TUTTI_NO_MEMORY, "no memory for the trace '%s'", path);
    TRY(atomic_file_open(&file, path));
    TRY(atomic_file_write(file, text.data, text.size));
    status = atomic_file_commit(file);
    file = NULL;
done:
    atomic_file_abandon(file);
    text_free(&text);
    return status;
}
