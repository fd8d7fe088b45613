/* Constants that follow from a rule: arange, full. */
#include "base/memory.h"
#include "graph/network.h"
#include "layers/layers.h"

#include <math.h>
#include <stdlib.h>

enum { MOST_NUMBERS = 1 << 28 };

/* Adds a constant with the numbers start + i * step; its name is that of the layer. */
static tutti_tensor add(
    tutti_network *network, const char *fallback, const int64_t *sizes, int rank, double start, double step)
{
    int64_t count = 1;
    for (int i = 0; i < rank; i++) count *= sizes[i];
    float *values = memory_new((size_t)count, sizeof *values);
    if (!values) return network_fail(network, TUTTI_NO_MEMORY);
    for (int64_t i = 0; i < count; i++) values[i] = (float)(start + (double)i * step);
    const char *name = network->layer_name ? network->layer_name : fallback;
    const tutti_tensor y = tutti_constant_typed(network, name, TUTTI_DTYPE_F32, sizes, rank, values);
    free(values);
    return y;
}

tutti_tensor tutti_arange(tutti_network *network, double start, double end, double step)
{
    if (!network_ok(network)) return (tutti_tensor) { NO_VALUE };
    const double count = ceil((end - start) / step);
    if (!(step != 0 && count >= 1 && count <= MOST_NUMBERS))
        return network_fail(network,
            fail(TUTTI_INVALID, "arange: from %g to before %g by %g there are no numbers, or more than %d", start, end,
                step, MOST_NUMBERS));
    return add(network, "arange", &(int64_t) { (int64_t)count }, 1, start, step);
}

tutti_tensor tutti_full(tutti_network *network, const int64_t *sizes, int rank, float value)
{
    int64_t most = MOST_NUMBERS;
    if (!network_ok(network)) return (tutti_tensor) { NO_VALUE };
    if (!sizes || rank < 1 || rank > TUTTI_MAX_RANK)
        return network_fail(
            network, fail(TUTTI_SHAPE, "full: it has %d sizes: 1 to %d are possible", rank, TUTTI_MAX_RANK));
    for (int i = 0; i < rank; i++) {
        if (sizes[i] < 1 || sizes[i] > most)
            return network_fail(network,
                fail(TUTTI_SHAPE, "full: size %d is %lld: sizes are at least 1, and their product at most %d", i,
                    (long long)sizes[i], MOST_NUMBERS));
        most /= sizes[i];
    }
    return add(network, "full", sizes, rank, (double)value, 0);
}
