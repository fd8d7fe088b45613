#include "runtime/tuning.h"

#include "base/file.h"
#include "base/memory.h"
#include "base/text.h"
#include "runtime/program_cache.h"

#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Entries for more or fewer samples than asked for serve within this factor. */
#define NEAR 2.0

enum source { SOURCE_USER, SOURCE_MEASURED, SOURCE_SHIPPED };

struct entry {
    char *problem;           /* a name, or a pattern with * and ? */
    char *text;              /* "winograd 1.100 direct 3.201", or "!direct REASON" */
    enum tuning_level level; /* at which it is asked for */
    enum tuning_level kind;  /* of the section that it stands in: within the user's file, closer ones win */
    enum source source;
};

struct tuning {
    char *path; /* of what is measured here; NULL: it is remembered in this process only */
    struct entry *entries;
    size_t count, capacity;
};

/* -------------------------------------------------------------------------------------------------- reading ---- */

/* "[device NAME]", "[architecture NAME]" or "[class NAME]": whether it speaks of this device. */
static bool section_is_for(const struct device *device, char *line, enum tuning_level *kind)
{
    char *end = strrchr(line, ']'), *name = strchr(line, ' ');
    if (!end || !name || name > end) return false;
    *end = *name++ = '\0';
    const char *const word = line + 1;
    if (!strcmp(word, "device")) {
        *kind = TUNING_DEVICE;
        return !strcmp(name, device->can.name);
    }
    if (!strcmp(word, "architecture")) {
        *kind = TUNING_ARCHITECTURE;
        return !strcmp(name, device->can.architecture);
    }
    *kind = TUNING_CLASS;
    return !strcmp(word, "class") && !strcmp(name, device->can.class == DEVICE_CPU ? "cpu" : "gpu");
}

static struct entry *entry_add(struct tuning *tuning, const char *problem, const char *text)
{
    void *array = tuning->entries;
    if (memory_grow(&array, &tuning->capacity, tuning->count + 1, sizeof(*tuning->entries)) != TUTTI_OK) return NULL;
    tuning->entries = array;
    struct entry *entry = &tuning->entries[tuning->count];
    *entry = (struct entry) { .problem = memory_copy_text(problem), .text = memory_copy_text(text) };
    if (entry->problem && entry->text) {
        tuning->count++;
        return entry;
    }
    free(entry->problem);
    free(entry->text);
    return NULL;
}

/* Lines: "# comment", "[section]", "PROBLEM IMPLEMENTATION ...". Those of other devices are passed over. */
static void table_read(struct device *device, struct tuning *tuning, enum source source, const char *data, size_t size)
{
    enum tuning_level kind = TUNING_DEVICE;
    bool wanted = false;
    char *text = memory_format("%.*s", (int)size, data), *rest = text;
    for (char *line; text && (line = strtok_r(rest, "\r\n", &rest));) {
        line += strspn(line, " \t");
        if (*line == '#' || !*line) continue;
        if (*line == '[') {
            wanted = section_is_for(device, line, &kind);
            continue;
        }
        char *said = wanted ? strchr(line, ' ') : NULL;
        if (!said) continue;
        *said++ = '\0';
        struct entry *entry = entry_add(tuning, line, said + strspn(said, " "));
        if (!entry) break;
        entry->kind = kind;
        entry->source = source;
        entry->level = source == SOURCE_USER ? TUNING_USER : source == SOURCE_MEASURED ? TUNING_DEVICE : kind;
    }
    free(text);
}

enum { MOST_BYTES = 16 << 20 };

static void file_load(struct device *device, struct tuning *tuning, enum source source, const char *path)
{
    unsigned char *data = NULL;
    size_t size = 0;
    if (file_read(path, MOST_BYTES, &data, &size) == TUTTI_OK)
        table_read(device, tuning, source, (char *)data, size);
    else if (source == SOURCE_USER)
        log_warn(&device->runtime->log, "the tuning table is left out: %s", status_message());
    free(data);
}

static struct tuning *tuning_of(struct device *device)
{
    const struct tutti_runtime *runtime = device->runtime;
    char key[33];
    if (device->tuning) return device->tuning;
    struct tuning *tuning = memory_new(1, sizeof(*tuning));
    if (!tuning) return NULL;
    device->tuning = tuning;
    if (runtime->tuning) file_load(device, tuning, SOURCE_USER, runtime->tuning);
    if (!runtime->tuning_off && runtime->cache_folder && device_key(device, key))
        tuning->path = memory_format("%s/%s.tuning", runtime->cache_folder, key);
    if (tuning->path && access(tuning->path, F_OK) == 0) file_load(device, tuning, SOURCE_MEASURED, tuning->path);
    table_read(device, tuning, SOURCE_SHIPPED, tuning_shipped, strlen(tuning_shipped));
    return tuning;
}

tutti_status tuning_open(struct tutti_runtime *runtime, const char *wanted)
{
    const char *settings = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");
    if (!wanted || !*wanted) wanted = getenv("TUTTI_TUNING");
    if (wanted && *wanted) {
        runtime->tuning_off = !strcmp(wanted, "off");
        if (runtime->tuning_off) return TUTTI_OK;
        if (access(wanted, R_OK) != 0)
            return fail(
                TUTTI_FILE, "the tuning table '%s' cannot be read: give one that 'tutti tune' wrote, or off", wanted);
        runtime->tuning = memory_copy_text(wanted);
        return runtime->tuning ? TUTTI_OK : TUTTI_NO_MEMORY;
    }
    if (settings && *settings)
        runtime->tuning = memory_format("%s/tutti/tuning.txt", settings);
    else if (home && *home)
        runtime->tuning = memory_format("%s/.config/tutti/tuning.txt", home);
    if (runtime->tuning && access(runtime->tuning, R_OK) == 0) return TUTTI_OK;
    free(runtime->tuning);
    runtime->tuning = NULL;
    return TUTTI_OK;
}

