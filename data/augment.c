#include "data/augment.h"

#include "base/memory.h"
#include "base/status.h"
#include "data/augment_steps.h"

#include <stdlib.h>
#include <string.h>

struct augment_scratch *augment_scratch_new(void)
{
    return memory_new(1, sizeof(struct augment_scratch));
}

void augment_scratch_free(struct augment_scratch *scratch)
{
    if (!scratch) return;
    free(scratch->across.firsts);
    free(scratch->across.weights);
    free(scratch->down.firsts);
    free(scratch->down.weights);
    free(scratch->columns);
    free(scratch->rows);
    free(scratch->other);
    free(scratch);
}

static tutti_status check_sizes(int width, int height, const char *what)
{
    if (width >= 1 && height >= 1 && width <= AUGMENT_MAX_SIDE && height <= AUGMENT_MAX_SIDE) return TUTTI_OK;
    return fail(
        TUTTI_UNSUPPORTED, "%s has %d x %d pixels; sides are 1 to %d long", what, width, height, AUGMENT_MAX_SIDE);
}

/* Fills the erased rectangle with ImageNet's mean: torchvision's recipes leave this colour, since they erase after
 * normalising. */
static void erase(struct canvas *canvas, const struct plan *plan)
{
    const unsigned char mean[] = { 124, 116, 104 }, grey = 117;
    for (int c = 0; c < canvas->channels; c++) {
        for (int y = plan->top; y < plan->top + plan->height; y++) {
            const size_t row = (size_t)c * (size_t)canvas->height + (size_t)y;
            memset(canvas->pixels + row * (size_t)canvas->width + plan->left, canvas->channels == 3 ? mean[c] : grey,
                (size_t)plan->width);
        }
    }
}

static void apply(struct canvas *canvas, const struct plan *plan)
{
    for (int i = 0; i < plan->steps; i++) {
        double matrix[6];
        if (step_matrix(&plan->step[i], canvas->width, canvas->height, matrix))
            warp(canvas, matrix);
        else
            recolour(canvas, &plan->step[i]);
    }
    if (plan->erases) erase(canvas, plan);
}

tutti_status augment_image(const struct augment *augment, const struct draw *draw, const struct image *image,
    const struct box *box, int width, int height, int to_width, int to_height, struct augment_scratch *scratch,
    unsigned char *sample)
{
    const size_t size = (size_t)image->channels * (size_t)to_width * (size_t)to_height;
    tutti_status status = TUTTI_OK;
    struct plan plan;
    TRY(check_sizes(width, height, "the picture"));
    TRY(check_sizes(image->width, image->height, "the picture"));
    TRY(check_sizes(to_width, to_height, "the sample"));
    plan_make(augment, draw, to_width, to_height, &plan);
    const struct range across = range_of(box->left, box->width, box->cut, plan.flip, width, image->width);
    const struct range down = range_of(box->top, box->height, box->cut, plan.flip_vertical, height, image->height);
    if (plan.steps) TRY(memory_grow(&scratch->other, &scratch->other_room, size, 1));
    TRY(resize(image, &across, &down, to_width, to_height, scratch, sample));
    struct canvas canvas = { image->channels, to_height, to_width, sample, scratch->other };
    apply(&canvas, &plan);
    if (canvas.pixels != sample) memcpy(sample, canvas.pixels, size);
done:
    return status;
}

/* [channels][pixels] to [pixels][channels] */
static unsigned char *interleave(const unsigned char *from, size_t channels, size_t pixels)
{
    unsigned char *to = memory_new(pixels, channels);
    for (size_t c = 0; to && c < channels; c++)
        for (size_t i = 0; i < pixels; i++) to[i * channels + c] = from[c * pixels + i];
    return to;
}

tutti_status augment_whole(const struct augment *augment, const struct draw *draw, const unsigned char *bytes,
    bool channels_last, const tutti_shape *shape, unsigned char *sample)
{
    const int channels = (int)shape->sizes[0], height = (int)shape->sizes[1], width = (int)shape->sizes[2];
    tutti_status status = TUTTI_NO_MEMORY;
    struct box box = { .width = width, .height = height };
    struct augment_scratch *scratch = augment_scratch_new();
    unsigned char *copy = channels_last ? NULL : interleave(bytes, (size_t)channels, (size_t)height * (size_t)width);
    const struct image image = { .width = width,
        .height = height,
        .channels = channels,
        .pixels = channels_last ? (unsigned char *)(uintptr_t)bytes : copy };
    if (!scratch || !image.pixels) goto done;
    if (augment->crop) box = augment_box(augment, draw, width, height, width, height);
    status = augment_image(augment, draw, &image, &box, width, height, width, height, scratch, sample);
done:
    augment_scratch_free(scratch);
    free(copy);
    return status;
}

tutti_status augment_mask(const struct augment *augment, const struct draw *draw, const struct image *mask,
    const struct box *box, int width, int height, int to_width, int to_height, struct augment_scratch *scratch,
    int32_t *classes)
{
    const size_t size = sizeof(*classes) * (size_t)to_width * (size_t)to_height;
    tutti_status status = TUTTI_OK;
    struct plan plan;
    double matrix[6];
    TRY(check_sizes(width, height, "the picture"));
    TRY(check_sizes(mask->width, mask->height, "the mask"));
    TRY(check_sizes(to_width, to_height, "the sample"));
    plan_make(augment, draw, to_width, to_height, &plan);
    const struct range across = range_of(box->left, box->width, box->cut, plan.flip, width, mask->width);
    const struct range down = range_of(box->top, box->height, box->cut, plan.flip_vertical, height, mask->height);
    resize_nearest(mask, &across, &down, to_width, to_height, classes);
    for (int i = 0; i < plan.steps; i++) {
        if (!step_matrix(&plan.step[i], to_width, to_height, matrix)) continue;
        TRY(memory_grow(&scratch->other, &scratch->other_room, size, 1));
        memcpy(scratch->other, classes, size);
        warp_classes(scratch->other, to_width, to_height, matrix, classes);
    }
done:
    return status;
}
