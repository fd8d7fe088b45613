#include "base/memory.h"

#include "base/numbers.h"
#include "base/status.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

/* Pages of 2 MiB instead of 4 KiB, where the system gives them to those that ask. */
enum { HUGE_PAGE = 2 << 20, HUGE_FROM = 4 << 20, LARGE = 64 << 20 };

bool size_multiply(size_t a, size_t b, size_t *product)
{
    if (b != 0 && a > SIZE_MAX / b) return false;
    *product = a * b;
    return true;
}

bool size_add(size_t a, size_t b, size_t *sum)
{
    if (a > SIZE_MAX - b) return false;
    *sum = a + b;
    return true;
}

void *memory_new(size_t count, size_t size)
{
    size_t bytes;
    if (!size_multiply(count, size, &bytes)) {
        fail(TUTTI_NO_MEMORY, "%zu elements of %zu bytes are more than this machine can address", count, size);
        return NULL;
    }
    void *memory = calloc(1, bytes ? bytes : 1);
    if (!memory) {
        fail(TUTTI_NO_MEMORY, "no memory on the host for %zu bytes: close other programs or lower the batch", bytes);
        return NULL;
    }
    if (bytes >= HUGE_FROM) { /* the allocator has mapped them just now, and nothing has touched them yet */
        const size_t skip = (HUGE_PAGE - (uintptr_t)memory % HUGE_PAGE) % HUGE_PAGE;
        (void)!madvise((char *)memory + skip, (bytes - skip) / HUGE_PAGE * HUGE_PAGE, MADV_HUGEPAGE);
    }
    return memory;
}

void memory_stream(float *restrict to, const float *restrict from, int64_t count)
{
    int64_t i = 0;
#ifdef __SSE2__
    for (; i + 4 <= count; i += 4) _mm_stream_ps(to + i, _mm_load_ps(from + i));
#endif
    memcpy(to + i, from + i, (size_t)(count - i) * sizeof(float));
}

void memory_streamed(void)
{
#ifdef __SSE2__
    _mm_sfence();
#endif
}

tutti_status memory_grow(void **array, size_t *capacity, size_t needed, size_t size)
{
    if (needed <= *capacity) return TUTTI_OK;
    /* Large arrays grow by less: what is not used of them is memory, too, and the system moves them without a copy. */
    const size_t more = *capacity > LARGE / size ? *capacity / 8 : *capacity;
    size_t wanted = more <= SIZE_MAX - *capacity && *capacity + more > needed ? *capacity + more : needed;
    if (wanted < 8) wanted = 8;
    size_t bytes;
    if (!size_multiply(wanted, size, &bytes))
        return fail(TUTTI_NO_MEMORY, "%zu elements of %zu bytes are more than this machine can address", wanted, size);
    char *grown = realloc(*array, bytes);
    if (!grown) return fail(TUTTI_NO_MEMORY, "no memory on the host for %zu bytes", bytes);
    memset(grown + *capacity * size, 0, bytes - *capacity * size);
    *array = grown;
    *capacity = wanted;
    return TUTTI_OK;
}

char *memory_copy_text(const char *text)
{
    return memory_format("%s", text);
}

char *memory_format(const char *format, ...)
{
    va_list arguments, again;
    va_start(arguments, format);
    va_copy(again, arguments);
    int length = number_print_list(NULL, 0, format, arguments);
    va_end(arguments);
    char *text = length < 0 ? NULL : memory_new((size_t)length + 1, 1);
    if (text) number_print_list(text, (size_t)length + 1, format, again);
    va_end(again);
    return text;
}

void *memory_take(void *user, size_t size)
{
    struct memory_budget *budget = user;
    if (size > budget->left) return NULL;
    budget->left -= size;
    return malloc(size);
}

void memory_give(void *budget, void *memory)
{
    (void)budget;
    free(memory);
}
