/* Checked allocation and size arithmetic. */
#ifndef BASE_MEMORY_H
#define BASE_MEMORY_H

#include "tutti.h"

/* count * size bytes, zeroed; NULL with a message (TUTTI_NO_MEMORY) on overflow or when there is none. */
void *memory_new(size_t count, size_t size);
/* Grows *array so that it holds at least `needed` elements; *capacity is kept. New elements are zeroed. */
tutti_status memory_grow(void **array, size_t *capacity, size_t needed, size_t size);
/* Copies floats around the caches, for memory that is next read when the caches hold something else long since. Both
 * pointers are 16-byte aligned. Call memory_streamed() after the last copy, before another thread is notified. */
void memory_stream(float *restrict to, const float *restrict from, int64_t count);
void memory_streamed(void);
/* For libraries that take functions of memory: memory_take() gives as many bytes as are left, memory_give() frees. */
struct memory_budget {
    size_t left;
};
void *memory_take(void *budget, size_t size);
void memory_give(void *budget, void *memory);
char *memory_copy_text(const char *text);
char *memory_format(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* a * b or a + b; false on overflow. */
bool size_multiply(size_t a, size_t b, size_t *product);
bool size_add(size_t a, size_t b, size_t *sum);
static inline size_t size_round_up(size_t value, size_t unit)
{
    return (value + unit - 1) / unit * unit;
}
static inline int64_t divide_up(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

#endif
