#include "runtime/builder.h"

#include "base/child.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/text.h"
#include "runtime/program.h"
#include "runtime/source.h"
#include "runtime/store.h"
#include "runtime/verdicts.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <xxhash.h>

/* Starting a helper process takes about half a second, so each one has to have UNITS_PER_HELPER units of work. */
enum { UNITS_PER_HELPER = 2, MOST_HELPERS = 16, LONGEST_LINE = 240 };

static struct builder_limits limits; /* 0: the defaults */

static bool in_use(const struct device *device)
{
    return device->runtime->cache_folder && (device->quirks & QUIRK_BUILDS_SERIALLY);
}

/* Hashes of kernels in their compiled forms are kept in the store. */
static void learn(struct device *device, uint64_t form)
{
    char key[17];
    snprintf(key, sizeof(key), "%016llx", (unsigned long long)form);
    store_set(device, STORE_COMPILED, key, "");
}

static bool knows(struct device *device, uint64_t form)
{
    char key[17];
    snprintf(key, sizeof(key), "%016llx", (unsigned long long)form);
    return store_get(device, STORE_COMPILED, key);
}

/* ---------------------------------------------------------------------------------------------- refusals ---- */

#define REFUSED "compiler/"
enum { REFUSAL_KEY = 96 };

/* Makes the key under which a program that killed the driver's compiler is kept with the checks: the name of its text
 * and a hash of the text and the options. */
static void refusal_key(const char *source, uint64_t program, char key[REFUSAL_KEY])
{
    snprintf(key, REFUSAL_KEY, REFUSED "%.60s/%016llx", source, (unsigned long long)program);
}

static bool has_refusals(struct device *device)
{
    const char *key, *value;
    for (size_t at = 0; store_next(device, STORE_CHECKS, &at, &key, &value);)
        if (!strncmp(key, REFUSED, strlen(REFUSED))) return true;
    return false;
}

/* -------------------------------------------------------------------------------------------------- units ---- */

/* A kernel in the form in which it is launched. */
struct form {
    const struct launch *launch;
    uint64_t program, hash;
    size_t text; /* bytes of the program's text: the longest, which take longest to compile, come first */
    bool missing;
};

struct forms {
    struct form *list;
    size_t count, capacity;
};

/* Sets the hash of a launch's form, which is what same_form() in enqueue.c compares; 0 where it cannot be told. */
static void hash_form(struct device *device, const struct launch *launch, struct form *form)
{
    const struct program_request request = { launch->source, launch->options };
    const struct kernel_text *source = source_find(launch->source);
    char *options = program_options(device, &request);
    struct text text = { 0 };
    *form = (struct form) { .launch = launch };
    if (!source || !options) goto done;
    form->text = strlen(source->text);
    form->program = XXH3_64bits(source->text, form->text) ^ XXH3_64bits(options, strlen(options));
    text_append(&text, "%llx %s", (unsigned long long)form->program, launch->kernel_name);
    for (int i = 0; i < 3; i++) text_append(&text, " %zu", launch->local[i]);
    text_append(&text, " %d", launch_is_large(launch));
    if (!text.failed) form->hash = XXH3_64bits(text.data, text.size);
done:
    free(options);
    text_free(&text);
}

const char *builder_refusal(struct device *device, const struct launch *launch)
{
    struct form form;
    char key[REFUSAL_KEY];
    if (!in_use(device) || launch->call || launch->fault || !has_refusals(device)) return NULL;
    hash_form(device, launch, &form);
    refusal_key(launch->source, form.program, key);
    return form.hash ? blacklist_reason(device, key) : NULL;
}

/* Sorts forms by the length of their text, longest first, and puts the forms of one program side by side. */
static int compare_forms(const void *a, const void *b)
{
    const struct form *x = a, *y = b;
    if (x->text != y->text) return x->text > y->text ? -1 : 1;
    if (x->program != y->program) return x->program < y->program ? -1 : 1;
    return (x->hash > y->hash) - (x->hash < y->hash);
}

