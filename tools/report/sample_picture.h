/* Samples as a network gets them, as small PNG files in a page. */
#ifndef TOOLS_SAMPLE_PICTURE_H
#define TOOLS_SAMPLE_PICTURE_H

#include "tools/report/report.h"

enum { SAMPLE_COLOURS = 8 };

/* Memory for samples and their targets, as tutti_source.read fills it. */
struct sample_room {
    unsigned char *values, *targets;
    size_t sample_bytes, target_bytes;
    tutti_buffer buffers[2];
};
/* Makes room for `count` samples. Returns false if they are too large to be shown, or there is no memory. */
bool sample_room_make(struct sample_room *room, const struct report_facts *facts, int count);
void sample_room_free(struct sample_room *room);

/* Returns whether samples are pictures, [channels][height][width]; whether targets are a class for each pixel. */
bool sample_is_picture(const struct report_facts *facts);
bool sample_has_mask(const struct report_facts *facts);
/* The colour of a class in a mask, RGB. */
unsigned sample_colour(int64_t class_number);
/* Adds the picture of a sample to an object: its file in base64 as "png", and whether it is "small". `mask` lies over
 * it in the classes' colours; NULL: none. */
tutti_status sample_picture(
    struct json_line *line, const struct report_facts *facts, const void *values, const int32_t *mask);
/* Adds the end of the file's name, or the number, as "name". */
void sample_name(struct json_line *line, const struct report_facts *facts, tutti_data_part part, int64_t index);

#endif
