#include "formats/digits.h"

#include "base/random.h"
#include "base/status.h"

#include <string.h>

/* Everything is computed in whole numbers: floating point would differ between compilers (contraction to fma) and
 * mathematical libraries, and with it the accuracy that two users see. Lengths are in 1/256 of a pixel. */
#define ONE 256
#define Q16 65536

/* ------------------------------------------------------------------------------------------------- shapes ---- */

enum kind { NONE, LINE, CURVE, LOOP }; /* straight pieces; a smooth curve through the points; the same, closed */
#define MAX_POINTS 12
#define MAX_STROKES 2
#define VARIANTS 3

/* Points on a grid 100 wide and 140 high, y downwards. */
struct stroke {
    enum kind kind;
    int count;
    short points[MAX_POINTS][2];
};

struct glyph {
    struct stroke strokes[MAX_STROKES];
};

/* The ways in which people write each digit; a row may repeat one to make it more frequent. */
static const struct glyph glyphs[DIGITS_CLASSES][VARIANTS] = {
    {
        { { { LOOP, 8,
            { { 50, 0 }, { 85, 25 }, { 95, 70 }, { 85, 115 }, { 50, 140 }, { 15, 115 }, { 5, 70 }, { 15, 25 } } } } },
        { { { LOOP, 6, { { 55, 0 }, { 88, 40 }, { 80, 105 }, { 45, 140 }, { 12, 100 }, { 20, 35 } } } } },
        { { { CURVE, 10,
            { { 62, 4 }, { 30, 8 }, { 8, 55 }, { 12, 110 }, { 45, 140 }, { 82, 120 }, { 94, 70 }, { 80, 18 }, { 50, 0 },
                { 38, 14 } } } } },
    },
    {
        { { { LINE, 2, { { 50, 0 }, { 50, 140 } } } } },
        { { { LINE, 3, { { 24, 32 }, { 56, 0 }, { 56, 140 } } } } },
        { { { LINE, 3, { { 26, 30 }, { 55, 0 }, { 55, 140 } } }, { LINE, 2, { { 22, 140 }, { 88, 140 } } } } },
    },
    {
        { { { CURVE, 8,
                { { 10, 35 }, { 25, 8 }, { 55, 0 }, { 85, 15 }, { 88, 45 }, { 65, 80 }, { 35, 112 }, { 8, 138 } } },
            { LINE, 2, { { 8, 138 }, { 95, 138 } } } } },
        { { { CURVE, 10,
            { { 12, 30 }, { 40, 2 }, { 78, 12 }, { 84, 45 }, { 55, 90 }, { 20, 130 }, { 12, 116 }, { 35, 110 },
                { 65, 132 }, { 96, 126 } } } } },
        { { { CURVE, 7, { { 14, 20 }, { 50, 0 }, { 86, 20 }, { 82, 56 }, { 50, 92 }, { 24, 118 }, { 10, 136 } } },
            { CURVE, 3, { { 10, 136 }, { 55, 130 }, { 94, 136 } } } } },
    },
    {
        { { { CURVE, 9,
            { { 12, 18 }, { 45, 0 }, { 80, 15 }, { 80, 48 }, { 44, 66 }, { 88, 82 }, { 92, 118 }, { 55, 140 },
                { 10, 125 } } } } },
        { { { LINE, 3, { { 12, 2 }, { 85, 2 }, { 44, 58 } } },
            { CURVE, 6, { { 44, 58 }, { 80, 68 }, { 95, 100 }, { 75, 132 }, { 40, 140 }, { 8, 122 } } } } },
        { { { CURVE, 5, { { 15, 14 }, { 50, 0 }, { 84, 24 }, { 68, 58 }, { 36, 66 } } },
            { CURVE, 5, { { 36, 66 }, { 82, 78 }, { 90, 112 }, { 54, 140 }, { 10, 126 } } } } },
    },
    {
        { { { LINE, 3, { { 25, 0 }, { 8, 85 }, { 95, 85 } } }, { LINE, 2, { { 70, 35 }, { 66, 140 } } } } },
        { { { LINE, 4, { { 70, 140 }, { 70, 0 }, { 5, 95 }, { 98, 95 } } } } },
        { { { CURVE, 4, { { 18, 2 }, { 12, 60 }, { 45, 78 }, { 84, 68 } } },
            { LINE, 2, { { 88, 4 }, { 76, 140 } } } } },
    },
    {
        { { { LINE, 3, { { 85, 2 }, { 25, 2 }, { 18, 60 } } },
            { CURVE, 7, { { 18, 60 }, { 50, 50 }, { 85, 68 }, { 92, 100 }, { 70, 132 }, { 35, 140 }, { 8, 122 } } } } },
        { { { LINE, 2, { { 30, 6 }, { 92, 0 } } },
            { CURVE, 7, { { 30, 6 }, { 20, 58 }, { 58, 58 }, { 88, 84 }, { 82, 120 }, { 48, 140 }, { 10, 128 } } } } },
        { { { LINE, 3, { { 80, 6 }, { 34, 6 }, { 26, 62 } } },
            { CURVE, 5, { { 26, 62 }, { 74, 66 }, { 84, 106 }, { 50, 138 }, { 6, 130 } } } } },
    },
    {
        { { { CURVE, 10,
            { { 75, 4 }, { 40, 30 }, { 15, 75 }, { 12, 110 }, { 40, 138 }, { 75, 132 }, { 88, 102 }, { 70, 78 },
                { 40, 80 }, { 15, 105 } } } } },
        { { { CURVE, 9,
            { { 55, 0 }, { 22, 45 }, { 10, 95 }, { 30, 135 }, { 65, 138 }, { 85, 110 }, { 70, 82 }, { 35, 85 },
                { 14, 108 } } } } },
        { { { CURVE, 8,
            { { 82, 12 }, { 46, 8 }, { 16, 56 }, { 16, 118 }, { 56, 140 }, { 88, 112 }, { 62, 78 }, { 20, 92 } } } } },
    },
    {
        { { { LINE, 3, { { 8, 4 }, { 92, 4 }, { 40, 140 } } } } },
        { { { LINE, 3, { { 8, 6 }, { 90, 2 }, { 36, 140 } } }, { LINE, 2, { { 30, 74 }, { 82, 70 } } } } },
        { { { CURVE, 3, { { 8, 14 }, { 45, 4 }, { 92, 6 } } },
            { CURVE, 4, { { 92, 6 }, { 66, 50 }, { 50, 96 }, { 46, 140 } } } } },
    },
    {
        { { { LOOP, 12,
            { { 50, 65 }, { 82, 38 }, { 78, 10 }, { 50, 0 }, { 22, 10 }, { 18, 38 }, { 50, 68 }, { 88, 98 },
                { 84, 128 }, { 50, 140 }, { 16, 128 }, { 12, 98 } } } } },
        { { { LOOP, 6, { { 50, 0 }, { 80, 15 }, { 80, 48 }, { 50, 64 }, { 20, 48 }, { 20, 15 } } },
            { LOOP, 6, { { 50, 64 }, { 90, 82 }, { 90, 122 }, { 50, 140 }, { 10, 122 }, { 10, 82 } } } } },
        { { { CURVE, 12,
            { { 84, 14 }, { 48, 0 }, { 18, 22 }, { 40, 58 }, { 80, 92 }, { 82, 128 }, { 48, 140 }, { 18, 118 },
                { 34, 82 }, { 66, 52 }, { 84, 30 }, { 80, 10 } } } } },
    },
    {
        { { { LOOP, 7, { { 50, 0 }, { 82, 14 }, { 88, 42 }, { 70, 66 }, { 40, 70 }, { 14, 50 }, { 16, 18 } } },
            { LINE, 3, { { 88, 26 }, { 87, 80 }, { 80, 140 } } } } },
        { { { LOOP, 6, { { 48, 0 }, { 82, 16 }, { 84, 46 }, { 50, 68 }, { 16, 50 }, { 16, 18 } } },
            { CURVE, 4, { { 84, 24 }, { 88, 80 }, { 68, 126 }, { 24, 138 } } } } },
        { { { CURVE, 9,
            { { 84, 16 }, { 46, 0 }, { 12, 26 }, { 24, 62 }, { 62, 62 }, { 86, 18 }, { 86, 60 }, { 78, 100 },
                { 70, 140 } } } } },
    },
};