static tutti_status forms_find(const struct launch_list *list, struct forms *forms)
{
    *forms = (struct forms) { .list = memory_new(list->count + 1, sizeof(*forms->list)) };
    if (!forms->list) return TUTTI_NO_MEMORY;
    for (size_t i = 0; i < list->count; i++) {
        const struct launch *launch = &list->launches[i];
        if (launch->call || launch->fault) continue;
        hash_form(list->device, launch, &forms->list[forms->count]);
        if (forms->list[forms->count].hash) forms->count++;
    }
    qsort(forms->list, forms->count, sizeof(*forms->list), compare_forms);
    size_t all = forms->count;
    forms->count = 0;
    for (size_t i = 0; i < all; i++) {
        if (forms->count && forms->list[i].hash == forms->list[forms->count - 1].hash) continue;
        forms->list[forms->count] = forms->list[i];
        forms->list[forms->count].missing =
            !knows(list->device, forms->list[i].hash) && !builder_refusal(list->device, forms->list[i].launch);
        forms->count++;
    }
    return TUTTI_OK;
}

bool builder_knows(const struct launch_list *list)
{
    struct forms forms = { 0 };
    if (!in_use(list->device)) return false;
    bool known = forms_find(list, &forms) == TUTTI_OK;
    for (size_t i = 0; i < forms.count; i++) known &= knows(list->device, forms.list[i].hash);
    free(forms.list);
    return known;
}

void builder_note(const struct launch_list *list)
{
    struct forms forms = { 0 };
    if (!in_use(list->device)) return;
    bool changed = false;
    if (forms_find(list, &forms) == TUTTI_OK)
        for (size_t i = 0; i < forms.count; i++)
            if (forms.list[i].missing) {
                learn(list->device, forms.list[i].hash);
                changed = true;
            }
    free(forms.list);
    if (changed) store_save(list->device, STORE_COMPILED);
}

static bool requests_program(const struct program_request *requests, int count, const struct launch *launch)
{
    for (int i = 0; i < count; i++)
        if (!strcmp(requests[i].source, launch->source) && !strcmp(requests[i].options, launch->options)) return true;
    return false;
}

void builder_load(const struct launch_list *list)
{
    if (!builder_knows(list)) return;
    struct program_request *requests = memory_new(list->count + 1, sizeof(*requests));
    int count = 0;
    for (size_t i = 0; i < list->count && requests; i++) {
        const struct launch *launch = &list->launches[i];
        if (launch->call || requests_program(requests, count, launch)) continue;
        requests[count++] = (struct program_request) { launch->source, launch->options };
    }
    if (count > 0) programs_load_ahead(list->device, requests, count);
    free(requests);
}

/* Finds the next program, at or after *from, of which a form is missing. Its forms are *first .. *from - 1. */
static bool next_unit(const struct forms *forms, size_t *from, size_t *first)
{
    while (*from < forms->count) {
        bool missing = false;
        *first = *from;
        for (; *from < forms->count && forms->list[*from].program == forms->list[*first].program; (*from)++)
            missing |= forms->list[*from].missing;
        if (missing) return true;
    }
    return false;
}

static int count_units(const struct forms *forms)
{
    int count = 0;
    for (size_t from = 0, first; next_unit(forms, &from, &first);) count++;
    return count;
}

/* ------------------------------------------------------------------------------------------------ helpers ---- */

enum helper_state { HELPER_STARTS, HELPER_BUILDS, HELPER_IDLE };

struct helper {
    pid_t process;
    int socket; /* -1: gone */
    int errors; /* a file in memory: its standard error; -1: none */
    enum helper_state state;
    bool again;         /* the unit killed a helper before this one */
    size_t first, last; /* forms of the unit: first .. last - 1 */
    double since;       /* when the helper got the unit */
};

/* The helpers of a runtime. All are for one device, or for devices of the same name. */
struct builder_pool {
    char *path;
    struct builder_greeting greeting;
    struct helper list[MOST_HELPERS];
    int count;
};

