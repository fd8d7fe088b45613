/* What a network sees: training samples of the first epoch, augmented, as pictures with their targets. */
#include "base/memory.h"
#include "base/status.h"
#include "tools/page.h"
#include "tools/report.h"
#include "tools/sample_picture.h"

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

static void caption(struct text *page, const struct report_facts *facts, const struct parts *parts, int64_t index)
{
    char number[32];
    text_append(page, "<figcaption>");
    for (int i = 0; i < parts->count; i++) {
        if (sample_has_mask(facts))
            text_append(
                page, "<span class=\"key\" style=\"background:#%06x\"></span>", sample_colour(parts->classes[i]));
        text_append(page, "<b>");
        page_text(page, report_class(facts, parts->classes[i], number, sizeof(number)));
        text_append(page, "</b>");
        if (parts->count > 1) text_append(page, " %.0f %%", 100 * parts->parts[i]);
        text_append(page, "<br>");
    }
    text_append(page, "<span class=\"soft\">");
    sample_name(page, facts, TUTTI_DATA_TRAIN, index);
    text_append(page, "</span></figcaption>");
}

static tutti_status figure(
    struct text *page, const struct report_facts *facts, const void *values, const void *target, int64_t index)
{
    tutti_status status = TUTTI_OK;
    struct parts parts;
    struct text alt = { 0 };
    const bool mask = sample_has_mask(facts);
    TRY(find_parts(facts, target, &parts));
    text_append(&alt, "Training sample %lld: ", (long long)index);
    parts_text(&alt, facts, &parts);
    if (alt.failed) FAIL(TUTTI_NO_MEMORY, "there is no memory for the report");
    text_append(page, mask ? "<figure class=\"masked\">" : "<figure>");
    TRY(sample_append(page, facts, values, NULL, mask ? "The picture alone" : alt.data));
    if (mask) TRY(sample_append(page, facts, values, target, alt.data));
    caption(page, facts, &parts, index);
    text_append(page, "</figure>\n");
done:
    text_free(&alt);
    return status;
}

tutti_status report_samples(const struct report *report, struct text *page)
{
    const struct report_facts *facts = &report->facts;
    const int64_t samples = facts->train->samples;
    const int count = samples < SHOWN_SAMPLES ? (int)samples : SHOWN_SAMPLES;
    tutti_status status = TUTTI_OK;
    struct sample_room room = { 0 };
    int64_t indices[SHOWN_SAMPLES];
    if (!sample_is_picture(facts) || !sample_room_make(&room, facts, count)) goto done;
    for (int i = 0; i < count; i++) indices[i] = (samples - 1) * i / (count > 1 ? count - 1 : 1);
    tutti_data_epoch(facts->opened, 0);
    if (facts->train->read(facts->train->user, indices, count, room.buffers, 2) != 0) goto done; /* training tells */
    page_section(page, "What the network sees", false);
    text_append(page,
        "<p class=\"soft\">%d training samples of the first epoch, from the first to the last, as the network gets "
        "them.</p>\n<div class=\"samples%s\">\n",
        count, sample_has_mask(facts) ? " pairs" : "");
    for (int i = 0; i < count; i++)
        TRY(figure(page, facts, room.values + (size_t)i * room.sample_bytes,
            room.targets + (size_t)i * room.target_bytes, indices[i]));
    text_append(page, "</div>\n");
    page_section_end(page);
done:
    sample_room_free(&room);
    return status;
}
