/* tutti devices: what OpenCL devices there are, and whether they work. */
#include "formats/json_lines.h"
#include "tools/commands.h"
#include "tools/session.h"

#include <string.h>

struct settings {
    const char *devices;
    bool check, json;
};

/* Opens one device by itself and runs the probes on it. *text is "ok", or what is wrong and what to do. */
static bool check_device(int index, char *text, size_t size)
{
    char chosen[16];
    snprintf(chosen, sizeof(chosen), "%d", index);
    tutti_runtime *runtime = tutti_open(&(tutti_runtime_options) { .devices = chosen });
    bool good = runtime && tutti_device_check(runtime, 0) == TUTTI_OK;
    snprintf(text, size, "%s", good ? "ok" : tutti_message(runtime));
    tutti_close(runtime);
    return good;
}

static tutti_status print_json(const tutti_device_info *device, const char *check)
{
    struct json_line line;
    json_line_begin(&line, stdout);
    json_line_integer(&line, "index", device->index);
    json_line_text(&line, "name", device->name);
    json_line_text(&line, "platform", device->platform);
    json_line_text(&line, "class", device->device_class);
    json_line_integer(&line, "compute_units", device->compute_units);
    json_line_unsigned(&line, "memory_bytes", device->memory_bytes);
    json_line_text(&line, "driver", device->driver);
    json_line_boolean(&line, "chosen", device->chosen);
    json_line_text(&line, "note", device->note);
    json_line_integer(&line, "vector_width", device->vector_width);
    json_line_unsigned(&line, "local_bytes", device->local_bytes);
    json_line_unsigned(&line, "allocation_bytes", device->allocation_bytes);
    json_line_boolean(&line, "half", device->half);
    json_line_boolean(&line, "subgroups", device->subgroups);
    if (check) json_line_text(&line, "check", check);
    return json_line_end(&line);
}

static void print_text(const tutti_device_info *device, const char *check)
{
    printf("%c %2d  %-4s %s  (%s, driver %s)  %d units, %.1f GiB%s%s%s\n", device->chosen ? '*' : ' ', device->index,
        device->device_class, device->name, device->platform, device->driver, device->compute_units,
        (double)device->memory_bytes / (1 << 30), *device->note ? "  [" : "", device->note, *device->note ? "]" : "");
    if (check) printf("      check: %s\n", check);
}

/* Prints the devices; those that are checked are the chosen ones where there was a choice, else all. */
static int print_devices(const struct settings *settings, const tutti_device_info *list, int count)
{
    char text[1024];
    int wrong = 0;
    for (int i = 0; i < count; i++) {
        bool check = settings->check && (list[i].chosen || !settings->devices);
        if (check && !check_device(list[i].index, text, sizeof(text))) wrong++;
        if (!settings->json)
            print_text(&list[i], check ? text : NULL);
        else if (print_json(&list[i], check ? text : NULL) != TUTTI_OK)
            return EXIT_WORK_FAILED;
    }
    if (wrong)
        fprintf(stderr, "tutti devices: %d of %d devices failed the check; see the reasons above\n", wrong, count);
    return wrong ? EXIT_WORK_FAILED : EXIT_DONE;
}

int command_devices(int argc, char **argv)
{
    struct settings settings = { 0 };
    const struct option options[] = {
        DEVICE_OPTION(settings),
        { .name = "check",
            .kind = OPTION_FLAG,
            .value = &settings.check,
            .help = "run probe kernels on each device, and report what is wrong and what to do" },
        { .name = "json", .kind = OPTION_FLAG, .value = &settings.json, .help = "print a JSON object per device" },
    };
    const struct usage usage = { .command = "devices",
        .summary = "Lists the OpenCL devices of this machine; a star marks the chosen ones",
        .options = options,
        .count = sizeof(options) / sizeof(options[0]) };
    enum parsed parsed = options_parse(&usage, argc, argv, NULL);
    if (parsed != PARSED_RUN) return parsed_exit(parsed);

    tutti_device_info *list = NULL;
    int count = 0;
    tutti_status status = tutti_devices_list(&(tutti_runtime_options) { .devices = settings.devices }, &list, &count);
    if (status != TUTTI_OK) return work_failed("devices", status, tutti_message(NULL));
    if (count == 0)
        return work_failed("devices", TUTTI_NO_PLATFORM,
            "no OpenCL device was found: install a driver (on Debian, pocl-opencl-icd for the CPU), and check that "
            "/etc/OpenCL/vendors or OCL_ICD_VENDORS has its .icd file");
    int result = print_devices(&settings, list, count);
    tutti_devices_free(list);
    return result;
}
