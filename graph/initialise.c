/* Initial values of parameters. A value depends on the seed, the parameter's number and its own position only. */
#include <math.h>

#include "base/random.h"
#include "graph/network.h"

/* He: He, Zhang, Ren, Sun: Delving deep into rectifiers, ICCV 2015. Glorot: Glorot, Bengio: Understanding the
 * difficulty of training deep feedforward neural networks, AISTATS 2010. DEFAULT is Kaiming uniform with a = sqrt(5),
 * which is uniform within 1 / sqrt(fan_in), for weights and biases alike. */
static void distribution(const struct parameter *p, bool *normal, double *scale)
{
    double in = (double)(p->fan_in > 0 ? p->fan_in : 1), out = (double)(p->fan_out > 0 ? p->fan_out : 1);
    *normal = false;
    *scale = 0;
    switch (p->init) {
    case TUTTI_INIT_DEFAULT: *scale = 1 / sqrt(in); break;
    case TUTTI_INIT_HE_UNIFORM: *scale = sqrt(6 / in); break;
    case TUTTI_INIT_GLOROT_UNIFORM: *scale = sqrt(6 / (in + out)); break;
    case TUTTI_INIT_HE_NORMAL: *normal = true, *scale = sqrt(2 / in); break;
    case TUTTI_INIT_HE_NORMAL_FAN_OUT: *normal = true, *scale = sqrt(2 / out); break;
    case TUTTI_INIT_GLOROT_NORMAL: *normal = true, *scale = sqrt(2 / (in + out)); break;
    case TUTTI_INIT_NORMAL: *normal = true, *scale = p->init_scale != 0 ? p->init_scale : 0.01; break;
    case TUTTI_INIT_ZEROS: break;
    }
}

void network_initialise(const tutti_network *network, uint64_t seed, float *arena)
{
    for (int64_t i = 0; i < network->total_floats; i++) arena[i] = 0;
    for (size_t n = 0; n < network->parameter_count; n++) {
        const struct parameter *p = &network->parameters[n];
        float *values = arena + p->offset;
        bool normal;
        double scale;
        distribution(p, &normal, &scale);
        uint32_t stream = (uint32_t)RANDOM_WEIGHTS + (uint32_t)n;
        for (int64_t i = 0; i < p->elements; i++) {
            if (p->init == TUTTI_INIT_ZEROS)
                values[i] = p->init_constant;
            else if (normal)
                values[i] = (float)(scale * random_normal(seed, stream, (uint64_t)i));
            else
                values[i] = (float)(scale * (2 * (double)random_uniform(seed, stream, (uint64_t)i) - 1));
        }
    }
}