/* --------------------------------------------------------------------------------------------- one image ---- */

/* Hands out the random numbers of one image one after another. */
struct dice {
    uint64_t seed, next;
};

/* Rolls low .. high, both included. */
static int roll(struct dice *dice, int low, int high)
{
    return low + (int)random_below(dice->seed, RANDOM_DIGITS, dice->next++, (uint64_t)(high - low + 1));
}

/* Rolls low .. high, with the middle likelier than the ends: hands vary a little most of the time. */
static int roll_mild(struct dice *dice, int low, int high)
{
    int first = roll(dice, low, high);
    return (first + roll(dice, low, high)) / 2;
}

struct point {
    int x, y;
};

/* From the grid to the image: x = (xx dx + xy dy) / Q16 + shift, dx and dy counted from the middle of the grid. */
struct hand {
    int64_t xx, xy, yx, yy;
    int shift_x, shift_y;
    int bend;             /* grid units by which the middle of the digit moves aside */
    int wobble;           /* grid units by which each point moves at most */
    int radius, softness; /* of the pen, of its edge */
};

static struct hand draw_hand(struct dice *dice)
{
    struct hand hand;
    int64_t t = roll_mild(dice, -Q16 / 7, Q16 / 7); /* tangent of half the angle: +- 16 degrees */
    int64_t t2 = t * t / Q16;
    int64_t cosine = (Q16 - t2) * Q16 / (Q16 + t2), sine = 2 * t * Q16 / (Q16 + t2);
    int64_t slant = roll_mild(dice, -Q16 / 3, Q16 / 3);
    /* 140 units are 20 pixels, made smaller or larger. */
    int64_t size = (int64_t)20 * ONE * Q16 / 140 * roll_mild(dice, 75, 112) / 100;
    int64_t width = size * roll_mild(dice, 65, 115) / 100;
    int64_t turned = cosine * slant / Q16;
    hand.xx = width * cosine / Q16;
    hand.xy = -(size * (sine + turned) / Q16);
    hand.yx = width * sine / Q16;
    hand.yy = size * (cosine - sine * slant / Q16) / Q16;
    hand.shift_x = DIGITS_SIDE * ONE / 2 + roll_mild(dice, -3 * ONE, 3 * ONE);
    hand.shift_y = DIGITS_SIDE * ONE / 2 + roll_mild(dice, -3 * ONE, 3 * ONE);
    hand.bend = roll_mild(dice, -14, 14);
    hand.wobble = roll(dice, 3, 11);
    hand.radius = roll(dice, 170, 420);
    hand.softness = roll(dice, 230, 420);
    return hand;
}

