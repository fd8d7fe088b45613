#include "runtime/program.h"

#include "base/clock.h"
#include "base/invariant.h"
#include "base/memory.h"
#include "base/numbers.h"
#include "runtime/program_cache.h"
#include "runtime/source.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* One program that was built, or is to be. */
struct program {
    const char *source; /* the text's own name: static */
    char *options;
    cl_program program;
    double seconds; /* that building took, without waiting for a processor */
    bool from_cache, saved;
};

/* The programs that a thread loads ahead. */
struct ahead {
    pthread_t thread;
    bool running, stop;               /* the thread has to be joined; it is to end */
    struct program_request *requests; /* the texts of their options are copies */
    int count, next;                  /* those from next on are still to be loaded, or in work */
};

struct programs {
    pthread_mutex_t loading; /* held to begin loading ahead, by one at a time; taken before `lock` */
    pthread_mutex_t lock;
    struct program *list;
    size_t count, capacity;
    struct ahead ahead;
    pthread_cond_t loaded; /* ahead.next has changed */
};

tutti_status programs_new(struct device *device)
{
    struct programs *programs = memory_new(1, sizeof(*programs));
    if (!programs) return TUTTI_NO_MEMORY;
    pthread_mutex_init(&programs->loading, NULL);
    pthread_mutex_init(&programs->lock, NULL);
    pthread_cond_init(&programs->loaded, NULL);
    device->programs = programs;
    return TUTTI_OK;
}

/* Ends the loading ahead: programs with which it has not begun are left out. `loading` is held. */
static void ahead_end(struct programs *programs)
{
    struct ahead *ahead = &programs->ahead;
    pthread_mutex_lock(&programs->lock);
    ahead->stop = true;
    pthread_mutex_unlock(&programs->lock);
    if (ahead->running) pthread_join(ahead->thread, NULL);
    pthread_mutex_lock(&programs->lock); /* others look through the requests */
    for (int i = 0; i < ahead->count; i++) free((char *)ahead->requests[i].options);
    free(ahead->requests);
    *ahead = (struct ahead) { 0 };
    pthread_mutex_unlock(&programs->lock);
}

void programs_free(struct device *device)
{
    struct programs *programs = device->programs;
    if (!programs) return;
    ahead_end(programs);
    for (size_t i = 0; i < programs->count; i++) {
        clReleaseProgram(programs->list[i].program);
        free(programs->list[i].options);
    }
    pthread_cond_destroy(&programs->loaded);
    pthread_mutex_destroy(&programs->lock);
    pthread_mutex_destroy(&programs->loading);
    free(programs->list);
    free(programs);
    device->programs = NULL;
}

/* The lock is held. */
static struct program *find(struct programs *programs, const struct program_request *request)
{
    for (size_t i = 0; i < programs->count; i++)
        if (!strcmp(programs->list[i].source, request->source) &&
            !strcmp(programs->list[i].options, request->options ? request->options : ""))
            return &programs->list[i];
    return NULL;
}

/* Shortens the compiler's log to its first error, on one line. */
static void first_error(const char *log, char *line, size_t size)
{
    const char *at = strstr(log, "error:");
    if (!at) at = strstr(log, "error");
    if (!at) at = log + strspn(log, " \t\r\n");
    while (at > log && at[-1] != '\n') at--; /* the line begins with the position in the text */
    size_t length = strcspn(at, "\r\n");
    if (length >= size) length = size - 1;
    memcpy(line, at, length);
    line[length] = '\0';
}

static tutti_status build_failure(
    struct device *device, cl_program program, const struct program_request *request, cl_int error)
{
    char line[400] = "the driver reports no reason";
    size_t size = 0;
    if (clGetProgramBuildInfo(program, device->id, CL_PROGRAM_BUILD_LOG, 0, NULL, &size) == CL_SUCCESS && size > 1) {
        char *log = calloc(1, size + 1);
        if (log && clGetProgramBuildInfo(program, device->id, CL_PROGRAM_BUILD_LOG, size, log, NULL) == CL_SUCCESS) {
            first_error(log, line, sizeof(line));
            log_debug(&device->runtime->log, "build log of '%s' (%s):\n%s", request->source,
                request->options ? request->options : "", log);
        }
        free(log);
    }
    return fail(TUTTI_BUILD, "the kernels '%s' do not compile on device %d, '%s' (%s): %s; options: %s",
        request->source, device->index, device->can.name, opencl_error_name(error), line,
        request->options && *request->options ? request->options : "none");
}

