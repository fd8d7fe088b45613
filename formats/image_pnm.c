/* Netpbm's files: PBM, PGM and PPM, plain and binary (netpbm.sourceforge.net/doc). Only the first of several pictures
 * is read. */
#include "base/status.h"
#include "formats/image_kinds.h"

struct pnm {
    const struct image_file *file;
    struct image_header header;
    bool plain, bits; /* bits: PBM, where 1 is black */
    unsigned channels;
    unsigned most; /* the number that is white */
    size_t place;  /* the next byte to read */
};

static bool is_space(unsigned char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static bool is_digit(unsigned char c)
{
    return c >= '0' && c <= '9';
}

/* Reads a decimal number after spaces and comments. `single`: one digit, which another number may follow at once. */
static tutti_status read_number(struct pnm *pnm, bool single, unsigned *number)
{
    const unsigned char *bytes = pnm->file->bytes;
    const size_t count = pnm->file->count;
    size_t at = pnm->place;
    while (at < count && (is_space(bytes[at]) || bytes[at] == '#')) {
        if (bytes[at] == '#')
            while (at < count && bytes[at] != '\n' && bytes[at] != '\r') at++;
        else
            at++;
    }
    if (at == count) return fail(TUTTI_FORMAT, "%s: the file is truncated", pnm->file->name);
    if (!is_digit(bytes[at]))
        return fail(TUTTI_FORMAT, "%s: byte %zu should be a digit: the file is damaged", pnm->file->name, at);
    *number = (unsigned)(bytes[at++] - '0');
    for (; !single && at < count && is_digit(bytes[at]); at++) {
        if (*number > IMAGE_MAX_PIXELS / 10)
            return fail(TUTTI_FORMAT, "%s: the number at byte %zu is too large", pnm->file->name, at);
        *number = 10 * *number + (unsigned)(bytes[at] - '0');
    }
    pnm->place = at;
    return TUTTI_OK;
}

/* TUTTI_FORMAT if the file cannot hold the pixels; a plain number takes a byte or more. */
static tutti_status check_length(const struct pnm *pnm)
{
    const size_t width = (size_t)pnm->header.width * pnm->channels;
    const size_t row = pnm->plain ? width : pnm->bits ? (width + 7) / 8 : width * (pnm->most > 255 ? 2 : 1);
    if (pnm->place > pnm->file->count || (pnm->file->count - pnm->place) / row < (size_t)pnm->header.height)
        return fail(TUTTI_FORMAT, "%s: the file is truncated", pnm->file->name);
    return TUTTI_OK;
}

static tutti_status read_pnm(const struct image_file *file, struct pnm *pnm)
{
    tutti_status status = TUTTI_OK;
    const int kind = file->bytes[1] - '0';
    unsigned width, height;
    *pnm = (struct pnm) { .file = file,
        .plain = kind <= 3,
        .bits = kind == 1 || kind == 4,
        .channels = kind == 3 || kind == 6 ? 3 : 1,
        .most = 1,
        .place = 2 };
    TRY(read_number(pnm, false, &width));
    TRY(read_number(pnm, false, &height));
    TRY(image_set_size(&pnm->header, file, width, height));
    if (!pnm->bits) TRY(read_number(pnm, false, &pnm->most));
    if (pnm->most < 1 || pnm->most > 65535)
        FAIL(TUTTI_FORMAT, "%s: the largest number must be 1 to 65535, not %u", file->name, pnm->most);
    if (pnm->place < file->count && !is_space(file->bytes[pnm->place]))
        FAIL(TUTTI_FORMAT, "%s: byte %zu should be a space: the file is damaged", file->name, pnm->place);
    pnm->place++;
    TRY(check_length(pnm));
done:
    return status;
}

static unsigned char scale(const struct pnm *pnm, unsigned number)
{
    if (number > pnm->most) number = pnm->most;
    if (pnm->bits) number = 1 - number;
    return (unsigned char)((number * 255 + pnm->most / 2) / pnm->most);
}

static tutti_status read_row(struct pnm *pnm, unsigned char *to)
{
    const size_t count = (size_t)pnm->header.width * pnm->channels;
    const unsigned char *from = pnm->file->bytes + pnm->place;
    for (size_t i = 0; i < count; i++) {
        unsigned number;
        if (pnm->plain) {
            const tutti_status status = read_number(pnm, pnm->bits, &number);
            if (status != TUTTI_OK) return status;
        } else if (pnm->bits) {
            number = from[i / 8] >> (7 - i % 8) & 1;
        } else {
            number = pnm->most > 255 ? (unsigned)from[2 * i] << 8 | from[2 * i + 1] : from[i];
        }
        to[i] = scale(pnm, number);
    }
    if (!pnm->plain) pnm->place += pnm->bits ? (count + 7) / 8 : pnm->most > 255 ? 2 * count : count;
    return TUTTI_OK;
}

static bool pnm_matches(const struct image_file *file)
{
    const unsigned char *bytes = file->bytes;
    return file->count >= 3 && bytes[0] == 'P' && bytes[1] >= '1' && bytes[1] <= '6' &&
        (is_space(bytes[2]) || bytes[2] == '#');
}

static tutti_status pnm_header(const struct image_file *file, struct image_header *header)
{
    struct pnm pnm;
    const tutti_status status = read_pnm(file, &pnm);
    *header = pnm.header;
    return status;
}

static tutti_status pnm_decode(const struct image_file *file, const struct image_header *header,
    const struct image_wish *wish, struct image *image)
{
    struct pnm pnm;
    struct canvas canvas;
    tutti_status status = read_pnm(file, &pnm);
    if (status != TUTTI_OK) return status;
    status = canvas_begin(&canvas, file, header, pnm.channels == 1 ? ROW_GREY : ROW_RGB, wish->channels, false, image);
    for (int y = 0; status == TUTTI_OK && y < header->height; y++) {
        status = read_row(&pnm, canvas_row(&canvas, y));
        canvas_put(&canvas, y);
    }
    return status;
}

const struct image_kind image_pnm = { pnm_matches, pnm_header, pnm_decode };
