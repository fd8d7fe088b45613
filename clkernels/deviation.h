/* 1 / sqrt(variance + epsilon), of type T. A variance that overflows gives NaN: 0 would hide it, as all that is normalised
 * would be 0. */
#define PER_DEVIATION(T, variance, epsilon) \
    ((variance) < INFINITY ? (T)(1.0f) / sqrt((T)((variance) + (epsilon))) : (T)(NAN))