/* Tells whether the device is a CPU of GPU class, which has no registers to unroll a GPU's tiles into, and whose
 * compiler would take long to try. */
static bool keeps_loops(const struct device *device)
{
    return (device->quirks & QUIRK_UNROLLS_LONG) && device->host_cpu && device->can.class == DEVICE_GPU;
}

/* Clang's header of all built-in functions declares nothing where the name of its guard is defined. */
#define WITHOUT_HEADER " -D_OPENCL_H_ -DDECLARE_BUILTINS"

/* For name_check() of realise.c. */
#define ARGUMENT_NAMES " -cl-kernel-arg-info"

/* Large products take longer to compute without optimisation than to optimise. */
static bool is_unoptimised(const struct device *device, const char *source)
{
    return device->can.unoptimised == UNOPTIMISED_ALL ||
        (device->can.unoptimised == UNOPTIMISED_BUT_PRODUCTS && strcmp(source, "gemm_packed") != 0);
}

static char *options_of(const struct device *device, const struct program_request *request, const char *more)
{
    const struct kernel_text *text = source_find(request->source);
    const bool keep_order = text && text->width && (device->quirks & QUIRK_LOADS_AHEAD);
    char width[32] = "", class[32] = "", shuffle[32] = "";
    if (text && text->width) number_append(width, sizeof(width), " -DV=%d", device->can.vector_width);
    if (text && text->class) number_append(class, sizeof(class), " -DTUTTI_GPU=%d", device->can.class == DEVICE_GPU);
    if (text && text->shuffle && device->can.shuffle)
        number_append(shuffle, sizeof(shuffle), " -DSHUFFLE=%d", (int)device->can.shuffle);
    return memory_format("-cl-std=CL1.2 -w%s%s%s%s%s%s%s%s%s%s", TUTTI_IS_DEBUG ? ARGUMENT_NAMES : "",
        is_unoptimised(device, request->source) ? " -cl-opt-disable" : "", width, class, shuffle,
        keeps_loops(device) ? " -DUNROLL_GPU=" : "", keep_order ? " -DKEEP_ORDER" : "", more,
        request->options && *request->options ? " " : "", request->options ? request->options : "");
}

/* Whether the program is built with Tutti's own declarations of built-in functions. */
static bool builds_without_header(const struct device *device, const char *source)
{
    const struct kernel_text *text = source_find(source);
    return (device->quirks & QUIRK_READS_HEADER) && !(text && text->any_builtin);
}

char *program_options(const struct device *device, const struct program_request *request)
{
    return options_of(device, request, builds_without_header(device, request->source) ? WITHOUT_HEADER : "");
}

static tutti_status build_from_source(struct device *device, const struct program_request *request, const char *text,
    const char *options, cl_program *built)
{
    tutti_status status = TUTTI_OK;
    cl_int error = CL_SUCCESS;
    cl_program program = clCreateProgramWithSource(device->context, 1, &text, NULL, &error);
    CL_TRY(error, "creating the program '%s' on '%s'", request->source, device->can.name);
    error = clBuildProgram(program, 1, &device->id, options, NULL, NULL);
    if (error != CL_SUCCESS) {
        status = build_failure(device, program, request, error);
        goto done;
    }
    *built = program;
    return TUTTI_OK;
done:
    if (program) clReleaseProgram(program);
    return status;
}

/* Builds once more with the driver's own header, for a version of the driver that needs it after all. */
static tutti_status build_with_header(
    struct device *device, const struct program_request *request, const char *text, cl_program *built)
{
    char *options = options_of(device, request, "");
    if (!options) return TUTTI_NO_MEMORY;
    log_info(&device->runtime->log,
        "'%s' does not compile with Tutti's own declarations and is compiled with the driver's: %s", request->source,
        status_message());
    tutti_status status = build_from_source(device, request, text, options, built);
    free(options);
    return status;
}

