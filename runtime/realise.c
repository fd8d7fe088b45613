/* Makes a list of launches ready for its device: checks them, builds programs, makes kernels, sets arguments. */
#include "base/memory.h"
#include "base/text.h"
#include "runtime/builder.h"
#include "runtime/launch.h"
#include "runtime/program.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

static tutti_status sizes_check(const struct launch *launch, const struct device *device)
{
    const char *name = launch->kernel_name;
    if (launch->dimensions < 1 || launch->dimensions > 3)
        return fail(TUTTI_INTERNAL, "the launch of '%s' has no sizes", name);
    size_t group = 1;
    for (int i = 0; i < launch->dimensions; i++) {
        size_t global = launch->global[i], local = launch->local[i];
        if (local == 0 || global == 0 || global % local != 0)
            return fail(TUTTI_INTERNAL,
                "the launch of '%s' has %zu work-items in groups of %zu in dimension %d: they must be a positive "
                "multiple",
                name, global, local, i);
        if (!size_multiply(group, local, &group))
            return fail(TUTTI_INTERNAL, "the work-group of '%s' has more work-items than can be counted", name);
    }
    if (group > device->can.group_max)
        return fail(TUTTI_UNSUPPORTED, "'%s' needs work-groups of %zu work-items, but '%s' allows only %zu", name,
            group, device->can.name, device->can.group_max);
    return TUTTI_OK;
}

/* Checks a launch before anything is built. POCL tells how much local memory it has and then checks nothing. */
static tutti_status launch_check(const struct launch *launch, const struct device *device)
{
    if (launch->fault > LAUNCH_ARGUMENTS)
        return fail(TUTTI_INTERNAL, "'%s' has more than %d arguments", launch->kernel_name, LAUNCH_ARGUMENTS);
    if (launch->fault) {
        const char *name = launch->arguments[launch->fault - 1].name;
        return fail(TUTTI_UNSUPPORTED, "argument %d%s%s of '%s' exceeds 32 bits: lower the batch or the micro-batch",
            launch->fault - 1, name ? ", " : "", name ? name : "", launch->kernel_name);
    }
    size_t local = 0;
    for (int i = 0; i < launch->count; i++) {
        const struct launch_argument *argument = &launch->arguments[i];
        if (argument->kind != ARGUMENT_LOCAL) continue;
        if (argument->size == 0 || !size_add(local, argument->size, &local))
            return fail(TUTTI_INTERNAL, "argument %d of '%s' has no size of local memory", i, launch->kernel_name);
    }
    if (local > device->can.local_bytes)
        return fail(TUTTI_UNSUPPORTED, "'%s' needs %zu bytes of local memory, but '%s' has only %zu",
            launch->kernel_name, local, device->can.name, device->can.local_bytes);
    return sizes_check(launch, device);
}

enum { ADDED_LOCAL = 128 }; /* bytes, see QUIRK_ADDS_LOCAL: 16, up to an array's alignment */

/* Checks what only the built kernel tells: its own local memory, and the largest group that its registers allow. */
static tutti_status kernel_check(const struct launch *launch, const struct device *device)
{
    tutti_status status = TUTTI_OK;
    const size_t added = device->quirks & QUIRK_ADDS_LOCAL ? ADDED_LOCAL : 0;
    cl_ulong local = 0;
    size_t group_max = 0;
    size_t group = launch->local[0] * launch->local[1] * launch->local[2];
    CL_TRY(clGetKernelWorkGroupInfo(
               launch->kernel, device->id, CL_KERNEL_WORK_GROUP_SIZE, sizeof(group_max), &group_max, NULL),
        "asking for the largest group of '%s'", launch->kernel_name);
    if (group > group_max && !(device->quirks & QUIRK_DENIES_GROUPS))
        FAIL(TUTTI_UNSUPPORTED, "'%s' needs work-groups of %zu work-items, but '%s' runs it in groups of at most %zu",
            launch->kernel_name, group, device->can.name, group_max);
    /* Local arguments are set by now, so they are counted in this. */
    CL_TRY(clGetKernelWorkGroupInfo(launch->kernel, device->id, CL_KERNEL_LOCAL_MEM_SIZE, sizeof(local), &local, NULL),
        "asking for the local memory of '%s'", launch->kernel_name);
    if (local > device->can.local_bytes + added)
        FAIL(TUTTI_UNSUPPORTED, "'%s' needs %zu bytes of local memory, but '%s' has only %zu", launch->kernel_name,
            (size_t)local, device->can.name, device->can.local_bytes);
done:
    return status;
}

/* Checks that an argument has the name of the kernel's parameter, where both have names, so that lists in a row
 * (runtime/arguments.h) have the same order on both sides. Compares the ends of names only: POCL's headers put a prefix
 * before a name that a built-in function has, too. */
static tutti_status name_check(const struct launch *launch, int i)
{
    char name[64];
    const char *meant = launch->arguments[i].name;
    if (!meant ||
        clGetKernelArgInfo(launch->kernel, (cl_uint)i, CL_KERNEL_ARG_NAME, sizeof name, name, NULL) != CL_SUCCESS ||
        !*name || text_ends_with(name, meant))
        return TUTTI_OK;
    return fail(TUTTI_INTERNAL, "argument %d of '%s' is '%s', but got '%s'", i, launch->kernel_name, name, meant);
}

