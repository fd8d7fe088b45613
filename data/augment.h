/* How a sample is changed at random, by numbers that follow from seed, epoch and sample alone; and how an image becomes
 * one. */
#ifndef DATA_AUGMENT_H
#define DATA_AUGMENT_H

#include "formats/image.h"

/* What is drawn for: the same numbers give the same sample, on any thread and any device. */
struct draw {
    uint64_t seed, epoch;
    int64_t sample;
    bool training; /* false: resize and centre crop only */
};

/* Read from a text such as "crop,flip,color=0.4,erase=0.1,mixup=0.2" (tutti_data_options.augment). */
struct augment {
    bool crop, flip, flip_vertical;
    int pad; /* pixels around the sample, out of which one of its size is cut */
    float scale_low, scale_high, ratio_low, ratio_high; /* of a random crop */
    float rotate;                                       /* degrees, both ways */
    float brightness, contrast, saturation, hue;
    float erase;         /* probability */
    float mixup, cutmix; /* alpha of the beta distribution; 0: none */
    float gain, noise;   /* decibels, both ways; the highest deviation */
    float mask_time, mask_frequency;
    int random_count; /* RandAugment: operations, and their magnitude 0 to 30 */
    int random_magnitude;
};
/* What is augmented; each kind has words of its own. Grids are floats in the shape [channels, height, width]. */
enum augment_kind { AUGMENT_IMAGES, AUGMENT_GRIDS, AUGMENT_NUMBERS, AUGMENT_TABLES, AUGMENT_RECORDINGS, AUGMENT_KINDS };
/* NULL, "" and "none": nothing random. Errors: TUTTI_INVALID with a line that lists the words of this kind. */
tutti_status augment_parse(const char *text, enum augment_kind kind, struct augment *augment);
/* Whether anything but mixing is drawn. */
bool augment_is_random(const struct augment *augment);

/* The part of a picture of this size that becomes the sample, in pixels of the picture. It is chosen before the
 * picture is decoded. The decoded picture may be smaller, as augment_wish() tells, and the box is scaled with it. */
struct box {
    double left, top, width, height;
    bool cut; /* pixels outside do not take part; false: the filter at the borders reaches them */
};
/* Training with `crop`: a random part. Otherwise the part that remains if the picture is resized to 256/224 of the
 * sample and its centre is cut out. Sizes are at least 1. */
struct box augment_box(
    const struct augment *augment, const struct draw *draw, int width, int height, int to_width, int to_height);
/* How large the whole picture must be decoded so that the box has at least the size of the sample. */
struct image_wish augment_wish(const struct box *box, int width, int height, int channels, int to_width, int to_height);

/* Memory of one thread, used again and again. NULL: no memory. */
struct augment_scratch;
struct augment_scratch *augment_scratch_new(void);
void augment_scratch_free(struct augment_scratch *scratch);

/* Pictures and samples have at most so many pixels on a side. */
enum { AUGMENT_MAX_SIDE = 65535 };
/* The sample, [channels][to_height][to_width] bytes. `image` was decoded from a picture of width x height. Errors:
 * TUTTI_UNSUPPORTED if a side is too long, TUTTI_NO_MEMORY. */
tutti_status augment_image(const struct augment *augment, const struct draw *draw, const struct image *image,
    const struct box *box, int width, int height, int to_width, int to_height, struct augment_scratch *scratch,
    unsigned char *sample);
/* A sample as large as the image that it is drawn from, [channels][height][width] bytes as `shape` says, or
 * [height][width][channels] if the channels are last. Without `crop` it shows the whole image. Errors: as above. */
tutti_status augment_whole(const struct augment *augment, const struct draw *draw, const unsigned char *bytes,
    bool channels_last, const tutti_shape *shape, unsigned char *sample);
/* The mask of the same sample: the same box, flips, rotations and shears, the nearest pixel; [to_height][to_width]
 * classes, which are the mask's first channel. What turns in from outside has the class -1. Errors: as above. */
tutti_status augment_mask(const struct augment *augment, const struct draw *draw, const struct image *mask,
    const struct box *box, int width, int height, int to_width, int to_height, struct augment_scratch *scratch,
    int32_t *classes);

/* Flips floats [channels][height][width], and erases a rectangle to 0. Sides are 1 to AUGMENT_MAX_SIDE long. */
void augment_grid(
    const struct augment *augment, const struct draw *draw, int64_t channels, int height, int width, float *numbers);
/* Adds normal numbers to `count` floats, with a deviation from 0 to that of `augment`. Errors: TUTTI_NO_MEMORY. */
tutti_status augment_noise(const struct augment *augment, const struct draw *draw, size_t count, float *numbers);
/* Makes a waveform louder or quieter. */
void augment_gain(const struct augment *augment, const struct draw *draw, size_t count, float *numbers);
/* SpecAugment (Park et al. 2019): a band of frequencies and a piece of time of the spectrogram become 0. */
void augment_masks(const struct augment *augment, const struct draw *draw, int bands, int frames, float *spectrogram);

/* MixUp (Zhang et al. 2018) and CutMix (Yun et al. 2019): the sample that is mixed into this one, of `samples`, and the
 * weight of this one, 1 where nothing is mixed. augment_mix() mixes the bytes, augment_mix_floats() floats. */
struct mix {
    int64_t partner; /* 0 to samples - 1 */
    double weight;
    bool cut;
    struct {
        int left, top, width, height;
    } patch; /* cut: where the partner is */
};
struct mix augment_mix_of(
    const struct augment *augment, const struct draw *draw, int64_t samples, int width, int height);
void augment_mix(
    const struct mix *mix, const unsigned char *partner, int channels, int height, int width, unsigned char *sample);
void augment_mix_floats(
    const struct mix *mix, const float *partner, int64_t channels, int64_t height, int64_t width, float *sample);

#endif