static tutti_status build(struct device *device, const struct program_request *request, struct program *made)
{
    tutti_status status = TUTTI_OK;
    char *options = NULL;
    const struct kernel_text *text = source_find(request->source);
    *made = (struct program) { 0 };
    if (!text) FAIL(TUTTI_INTERNAL, "the library has no kernels '%s'", request->source);
    made->source = text->name;
    made->options = memory_copy_text(request->options ? request->options : "");
    options = program_options(device, request);
    if (!made->options || !options) FAIL(TUTTI_NO_MEMORY, "no memory to build the kernels '%s'", request->source);
    const double start = clock_seconds(), start_on_processors = processor_seconds();
    made->program = program_cache_load(device, text->text, options);
    made->from_cache = made->program != NULL;
    if (!made->program) {
        status = build_from_source(device, request, text->text, options, &made->program);
        if (status == TUTTI_BUILD && builds_without_header(device, request->source))
            status = build_with_header(device, request, text->text, &made->program);
        if (status != TUTTI_OK) goto done;
    }
    const double seconds = clock_seconds() - start;
    made->seconds = fmin(seconds, processor_seconds() - start_on_processors);
    log_debug(&device->runtime->log, "%s '%s' (%s) in %.0f ms", made->from_cache ? "loaded" : "built", request->source,
        options, 1e3 * seconds);
done:
    free(options);
    if (status != TUTTI_OK) free(made->options);
    return status;
}

/* Adds a program that was built. If two threads built the same one, the first one's is kept. */
static tutti_status keep(struct programs *programs, const struct program_request *request, struct program *made)
{
    pthread_mutex_lock(&programs->lock);
    void *array = programs->list;
    tutti_status status = memory_grow(&array, &programs->capacity, programs->count + 1, sizeof(*programs->list));
    programs->list = array;
    bool kept = status == TUTTI_OK && !find(programs, request);
    if (kept) programs->list[programs->count++] = *made;
    pthread_mutex_unlock(&programs->lock);
    if (kept) return TUTTI_OK;
    clReleaseProgram(made->program);
    free(made->options);
    return status;
}

/* What the threads of one program_build_all share. */
struct building {
    struct device *device;
    const struct program_request **requests; /* each once */
    int count, next, built;
    pthread_mutex_t lock;
    tutti_status status; /* the first failure, with its message */
    char message[1024];
    void (*progress)(void *user, int built, int total);
    void *user;
};

static void *build_some(void *argument)
{
    struct building *building = argument;
    pthread_mutex_lock(&building->lock);
    while (building->next < building->count && building->status == TUTTI_OK) {
        const struct program_request *request = building->requests[building->next++];
        pthread_mutex_unlock(&building->lock);
        struct program made;
        tutti_status status = build(building->device, request, &made);
        if (status == TUTTI_OK) status = keep(building->device->programs, request, &made);
        pthread_mutex_lock(&building->lock);
        if (status != TUTTI_OK && building->status == TUTTI_OK) {
            building->status = status;
            strncpy(building->message, status_message(), sizeof(building->message) - 1);
        }
        building->built++;
        if (building->progress) building->progress(building->user, building->built, building->count);
    }
    pthread_mutex_unlock(&building->lock);
    return NULL;
}

/* Builds on as many threads as the runtime may use, the caller's included. */
static tutti_status build_in_parallel(struct building *building)
{
    enum { MOST_THREADS = 64 };
    pthread_t threads[MOST_THREADS];
    int started = 0;
    int wanted =
        building->device->runtime->threads < building->count ? building->device->runtime->threads : building->count;
    pthread_mutex_init(&building->lock, NULL);
    while (started < wanted - 1 && started < MOST_THREADS &&
        !pthread_create(&threads[started], NULL, build_some, building))
        started++;
    build_some(building);
    for (int i = 0; i < started; i++) pthread_join(threads[i], NULL);
    pthread_mutex_destroy(&building->lock);
    if (building->status != TUTTI_OK) status_set(building->status, building->message);
    return building->status;
}

static bool equal(const struct program_request *a, const struct program_request *b)
{
    return !strcmp(a->source, b->source) && !strcmp(a->options ? a->options : "", b->options ? b->options : "");
}

/* The lock is held. */
static bool is_pending(const struct ahead *ahead, const struct program_request *request)
{
    for (int i = ahead->next; i < ahead->count; i++)
        if (equal(&ahead->requests[i], request)) return true;
    return false;
}

/* Loads one program. False if loading the rest is not worth it, or failed; a failure shows again when the program is
 * needed. */
static bool load_one(struct device *device, const struct program_request *request)
{
    struct program made = { 0 };
    if (build(device, request, &made) != TUTTI_OK) return false;
    const double seconds = made.seconds;
    return keep(device->programs, request, &made) == TUTTI_OK && seconds <= PROGRAM_LOADED_WITHIN;
}