/* The state of one call of builder_prepare(). */
struct helpers {
    struct device *device;
    struct builder_pool *pool;
    const struct forms *forms;
    size_t next; /* form to go on from */
    int built, total;
};

/* Returns the helper's path, which the caller frees; NULL if none is wanted or found. TUTTI_HELPER names it, else it
 * lies at a place relative to the library: where it is installed, or in the build folder. */
static char *helper_path(void)
{
    static const char *const places[] = { TUTTI_LIBEXEC_FROM_LIB "/tutti-build", "runtime/tutti-build" };
    const char *given = secure_getenv("TUTTI_HELPER");
    if (given && *given) return strcmp(given, "off") ? memory_copy_text(given) : NULL;
    return child_find(places, sizeof(places) / sizeof(places[0]));
}

static bool send_all(int socket, const void *data, size_t bytes)
{
    for (size_t sent = 0; sent < bytes;) {
        ssize_t count = send(socket, (const char *)data + sent, bytes - sent, MSG_NOSIGNAL);
        if (count < 0 && errno == EINTR) continue;
        if (count <= 0) return false;
        sent += (size_t)count;
    }
    return true;
}

/* Has the helper end. A process that was forked meanwhile may hold the socket, too: it is shut down for both. */
static void helper_end(struct helper *helper)
{
    if (helper->socket >= 0) {
        shutdown(helper->socket, SHUT_RDWR);
        close(helper->socket);
    }
    helper->socket = -1;
}

static void close_errors(struct helper *helper)
{
    if (helper->errors >= 0) close(helper->errors);
    helper->errors = -1;
}

/* Starts a helper; false if that fails. */
static bool helper_start(const struct helpers *helpers, struct helper *helper)
{
    const struct timeval patience = { .tv_sec = BUILDER_PATIENCE_S };
    const struct builder_pool *pool = helpers->pool;
    int ends[2];
    *helper = (struct helper) { .socket = -1, .errors = -1 };
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends)) return false;
    helper->socket = ends[0];
    helper->errors = memfd_create("tutti-build", MFD_CLOEXEC);
    char *const arguments[] = { "tutti-build", NULL };
    int error = child_start(pool->path, arguments, ends[1], helper->errors, &helper->process);
    close(ends[1]);
    if (error) {
        log_info(
            &helpers->device->runtime->log, "cannot start the helper process '%s': %s", pool->path, strerror(error));
        helper_end(helper);
        close_errors(helper);
        return false;
    }
    if (setsockopt(helper->socket, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience)) ||
        !send_all(helper->socket, &pool->greeting, sizeof(pool->greeting)))
        helper_end(helper);
    return true;
}

/* Ends a helper and waits for it; it stays our child until then. If it has not ended after two seconds, it is stuck in
 * the driver or stopped. Returns what child_reap() does. */
static int reap(struct helper *helper)
{
    enum { PATIENCE_MS = 2000 };
    helper_end(helper);
    return child_reap(helper->process, PATIENCE_MS);
}

/* ------------------------------------------------------------------------------------- deaths of helpers ---- */

static bool is_error(const char *line)
{
    return strcasestr(line, "error") || strstr(line, "Assertion") || strstr(line, "terminate");
}

/* Finds the last line that the compiler wrote about an error, else its last line; "" where it wrote nothing. */
static void last_line(const struct helper *helper, char *line, size_t size)
{
    enum { END = 8192 };
    char text[END + 1] = "";
    const off_t all = helper->errors >= 0 ? lseek(helper->errors, 0, SEEK_END) : 0;
    const ssize_t bytes = all > 0 ? pread(helper->errors, text, END, all > END ? all - END : 0) : 0;
    char *rest = text;
    bool error = false;
    text[bytes > 0 ? bytes : 0] = '\0';
    *line = '\0';
    for (char *one; (one = strtok_r(rest, "\r\n", &rest));) {
        if (strspn(one, " \t") == strlen(one) || (error && !is_error(one))) continue;
        error = is_error(one);
        snprintf(line, size, ": %s", one);
    }
    for (char *c = line; *c; c++)
        if ((unsigned char)*c < ' ') *c = ' ';
}

