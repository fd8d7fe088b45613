/* tutti devices: what OpenCL devices there are, how fast they are at most, and whether they work. */
#include "formats/json_lines.h"
#include "tools/commands.h"
#include "tools/session.h"
#include "tutti_inspect.h"

#include <string.h>

struct settings {
    tutti_runtime_options runtime;
    bool check, json;
};

static const struct precision {
    const char *name;
    tutti_precision precision;
} precisions[] = { { "fp32", TUTTI_FP32 }, { "tf32", TUTTI_TF32 }, { "bf16", TUTTI_BF16 } };
enum { PRECISIONS = sizeof precisions / sizeof *precisions };

/* What is reported of a device that was opened. */
struct findings {
    tutti_runtime *runtime; /* with this device alone; NULL: it does not open, or is not asked */
    char trouble[1024];     /* why it does not open */
    struct bf16 {
        const char *form, *refusal;
    } bf16[PRECISIONS]; /* of class "cpu" */
    bool checked, good, measured;
    char check[1024]; /* "ok", or what is wrong and what to do */
    tutti_device_peaks peaks;
    char unmeasured[1024]; /* why there are no peaks */
};

/* Opens one device by itself, and runs the probes on it and measures it where that is wanted. */
static void find(const tutti_device_info *device, bool check, struct findings *found)
{
    char chosen[16];
    *found = (struct findings) { .checked = check, .peaks.size = sizeof(found->peaks) };
    if (!check && strcmp(device->device_class, "cpu")) return;
    snprintf(chosen, sizeof(chosen), "%d", device->index);
    found->runtime = tutti_open(&(tutti_runtime_options) { .devices = chosen });
    if (!found->runtime) snprintf(found->trouble, sizeof(found->trouble), "%s", tutti_message(NULL));
    for (int i = 0; i < PRECISIONS && found->runtime; i++)
        (void)tutti_device_bf16(
            found->runtime, 0, precisions[i].precision, &found->bf16[i].form, &found->bf16[i].refusal);
    if (!check) return;
    found->good = found->runtime && tutti_device_check(found->runtime, 0) == TUTTI_OK;
    snprintf(found->check, sizeof(found->check), "%s", found->good ? "ok" : tutti_message(NULL));
    found->measured = found->good && tutti_device_measure(found->runtime, 0, &found->peaks) == TUTTI_OK;
    if (found->good && !found->measured)
        snprintf(found->unmeasured, sizeof(found->unmeasured), "%s", tutti_message(NULL));
}

/* ---- JSON ---- */

static void bf16_json(struct json_line *line, const struct findings *found)
{
    json_line_print(line, "bf16_dots {");
    for (int i = 0; i < PRECISIONS; i++) {
        const struct bf16 *bf16 = &found->bf16[i];
        json_line_object(line, precisions[i].name);
        json_line_text(line, bf16->form ? "form" : "refusal", bf16->form ? bf16->form : bf16->refusal);
        json_line_print(line, "}");
    }
    json_line_print(line, "}");
}

static void refusal_json(void *user, const char *kernels, const char *reason)
{
    json_line_text(user, kernels, reason);
}

static tutti_status print_json(const tutti_device_info *device, const struct findings *found)
{
    struct json_line line;
    json_line_begin(&line, stdout);
    json_line_print(&line, "index %d name %s platform %s class %s compute_units %d memory_bytes %llu", device->index,
        device->name, device->platform, device->device_class, device->compute_units,
        (unsigned long long)device->memory_bytes);
    json_line_print(&line, "driver %s chosen %hhd note %s", device->driver, device->chosen, device->note);
    json_line_print(&line, "vector_width %d local_bytes %llu allocation_bytes %llu half %hhd subgroups %hhd",
        device->vector_width, (unsigned long long)device->local_bytes, (unsigned long long)device->allocation_bytes,
        device->half, device->subgroups);
    if (found->runtime && !strcmp(device->device_class, "cpu")) bf16_json(&line, found);
    if (found->checked) json_line_text(&line, "check", found->check);
    if (found->good) {
        json_line_print(&line, "refused {");
        (void)tutti_device_refusals(found->runtime, 0, refusal_json, &line);
        json_line_print(&line, "}");
    }
    if (found->measured) json_line_print(&line, "peak_flops %g peak_bytes %g", found->peaks.flops, found->peaks.bytes);
    if (found->measured && found->peaks.bf16_flops > 0)
        json_line_number(&line, "peak_bf16_flops", found->peaks.bf16_flops);
    return json_line_end(&line);
}

/* ---- text ---- */

/* Returns whether two precisions have the same form, or the same reason for none. */
static bool same(const struct bf16 *a, const struct bf16 *b)
{
    if (!a->form || !b->form) return !a->form && !b->form && !strcmp(a->refusal, b->refusal);
    return !strcmp(a->form, b->form);
}