static void *load(void *argument)
{
    struct device *device = argument;
    struct programs *programs = device->programs;
    struct ahead *ahead = &programs->ahead;
    pthread_mutex_lock(&programs->lock);
    while (!ahead->stop && ahead->next < ahead->count) {
        const struct program_request *request = &ahead->requests[ahead->next];
        if (!find(programs, request)) {
            pthread_mutex_unlock(&programs->lock);
            const bool good = load_one(device, request);
            pthread_mutex_lock(&programs->lock);
            ahead->stop |= !good;
        }
        ahead->next++;
        pthread_cond_broadcast(&programs->loaded);
    }
    ahead->next = ahead->count;
    pthread_cond_broadcast(&programs->loaded);
    pthread_mutex_unlock(&programs->lock);
    return NULL;
}

void programs_load_ahead(struct device *device, const struct program_request *requests, int count)
{
    struct programs *programs = device->programs;
    struct ahead *ahead = &programs->ahead;
    struct program_request *copies = memory_new((size_t)count, sizeof(*copies));
    if (!copies) return;
    pthread_mutex_lock(&programs->loading);
    ahead_end(programs);
    pthread_mutex_lock(&programs->lock);
    for (ahead->requests = copies; ahead->count < count; ahead->count++) {
        const struct program_request *given = &requests[ahead->count];
        char *options = memory_copy_text(given->options ? given->options : "");
        if (!options) break;
        copies[ahead->count] = (struct program_request) { given->source, options };
    }
    ahead->running = !pthread_create(&ahead->thread, NULL, load, device);
    if (!ahead->running) ahead->next = ahead->count;
    pthread_mutex_unlock(&programs->lock);
    pthread_mutex_unlock(&programs->loading);
}

bool programs_are_loading(struct device *device)
{
    struct programs *programs = device->programs;
    pthread_mutex_lock(&programs->lock);
    const bool loading = programs->ahead.next < programs->ahead.count;
    pthread_mutex_unlock(&programs->lock);
    return loading;
}

double program_seconds(struct device *device, const struct program_request *request)
{
    struct programs *programs = device->programs;
    pthread_mutex_lock(&programs->lock);
    const struct program *program = find(programs, request);
    const double seconds = program ? program->seconds : 0;
    pthread_mutex_unlock(&programs->lock);
    return seconds;
}

tutti_status program_build_all(struct device *device, const struct program_request *requests, int count,
    void (*progress)(void *user, int built, int total), void *user)
{
    struct programs *programs = device->programs;
    struct building building = { .device = device, .progress = progress, .user = user };
    building.requests = memory_new((size_t)count, sizeof(*building.requests));
    if (!building.requests) return TUTTI_NO_MEMORY;
    pthread_mutex_lock(&programs->lock);
    for (int i = 0; i < count; i++)
        while (is_pending(&programs->ahead, &requests[i])) pthread_cond_wait(&programs->loaded, &programs->lock);
    for (int i = 0; i < count; i++) {
        bool known = find(programs, &requests[i]) != NULL;
        for (int j = 0; j < building.count && !known; j++) known = equal(building.requests[j], &requests[i]);
        if (!known) building.requests[building.count++] = &requests[i];
    }
    pthread_mutex_unlock(&programs->lock);
    tutti_status status = build_in_parallel(&building);
    free(building.requests);
    return status;
}

tutti_status program_kernel(
    struct device *device, const struct program_request *request, const char *kernel, cl_kernel *made)
{
    tutti_status status = TUTTI_OK;
    TRY(program_build_all(device, request, 1, NULL, NULL));
    pthread_mutex_lock(&device->programs->lock);
    cl_program program = find(device->programs, request)->program;
    pthread_mutex_unlock(&device->programs->lock);
    cl_int error = CL_SUCCESS;
    *made = clCreateKernel(program, kernel, &error);
    CL_TRY(error, "creating the kernel '%s' of '%s' on '%s'", kernel, request->source, device->can.name);
done:
    return status;
}

void programs_save(struct device *device)
{
    struct programs *programs = device->programs;
    pthread_mutex_lock(&programs->lock);
    for (size_t i = 0; i < programs->count; i++) {
        struct program *program = &programs->list[i];
        if (program->from_cache || program->saved) continue;
        const struct program_request request = { program->source, program->options };
        char *options = program_options(device, &request);
        if (options) program_cache_save(device, source_find(program->source)->text, options, program->program);
        free(options);
        program->saved = true;
    }
    pthread_mutex_unlock(&programs->lock);
}