static struct point place(const struct hand *hand, struct dice *dice, const short grid[2])
{
    int dx = grid[0] - 50 + roll_mild(dice, -hand->wobble, hand->wobble);
    int dy = grid[1] - 70 + roll_mild(dice, -hand->wobble, hand->wobble);
    dx += hand->bend * (70 * 70 - dy * dy) / (70 * 70);
    return (struct point) { (int)((hand->xx * dx + hand->xy * dy) / Q16) + hand->shift_x,
        (int)((hand->yx * dx + hand->yy * dy) / Q16) + hand->shift_y };
}

static int integer_root(int64_t value)
{
    int64_t root = 0;
    for (int64_t bit = (int64_t)1 << 13; bit > 0; bit /= 2) {
        if ((root + bit) * (root + bit) <= value) root += bit;
    }
    return (int)root;
}

/* The square of the distance from p to the piece from a to b. */
static int64_t distance_squared(struct point p, struct point a, struct point b)
{
    int64_t dx = b.x - a.x, dy = b.y - a.y, px = p.x - a.x, py = p.y - a.y;
    int64_t length = dx * dx + dy * dy, along = px * dx + py * dy;
    if (along > 0 && length > 0) {
        if (along > length) along = length;
        px -= dx * along / length;
        py -= dy * along / length;
    }
    return px * px + py * py;
}

static int clamp(int value, int low, int high)
{
    return value < low ? low : value > high ? high : value;
}

/* Inks the pixels near the piece from a to b: full within the pen's radius, fading over its softness. */
static void draw_piece(const struct hand *hand, struct point a, struct point b, unsigned char *ink)
{
    int reach = hand->radius + hand->softness / 2;
    int64_t reach_squared = (int64_t)reach * reach;
    int left = clamp(((a.x < b.x ? a.x : b.x) - reach) / ONE - 1, 0, DIGITS_SIDE - 1);
    int right = clamp(((a.x > b.x ? a.x : b.x) + reach) / ONE + 1, 0, DIGITS_SIDE - 1);
    int top = clamp(((a.y < b.y ? a.y : b.y) - reach) / ONE - 1, 0, DIGITS_SIDE - 1);
    int bottom = clamp(((a.y > b.y ? a.y : b.y) + reach) / ONE + 1, 0, DIGITS_SIDE - 1);
    for (int y = top; y <= bottom; y++) {
        for (int x = left; x <= right; x++) {
            unsigned char *pixel = &ink[y * DIGITS_SIDE + x];
            struct point centre = { x * ONE + ONE / 2, y * ONE + ONE / 2 };
            int64_t squared = distance_squared(centre, a, b);
            if (*pixel == 255 || squared >= reach_squared) continue;
            int cover = clamp((reach - integer_root(squared)) * 255 / hand->softness, 0, 255);
            if (cover > *pixel) *pixel = (unsigned char)cover;
        }
    }
}

