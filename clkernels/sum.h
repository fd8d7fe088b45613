/* Sums of many numbers. A chain of additions loses up to half a unit of its last place with each of them, always to the
 * same side where the numbers are equal: 1e7 of them would be off by 1e-2. So a kernel adds up at most SUM_BLOCK numbers
 * in a chain, and adds the result with the rounding error carried along, which goes into the next addition.
 *
 * Where sums are in registers, for a tile of a product, a chain has up to SUM_CHAIN multiply-adds, or half of that, as shorter
 * ones would take time, and a hundred of them at most are added before errors are carried along. */
#ifndef SUM_H
#define SUM_H
enum { SUM_BLOCK = 16, SUM_CHAIN = 128 };

/* sum += value, of type T. What the addition loses (Knuth's TwoSum: The Art of Computer Programming 2, 4.2.2) is left in
 * `error`, for the next one; both begin with 0. An infinite sum loses nothing: infinity minus infinity would turn it into
 * NaN, which says less. */
#define SUM_ADD(T, sum, error, value)                                                                         \
    do {                                                                                                      \
        const T sum_next = (value) + error, sum_before = sum, sum_shift = sum_before + sum_next - sum_before; \
        sum = sum_before + sum_next;                                                                          \
        error = (sum_before - (sum - sum_shift)) + (sum_next - sum_shift);                                    \
        error = fabs(sum) < INFINITY ? error : (T)(0.0f);                                                     \
    } while (0)

/* The sum of `count` floats, `step` apart. */
static inline __attribute__((always_inline)) float sum_of(global const float *from, int count, long step)
{
    float sum = 0.0f, error = 0.0f;
    for (int i = 0; i < count;) {
        const int stop = min(i + SUM_BLOCK, count);
        float block = 0.0f;
        for (; i < stop; i++) block += from[i * step];
        SUM_ADD(float, sum, error, block);
    }
    return sum;
}
#endif
