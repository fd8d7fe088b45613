#include "base/numbers.h"
#include "base/status.h"
#include "base/text.h"
#include "data/augment_steps.h"

#include <stdio.h>
#include <string.h>

/* What each kind is called, and the names of its words with what follows them. */
static const struct {
    const char *name, *words;
} kinds[AUGMENT_KINDS] = {
    [AUGMENT_IMAGES] = { "images",
        "none, light, standard, strong, crop, crop=LOW-HIGH, pad=N, flip, vflip, rotate=DEGREES, color=X, "
        "brightness=X, contrast=X, saturation=X, hue=X, erase=P, mixup=ALPHA, cutmix=ALPHA, rand=COUNT:MAGNITUDE" },
    [AUGMENT_GRIDS] = { "arrays of floats [samples, channels, height, width]",
        "none, flip, vflip, erase=P, noise=X, mixup=ALPHA, cutmix=ALPHA" },
    [AUGMENT_NUMBERS] = { "arrays of floats that are not [samples, channels, height, width]",
        "none, noise=X, mixup=ALPHA" },
    [AUGMENT_TABLES] = { "tables", "none, noise=X, mixup=ALPHA" },
    [AUGMENT_RECORDINGS] = { "recordings", "none, gain=DB, noise=X, mask-time=PART, mask-frequency=PART, mixup=ALPHA" },
};

static const struct {
    const char *name, *words;
} presets[] = {
    { "none", "" },
    { "light", "crop,flip" },
    { "standard", "crop,flip,color=0.4" },
    { "strong", "crop,flip,rand=2:9,erase=0.1,mixup=0.2,cutmix=1" },
};

/* Words with one number. */
static const struct {
    const char *name;
    size_t member;
    float most;
} numbers[] = {
    { "rotate", offsetof(struct augment, rotate), 180 },
    { "brightness", offsetof(struct augment, brightness), 1 },
    { "contrast", offsetof(struct augment, contrast), 1 },
    { "saturation", offsetof(struct augment, saturation), 1 },
    { "hue", offsetof(struct augment, hue), 0.5f },
    { "erase", offsetof(struct augment, erase), 1 },
    { "mixup", offsetof(struct augment, mixup), 100 },
    { "cutmix", offsetof(struct augment, cutmix), 100 },
    { "gain", offsetof(struct augment, gain), 60 },
    { "noise", offsetof(struct augment, noise), 100 },
    { "mask-time", offsetof(struct augment, mask_time), 1 },
    { "mask-frequency", offsetof(struct augment, mask_frequency), 1 },
};

enum { LONGEST = 63, MAX_PADDING = 1024 };

static bool number_in(const char *text, char **end, double low, double high, double *number)
{
    *number = number_read(text, end);
    return *end != text && *number >= low && *number <= high;
}

static bool read_crop(const char *value, struct augment *augment)
{
    double low = 0.08, high = 1;
    char *end;
    if (value) {
        if (!number_in(value, &end, 0.001, 1, &low) || *end != '-') return false;
        if (!number_in(end + 1, &end, low, 1, &high) || *end) return false;
    }
    augment->crop = true;
    augment->scale_low = (float)low;
    augment->scale_high = (float)high;
    augment->ratio_low = 3.0f / 4;
    augment->ratio_high = 4.0f / 3;
    return true;
}

static bool read_padding(const char *value, struct augment *augment)
{
    double pixels;
    char *end;
    if (!number_in(value, &end, 0, MAX_PADDING, &pixels) || *end) return false;
    augment->pad = (int)pixels;
    return pixels == augment->pad;
}

static bool read_random(const char *value, struct augment *augment)
{
    double count, magnitude;
    char *end;
    if (!number_in(value, &end, 0, MAX_RANDOM_COUNT, &count) || *end != ':') return false;
    if (!number_in(end + 1, &end, 0, 30, &magnitude) || *end) return false;
    augment->random_count = (int)count;
    augment->random_magnitude = (int)magnitude;
    return count == augment->random_count && magnitude == augment->random_magnitude;
}

