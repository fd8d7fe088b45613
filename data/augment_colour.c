/* Operations on the colours of a sample, as Pillow has them (hue: as torchvision's on tensors, which does not round
 * hues to bytes in between). All in whole numbers: the same bytes on every machine. */
#include "data/augment_steps.h"

#include <math.h>
#include <string.h>

#define INLINE static inline __attribute__((always_inline))
enum { ONE = 1 << 16 };

INLINE size_t plane_of(const struct canvas *canvas)
{
    return (size_t)canvas->width * (size_t)canvas->height;
}

INLINE unsigned char clip(int value)
{
    return (unsigned char)(value < 0 ? 0 : value > 255 ? 255 : value);
}

/* between + factor * (value - between), rounded down as Pillow does. */
INLINE unsigned char blend(int value, int between, int factor)
{
    return clip((between * (ONE - factor) + value * factor) >> 16);
}

/* Luminance by ITU-R 601 in Pillow's fixed point. */
INLINE int grey_of(int red, int green, int blue)
{
    return (red * 19595 + green * 38470 + blue * 7471 + 0x8000) >> 16;
}

INLINE int mean_grey(const struct canvas *canvas)
{
    const size_t plane = plane_of(canvas);
    const unsigned char *red = canvas->pixels, *green = red + plane, *blue = green + plane;
    uint64_t sum = 0;
    for (size_t i = 0; i < plane; i++)
        sum += canvas->channels == 3 ? (uint64_t)grey_of(red[i], green[i], blue[i]) : red[i];
    return (int)((sum + plane / 2) / plane);
}

INLINE void blend_with(struct canvas *canvas, int between, int factor)
{
    const size_t count = plane_of(canvas) * (size_t)canvas->channels;
    unsigned char *pixels = canvas->pixels;
    for (size_t i = 0; i < count; i++) pixels[i] = blend(pixels[i], between, factor);
}

INLINE void saturate(struct canvas *canvas, int factor)
{
    const size_t plane = plane_of(canvas);
    unsigned char *restrict red = canvas->pixels, *restrict green = red + plane, *restrict blue = green + plane;
    for (size_t i = 0; i < plane; i++) {
        const int grey = grey_of(red[i], green[i], blue[i]);
        red[i] = blend(red[i], grey, factor);
        green[i] = blend(green[i], grey, factor);
        blue[i] = blend(blue[i], grey, factor);
    }
}

/* One channel from its hue, in 2^-16 of a sixth of a turn: the largest value, less what is missing. */
INLINE unsigned char channel_of(int hue, int largest, int range)
{
    const int k = hue - (hue >= 6 * ONE ? 6 * ONE : 0);
    int part = k < 4 * ONE - k ? k : 4 * ONE - k;
    part = part < 0 ? 0 : part > ONE ? ONE : part;
    return (unsigned char)(largest - ((range * part + ONE / 2) >> 16));
}

/* Turns colours by a part of the circle of hues; largest and smallest value stay. */
INLINE void turn_hue(struct canvas *canvas, double turn)
{
    const size_t plane = plane_of(canvas);
    unsigned char *restrict red = canvas->pixels, *restrict green = red + plane, *restrict blue = green + plane;
    const int turned = (int)rint((turn - floor(turn)) * 6 * ONE);
    for (size_t i = 0; i < plane; i++) {
        const int r = red[i], g = green[i], b = blue[i];
        const int rg = r > g ? r : g, low = r < g ? r : g;
        const int largest = rg > b ? rg : b, range = largest - (low < b ? low : b);
        const int red_most = -(r == largest), green_most = ~red_most & -(g == largest); /* masks: gcc makes vectors */
        const int blue_most = ~(red_most | green_most);
        const int side = (red_most & (g - b)) + (green_most & (b - r)) + (blue_most & (r - g));
        const int base = (red_most & 6 * ONE) + (green_most & 2 * ONE) + (blue_most & 4 * ONE);
        /* One division of floats, which is rounded in the same way everywhere. */
        int hue = base + (int)((float)(side * ONE) / (float)(range + (range == 0))) + turned;
        hue -= hue >= 12 * ONE ? 12 * ONE : 0;
        hue -= hue >= 6 * ONE ? 6 * ONE : 0;
        red[i] = channel_of(hue + 5 * ONE, largest, range);
        green[i] = channel_of(hue + 3 * ONE, largest, range);
        blue[i] = channel_of(hue + ONE, largest, range);
    }
}

