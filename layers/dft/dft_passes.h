/* The passes of Stockham's transform (dft_plain.cl has the formula), over elements of SPACE memory: each is a real and
 * an imaginary STORED, which are NUMBERs in registers. The includer defines these: vectors over several transforms, or
 * floats. */
#include "dft_radix.h"

typedef struct {
    NUMBER re, im;
} pair;

#define PAIR_FUNCTION static inline __attribute__((always_inline)) pair

PAIR_FUNCTION pair_load(const SPACE STORED *from, int element)
{
    return (pair) { from[2 * element], from[2 * element + 1] };
}

PAIR_FUNCTION pair_add(pair a, pair b)
{
    return (pair) { a.re + b.re, a.im + b.im };
}

PAIR_FUNCTION pair_subtract(pair a, pair b)
{
    return (pair) { a.re - b.re, a.im - b.im };
}

PAIR_FUNCTION pair_scale(pair a, float f)
{
    return (pair) { a.re * f, a.im * f };
}

PAIR_FUNCTION pair_multiply(pair a, float2 w)
{
    return (pair) { a.re * w.x - a.im * w.y, a.re * w.y + a.im * w.x };
}

/* -i times a */
PAIR_FUNCTION pair_turn(pair a)
{
    return (pair) { a.im, -a.re };
}

PAIR_FUNCTION pair_swap(pair a)
{
    return (pair) { a.im, a.re };
}

static inline __attribute__((always_inline)) void pair_store(pair a, SPACE STORED *to, int element)
{
    to[2 * element] = a.re;
    to[2 * element + 1] = a.im;
}

/* A transform of as many elements as the name says, in place. */
#define BUTTERFLY static inline __attribute__((always_inline)) void

BUTTERFLY butterfly2(pair *a)
{
    const pair sum = pair_add(a[0], a[1]);
    a[1] = pair_subtract(a[0], a[1]);
    a[0] = sum;
}

BUTTERFLY butterfly3(pair *a)
{
    const pair sum = pair_add(a[1], a[2]), middle = pair_subtract(a[0], pair_scale(sum, 0.5f));
    const pair turned = pair_turn(pair_scale(pair_subtract(a[1], a[2]), 0.8660254037844386f));
    a[0] = pair_add(a[0], sum);
    a[1] = pair_add(middle, turned);
    a[2] = pair_subtract(middle, turned);
}

BUTTERFLY butterfly4(pair *a)
{
    const pair even = pair_add(a[0], a[2]), even_less = pair_subtract(a[0], a[2]);
    const pair odd = pair_add(a[1], a[3]), turned = pair_turn(pair_subtract(a[1], a[3]));
    a[0] = pair_add(even, odd);
    a[1] = pair_add(even_less, turned);
    a[2] = pair_subtract(even, odd);
    a[3] = pair_subtract(even_less, turned);
}

BUTTERFLY butterfly5(pair *a)
{
    const float c1 = 0.30901699437494745f, c2 = -0.8090169943749475f, s1 = 0.9510565162951535f,
                s2 = 0.5877852522924731f;
    const pair sum1 = pair_add(a[1], a[4]), sum2 = pair_add(a[2], a[3]);
    const pair less1 = pair_subtract(a[1], a[4]), less2 = pair_subtract(a[2], a[3]);
    const pair middle1 = pair_add(a[0], pair_add(pair_scale(sum1, c1), pair_scale(sum2, c2)));
    const pair middle2 = pair_add(a[0], pair_add(pair_scale(sum1, c2), pair_scale(sum2, c1)));
    const pair turned1 = pair_turn(pair_add(pair_scale(less1, s1), pair_scale(less2, s2)));
    const pair turned2 = pair_turn(pair_subtract(pair_scale(less1, s2), pair_scale(less2, s1)));
    a[0] = pair_add(a[0], pair_add(sum1, sum2));
    a[1] = pair_add(middle1, turned1);
    a[4] = pair_subtract(middle1, turned1);
    a[2] = pair_add(middle2, turned2);
    a[3] = pair_subtract(middle2, turned2);
}

BUTTERFLY butterfly8(pair *a)
{
    const float half_root = 0.7071067811865476f;
    pair even[4] = { a[0], a[2], a[4], a[6] }, odd[4] = { a[1], a[3], a[5], a[7] };
    butterfly4(even);
    butterfly4(odd);
    odd[1] = pair_scale((pair) { odd[1].re + odd[1].im, odd[1].im - odd[1].re }, half_root);
    odd[2] = pair_turn(odd[2]);
    odd[3] = pair_scale((pair) { odd[3].im - odd[3].re, -odd[3].re - odd[3].im }, half_root);
    _Pragma("unroll") for (int i = 0; i < 4; i++)
    {
        a[i] = pair_add(even[i], odd[i]);
        a[i + 4] = pair_subtract(even[i], odd[i]);
    }
}

/* Element u of a transform of `radix` elements, `step` apart from `first` on. */
PAIR_FUNCTION pair_any(
    const SPACE STORED *from, int first, int step, int radix, int u, global const float2 *table, int turn)
{
    pair sum = pair_load(from, first);
    for (int t = 1, angle = u; t < radix; t++) {
        sum = pair_add(sum, pair_multiply(pair_load(from, first + step * t), table[angle * turn]));
        angle = angle + u < radix ? angle + u : angle + u - radix;
    }
    return sum;
}
