/* Copies the source rows that units of a convolution need into scratch, with the zero padding written out, so that the
 * inner loops have no edges. A unit is a segment of a row of pixels, counted over all images; it needs WINDOW rows:
 *
 *   scratch[block][unit][WINDOW][width_packed]: row r of unit (n, q, x0) is the source's row
 *       q * ROW_STEP + r * ROW_DILATION + row_start, from column x0 * STEP + column_start on
 *
 * Macros: XV (floats of a pixel in a block: V, or 1 for a plain image), WINDOW, ROW_STEP, ROW_DILATION, STEP. */
#if XV == 1
typedef float pixel;
#else
typedef VF_unaligned pixel;
#endif

struct units {
    int per_image, segments; /* rows of pixels times segments; segments of a row */
    int segment, width;      /* pixels of a segment; of a row */
};

struct unit {
    int image, row, begin; /* begin: the first pixel that belongs to this segment */
    int from;              /* the first pixel that is computed: the last segment overlaps the one before */
};

INLINE struct unit unit_at(int j, struct units u)
{
    struct unit unit;
    unit.image = j / u.per_image;
    const int rest = j - unit.image * u.per_image;
    unit.row = rest / u.segments;
    unit.begin = (rest - unit.row * u.segments) * u.segment;
    unit.from = min(unit.begin, u.width - u.segment);
    return unit;
}

INLINE void pack_rows(const global float *restrict source, SCRATCH pixel *restrict scratch, int blocks_all,
    int block_first, int blocks, int height, int width, int first, int last, int units_max, struct units u,
    int row_start, int column_start, int width_packed)
{
    for (int b = 0; b < blocks; b++)
        for (int j = first; j < last; j++) {
            const struct unit unit = unit_at(j, u);
            const global pixel *plane =
                (const global pixel *)source + (size_t)(unit.image * blocks_all + block_first + b) * height * width;
            const int left = unit.from * STEP + column_start;
            const int begin = clamp(-left, 0, width_packed), end = clamp(width - left, begin, width_packed);
            for (int r = 0; r < WINDOW; r++) {
                const int y = unit.row * ROW_STEP + r * ROW_DILATION + row_start;
                SCRATCH pixel *to = scratch + ((b * units_max + j - first) * WINDOW + r) * width_packed;
                if (y < 0 || y >= height) {
                    for (int i = 0; i < width_packed; i++) to[i] = 0.0f;
                    continue;
                }
                const global pixel *from = plane + y * width + left;
                for (int i = 0; i < begin; i++) to[i] = 0.0f;
                for (int i = begin; i < end; i++) to[i] = from[i];
                for (int i = end; i < width_packed; i++) to[i] = 0.0f;
            }
        }
}