/* Away from a smoothed sample or towards it; the border stays. */
INLINE void sharpen(struct canvas *canvas, int factor)
{
    const size_t width = (size_t)canvas->width, rows = (size_t)canvas->height * (size_t)canvas->channels;
    memcpy(canvas->other, canvas->pixels, width * rows);
    for (size_t row = 0; row < rows; row++) {
        const size_t y = row % (size_t)canvas->height;
        if (y == 0 || y + 1 == (size_t)canvas->height) continue;
        const unsigned char *at = canvas->other + row * width, *above = at - width, *below = at + width;
        for (size_t x = 1; x + 1 < width; x++) {
            const int around =
                above[x - 1] + above[x] + above[x + 1] + at[x - 1] + at[x + 1] + below[x - 1] + below[x] + below[x + 1];
            canvas->pixels[row * width + x] = blend(at[x], (2 * (around + 5 * at[x]) + 13) / 26, factor);
        }
    }
}

INLINE void apply_table(unsigned char *pixels, size_t count, const unsigned char table[256])
{
    for (size_t i = 0; i < count; i++) pixels[i] = table[pixels[i]];
}

/* The smallest value becomes 0, the largest 255. */
INLINE void stretch(const size_t counts[256], unsigned char table[256])
{
    int low = 0, high = 255;
    while (low < 255 && !counts[low]) low++;
    while (high > 0 && !counts[high]) high--;
    if (high <= low) return;
    for (int i = 0; i < 256; i++) table[i] = clip((i - low) * 255 / (high - low));
}

/* Every value about equally often, as Pillow's ImageOps.equalize. */
INLINE void level(const size_t counts[256], unsigned char table[256])
{
    size_t pixels = 0, last = 0;
    for (int i = 0; i < 256; i++) {
        pixels += counts[i];
        if (counts[i]) last = counts[i];
    }
    const size_t step = (pixels - last) / 255;
    size_t below = step / 2;
    if (!step) return;
    for (int i = 0; i < 256; below += counts[i++]) table[i] = clip((int)(below / step));
}

INLINE void change_histograms(struct canvas *canvas, void (*change)(const size_t[256], unsigned char[256]))
{
    const size_t plane = plane_of(canvas);
    for (int c = 0; c < canvas->channels; c++) {
        unsigned char *pixels = canvas->pixels + (size_t)c * plane, table[256];
        size_t counts[256] = { 0 };
        for (size_t i = 0; i < plane; i++) counts[pixels[i]]++;
        for (int i = 0; i < 256; i++) table[i] = (unsigned char)i;
        change(counts, table);
        apply_table(pixels, plane, table);
    }
}

/* Keeps the upper bits, or inverts what is not below a threshold. */
INLINE void change_values(struct canvas *canvas, enum operation operation, double amount)
{
    const int lost = operation == POSTERIZE ? 255 >> (int)amount : 0;
    unsigned char table[256];
    for (int i = 0; i < 256; i++)
        table[i] = (unsigned char)(operation == POSTERIZE ? i & ~lost : i < amount ? i : 255 - i);
    apply_table(canvas->pixels, plane_of(canvas) * (size_t)canvas->channels, table);
}

INLINE void apply_step(struct canvas *canvas, const struct step *step)
{
    const int factor = (int)rint((double)step->amount * ONE);
    switch (step->operation) {
    case BRIGHTNESS: blend_with(canvas, 0, factor); break;
    case CONTRAST: blend_with(canvas, mean_grey(canvas), factor); break;
    case SATURATION:
        if (canvas->channels == 3) saturate(canvas, factor);
        break;
    case HUE:
        if (canvas->channels == 3) turn_hue(canvas, (double)step->amount);
        break;
    case SHARPNESS: sharpen(canvas, factor); break;
    case POSTERIZE:
    case SOLARIZE: change_values(canvas, step->operation, (double)step->amount); break;
    case AUTOCONTRAST: change_histograms(canvas, stretch); break;
    case EQUALIZE: change_histograms(canvas, level); break;
    default: break; /* movements and IDENTITY */
    }
}

#if defined(__x86_64__)
__attribute__((target("avx2"))) static void apply_step_avx2(struct canvas *canvas, const struct step *step)
{
    apply_step(canvas, step);
}
#endif

void recolour(struct canvas *canvas, const struct step *step)
{
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2")) {
        apply_step_avx2(canvas, step);
        return;
    }
#endif
    apply_step(canvas, step);
}
