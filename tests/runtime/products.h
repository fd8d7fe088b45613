/* The implementations of runtime/gemm.h with their names. */
#ifndef TESTS_RUNTIME_PRODUCTS_H
#define TESTS_RUNTIME_PRODUCTS_H

#include "runtime/gemm.h"

#define NAMED(name, ...) { #name, &gemm_##name },
static const struct {
    const char *name;
    const struct gemm_implementation *implementation;
} products[] = { GEMM_IMPLEMENTATIONS(NAMED) };
#undef NAMED
enum { PRODUCTS = sizeof products / sizeof *products };

static inline const char *name_of(const struct gemm_implementation *implementation)
{
    int i = 0;
    while (products[i].implementation != implementation) i++;
    return products[i].name;
}

#endif
