#include "runtime/store.h"

#include "base/file.h"
#include "base/memory.h"
#include "base/text.h"
#include "runtime/program_cache.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

static const struct kind {
    const char *ending, *holds;
    bool (*key)(const struct device *device, char key[33]);
} kinds[STORE_KINDS] = {
    [STORE_CHECKS] = { "checks", "which kernels passed their check", device_key },
    [STORE_TUNING] = { "tuning", "times of kernels in ms", device_key },
    [STORE_COMPILED] = { "compiled", "kernels that the driver has compiled", driver_key },
};

/* A key or a value. It lives as long as the store: callers keep pointers to it. */
struct word {
    struct word *next;
    char text[];
};

struct entry {
    const char *key, *value; /* value NULL: removed */
    bool changed;            /* here, since the last save */
    bool offered;            /* and to be kept only if there is none on disk */
    bool on_disk;            /* as read last */
};

struct store {
    const struct kind *kind;
    char *path; /* NULL: remembered in this process only */
    struct entry *entries;
    size_t count, capacity;
    size_t *slots;     /* a hash table: the position of an entry plus 1; 0: free */
    size_t slot_count; /* a power of two, or 0 */
    struct word *words;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* ---- in memory; the lock is held ---- */

static const char *keep_word(struct store *store, const char *text)
{
    const size_t bytes = strlen(text) + 1;
    struct word *word = memory_new(1, sizeof(*word) + bytes);
    if (!word) return NULL;
    memcpy(word->text, text, bytes);
    for (char *c = word->text; *c; c++)
        if (*c == '\n' || *c == '\r') *c = ' '; /* an entry is a line of the file */
    word->next = store->words;
    store->words = word;
    return word->text;
}

/* Where the key's entry is in the table, or would be. */
static size_t *slot_of(const struct store *store, const char *key)
{
    size_t at = (size_t)XXH3_64bits(key, strlen(key)) & (store->slot_count - 1);
    while (store->slots[at] && strcmp(store->entries[store->slots[at] - 1].key, key))
        at = (at + 1) & (store->slot_count - 1);
    return &store->slots[at];
}

static struct entry *find(const struct store *store, const char *key)
{
    const size_t found = store->slot_count ? *slot_of(store, key) : 0;
    return found ? &store->entries[found - 1] : NULL;
}

/* At most half of the table is full. False: no memory. */
static bool make_slot(struct store *store)
{
    if (2 * (store->count + 1) <= store->slot_count) return true;
    const size_t count = store->slot_count ? 2 * store->slot_count : 64;
    size_t *slots = memory_new(count, sizeof *slots);
    if (!slots) return false;
    free(store->slots);
    store->slots = slots;
    store->slot_count = count;
    for (size_t i = 0; i < store->count; i++) *slot_of(store, store->entries[i].key) = i + 1;
    return true;
}

/* NULL where there is no memory. */
static struct entry *find_or_add(struct store *store, const char *key)
{
    struct entry *entry = find(store, key);
    void *array = store->entries;
    if (entry || !make_slot(store) ||
        memory_grow(&array, &store->capacity, store->count + 1, sizeof(*entry)) != TUTTI_OK)
        return entry;
    store->entries = array;
    entry = &store->entries[store->count];
    *entry = (struct entry) { .key = keep_word(store, key) };
    if (!entry->key) return NULL;
    *slot_of(store, entry->key) = ++store->count;
    return entry;
}

static void change(struct store *store, struct entry *entry, const char *value)
{
    if (entry->value && value && !strcmp(entry->value, value)) return;
    const char *kept = value ? keep_word(store, value) : NULL;
    if (kept || !value) entry->value = kept;
}

/* ---- on disk; the lock is held ---- */

/* Lines "KEY VALUE" or "KEY". What was changed here since the last save stays; what others removed goes. */
static void load(struct store *store)
{
    enum { MOST = 16 << 20 };
    unsigned char *data = NULL;
    size_t size = 0;
    if (!store->path || file_read_own(store->path, MOST, &data, &size) != TUTTI_OK) return;
    for (size_t i = 0; i < store->count; i++) store->entries[i].on_disk = false;
    char *text = memory_format("%.*s", (int)size, (char *)data), *rest = text;
    for (char *line; text && (line = strtok_r(rest, "\r\n", &rest));) {
        char *value = line;
        const char *key = strtok_r(value, " ", &value);
        if (!key || *key == '#' || *key == '[') continue;
        struct entry *entry = find_or_add(store, key);
        if (!entry) continue;
        entry->on_disk = true;
        if (!entry->changed || entry->offered) change(store, entry, value ? value : "");
    }
    for (size_t i = 0; i < store->count; i++)
        if (text && !store->entries[i].on_disk && !store->entries[i].changed) store->entries[i].value = NULL;
    free(text);
    free(data);
}

static tutti_status write_entries(const struct store *store, const struct device *device)
{
    struct text text = { 0 };
    text_append(&text, "# Driver %s: %s. Remove this file to repeat the checks and measurements.\n[device %s]\n",
        device->can.driver, store->kind->holds, device->can.name);
    for (size_t i = 0; i < store->count; i++) {
        const struct entry *entry = &store->entries[i];
        if (entry->value) text_append(&text, "%s%s%s\n", entry->key, *entry->value ? " " : "", entry->value);
    }
    const tutti_status status = text.failed ? TUTTI_NO_MEMORY : file_write_own(store->path, text.data, text.size);
    text_free(&text);
    return status;
}

/* One lock for the folder's files. Some file systems of clusters have no locks: what two processes save at once may be
 * lost there, and is found out again. */
static tutti_status save(struct store *store, const struct device *device)
{
    enum { LOCK_SECONDS = 5 };
    tutti_status status = TUTTI_OK;
    const char *folder = device->runtime->cache_folder;
    char *path = NULL;
    struct file_lock *file = NULL;
    TRY(folder_make(folder));
    TRY(folder_check_own(folder));
    path = memory_format("%s/lock", folder);
    if (!path) FAIL(TUTTI_NO_MEMORY, "no memory to lock '%s'", folder);
    TRY(file_lock_take(&file, path, LOCK_SECONDS));
    load(store);
    TRY(write_entries(store, device));
    for (size_t i = 0; i < store->count; i++) store->entries[i].changed = store->entries[i].offered = false;
done:
    file_lock_release(file);
    free(path);
    return status;
}

/* Opens it at the first question. NULL without memory. */
static struct store *store_of(struct device *device, enum store_kind kind)
{
    const struct tutti_runtime *runtime = device->runtime;
    char key[33];
    if (device->stores[kind]) return device->stores[kind];
    struct store *store = memory_new(1, sizeof(*store));
    if (!store) return NULL;
    store->kind = &kinds[kind];
    if (runtime->cache_folder && !(kind == STORE_TUNING && runtime->tuning_off) && store->kind->key(device, key))
        store->path = memory_format("%s/%s.%s", runtime->cache_folder, key, store->kind->ending);
    load(store);
    device->stores[kind] = store;
    return store;
}

/* ---- from outside ---- */

const char *store_get(struct device *device, enum store_kind kind, const char *key)
{
    pthread_mutex_lock(&lock);
    const struct store *store = store_of(device, kind);
    const struct entry *entry = store ? find(store, key) : NULL;
    const char *value = entry ? entry->value : NULL;
    pthread_mutex_unlock(&lock);
    return value;
}

static void set(struct device *device, enum store_kind kind, const char *key, const char *value, bool offered)
{
    pthread_mutex_lock(&lock);
    struct store *store = store_of(device, kind);
    struct entry *entry = store ? find_or_add(store, key) : NULL;
    if (entry) {
        change(store, entry, value);
        entry->changed = true;
        entry->offered = offered;
    }
    pthread_mutex_unlock(&lock);
}

void store_set(struct device *device, enum store_kind kind, const char *key, const char *value)
{
    set(device, kind, key, value, false);
}

void store_offer(struct device *device, enum store_kind kind, const char *key, const char *value)
{
    set(device, kind, key, value, true);
}

void store_save(struct device *device, enum store_kind kind)
{
    char *message =
        memory_copy_text(status_message()); /* perhaps of a failure that is recorded here: it stays the last one */
    const tutti_status status = status_last();
    pthread_mutex_lock(&lock);
    struct store *store = store_of(device, kind);
    const bool kept = !store || !store->path || save(store, device) == TUTTI_OK;
    pthread_mutex_unlock(&lock);
    if (!kept) log_info(&device->runtime->log, "cannot save on disk %s: %s", kinds[kind].holds, status_message());
    if (message) status_set(status, message);
    free(message);
}

void store_reload(struct device *device, enum store_kind kind)
{
    pthread_mutex_lock(&lock);
    struct store *store = store_of(device, kind);
    if (store) load(store);
    pthread_mutex_unlock(&lock);
}

void store_clear(struct device *device, enum store_kind kind)
{
    pthread_mutex_lock(&lock);
    struct store *store = store_of(device, kind);
    for (size_t i = 0; store && i < store->count; i++) store->entries[i].value = NULL;
    if (store && store->path) unlink(store->path);
    pthread_mutex_unlock(&lock);
}

bool store_next(struct device *device, enum store_kind kind, size_t *at, const char **key, const char **value)
{
    bool found = false;
    pthread_mutex_lock(&lock);
    const struct store *store = store_of(device, kind);
    for (; store && !found && *at < store->count; (*at)++) {
        *key = store->entries[*at].key;
        *value = store->entries[*at].value;
        found = *value != NULL;
    }
    pthread_mutex_unlock(&lock);
    return found;
}

void stores_free(struct device *device)
{
    for (int kind = 0; kind < STORE_KINDS; kind++) {
        struct store *store = device->stores[kind];
        if (!store) continue;
        for (struct word *next, *word = store->words; word; word = next) {
            next = word->next;
            free(word);
        }
        free(store->entries);
        free(store->slots);
        free(store->path);
        free(store);
        device->stores[kind] = NULL;
    }
}
