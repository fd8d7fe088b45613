#include "base/mel_scale.h"

#include <math.h>

static const double turn = 6.283185307179586;

int mel_window_length(int rate)
{
    int length = 16;
    while (length * 1.4142 < 0.064 * rate) length *= 2;
    return length;
}

float mel_window_at(int sample, int length)
{
    return (float)(0.5 - 0.5 * cos(turn * sample / length));
}

static double hertz_of(double mel)
{
    return 700 * (pow(10, mel / 2595) - 1);
}

struct mel_triangle mel_triangle_of(int band, int bands, int rate)
{
    const double most = 2595 * log10(1 + rate / 2.0 / 700), step = most / (bands + 1);
    return (struct mel_triangle) { hertz_of(step * band), hertz_of(step * (band + 1)), hertz_of(step * (band + 2)) };
}

float mel_weight(const struct mel_triangle *triangle, double hertz)
{
    const double rise = (hertz - triangle->low) / (triangle->middle - triangle->low);
    const double fall = (triangle->high - hertz) / (triangle->high - triangle->middle);
    const double weight = rise < fall ? rise : fall;
    return weight > 0 ? (float)weight : 0;
}