/* -------------------------------------------------------------------------------------------------- asking ---- */

/* How far an entry is from the problem: 1 is the very same, up to NEAR its number of samples, then patterns; 0: it is
 * of another problem. */
static double distance(const struct entry *entry, const char *problem)
{
    if (!strcmp(entry->problem, problem)) return 1;
    if (strpbrk(entry->problem, "*?")) return fnmatch(entry->problem, problem, 0) == 0 ? 2 * NEAR : 0;
    const char *theirs = strrchr(entry->problem, '/'), *ours = strrchr(problem, '/');
    if (!theirs || !ours || theirs - entry->problem != ours - problem) return 0;
    if (strncmp(entry->problem, problem, (size_t)(ours - problem)) || theirs[1] != 'n' || ours[1] != 'n') return 0;
    const double a = strtod(theirs + 2, NULL), b = strtod(ours + 2, NULL);
    const double ratio = a > b ? a / b : b / a;
    return a > 0 && b > 0 && ratio <= NEAR ? ratio : 0;
}

const char *tuning_choice(struct device *device, enum tuning_level level, const char *problem)
{
    const struct tuning *tuning = tuning_of(device);
    const struct entry *best = NULL;
    double least = 0;
    for (size_t i = 0; tuning && i < tuning->count; i++) {
        const struct entry *entry = &tuning->entries[i];
        if (entry->level != level || *entry->text == '!') continue;
        const double away = distance(entry, problem);
        if (away == 0) continue;
        const bool closer = !best || entry->kind < best->kind || (entry->kind == best->kind && away < least);
        if (!closer) continue;
        best = entry;
        least = away;
    }
    return best ? best->text : NULL;
}

const char *tuning_refusal(struct device *device, const char *problem, const char *implementation)
{
    const struct tuning *tuning = tuning_of(device);
    const size_t length = strlen(implementation);
    for (size_t i = 0; tuning && i < tuning->count; i++) {
        const char *text = tuning->entries[i].text;
        if (*text != '!' || strncmp(text + 1, implementation, length)) continue;
        if (text[1 + length] != ' ' && text[1 + length]) continue;
        if (distance(&tuning->entries[i], problem) == 0) continue;
        return text[1 + length] ? text + 2 + length : "a tuning table refuses it";
    }
    return NULL;
}

static struct entry *measured_entry(struct tuning *tuning, const char *problem)
{
    for (size_t i = 0; tuning && i < tuning->count; i++)
        if (tuning->entries[i].source == SOURCE_MEASURED && !strcmp(tuning->entries[i].problem, problem))
            return &tuning->entries[i];
    return NULL;
}

bool tuning_is_measured(struct device *device, const char *problem)
{
    return measured_entry(tuning_of(device), problem) != NULL;
}

/* -------------------------------------------------------------------------------------------------- keeping ---- */

static void file_save(struct device *device)
{
    const struct tuning *tuning = device->tuning;
    struct text text = { 0 };
    if (!tuning->path) return;
    text_append(&text, "# Measured with driver %s. Remove this file to have all measured again.\n[device %s]\n",
        device->can.driver, device->can.name);
    for (size_t i = 0; i < tuning->count; i++)
        if (tuning->entries[i].source == SOURCE_MEASURED)
            text_append(&text, "%s %s\n", tuning->entries[i].problem, tuning->entries[i].text);
    if (text.failed || folder_make(device->runtime->cache_folder) != TUTTI_OK ||
        file_write(tuning->path, text.data, text.size) != TUTTI_OK)
        log_info(&device->runtime->log, "what was measured is not kept on disk: %s", status_message());
    text_free(&text);
}

void tuning_keep(struct device *device, const char *problem, const char *measured)
{
    struct tuning *tuning = tuning_of(device);
    struct entry *entry = measured_entry(tuning, problem);
    if (!tuning) return;
    if (entry) { /* later ones take its place */
        char *text = memory_copy_text(measured);
        if (text) free(entry->text);
        if (text) entry->text = text;
    } else if ((entry = entry_add(tuning, problem, measured))) {
        entry->level = entry->kind = TUNING_DEVICE;
        entry->source = SOURCE_MEASURED;
    }
    file_save(device);
}

const char *tuning_level_name(enum tuning_level level)
{
    static const char *const names[TUNING_LEVELS] = { [TUNING_USER] = "user",
        [TUNING_DEVICE] = "device",
        [TUNING_ARCHITECTURE] = "architecture",
        [TUNING_CLASS] = "class" };
    return names[level];
}

void tuning_free(struct device *device)
{
    struct tuning *tuning = device->tuning;
    if (!tuning) return;
    for (size_t i = 0; i < tuning->count; i++) {
        free(tuning->entries[i].problem);
        free(tuning->entries[i].text);
    }
    free(tuning->entries);
    free(tuning->path);
    free(tuning);
    device->tuning = NULL;
}