static int signal_of(int how)
{
    return how >= 0 && WIFSIGNALED(how) ? WTERMSIG(how) : 0;
}

/* Returns the exit status; -1 if it is not known, or the process did not exit. */
static int code_of(int how)
{
    return how >= 0 && WIFEXITED(how) ? WEXITSTATUS(how) : -1;
}

static bool reached_limit(int how)
{
    return signal_of(how) == SIGALRM || code_of(how) == BUILDER_OUT_OF_TIME || code_of(how) == BUILDER_OUT_OF_MEMORY;
}

/* Derives from the helper's end why the unit's program is refused; false if its end says nothing about the
 * program. */
static bool reason_of(const struct helpers *helpers, const struct helper *helper, int how, char *reason, size_t size)
{
    char line[LONGEST_LINE];
    last_line(helper, line, sizeof(line));
    const int signal = signal_of(how), code = code_of(how);
    if (signal == SIGKILL || signal == SIGTERM || signal == SIGHUP || signal == SIGINT || code == 0) return false;
    if (signal == SIGALRM || code == BUILDER_OUT_OF_TIME)
        snprintf(reason, size, "the driver's compiler did not end within %u seconds%s",
            helpers->pool->greeting.limits.seconds, line);
    else if (code == BUILDER_OUT_OF_MEMORY)
        snprintf(reason, size, "the driver's compiler took more than %u MiB of memory",
            helpers->pool->greeting.limits.mebibytes);
    else if (signal)
        snprintf(reason, size, "the driver's compiler died of signal %d (%s)%s", signal, strsignal(signal), line);
    else
        snprintf(reason, size, "the driver's compiler ended its process%s", line);
    return true;
}

/* Records that the unit's program is refused or, where reason is NULL, that it is not. */
static void refuse(const struct helpers *helpers, size_t first, const char *reason)
{
    char key[REFUSAL_KEY];
    struct device *device = helpers->device;
    const struct launch *launch = helpers->forms->list[first].launch;
    refusal_key(launch->source, helpers->forms->list[first].program, key);
    if (reason) {
        check_failed(device, key, reason);
        log_info(&device->runtime->log, "'%s' (%s) is not built on device %d, '%s': %s", launch->source,
            launch->options, device->index, device->can.name, reason);
    } else {
        store_set(device, STORE_CHECKS, key, NULL);
        store_save(device, STORE_CHECKS);
    }
}

/* Handles a helper that ended while it had a unit. Another helper takes its place and tries the unit once more,
 * unless the unit reached its limit of time or memory. */
static void bury(struct helpers *helpers, struct helper *helper)
{
    char reason[LONGEST_LINE + 100];
    const struct helper dead = *helper;
    const int how = reap(helper);
    const bool guilty = reason_of(helpers, helper, how, reason, sizeof(reason));
    close_errors(helper);
    *helper = (struct helper) { .socket = -1, .errors = -1 };
    if (!guilty) {
        log_info(&helpers->device->runtime->log,
            "a helper process that compiles kernels ended early: this process compiles them instead");
        return;
    }
    refuse(helpers, dead.first, reason);
    if (!helper_start(helpers, helper) || dead.again || reached_limit(how)) return;
    helper->again = true;
    helper->first = dead.first;
    helper->last = dead.last;
}