static tutti_status arguments_set(const struct launch *launch, const struct device *device)
{
    tutti_status status = TUTTI_OK;
    cl_uint expected = 0;
    CL_TRY(clGetKernelInfo(launch->kernel, CL_KERNEL_NUM_ARGS, sizeof(expected), &expected, NULL),
        "asking for the arguments of '%s'", launch->kernel_name);
    if ((int)expected != launch->count)
        FAIL(TUTTI_INTERNAL, "'%s' has %u arguments, but got %d", launch->kernel_name, expected, launch->count);
    for (int i = 0; i < launch->count; i++) {
        const struct launch_argument *argument = &launch->arguments[i];
        TRY(name_check(launch, i));
        const void *given = argument->instead ? (const void *)&argument->instead : &argument->value;
        const void *value = argument->kind == ARGUMENT_LOCAL ? NULL : given;
        CL_TRY(clSetKernelArg(launch->kernel, (cl_uint)i, argument->size, value), "setting argument %d of '%s' on '%s'",
            i, launch->kernel_name, device->can.name);
    }
done:
    return status;
}

static struct program_request request_of(const struct launch *launch)
{
    return (struct program_request) { .source = launch->source, .options = launch->options };
}

tutti_status launch_realise(struct launch *launch, struct device *device)
{
    tutti_status status = TUTTI_OK;
    const struct program_request request = request_of(launch);
    TRY(program_kernel(device, &request, launch->kernel_name, &launch->kernel));
    TRY(arguments_set(launch, device));
    TRY(kernel_check(launch, device));
done:
    if (status != TUTTI_OK && launch->kernel) { /* else the next try would run it without its arguments */
        clReleaseKernel(launch->kernel);
        launch->kernel = NULL;
    }
    return status;
}

tutti_status launch_redirect(struct launch *launch, int k, cl_mem buffer)
{
    tutti_status status = TUTTI_OK;
    struct launch_argument *argument = &launch->arguments[k];
    argument->instead = buffer;
    const cl_mem *given = buffer ? &argument->instead : &argument->value.buffer;
    if (launch->kernel)
        CL_TRY(clSetKernelArg(launch->kernel, (cl_uint)k, sizeof(*given), given), "setting argument %d of '%s'", k,
            launch->kernel_name);
done:
    return status;
}

/* Tells whether the process ignores its children. A driver's compiler that starts programs of its own, such as a
 * linker, cannot wait for them then. */
static bool children_are_ignored(void)
{
    struct sigaction action;
    return sigaction(SIGCHLD, NULL, &action) == 0 && (action.sa_handler == SIG_IGN || (action.sa_flags & SA_NOCLDWAIT));
}

/* Has helper processes build what this driver has not built before. Fails if the list has a program that ended a
 * helper. */
static tutti_status build_elsewhere(const struct launch_list *list)
{
    struct device *device = list->device;
    if (!(device->quirks & QUIRK_BUILDS_SERIALLY) || builder_knows(list)) return TUTTI_OK;
    builder_prepare(list, NULL, NULL);
    for (size_t i = 0; i < list->count; i++) {
        const char *reason = builder_refusal(device, &list->launches[i]);
        if (reason)
            return fail(TUTTI_BUILD, "the kernels '%s' are not built on device %d, '%s': %s; options: %s",
                list->launches[i].source, device->index, device->can.name, reason, list->launches[i].options);
    }
    if (children_are_ignored() && !builder_knows(list))
        return fail(TUTTI_UNSUPPORTED,
            "this process ignores SIGCHLD, and the compiler of device %d, '%s', which waits for processes of its own, "
            "would end it: let SIGCHLD have its default action or a handler while kernels are compiled",
            device->index, device->can.name);
    return TUTTI_OK;
}

tutti_status launch_list_realise(
    struct launch_list *list, void (*progress)(void *user, int built, int total), void *user)
{
    tutti_status status = list->status;
    if (status != TUTTI_OK) return status;
    int requested = 0;
    struct program_request *requests = memory_new(list->count, sizeof(*requests));
    if (!requests) return TUTTI_NO_MEMORY;
    for (size_t i = 0; i < list->count; i++) {
        if (list->launches[i].realise) TRY(list->launches[i].realise(list->device, list->launches[i].state));
        if (list->launches[i].call) continue;
        TRY(launch_check(&list->launches[i], list->device));
        requests[requested++] = request_of(&list->launches[i]);
    }
    if (programs_are_loading(list->device) && builder_knows(list)) goto done;
    TRY(build_elsewhere(list));
    TRY(program_build_all(list->device, requests, requested, progress, user));
    for (size_t i = 0; i < list->count; i++)
        if (!list->launches[i].call && !list->launches[i].kernel) TRY(launch_realise(&list->launches[i], list->device));
done:
    free(requests);
    return status;
}
