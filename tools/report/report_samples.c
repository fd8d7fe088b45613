/* What a network sees: training samples of the first epoch, augmented, as pictures with their targets. */
#include "base/memory.h"
#include "base/status.h"
#include "tools/report/page.h"
#include "tools/report/report.h"
#include "tools/report/sample_picture.h"

#include <math.h>
#include <stdlib.h>

enum { SHOWN_SAMPLES = 16, NAMED_CLASSES = 4, MOST_CLASSES = 1 << 16 };
#define SHOWN_PART 0.005f /* of a mixed sample: a smaller one would be shown as 0 % */

/* The classes of a target, with their parts of it, largest first. */
struct parts {
    int classes[NAMED_CLASSES];
    double parts[NAMED_CLASSES];
    int count;
};

static void add_part(struct parts *parts, int number, double part)
{
    if (!(part > 0) || (parts->count == NAMED_CLASSES && part <= parts->parts[NAMED_CLASSES - 1])) return;
    int at = parts->count < NAMED_CLASSES ? parts->count++ : parts->count - 1;
    for (; at > 0 && parts->parts[at - 1] < part; at--) {
        parts->parts[at] = parts->parts[at - 1];
        parts->classes[at] = parts->classes[at - 1];
    }
    parts->parts[at] = part;
    parts->classes[at] = number;
}

static tutti_status count_mask(const struct report_facts *facts, const int32_t *mask, struct parts *parts)
{
    const size_t labels = facts->target_bytes / sizeof(*mask);
    double *counts = memory_new((size_t)facts->classes, sizeof(*counts));
    if (!counts) return TUTTI_NO_MEMORY;
    for (size_t i = 0; i < labels; i++)
        if (mask[i] >= 0 && mask[i] < facts->classes) counts[mask[i]] += 1.0 / (double)labels;
    for (int i = 0; i < facts->classes; i++) add_part(parts, i, counts[i]);
    free(counts);
    return TUTTI_OK;
}

/* Finds the classes of a target: one class; those with a probability, if samples are mixed; or the classes of a
 * mask. */
static tutti_status find_parts(const struct report_facts *facts, const void *target, struct parts *parts)
{
    const int32_t *labels = target;
    const float *probabilities = target;
    *parts = (struct parts) { 0 };
    if (facts->classes < 1 || facts->classes > MOST_CLASSES) return TUTTI_OK;
    if (sample_has_mask(facts)) return count_mask(facts, labels, parts);
    if (facts->target_dtype == TUTTI_DTYPE_I32)
        add_part(parts, labels[0], 1);
    else
        for (int i = 0; i < facts->classes; i++)
            if (probabilities[i] >= SHOWN_PART) add_part(parts, i, (double)probabilities[i]);
    return TUTTI_OK;
}

/* "cat", or "cat 70 %, dog 30 %". */
static void parts_text(struct text *text, const struct report_facts *facts, const struct parts *parts)
{
    char number[32];
    for (int i = 0; i < parts->count; i++) {
        text_append(text, "%s%s", i ? ", " : "", report_class(facts, parts->classes[i], number, sizeof(number)));
        if (parts->count > 1) text_append(text, " %.0f %%", 100 * parts->parts[i]);
    }
}

static void add_parts(struct json_line *line, const struct report_facts *facts, const struct parts *parts)
{
    char number[32], colour[16];
    json_line_print(line, "parts [");
    for (int i = 0; i < parts->count; i++) {
        snprintf(colour, sizeof(colour), "#%06x", sample_colour(parts->classes[i]));
        json_line_print(line, "{ class %s part %g", report_class(facts, parts->classes[i], number, sizeof(number)),
            parts->count > 1 ? parts->parts[i] : NAN);
        if (sample_has_mask(facts)) json_line_text(line, "colour", colour);
        json_line_print(line, "}");
    }
    json_line_print(line, "]");
}

static tutti_status add_picture(
    struct json_line *line, const struct report_facts *facts, const void *values, const int32_t *mask, const char *alt)
{
    json_line_print(line, "{ alt %s", alt);
    const tutti_status status = sample_picture(line, facts, values, mask);
    json_line_print(line, "}");
    return status;
}

static tutti_status add_sample(
    struct json_line *line, const struct report_facts *facts, const void *values, const void *target, int64_t index)
{
    tutti_status status = TUTTI_OK;
    struct parts parts;
    struct text alt = { 0 };
    const bool mask = sample_has_mask(facts);
    TRY(find_parts(facts, target, &parts));
    text_append(&alt, "Training sample %lld: ", (long long)index);
    parts_text(&alt, facts, &parts);
    if (alt.failed) FAIL(TUTTI_NO_MEMORY, "there is no memory for the report");
    json_line_print(line, "{ pictures [");
    TRY(add_picture(line, facts, values, NULL, mask ? "The picture alone" : alt.data));
    if (mask) TRY(add_picture(line, facts, values, target, alt.data));
    json_line_print(line, "]");
    add_parts(line, facts, &parts);
    sample_name(line, facts, TUTTI_DATA_TRAIN, index);
    json_line_print(line, "}");
done:
    text_free(&alt);
    return status;
}

tutti_status report_samples(const struct report *report, json_t **facts)
{
    const struct report_facts *known = &report->facts;
    const int64_t samples = known->train->samples;
    const int count = samples < SHOWN_SAMPLES ? (int)samples : SHOWN_SAMPLES;
    tutti_status status = TUTTI_OK;
    struct sample_room room = { 0 };
    struct json_line line = { 0 };
    int64_t indices[SHOWN_SAMPLES];
    if (!sample_is_picture(known) || !sample_room_make(&room, known, count)) goto done;
    for (int i = 0; i < count; i++) indices[i] = (samples - 1) * i / (count > 1 ? count - 1 : 1);
    tutti_data_epoch(known->opened, 0);
    if (known->train->read(known->train->user, indices, count, room.buffers, 2) != 0) goto done; /* training tells */
    json_line_begin(&line, NULL);
    json_line_print(&line, "samples { count %d masked %hhd list [", count, sample_has_mask(known));
    for (int i = 0; i < count; i++)
        TRY(add_sample(&line, known, room.values + (size_t)i * room.sample_bytes,
            room.targets + (size_t)i * room.target_bytes, indices[i]));
    *facts = page_facts(&line);
    if (!*facts) FAIL(TUTTI_NO_MEMORY, "there is no memory for the report");
done:
    text_free(&line.text);
    sample_room_free(&room);
    return status;
}
