#include "data/augment_steps.h"

#include <math.h>

bool step_matrix(const struct step *step, int width, int height, double matrix[6])
{
    const double amount = (double)step->amount, turn = amount * 3.14159265358979323846 / 180;
    const double x = width / 2.0, y = height / 2.0; /* the centre of rotations; shears keep the upper left corner */
    double m[6] = { 1, 0, 0, 0, 1, 0 };
    switch (step->operation) {
    case SHEAR_X: m[1] = amount; break;
    case SHEAR_Y: m[3] = amount; break;
    case TRANSLATE_X: m[2] = -amount; break;
    case TRANSLATE_Y: m[5] = -amount; break;
    case ROTATE: /* counter-clockwise, as Pillow */
        m[0] = m[4] = cos(turn);
        m[1] = -sin(turn);
        m[3] = sin(turn);
        m[2] = x - m[0] * x - m[1] * y;
        m[5] = y - m[3] * x - m[4] * y;
        break;
    default: return false;
    }
    for (int i = 0; i < 6; i++) matrix[i] = m[i];
    return true;
}

/* Places are whole numbers of 2^-32 pixels: the same on every machine. */
static int64_t place(double pixels)
{
    return (int64_t)rint(pixels * 0x1p32);
}

struct walk {
    int64_t x, y, step_x, step_y;
};

/* Along the row `row`, from the centre of its first pixel on. */
static struct walk walk_of(const double matrix[6], int row)
{
    return (struct walk) { place(matrix[0] * 0.5 + matrix[1] * (row + 0.5) + matrix[2]),
        place(matrix[3] * 0.5 + matrix[4] * (row + 0.5) + matrix[5]), place(matrix[0]), place(matrix[3]) };
}

static bool inside(const struct walk *walk, int width, int height)
{
    return walk->x >= 0 && walk->y >= 0 && walk->x < (int64_t)width << 32 && walk->y < (int64_t)height << 32;
}

/* The pixel before a place and the one after it, within the image, and the part of the one after, of 2^11. */
struct pair {
    int before, after, part;
};
static struct pair pair_at(int64_t place, int size)
{
    const int64_t shifted = place - (INT64_C(1) << 31) + (INT64_C(1) << 32); /* one pixel more: not negative */
    const int before = (int)(shifted >> 32) - 1;
    return (struct pair) { before < 0 ? 0 : before, before + 1 < size ? before + 1 : size - 1,
        (int)(shifted >> 21 & 2047) };
}

void warp(struct canvas *canvas, const double matrix[6])
{
    const int width = canvas->width, height = canvas->height;
    const size_t plane = (size_t)width * (size_t)height;
    unsigned char *to = canvas->other;
    for (int row = 0; row < height; row++) {
        struct walk walk = walk_of(matrix, row);
        for (int i = 0; i < width; i++, to++, walk.x += walk.step_x, walk.y += walk.step_y) {
            const bool seen = inside(&walk, width, height);
            const struct pair x = pair_at(seen ? walk.x : 0, width), y = pair_at(seen ? walk.y : 0, height);
            const unsigned char *upper = canvas->pixels + (size_t)y.before * (size_t)width;
            const unsigned char *lower = canvas->pixels + (size_t)y.after * (size_t)width;
            for (int c = 0; c < canvas->channels; c++, upper += plane, lower += plane) {
                const int a = upper[x.before] * (2048 - x.part) + upper[x.after] * x.part;
                const int b = lower[x.before] * (2048 - x.part) + lower[x.after] * x.part;
                const int value = (a * (2048 - y.part) + b * y.part + (1 << 21)) >> 22;
                to[(size_t)c * plane] = seen ? (unsigned char)value : 0;
            }
        }
    }
    to = canvas->other;
    canvas->other = canvas->pixels;
    canvas->pixels = to;
}

void warp_classes(const int32_t *from, int width, int height, const double matrix[6], int32_t *to)
{
    for (int row = 0; row < height; row++) {
        struct walk walk = walk_of(matrix, row);
        for (int i = 0; i < width; i++, walk.x += walk.step_x, walk.y += walk.step_y)
            *to++ = inside(&walk, width, height) ? from[(walk.y >> 32) * width + (walk.x >> 32)] : -1;
    }
}
