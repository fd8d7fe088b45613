/* What ranks tell each other: their votes and notes, and arrays of rank 0. */
#ifndef PARALLEL_RANKS_NOTES_H
#define PARALLEL_RANKS_NOTES_H

#include "parallel/ranks.h"

struct tutti_trainer;

/* Tells all ranks this one's vote and note, and gets theirs. A failure of one becomes that of all. */
tutti_status ranks_exchange_notes(struct tutti_trainer *trainer, const struct vote *vote);
/* Adds up the notes, always in the ranks' order. */
void ranks_add_notes(const struct ranks *ranks, struct rank_note *total);

/* Call it before all ranks do something together, with this rank's status. The other ranks, which wait for it in the
 * same call, get a failure. Does nothing if status is TUTTI_OK: the other ranks then learn it from the next
 * ranks_agree(). */
tutti_status ranks_report_failure(struct tutti_trainer *trainer, tutti_status status);
/* All ranks call it with their status; a failure of one becomes that of all. */
tutti_status ranks_agree(struct tutti_trainer *trainer, tutti_status status);
/* Something that all ranks must have the same of: what it is, as "seeds", and a number or hash of it. */
struct common {
    const char *what;
    uint64_t hash;
};
enum { COMMON = 8 };
/* Does what ranks_agree() does, and checks that all ranks have the same hashes, `count` of at most COMMON. The message
 * names the first one that differs. */
tutti_status ranks_same(struct tutti_trainer *trainer, tutti_status status, const struct common *list, int count);
/* Does what ranks_agree() does, and sums over all ranks. *whole: all went through all of their samples. */
tutti_status ranks_total(
    struct tutti_trainer *trainer, tutti_status status, struct metric_totals *totals, int64_t *samples, bool *whole);
/* Sends rank 0's arrays to all. */
tutti_status ranks_share_arenas(struct tutti_trainer *trainer);
tutti_status ranks_broadcast(struct tutti_trainer *trainer, void *data, size_t bytes);

#endif