static void describe(const struct launch *launch, struct builder_launch *wire)
{
    memset(wire, 0, sizeof(*wire));
    snprintf(wire->kernel, sizeof(wire->kernel), "%s", launch->kernel_name);
    wire->dimensions = launch->dimensions;
    wire->arguments = launch->count;
    launch_smallest(launch, wire->global);
    for (int i = 0; i < 3; i++) wire->local[i] = launch->local[i];
    for (int i = 0; i < launch->count; i++) {
        const struct launch_argument *argument = &launch->arguments[i];
        wire->argument[i].kind = (uint32_t)argument->kind;
        wire->argument[i].size = (uint32_t)argument->size;
        if (argument->kind == ARGUMENT_BUFFER && !argument->value.buffer) wire->argument[i].size = 0;
        if (argument->kind == ARGUMENT_BYTES)
            memcpy(&wire->argument[i].value, &argument->value, sizeof(wire->argument[i].value));
    }
}

static bool send_unit(const struct helpers *helpers, const struct helper *helper)
{
    const struct form *forms = helpers->forms->list;
    const struct launch *any = forms[helper->first].launch;
    const struct program_request request = { any->source, any->options };
    const char *source = source_find(request.source)->text;
    char *options = program_options(helpers->device, &request);
    struct builder_launch wire;
    bool good = options != NULL;
    if (good) {
        struct builder_unit unit = { .text_bytes = (uint32_t)strlen(source) + 1,
            .options_bytes = (uint32_t)strlen(options) + 1,
            .launches = (uint32_t)(helper->last - helper->first) };
        good = send_all(helper->socket, &unit, sizeof(unit)) && send_all(helper->socket, source, unit.text_bytes) &&
            send_all(helper->socket, options, unit.options_bytes);
    }
    for (size_t i = helper->first; i < helper->last && good; i++) {
        describe(forms[i].launch, &wire);
        good = send_all(helper->socket, &wire, sizeof(wire));
    }
    free(options);
    return good;
}

static void note_answer(struct helpers *helpers, const struct helper *helper, bool done)
{
    const struct launch *launch = helpers->forms->list[helper->first].launch;
    if (helper->again) refuse(helpers, helper->first, NULL);
    for (size_t i = helper->first; done && i < helper->last; i++)
        if (helpers->forms->list[i].missing) learn(helpers->device, helpers->forms->list[i].hash);
    log_debug(&helpers->device->runtime->log, "compiled '%s' (%s), %d kernels, in %.0f ms", launch->source,
        launch->options, (int)(helper->last - helper->first), 1e3 * (clock_seconds() - helper->since));
}

/* Whether helpers that have nothing to do wait for the next call of builder_prepare(). */
static bool keeps(struct tutti_runtime *runtime)
{
    return atomic_load(&runtime->keeps_helpers);
}

/* Gives the helper its next unit. One that replaces another helper first gets that one's. Without a unit it ends, or
 * waits for the next call where helpers are kept. */
static void give_unit(struct helpers *helpers, struct helper *helper)
{
    if (!helper->again || helper->state != HELPER_STARTS) {
        helper->again = false;
        if (!next_unit(helpers->forms, &helpers->next, &helper->first)) {
            helper->state = HELPER_IDLE;
            if (!keeps(helpers->device->runtime)) helper_end(helper);
            return;
        }
        helper->last = helpers->next;
    }
    helper->state = HELPER_BUILDS;
    helper->since = clock_seconds();
    if (!send_unit(helpers, helper)) helper_end(helper);
}

/* Takes a helper's answer and gives it the next unit. */
static void attend(struct helpers *helpers, struct helper *helper, void (*progress)(void *, int, int), void *user)
{
    char what = 0;
    const bool built = helper->state == HELPER_BUILDS;
    const bool answered = recv(helper->socket, &what, 1, 0) == 1;
    if (!answered && built) bury(helpers, helper);
    if (!answered && !built) helper_end(helper);
    if (answered && built) note_answer(helpers, helper, what == BUILDER_DONE);
    if (built && (answered || !helper->again)) {
        helpers->built++;
        if (progress) progress(user, helpers->built, helpers->total);
    }
    if (answered) give_unit(helpers, helper);
}

/* Serves the helpers until all have ended or have nothing to do. A helper ends by itself when a unit takes too long;
 * where even that fails, this returns, and the caller ends it. */