/* One coordinate of a Catmull-Rom spline between p1 and p2, at k / 8: it passes through all its points. */
static int spline(int p0, int p1, int p2, int p3, int k)
{
    return (1024 * p1 + (p2 - p0) * k * 64 + (2 * p0 - 5 * p1 + 4 * p2 - p3) * k * k * 8 +
               (3 * p1 - p0 - 3 * p2 + p3) * k * k * k) /
        1024;
}

static void draw_stroke(const struct stroke *stroke, const struct hand *hand, struct dice *dice, unsigned char *ink)
{
    struct point points[MAX_POINTS];
    int count = stroke->count, pieces = stroke->kind == LOOP ? count : count - 1;
    for (int i = 0; i < count; i++) points[i] = place(hand, dice, stroke->points[i]);
    for (int i = 0; i < pieces; i++) {
        struct point from = points[i], to = points[(i + 1) % count], before = from, after = to;
        if (stroke->kind == LINE) {
            draw_piece(hand, from, to, ink);
            continue;
        }
        if (i > 0 || stroke->kind == LOOP) before = points[(i + count - 1) % count];
        if (i + 2 < count || stroke->kind == LOOP) after = points[(i + 2) % count];
        struct point last = from;
        for (int k = 1; k <= 8; k++) {
            struct point next = { spline(before.x, from.x, to.x, after.x, k),
                spline(before.y, from.y, to.y, after.y, k) };
            draw_piece(hand, last, next, ink);
            last = next;
        }
    }
}

/* Ink becomes brightness; noise is the sum of four bytes, close to a normal distribution. */
static void develop(struct dice *dice, const unsigned char *ink, unsigned char *pixels)
{
    int level = roll(dice, 150, 255), base = roll_mild(dice, 0, 40), noise = roll(dice, 4, 48);
    for (int i = 0; i < DIGITS_SIDE * DIGITS_SIDE; i++) {
        uint32_t bits = random_bits(dice->seed, RANDOM_DIGITS, dice->next++);
        int sum = (int)(bits & 255) + (int)(bits >> 8 & 255) + (int)(bits >> 16 & 255) + (int)(bits >> 24) - 510;
        /* The sum's standard deviation is 148. */
        pixels[i] = (unsigned char)clamp(base + ink[i] * (level - base) / 255 + sum * noise / 148, 0, 255);
    }
}

int digits_draw(uint64_t seed, uint64_t index, unsigned char *pixels)
{
    unsigned char ink[DIGITS_SIDE * DIGITS_SIDE] = { 0 };
    struct dice dice = { seed, index << 11 }; /* one image takes fewer than 2048 numbers */
    int digit = roll(&dice, 0, DIGITS_CLASSES - 1);
    const struct glyph *glyph = &glyphs[digit][roll(&dice, 0, VARIANTS - 1)];
    struct hand hand = draw_hand(&dice);
    for (int i = 0; i < MAX_STROKES && glyph->strokes[i].kind != NONE; i++)
        draw_stroke(&glyph->strokes[i], &hand, &dice, ink);
    develop(&dice, ink, pixels);
    return digit;
}

tutti_status digits_make(uint64_t seed, uint64_t first, int64_t samples, struct dataset *dataset)
{
    tutti_status status = dataset_new(dataset, "digits", samples, 1, DIGITS_SIDE, DIGITS_SIDE, DIGITS_CLASSES);
    if (status != TUTTI_OK) return status;
    for (int64_t i = 0; i < samples; i++) {
        unsigned char *pixels = dataset->pixels + (size_t)i * DIGITS_SIDE * DIGITS_SIDE;
        dataset->labels[i] = digits_draw(seed, first + (uint64_t)i, pixels);
    }
    return TUTTI_OK;
}
