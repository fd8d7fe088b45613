/* Scores of all ranks together. Counts are exact; sums of floats are added in the order of the ranks. */
#include "train/scores_ranks.h"

#include "base/memory.h"
#include "parallel/ranks.h"
#include "parallel/trainer.h"
#include "train/scored.h"

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

enum { PIECE = 1 << 16 }; /* bytes that a rank sends at once */

uint64_t scores_hash(const tutti_scores *scores)
{
    if (!scores) return 0;
    const int64_t numbers[] = { scores->classes, scores->labels, scores->top, scores->worst, scores->spans != NULL,
        scores->transcript, scores->blank };
    const uint64_t hash = XXH3_64bits(numbers, sizeof(numbers));
    return scores->units ? XXH3_64bits_withSeed(scores->units, (size_t)scores->labels * sizeof(*scores->units), hash)
                         : hash;
}

/* join_all() passes the ranks' arrays, with elements of `size` bytes, to join(): piece by piece, in the order of the
 * ranks. */
struct joining {
    tutti_scores *scores;
    size_t first, count; /* elements of the piece */
    bool is_first;       /* of the ranks */
};
typedef void join_function(const struct joining *joining, const void *piece);

static tutti_status join_all(
    struct tutti_hosts *comm, tutti_scores *scores, const void *mine, size_t count, size_t size, join_function *join)
{
    tutti_status status = TUTTI_OK;
    const size_t most = PIECE / size;
    unsigned char *all = memory_new((size_t)comm->count, PIECE), *own = memory_new(1, PIECE);
    if (!all || !own) {
        comm_leave(comm); /* the others wait for this rank */
        status = TUTTI_NO_MEMORY;
    }
    for (size_t first = 0; status == TUTTI_OK && first < count; first += most) {
        struct joining joining = { scores, first, count - first < most ? count - first : most, true };
        memcpy(own, (const unsigned char *)mine + first * size, joining.count * size);
        status = comm_gather(comm, own, all, joining.count * size);
        for (int i = 0; status == TUTTI_OK && i < comm->count; i++) {
            joining.is_first = i == 0;
            join(&joining, all + (size_t)i * joining.count * size);
        }
    }
    free(all);
    free(own);
    return status;
}

static void join_counts(const struct joining *joining, const void *piece)
{
    const int64_t *from = piece;
    int64_t *to = joining->scores->counts + joining->first;
    for (size_t i = 0; i < joining->count; i++) to[i] = (joining->is_first ? 0 : to[i]) + from[i];
}

static void join_moments(const struct joining *joining, const void *piece)
{
    const struct moments *from = piece;
    struct moments *to = joining->scores->moments + joining->first;
    for (size_t i = 0; i < joining->count; i++) {
        if (joining->is_first) to[i] = (struct moments) { 0 };
        moments_join(&to[i], &from[i]);
    }
}

static void join_sums(const struct joining *joining, const void *piece)
{
    const struct score_sums *from = piece;
    struct score_sums *to = &joining->scores->sums;
    if (joining->is_first) *to = (struct score_sums) { 0 };
    to->loss += from->loss;
    to->absolute += from->absolute;
}

/* Unused entries have size 0. */
static void join_mistakes(const struct joining *joining, const void *piece)
{
    const tutti_mistake *from = piece;
    for (size_t i = 0; i < joining->count; i++)
        if (from[i].size > 0) scores_keep(joining->scores, &from[i]);
}

static tutti_status share_mistakes(struct tutti_hosts *comm, tutti_scores *scores)
{
    const size_t count = (size_t)scores->worst;
    tutti_mistake *mine = memory_new(count, sizeof(*mine));
    if (!mine) {
        comm_leave(comm);
        return TUTTI_NO_MEMORY;
    }
    memcpy(mine, scores->mistakes, (size_t)scores->mistake_count * sizeof(*mine));
    scores->mistake_count = 0;
    const tutti_status status = join_all(comm, scores, mine, count, sizeof(*mine), join_mistakes);
    free(mine);
    return status;
}

tutti_status scores_total(struct tutti_trainer *trainer, tutti_scores *scores)
{
    tutti_status status = TUTTI_OK;
    if (!scores || !trainer->ranks) return TUTTI_OK;
    struct tutti_hosts *comm = trainer->ranks->comm;
    TRY(join_all(comm, scores, scores->counts, (size_t)scores->count, sizeof(*scores->counts), join_counts));
    TRY(join_all(comm, scores, &scores->sums, 1, sizeof(scores->sums), join_sums));
    if (scores->moments)
        TRY(join_all(comm, scores, scores->moments, (size_t)scores->labels, sizeof(*scores->moments), join_moments));
    TRY(share_mistakes(comm, scores));
done:
    return status;
}
