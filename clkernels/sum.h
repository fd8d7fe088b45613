/* Sums of many numbers. A chain of additions loses up to half a unit of its last place with each of them, always to the
 * same side where the numbers are equal: 1e7 of them would be off by 1e-2. So a kernel adds up at most SUM_BLOCK numbers
 * in a chain, or each by itself where additions cost nothing, and adds that with its rounding error carried along (Knuth's
 * TwoSum: The Art of Computer Programming 2, 4.2.2). The sum is then nearly as good as one in double. */
#ifndef SUM_H
#define SUM_H
enum { SUM_BLOCK = 16 };

/* sum += value, exactly, but for what `error` loses. T is the type of all three. */
#define SUM_ADD(T, sum, error, value)                                                                   \
    do {                                                                                                \
        const T sum_next = (value), sum_before = (sum), sum_shift = sum_before + sum_next - sum_before; \
        sum = sum_before + sum_next;                                                                    \
        error += (sum_before - (sum - sum_shift)) + (sum_next - sum_shift);                             \
    } while (0)
/* What SUM_ADD() made. An infinite sum has no error: infinity minus infinity would turn it into NaN, which says less. */
#define SUM_TOTAL(sum, error) (fabs(sum) == INFINITY ? (sum) : (sum) + (error))
#endif
