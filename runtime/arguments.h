/* Arguments of kernels, declared once for both sides. This header makes the host's arguments of the lists in
 * clkernels/arguments/; clkernels/parameters.h makes the kernels' parameters of the same lists. A list has an entry
 * for each parameter, in their order:
 *
 *   #define GATHER(X) X##_FIRST(const global float *restrict, x) X##_BUFFER(global float *, y) X##_INT(width)
 *
 *   ARGUMENTS(gather, GATHER)                                             next to the functions that launch it
 *   ARGUMENTS_SET(launch, gather, .x = from, .y = to, .width = z.w);      sets them all, in the kernel's order
 *
 * The compiler refuses a missing argument, one that the list does not have, one that is given twice, and a buffer for
 * a number or a number for a buffer. A kernel's parameters may be several lists in a row. launch_list_realise()
 * compares the number of parameters and, with -Ddebug=true, their names where the driver tells them. A generated
 * kernel's list is a table (struct loop_arguments in layers/loop/loop.h). */
#ifndef RUNTIME_ARGUMENTS_H
#define RUNTIME_ARGUMENTS_H

#include "runtime/launch.h"

/* Local memory of so many bytes; or a buffer, where there is one. */
struct scratch_argument {
    cl_mem buffer;
    size_t bytes;
};

/* A number whose type is an option of the program. */
struct index_argument {
    int64_t value;
    bool is_long;
};
static inline struct index_argument index_argument(int64_t value, bool is_long)
{
    return (struct index_argument) { value, is_long };
}

#define MEMBER_FIRST(type, name) cl_mem name;
#define MEMBER_BUFFER(type, name) cl_mem name;
#define MEMBER_ADD(type, name) cl_mem name; /* NULL: the kernel has no such parameter */
#define MEMBER_LOCAL(type, name) size_t name;
#define MEMBER_SCRATCH(type, name) struct scratch_argument name;
#define MEMBER_INT(name) int64_t name;
#define MEMBER_UINT(name) uint32_t name;
#define MEMBER_LONG(name) int64_t name;
#define MEMBER_INDEX(name) struct index_argument name;
#define MEMBER_FLOAT(name) double name;

#define SET_FIRST(type, name) launch_name(launch_buffer(launch, given->name), #name);
#define SET_BUFFER(type, name) launch_name(launch_buffer(launch, given->name), #name);
#define SET_ADD(type, name) \
    if (given->name) launch_name(launch_buffer(launch, given->name), #name);
#define SET_LOCAL(type, name) launch_name(launch_local(launch, given->name), #name);
#define SET_SCRATCH(type, name)                                                                                   \
    launch_name(                                                                                                  \
        given->name.buffer ? launch_buffer(launch, given->name.buffer) : launch_local(launch, given->name.bytes), \
        #name);
#define SET_INT(name) launch_name(launch_int(launch, given->name), #name);
#define SET_UINT(name) launch_name(launch_int(launch, (int32_t)given->name), #name);
#define SET_LONG(name) launch_name(launch_long(launch, given->name), #name);
#define SET_INDEX(name) \
    launch_name(        \
        given->name.is_long ? launch_long(launch, given->name.value) : launch_int(launch, given->name.value), #name);
#define SET_FLOAT(name) launch_name(launch_float(launch, given->name), #name);

#define COUNT_FIRST(type, name) +1
#define COUNT_BUFFER(type, name) +1
#define COUNT_ADD(type, name) +1
#define COUNT_LOCAL(type, name) +1
#define COUNT_SCRATCH(type, name) +1
#define COUNT_INT(name) +1
#define COUNT_UINT(name) +1
#define COUNT_LONG(name) +1
#define COUNT_INDEX(name) +1
#define COUNT_FLOAT(name) +1

#define ARGUMENTS(kernel, LIST)                                                                    \
    struct kernel##_arguments {                                                                    \
        LIST(MEMBER)                                                                               \
    };                                                                                             \
    enum { kernel##_count = 0 LIST(COUNT) };                                                       \
    static inline void kernel##_set(struct launch *launch, const struct kernel##_arguments *given) \
    {                                                                                              \
        LIST(SET)                                                                                  \
    }

/* How many there are, up to 32. */
#define ARGUMENTS_NUMBER(...)                                                                                       \
    ARGUMENTS_33RD(__VA_ARGS__, 32, 31, 30, 29, 28, 27, 26, 25, 24, 23, 22, 21, 20, 19, 18, 17, 16, 15, 14, 13, 12, \
        11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0)
#define ARGUMENTS_33RD(_1, _2, _3, _4, _5, _6, _7, _8, _9, _10, _11, _12, _13, _14, _15, _16, _17, _18, _19, _20, _21, \
    _22, _23, _24, _25, _26, _27, _28, _29, _30, _31, _32, number, ...)                                                \
    number

#define ARGUMENTS_SET(launch, kernel, ...)                                                                        \
    do {                                                                                                          \
        _Static_assert(ARGUMENTS_NUMBER(__VA_ARGS__) == kernel##_count, "an argument of " #kernel " is missing"); \
        kernel##_set(launch, &(const struct kernel##_arguments) { __VA_ARGS__ });                                 \
    } while (0)

#endif
