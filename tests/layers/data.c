/* Numbers for the tests, and the activations that plans fuse. */
#include <string.h>

#include "base/random.h"
#include "layers/layers.h"
#include "tests/layers/cases.h"

float test_real(uint32_t stream, int64_t i)
{
    return 2 * random_uniform(42, stream, (uint64_t)i) - 1;
}

float test_integer(uint32_t stream, int64_t i, int limit)
{
    int draw = (int)random_below(42, stream, (uint64_t)i, (uint64_t)(2 * limit)); /* no zeros: they would hide faults */
    return (float)(draw < limit ? draw - limit : draw - limit + 1);
}

float test_bf16(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    bits = (bits + 0x7fffu + (bits >> 16 & 1)) & 0xffff0000u;
    memcpy(&x, &bits, sizeof x);
    return x;
}

tutti_tensor test_activation(tutti_network *network, const struct test_case *c, tutti_tensor x)
{
    float low = (float)case_get_real(c, "low", 0), high = (float)case_get_real(c, "high", 0);
    switch ((enum activation)case_get(c, "act", ACTIVATION_NONE)) {
    case ACTIVATION_RELU: return tutti_relu(network, x);
    case ACTIVATION_CLIP: return tutti_clip(network, x, low, high);
    case ACTIVATION_LEAKY_RELU: return tutti_leaky_relu(network, x, low);
    case ACTIVATION_SIGMOID: return tutti_sigmoid(network, x);
    case ACTIVATION_TANH: return tutti_tanh(network, x);
    case ACTIVATION_NONE: break;
    }
    return x;
}