static bool read_number(const char *name, const char *value, struct augment *augment)
{
    double number;
    char *end;
    if (!strcmp(name, "color")) {
        if (!number_in(value, &end, 0, 1, &number) || *end) return false;
        augment->brightness = augment->contrast = augment->saturation = (float)number;
        augment->hue = (float)number / 4;
        return true;
    }
    for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++) {
        if (strcmp(name, numbers[i].name)) continue;
        if (!number_in(value, &end, 0, (double)numbers[i].most, &number) || *end) return false;
        *(float *)((char *)augment + numbers[i].member) = (float)number;
        return true;
    }
    return false;
}

/* `value` is what follows "=", NULL without it. */
static bool read_word(const char *name, const char *value, struct augment *augment)
{
    if (!strcmp(name, "crop")) return read_crop(value, augment);
    if (!value && !strcmp(name, "flip")) return augment->flip = true;
    if (!value && !strcmp(name, "vflip")) return augment->flip_vertical = true;
    if (!value) return false;
    if (!strcmp(name, "pad")) return read_padding(value, augment);
    return !strcmp(name, "rand") ? read_random(value, augment) : read_number(name, value, augment);
}

/* Whether the kind has the word, which may have a value after it in the list. */
static bool has_word(enum augment_kind kind, const char *name)
{
    const size_t length = strlen(name);
    for (const char *at = kinds[kind].words;; at += 2) {
        const size_t listed = strcspn(at, ",");
        if (strcspn(at, ",=") == length && !strncmp(at, name, length)) return true;
        at += listed;
        if (!*at) return false;
    }
}

static tutti_status refuse(enum augment_kind kind, const char *text, int length, const char *name)
{
    enum { MOST_WORDS = 40 };
    char words[512];
    const char *names[MOST_WORDS + 1] = { NULL };
    snprintf(words, sizeof words, "%s", kinds[kind].words);
    char *rest = words;
    for (int i = 0; i < MOST_WORDS && rest; i++) {
        char *word = strsep(&rest, ",");
        names[i] = word + strspn(word, " ");
        word[strcspn(word, "=")] = '\0';
    }
    bool known = false; /* to this kind, with another value, or to another one */
    for (int i = 0; i < AUGMENT_KINDS; i++) known |= has_word((enum augment_kind)i, name);
    const struct suggestion near = known ? (struct suggestion) { "" } : text_suggest(name, names);
    return fail(TUTTI_INVALID, "augmentation \"%.*s\" is unknown for %s%s %s%s", length, text, kinds[kind].name,
        near.text[0] ? near.text : ":", near.text[0] ? "There are " : "", kinds[kind].words);
}

static tutti_status read_words(const char *text, bool with_presets, enum augment_kind kind, struct augment *augment)
{
    while (*text) {
        const size_t length = strcspn(text, ",");
        const char *preset = NULL;
        char word[LONGEST + 1] = "";
        if (length <= LONGEST) memcpy(word, text, length);
        for (size_t i = 0; with_presets && i < sizeof(presets) / sizeof(*presets); i++)
            if (!strcmp(word, presets[i].name) && has_word(kind, word)) preset = presets[i].words;
        char *value = strchr(word, '=');
        if (value) *value++ = '\0';
        if (preset) {
            const tutti_status status = read_words(preset, false, kind, augment);
            if (status != TUTTI_OK) return status;
        } else if (!has_word(kind, word) || !read_word(word, value, augment)) {
            return refuse(kind, text, (int)(length < LONGEST ? length : LONGEST), word);
        }
        text += length;
        if (*text) text++;
    }
    return TUTTI_OK;
}

tutti_status augment_parse(const char *text, enum augment_kind kind, struct augment *augment)
{
    *augment = (struct augment) { .crop = false };
    return text ? read_words(text, true, kind, augment) : TUTTI_OK;
}

bool augment_is_random(const struct augment *a)
{
    return a->crop || a->pad > 0 || a->flip || a->flip_vertical || a->rotate > 0 || a->brightness > 0 ||
        a->contrast > 0 || a->saturation > 0 || a->hue > 0 || a->erase > 0 || a->random_count > 0 || a->gain > 0 ||
        a->noise > 0 || a->mask_time > 0 || a->mask_frequency > 0;
}
