/* Who takes part in a training: the devices of this rank, and the ranks. One state machine serves both. Members vote at
 * the end of each attempt at a step: it is done on all of them or on none. Without ranks, a vote is only the result of
 * an attempt. */
#ifndef PARALLEL_MEMBERSHIP_H
#define PARALLEL_MEMBERSHIP_H

#include "base/status.h"

#include <stdbool.h>

/* The transitions are functions of membership.c:
 *
 *   PRESENT  membership_suspect(): its numbers are not finite, so one attempt is without it  SUSPECT
 *   SUSPECT  membership_clear(): no other member could do better, or the step has ended        PRESENT
 *   any      membership_lose(): it failed, hangs or is silent; it never comes back             LOST */
enum member_state { MEMBER_PRESENT, MEMBER_SUSPECT, MEMBER_LOST };

struct membership {
    enum member_state *states;
    int count;
    int hanging; /* members that were noted */
};

tutti_status membership_open(struct membership *members, int count); /* all are present */
void membership_close(struct membership *members);
void membership_suspect(struct membership *members, int member);
void membership_clear(struct membership *members); /* all that are suspect */
void membership_lose(struct membership *members, int member);
void membership_lose_all(struct membership *members);
/* Notes how many hang. Returns whether that is another number than before. */
bool membership_note_hanging(struct membership *members, int hanging);
bool membership_is_present(const struct membership *members, int member);
bool membership_is_suspect(const struct membership *members, int member);
bool membership_is_lost(const struct membership *members, int member);
/* How many are in a state; how many are not lost. */
int membership_count(const struct membership *members, enum member_state state);
int membership_left(const struct membership *members);

/* A member's vote on an attempt, from best to worst: the worst of all votes counts. */
enum verdict {
    VOTE_DONE,  /* its work has succeeded */
    VOTE_RETRY, /* its work has to be retried: something was lost that others replace */
    /* Steps have to be replayed first, because the device of a sole replica was lost; not between ranks. */
    VOTE_REPLAY,
    VOTE_FAIL /* the training cannot go on */
};

struct vote {
    enum verdict says;
    tutti_status status; /* of VOTE_FAIL, */
    char message[1024];  /* and why */
};

/* Returns the vote for a status: done, or failed with the message of status_message(). */
struct vote vote_of(tutti_status status);
struct vote vote_retry(void);
struct vote vote_replay(void);
/* Adds the next status to the vote of a member that stops at the first failure. */
void vote_take(struct vote *vote, tutti_status status);
bool vote_fails(const struct vote *vote);
/* The status, with its message; TUTTI_OK for other votes than VOTE_FAIL. */
tutti_status vote_status(const struct vote *vote);

#endif
