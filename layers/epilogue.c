#include "layers/epilogue.h"

#include "base/numbers.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Appends " -DNAME=value". */
static void append_number(char *buffer, size_t size, const char *name, float value)
{
    size_t used = strlen(buffer);
    if (isinf(value))
        snprintf(buffer + used, size - used, " -D%s=%sINFINITY", name, value < 0 ? "-" : "");
    else
        number_print(buffer + used, size - used, " -D%s=%.9ef", name, (double)value);
}

void epilogue_append_bounds(char *buffer, size_t size, enum activation activation, float low, float high)
{
    if (activation == ACTIVATION_CLIP || activation == ACTIVATION_LEAKY_RELU) append_number(buffer, size, "LOW", low);
    if (activation == ACTIVATION_CLIP) append_number(buffer, size, "HIGH", high);
}

const char *activation_options(const struct epilogue *epilogue, char *buffer, size_t size)
{
    snprintf(buffer, size, "-DACTIVATE=%d", (int)epilogue->activation);
    epilogue_append_bounds(buffer, size, epilogue->activation, epilogue->low, epilogue->high);
    return buffer;
}

const char *epilogue_options(const struct epilogue *epilogue, char *buffer, size_t size)
{
    activation_options(epilogue, buffer, size);
    snprintf(buffer + strlen(buffer), size - strlen(buffer), " -DADD=%d", epilogue->add != NO_VALUE);
    return buffer;
}

bool epilogue_keeps_zero(const struct epilogue *epilogue)
{
    if (epilogue->activation == ACTIVATION_CLIP) return epilogue->low <= 0 && epilogue->high >= 0;
    return epilogue->activation != ACTIVATION_SIGMOID;
}
