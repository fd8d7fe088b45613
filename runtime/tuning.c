#include "runtime/tuning.h"

#include "base/file.h"
#include "base/memory.h"
#include "base/numbers.h"
#include "runtime/store.h"

#include <fnmatch.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* An entry serves if its number of samples is within this factor of the one asked for. */
#define NEAR 2.0

struct entry {
    char *problem;           /* a name, or a pattern with * and ? */
    char *text;              /* "winograd 1.100 direct 3.201", or "!direct REASON" */
    enum tuning_level level; /* at which it is asked for */
    enum tuning_level kind;  /* its section's kind: within the user's file, closer ones win */
};

/* The user's table and the shipped ones. What was measured here is in the store. */
struct tuning {
    struct entry *entries;
    size_t count, capacity;
};

/* -------------------------------------------------------------------------------------------------- reading ---- */

/* Tells whether a section "[device NAME]", "[architecture NAME]" or "[class NAME]" is for this device. */
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

static bool entry_add(
    struct tuning *tuning, const char *problem, const char *text, enum tuning_level level, enum tuning_level kind)
{
    void *array = tuning->entries;
    if (memory_grow(&array, &tuning->capacity, tuning->count + 1, sizeof(*tuning->entries)) != TUTTI_OK) return false;
    tuning->entries = array;
    struct entry *entry = &tuning->entries[tuning->count];
    *entry = (struct entry) { memory_copy_text(problem), memory_copy_text(text), level, kind };
    tuning->count++;
    return entry->problem && entry->text;
}

/* Reads lines "# comment", "[section]" and "PROBLEM IMPLEMENTATION ...". Sections of other devices are skipped. */
static void table_read(struct device *device, struct tuning *tuning, bool users, const char *data, size_t size)
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
        char *entry = wanted ? strchr(line, ' ') : NULL;
        if (!entry) continue;
        *entry++ = '\0';
        if (!entry_add(tuning, line, entry + strspn(entry, " "), users ? TUNING_USER : kind, kind)) break;
    }
    free(text);
}

static void read_tables(struct device *device, struct tuning *tuning)
{
    enum { MOST_BYTES = 16 << 20 };
    const char *path = device->runtime->tuning;
    unsigned char *data = NULL;
    size_t size = 0;
    if (path && file_read(path, MOST_BYTES, &data, &size) == TUTTI_OK)
        table_read(device, tuning, true, (char *)data, size);
    else if (path)
        log_warn(&device->runtime->log, "the tuning table is not used: %s", status_message());
    free(data);
    table_read(device, tuning, false, tuning_shipped, strlen(tuning_shipped));
}

/* Read once; not changed after that. NULL without memory. */
static const struct tuning *tables_of(struct device *device)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&lock);
    if (!device->tuning && (device->tuning = memory_new(1, sizeof(*device->tuning))))
        read_tables(device, device->tuning);
    const struct tuning *tuning = device->tuning;
    pthread_mutex_unlock(&lock);
    return tuning;
}

/* Steps through the entries: those that were measured here first, then the tables'. False at the end. */
struct walk {
    size_t measured, listed;
    struct entry entry;
};

static bool next(struct device *device, struct walk *walk)
{
    const char *problem, *text;
    const struct tuning *tuning = tables_of(device);
    if (store_next(device, STORE_TUNING, &walk->measured, &problem, &text)) {
        walk->entry = (struct entry) { (char *)problem, (char *)text, TUNING_DEVICE, TUNING_DEVICE };
        return true;
    }
    if (!tuning || walk->listed == tuning->count) return false;
    walk->entry = tuning->entries[walk->listed++];
    return walk->entry.problem && walk->entry.text;
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
                TUTTI_FILE, "the tuning table '%s' cannot be read: use a file written by 'tutti tune', or off", wanted);
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

/* Returns how far an entry is from the problem: 1 for the very same, up to NEAR by its number of samples, then
 * patterns; 0 if it is of another problem. */
static double distance(const struct entry *entry, const char *problem)
{
    if (!strcmp(entry->problem, problem)) return 1;
    if (strpbrk(entry->problem, "*?")) return fnmatch(entry->problem, problem, 0) == 0 ? 2 * NEAR : 0;
    const char *theirs = strrchr(entry->problem, '/'), *ours = strrchr(problem, '/');
    if (!theirs || !ours || theirs - entry->problem != ours - problem) return 0;
    if (strncmp(entry->problem, problem, (size_t)(ours - problem)) || theirs[1] != 'n' || ours[1] != 'n') return 0;
    const double a = number_read(theirs + 2, NULL), b = number_read(ours + 2, NULL);
    const double ratio = a > b ? a / b : b / a;
    return a > 0 && b > 0 && ratio <= NEAR ? ratio : 0;
}

const char *tuning_choice(struct device *device, enum tuning_level level, const char *problem)
{
    struct entry best = { 0 };
    double least = 0;
    for (struct walk walk = { 0 }; next(device, &walk);) {
        const struct entry *entry = &walk.entry;
        if (entry->level != level || *entry->text == '!' || !*entry->text) continue;
        const double away = distance(entry, problem);
        if (away == 0) continue;
        const bool closer = !best.text || entry->kind < best.kind || (entry->kind == best.kind && away < least);
        if (!closer) continue;
        best = *entry;
        least = away;
    }
    return best.text;
}

const char *tuning_refusal(struct device *device, const char *problem, const char *implementation)
{
    const size_t length = strlen(implementation);
    for (struct walk walk = { 0 }; next(device, &walk);) {
        const char *text = walk.entry.text;
        if (*text != '!' || strncmp(text + 1, implementation, length)) continue;
        if (text[1 + length] != ' ' && text[1 + length]) continue;
        if (distance(&walk.entry, problem) == 0) continue;
        return text[1 + length] ? text + 2 + length : "a tuning table excludes it";
    }
    return NULL;
}

bool tuning_is_measured(struct device *device, const char *problem)
{
    return store_get(device, STORE_TUNING, problem) != NULL;
}

void tuning_keep(struct device *device, const char *problem, const char *measured)
{
    store_set(device, STORE_TUNING, problem, measured);
    store_save(device, STORE_TUNING);
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
    free(tuning);
    device->tuning = NULL;
}
