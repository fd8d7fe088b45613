#include "data/augment_steps.h"

#include <math.h>

static int at_least_one(double number)
{
    return number < 1 ? 1 : (int)number;
}

/* As torchvision's RandomResizedCrop: ten tries, then the largest centre part whose ratio is allowed. */
static struct box random_box(const struct augment *augment, const struct draw *draw, int width, int height)
{
    const double area = (double)width * height, low = (double)augment->ratio_low, high = (double)augment->ratio_high;
    for (int i = 0; i < 10; i++) {
        const double part =
            area * draw_between(draw, FOR_BOX, 4 * i, (double)augment->scale_low, (double)augment->scale_high);
        const double ratio = exp(draw_between(draw, FOR_BOX, 4 * i + 1, log(low), log(high)));
        const double w = rint(sqrt(part * ratio)), h = rint(sqrt(part / ratio));
        if (w < 1 || h < 1 || w > width || h > height) continue;
        const int64_t left = draw_below(draw, FOR_BOX, 4 * i + 2, width - (int64_t)w + 1);
        const int64_t top = draw_below(draw, FOR_BOX, 4 * i + 3, height - (int64_t)h + 1);
        return (struct box) { (double)left, (double)top, w, h, true };
    }
    const double ratio = (double)width / height;
    int w = width, h = height;
    if (ratio < low) h = at_least_one(rint(width / low));
    if (ratio > high) w = at_least_one(rint(height * high));
    return (struct box) { (width - w) / 2, (height - h) / 2, w, h, true }; /* whole pixels, as torchvision */
}

/* Scales the picture so that its shorter side becomes 256/224 of the sample's, and keeps the centre. For a sample
 * that is not square, the side that must be reduced less decides. */
static struct box centre_box(int width, int height, int to_width, int to_height)
{
    const double wide = rint(to_width * 256.0 / 224), high = rint(to_height * 256.0 / 224);
    double w, h; /* of the resized picture */
    if (wide * height >= high * width) {
        w = wide;
        h = fmax(floor(wide * height / width), to_height);
    } else {
        h = high;
        w = fmax(floor(high * width / height), to_width);
    }
    const double across = width / w, down = height / h;
    return (struct box) { rint((w - to_width) / 2) * across, rint((h - to_height) / 2) * down, to_width * across,
        to_height * down, false };
}

struct box augment_box(
    const struct augment *augment, const struct draw *draw, int width, int height, int to_width, int to_height)
{
    if (draw->training && augment->crop) return random_box(augment, draw, width, height);
    return centre_box(width, height, to_width, to_height);
}

static int least(int picture, double part, int sample)
{
    const double size = ceil(picture * (sample / part));
    return size < picture ? (int)size : picture;
}

struct image_wish augment_wish(const struct box *box, int width, int height, int channels, int to_width, int to_height)
{
    return (struct image_wish) { channels, least(width, box->width, to_width), least(height, box->height, to_height) };
}