static void work(struct helpers *helpers, void (*progress)(void *, int, int), void *user)
{
    struct builder_pool *pool = helpers->pool;
    struct pollfd waits[MOST_HELPERS];
    while (true) {
        int working = 0;
        for (int i = 0; i < pool->count; i++) {
            const struct helper *helper = &pool->list[i];
            waits[i] = (struct pollfd) { .fd = helper->state == HELPER_IDLE ? -1 : helper->socket, .events = POLLIN };
            working += waits[i].fd >= 0;
        }
        if (!working) return;
        int ready = poll(waits, (nfds_t)pool->count,
            1000 * (int)(BUILDER_WAITING * pool->greeting.limits.seconds + BUILDER_PATIENCE_S));
        if (ready < 0 && errno == EINTR) continue;
        if (ready <= 0) return;
        for (int i = 0; i < pool->count; i++)
            if (waits[i].fd >= 0 && waits[i].revents) attend(helpers, &pool->list[i], progress, user);
    }
}

/* Tells whether the driver's cache was emptied without our knowledge: loads the list's first program and looks at the
 * time that this takes. That program is needed anyway, and would be the first to be loaded ahead. Called where no form
 * is missing, once for each device of a runtime. */
static bool driver_forgot(const struct launch_list *list, const struct forms *forms)
{
    const struct launch *launch = forms->list[0].launch;
    for (size_t i = 1; i < forms->count; i++)
        if (forms->list[i].launch < launch) launch = forms->list[i].launch;
    if (builder_refusal(list->device, launch)) return false;
    const struct program_request request = { launch->source, launch->options };
    tutti_status status = program_build_all(list->device, &request, 1, NULL, NULL);
    return status == TUTTI_OK && program_seconds(list->device, &request) > PROGRAM_LOADED_WITHIN;
}

static pthread_mutex_t one_at_a_time = PTHREAD_MUTEX_INITIALIZER; /* also for asked_cache of devices */

void builder_set_limits(struct builder_limits wanted)
{
    limits = wanted;
}

/* A compiler takes a few hundred MiB; several helpers run at a time. */
static struct builder_limits limits_of(void)
{
    enum { LEAST = 1024, MOST = 8192 };
    const long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    const long quarter = pages > 0 && page > 0 ? pages / 1024 * page / 1024 / 4 : LEAST;
    return (struct builder_limits) { .seconds = limits.seconds ? limits.seconds : BUILDER_PATIENCE_S,
        .mebibytes = limits.mebibytes ? limits.mebibytes
            : quarter < LEAST         ? LEAST
            : quarter > MOST          ? MOST
                                      : (uint32_t)quarter };
}

static bool is_idle(const struct helper *helper)
{
    char none;
    return helper->state == HELPER_IDLE && helper->socket >= 0 &&
        recv(helper->socket, &none, 1, MSG_PEEK | MSG_DONTWAIT) < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
}

/* Ends the pool's helpers; with `keep`, those that wait for the next call stay. */
static void pool_sweep(struct builder_pool *pool, bool keep)
{
    int kept = 0;
    for (int i = 0; i < pool->count; i++) {
        struct helper *helper = &pool->list[i];
        if (keep && is_idle(helper)) {
            pool->list[kept++] = *helper;
            continue;
        }
        if (helper->process > 0) (void)reap(helper);
        close_errors(helper);
    }
    pool->count = kept;
}

/* Takes over the path. Ends helpers that were started otherwise. */
static void pool_set(struct builder_pool *pool, const struct device *device, char *path)
{
    struct builder_greeting greeting = { .magic = BUILDER_MAGIC, .limits = limits_of() };
    snprintf(greeting.platform, sizeof(greeting.platform), "%s", device->can.platform);
    snprintf(greeting.device, sizeof(greeting.device), "%s", device->can.name);
    const bool same = pool->path && !strcmp(pool->path, path) && !memcmp(&pool->greeting, &greeting, sizeof(greeting));
    pool_sweep(pool, same);
    free(pool->path);
    pool->path = path;
    pool->greeting = greeting;
}

