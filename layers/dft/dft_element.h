/* Elements of transforms: what the options FORM (enum dft_form), INVERSE, DOUBLED and CHIRP of layers/dft/dft_kernels.c
 * make of them. */
#define COMPLEX 0
#define REAL_TO_COMPLEX 1
#define COMPLEX_TO_REAL 2

/* The weight of a spectrum's element at position n. DOUBLED: the other half is not stored, so that an element with a
 * mirror image counts twice. */
#if DOUBLED
#define WEIGHT(n) ((n) != 0 && 2 * (n) != length ? 2.0f : 1.0f)
#else
#define WEIGHT(n) 1.0f
#endif
#if INVERSE
#define SWAPPED(v) (v).yx
#else
#define SWAPPED(v) (v)
#endif

static float2 complex_product(float2 a, float2 b)
{
    return (float2)(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x);
}

/* Makes the spectrum of real numbers symmetric. What rounding adds to an element v and to its mirror image w cancels,
 * so that parts that are 0 become 0. */
static float2 symmetric(float2 v, float2 w)
{
#if INVERSE
    return 0.5f * (float2)(v.x - w.x, v.y + w.y);
#else
    return 0.5f * (float2)(v.x + w.x, v.y - w.y);
#endif
}

/* The number of the element at position n, and back, where the first one is at `first`; all below length. */
static int position_before(int n, int first, int length)
{
    return n >= first ? n - first : n - first + length;
}

static int position_after(int j, int first, int length)
{
    return j < length - first ? j + first : j + first - length;
}
