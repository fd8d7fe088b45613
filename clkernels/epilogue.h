/* What is done to an output where it is made: out = ACTIVATION(result + added). Set by epilogue_options().
 *   ADD         1: the kernel has an argument `add` with the shape and layout of the output. In kernels that lack it
 *               with ADD 0, ADD_PARAMETER and ADD_ARGUMENT stand for it, and PLUS_ADDED(i) for " + add[i]"
 *   ACTIVATE    0 none, 1 relu, 2 clip to LOW .. HIGH, 3 leaky relu with slope LOW, 4 sigmoid, 5 tanh
 * ACTIVATION(x) works on float and floatV; x may be evaluated more than once. NaN stays NaN: a comparison with it is
 * false, where fmax() would hide it. Sigmoid gives 1/2 for a padding lane: kernels in the blocked layout mask it. */
#ifndef ADD
#define ADD 0
#endif
#if ADD
#define ADD_PARAMETER(type) global const type *add,
#define ADD_ARGUMENT add,
#define PLUS_ADDED(i) +add[i]
#else
#define ADD_PARAMETER(type)
#define ADD_ARGUMENT
#define PLUS_ADDED(i)
#endif
#ifndef ACTIVATE
#define ACTIVATE 0
#endif
#if ACTIVATE == 0
#define ACTIVATION(x) (x)
#elif ACTIVATE == 1
#define ACTIVATION(x) ((x) < 0.0f ? 0.0f : (x))
#elif ACTIVATE == 2
#define ACTIVATION(x) ((x) < LOW ? LOW : ((x) > HIGH ? HIGH : (x)))
#elif ACTIVATE == 3
#define ACTIVATION(x) ((x) < 0.0f ? LOW * (x) : (x))
#elif ACTIVATE == 4
#define ACTIVATION(x) (1.0f / (1.0f + exp(-(x))))
#else
#define ACTIVATION(x) tanh(x)
#endif
