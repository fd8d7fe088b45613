/* Elements of a tensor [samples][rows][axis][inner] by index along the axis: `count` indices for each row. The index
 * for (sample, row, k, i) is at sample * index_sample + row * index_row + k * index_next + i * index_inner. It is an int
 * where WHOLE is 1, else a float. Negative indices count from the end. Where `numbers` is more than 1, the axis consists
 * of so many axes, of the sizes size0, size1, ..., and an index has a coordinate for each of them. */
#ifndef INDICES_H
#define INDICES_H
#if WHOLE
#define INDEX int
#else
#define INDEX float
#endif
#define SIZES { size0, size1, size2, size3, size4, size5 }

/* Returns an element's coordinate along an axis, counted from its start; -1 if there is no such element. */
static int number_in(INDEX given, int size)
{
#if WHOLE
    const int number = given;
#else
    const float below = floor(given), rounded = given - below < 0.5f ? below : below + 1.0f;
    if (!(rounded >= -(float)size && rounded < (float)size)) return -1;
    const int number = (int)rounded;
#endif
    if (number < -size || number >= size) return -1;
    return number < 0 ? number + size : number;
}

static int element_of(global const INDEX *at, int numbers, const int *sizes)
{
    int element = 0;
    for (int j = 0; j < numbers; j++) {
        const int number = number_in(at[j], sizes[j]);
        if (number < 0) return -1;
        element = element * sizes[j] + number;
    }
    return element;
}
#endif