static struct builder_pool *pool_of(struct tutti_runtime *runtime)
{
    if (!runtime->builder) runtime->builder = memory_new(1, sizeof(*runtime->builder));
    return runtime->builder;
}

void builder_keep(struct tutti_runtime *runtime, bool keep)
{
    atomic_store(&runtime->keeps_helpers, keep);
    if (keep || pthread_mutex_trylock(&one_at_a_time) != 0) return; /* whoever compiles may take minutes */
    if (runtime->builder) pool_sweep(runtime->builder, false);
    pthread_mutex_unlock(&one_at_a_time);
}

void builder_close(struct tutti_runtime *runtime)
{
    if (!runtime->builder) return;
    pthread_mutex_lock(&one_at_a_time);
    pool_sweep(runtime->builder, false);
    free(runtime->builder->path);
    free(runtime->builder);
    runtime->builder = NULL;
    pthread_mutex_unlock(&one_at_a_time);
}

static void run_helpers(struct helpers *helpers, void (*progress)(void *user, int built, int total), void *user)
{
    struct device *device = helpers->device;
    struct builder_pool *pool = helpers->pool;
    const double start = clock_seconds();
    int wanted = (helpers->total + UNITS_PER_HELPER - 1) / UNITS_PER_HELPER;
    if (wanted > device->runtime->threads) wanted = device->runtime->threads;
    for (int i = 0; i < pool->count; i++) give_unit(helpers, &pool->list[i]);
    while (pool->count < wanted && pool->count < MOST_HELPERS && helper_start(helpers, &pool->list[pool->count]))
        pool->count++;
    work(helpers, progress, user);
    if (helpers->built) store_save(device, STORE_COMPILED);
    log_debug(&device->runtime->log, "%d of %d programs were compiled ahead by %d helper processes in %.1f s",
        helpers->built, helpers->total, pool->count, clock_seconds() - start);
    pool_sweep(pool, keeps(device->runtime));
}

/* Asks the driver without the lock: the driver may hang, and other devices must not wait for it. */
static bool ask_driver(const struct launch_list *list, struct forms *forms)
{
    struct device *device = list->device;
    if (device->asked_cache) return false;
    device->asked_cache = true;
    pthread_mutex_unlock(&one_at_a_time);
    const bool forgot = driver_forgot(list, forms);
    pthread_mutex_lock(&one_at_a_time);
    if (!forgot) return false;
    for (size_t i = 0; i < forms->count; i++) forms->list[i].missing = true;
    store_clear(device, STORE_COMPILED);
    return true;
}

void builder_prepare(const struct launch_list *list, void (*progress)(void *user, int built, int total), void *user)
{
    struct device *device = list->device;
    struct helpers helpers = { .device = device };
    struct forms forms = { 0 };
    char *path = in_use(device) ? helper_path() : NULL;
    /* Devices are prepared one after another: the next one finds what this one's helpers have compiled. */
    pthread_mutex_lock(&one_at_a_time);
    helpers.pool = path ? pool_of(device->runtime) : NULL;
    if (helpers.pool) store_reload(device, STORE_COMPILED);
    if (!helpers.pool || forms_find(list, &forms) != TUTTI_OK || forms.count == 0) goto done;
    helpers.forms = &forms;
    helpers.total = count_units(&forms);
    if (helpers.total == 0 && ask_driver(list, &forms)) helpers.total = count_units(&forms);
    device->asked_cache = true;              /* what is compiled from now on is known */
    helpers.pool = pool_of(device->runtime); /* again: ask_driver() gave the lock away */
    if (helpers.total == 0 || !helpers.pool) goto done;
    pool_set(helpers.pool, device, path);
    path = NULL;
    run_helpers(&helpers, progress, user);
done:
    pthread_mutex_unlock(&one_at_a_time);
    free(forms.list);
    free(path);
}
