/* Picture files: the first byte has the wish, the others are the file. */
#include "formats/image.h"
#include "formats/image_facts.h"
#include "tests/fuzz/target.h"

#include <stdlib.h>

/* Larger ones take seconds with sanitizers. */
enum { MOST_PIXELS = 1 << 20 };

int LLVMFuzzerInitialize(int *count, char ***words)
{
    (void)count;
    (void)words;
    return 0;
}

/* Reads all bytes, which must be there. */
static void touch(const struct image *image)
{
    static volatile unsigned char sum;
    const size_t bytes = (size_t)image->width * (size_t)image->height * (size_t)image->channels;
    if (bytes > image->capacity) abort();
    for (size_t i = 0; i < bytes; i++) sum = (unsigned char)(sum + image->pixels[i]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0) return 0;
    const int least = 1 << (data[0] >> 1 & 7);
    const struct image_wish wish = { .channels = data[0] & 1 ? 1 : 3,
        .least_width = data[0] & 16 ? least : 0,
        .least_height = least,
        .mask = data[0] & 32 };
    struct image image = { 0 };
    int width, height;
    if (!image_facts(data + 1, size - 1).format) abort();
    tutti_status status = image_size(data + 1, size - 1, "picture", &width, &height);
    if (status == TUTTI_OK && width <= MOST_PIXELS / height) {
        status = image_decode(data + 1, size - 1, "picture", &wish, &image);
        if (status == TUTTI_OK) touch(&image);
        if (status == TUTTI_OK && !wish.least_width && (image.width != width || image.height != height)) abort();
    }
    if (status != TUTTI_OK) check_message();
    image_free(&image);
    return 0;
}