/* A compiler's message may be long: the JSON object has all of it. */
static void print_refusal(const char *refusal)
{
    enum { MOST = 160 };
    size_t length = strlen(refusal), shown = length > MOST ? MOST : length;
    while (shown < length && shown > 0 && ((unsigned char)refusal[shown] & 0xc0) == 0x80) shown--; /* UTF-8 */
    printf(": %.*s%s", (int)shown, refusal, shown < length ? "..." : "");
}

/* "dot products with --precision bf16; not with fp32, tf32: the processor has no AMX with bfloat16" */
static void print_bf16(const struct findings *found)
{
    bool reported[PRECISIONS] = { false };
    printf("      bf16 dot products");
    for (int round = 0, parts = 0; round < 2; round++) /* forms, then refusals */
        for (int i = 0; i < PRECISIONS; i++) {
            const struct bf16 *bf16 = &found->bf16[i];
            if (reported[i] || (bf16->form == NULL) != (round == 1)) continue;
            printf("%s ", parts++ ? ";" : ":");
            if (bf16->form)
                printf("%s with --precision", strcmp(bf16->form, "dots") ? bf16->form : "dot products");
            else
                printf("not with");
            const char *between = " ";
            for (int j = i; j < PRECISIONS; j++) {
                if (!same(bf16, &found->bf16[j])) continue;
                printf("%s%s", between, precisions[j].name);
                between = ", ";
                reported[j] = true;
            }
            if (!bf16->form) print_refusal(bf16->refusal);
        }
    printf("\n");
}

static void print_peaks(const struct findings *found)
{
    if (!found->measured) {
        printf("      peak: not measured: %s\n", found->unmeasured);
        return;
    }
    printf("      peak: %.0f GFLOP/s", 1e-9 * found->peaks.flops);
    if (found->peaks.bf16_flops > 0) printf(", bf16 dot products %.0f GFLOP/s", 1e-9 * found->peaks.bf16_flops);
    printf(", %.1f GB/s\n", 1e-9 * found->peaks.bytes);
}

static void print_unused(void *user, const char *kernels, const char *reason)
{
    (void)user;
    printf("      not used: %s", kernels);
    print_refusal(reason);
    printf("\n");
}

static void print_text(const tutti_device_info *device, const struct findings *found)
{
    printf("%c %2d  %-4s %s  (%s, driver %s)  %d units, %.1f GiB%s%s%s\n", device->chosen ? '*' : ' ', device->index,
        device->device_class, device->name, device->platform, device->driver, device->compute_units,
        (double)device->memory_bytes / (1 << 30), *device->note ? "  [" : "", device->note, *device->note ? "]" : "");
    if (found->runtime && !strcmp(device->device_class, "cpu")) print_bf16(found);
    if (!found->checked && *found->trouble) printf("      it does not open: %s\n", found->trouble);
    if (found->checked) printf("      check: %s\n", found->check);
    if (found->good) print_peaks(found);
    if (found->good) (void)tutti_device_refusals(found->runtime, 0, print_unused, NULL);
}

/* Prints the devices. With --check, checks the chosen ones if --devices was given, else all. */
static int print_devices(const struct settings *settings, const tutti_device_info *list, int count)
{
    int wrong = 0;
    tutti_status status = TUTTI_OK;
    for (int i = 0; i < count && status == TUTTI_OK; i++) {
        struct findings found;
        find(&list[i], settings->check && (list[i].chosen || !settings->runtime.devices), &found);
        if (found.checked && !found.good) wrong++;
        if (settings->json)
            status = print_json(&list[i], &found);
        else
            print_text(&list[i], &found);
        tutti_close(found.runtime);
    }
    if (status != TUTTI_OK) return EXIT_WORK_FAILED;
    if (wrong)
        fprintf(stderr, "tutti devices: %d of %d devices failed the check; see the reasons above\n", wrong, count);
    return wrong ? EXIT_WORK_FAILED : EXIT_DONE;
}

int command_devices(int argc, char **argv)
{
    struct settings settings = { 0 };
    const struct option options[] = {
        DEVICE_OPTION(settings.runtime),
        { "check", OPTION(settings.check), NULL,
            "run probe kernels on each device, report what is wrong and what to do, and measure peaks" },
        { "json", OPTION(settings.json), NULL, "print a JSON object per device" },
    };
    const struct usage usage = { .command = "devices",
        .summary = "Lists the OpenCL devices of this machine; a star marks the chosen ones",
        OPTION_ROWS(options) };
    enum parsed parsed = options_parse(&usage, argc, argv, NULL);
    if (parsed != PARSED_RUN) return parsed_exit(parsed);

    tutti_device_info *list = NULL;
    int count = 0;
    tutti_status status = tutti_devices_list(&settings.runtime, &list, &count);
    if (status != TUTTI_OK) return work_failed("devices", status, tutti_message(NULL));
    if (count == 0)
        return work_failed("devices", TUTTI_NO_PLATFORM,
            "no OpenCL device was found: install a driver (on Debian, pocl-opencl-icd for the CPU), and check that "
            "/etc/OpenCL/vendors or OCL_ICD_VENDORS has its .icd file");
    int result = print_devices(&settings, list, count);
    tutti_devices_free(list);
    return result;
}
