/* Trainings over arrays, as a source that reads them. */
#include "parallel/ranks_notes.h"
#include "parallel/trainer.h"
#include "train/checks.h"
#include "train/fit.h"

#include <stdlib.h>
#include <string.h>

/* The arrays that tutti_fit() was given: the caller's, or copies that are kept until it returns, because calls within
 * the training read feeds, too (tutti_fitting.progress). */
struct held {
    const struct feed_list *list;
    struct arrays arrays;
    int32_t *copies[PLAN_MAX_FEEDS];
};

/* A tutti_source.read. `buffers` are those of feeds_buffers(): one for each feed that trains, in the list's order. */
static int read_arrays(void *user, const int64_t *indices, int64_t count, const tutti_buffer *buffers, int buffer_count)
{
    const struct held *held = user;
    int number = -1;
    for (int b = 0; b < buffer_count; b++) {
        while (!held->list->feeds[++number].trains) continue;
        const size_t bytes = buffers[b].bytes;
        const unsigned char *from = held->arrays.at[number];
        unsigned char *to = buffers[b].data;
        for (int64_t i = 0; i < count; i++) memcpy(to + (size_t)i * bytes, from + (size_t)indices[i] * bytes, bytes);
    }
    return 0;
}

tutti_status tutti_fit(
    tutti_trainer *trainer, const tutti_feed *feeds, int feed_count, int64_t samples, const tutti_fitting *fitting)
{
    tutti_status status = TUTTI_OK;
    bool borrowed = true;
    struct held held = { 0 };
    TRY(trainer_check_not_in_fit(trainer, "tutti_fit()"));
    status = trainer_check(trainer, true, samples);
    if (status == TUTTI_OK)
        status = feeds_read(&trainer->feeds, feeds, feed_count, true, samples, &held.arrays, &borrowed);
    if (!trainer) return status;
    TRY(ranks_report_failure(trainer, status));
    if (!borrowed) feeds_take_copies(&trainer->feeds, held.copies);
    held.list = &trainer->feeds;
    const tutti_source source = {
        .samples = samples, .read = read_arrays, .user = &held, .length = held.arrays.length
    };
    status = fit_run(trainer, &source, fitting, true);
done:
    for (int i = 0; i < PLAN_MAX_FEEDS; i++) free(held.copies[i]);
    return status;
}
