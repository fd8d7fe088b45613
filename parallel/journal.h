/* The journal of a sole replica among several devices: what it has learnt is not lost with its device. */
#ifndef PARALLEL_JOURNAL_H
#define PARALLEL_JOURNAL_H

#include "replica/run.h"

struct tutti_trainer;

/* - journal_take() copies the samples of a step before that replica runs it, and sets input->feeds to the copies
 *   (input->journaled); journal_take_ahead() copies those of the next step meanwhile, if they are known.
 * - journal_note() is called after each step, which took `seconds`.
 * - journal_lacks_steps() returns whether steps have to be replayed because that device is lost.
 * - journal_claim() returns their number, and the caller promises to replay them: each is journal_next(), ended by
 *   journal_note(). A caller that fails calls journal_return() with the number that is left: until they are replayed,
 *   the parameters are those of an older step than trainer->state.position.
 * - journal_copy() makes the host's parameters the newest, if the device works. */
tutti_status journal_open(struct tutti_trainer *trainer);
void journal_free(struct tutti_trainer *trainer);
tutti_status journal_take(struct tutti_trainer *trainer, struct step_input *input);
void journal_take_ahead(struct tutti_trainer *trainer);
tutti_status journal_note(struct tutti_trainer *trainer, const struct step_input *input, double seconds);
bool journal_lacks_steps(const struct tutti_trainer *trainer);
size_t journal_claim(struct tutti_trainer *trainer);
void journal_return(struct tutti_trainer *trainer, size_t left);
struct step_input journal_next(const struct tutti_trainer *trainer);
tutti_status journal_copy(struct tutti_trainer *trainer);

#endif
