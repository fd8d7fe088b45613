#include "parallel/membership.h"

#include "base/memory.h"

#include <stdio.h>
#include <stdlib.h>

/* -------------------------------------------------------------------------------------------------- states ---- */

tutti_status membership_open(struct membership *members, int count)
{
    members->count = count;
    members->states = memory_new((size_t)count, sizeof(*members->states)); /* zeros: MEMBER_PRESENT */
    return members->states ? TUTTI_OK : TUTTI_NO_MEMORY;
}

bool membership_note_hanging(struct membership *members, int hanging)
{
    const bool changed = members->hanging != hanging;
    members->hanging = hanging;
    return changed;
}

void membership_close(struct membership *members)
{
    free(members->states);
    *members = (struct membership) { 0 };
}

void membership_suspect(struct membership *members, int member)
{
    if (members->states[member] == MEMBER_PRESENT) members->states[member] = MEMBER_SUSPECT;
}

void membership_clear(struct membership *members)
{
    for (int i = 0; i < members->count; i++)
        if (members->states[i] == MEMBER_SUSPECT) members->states[i] = MEMBER_PRESENT;
}

void membership_lose(struct membership *members, int member)
{
    members->states[member] = MEMBER_LOST;
}

void membership_lose_all(struct membership *members)
{
    for (int i = 0; i < members->count; i++) membership_lose(members, i);
}

bool membership_is_present(const struct membership *members, int member)
{
    return members->states[member] == MEMBER_PRESENT;
}

bool membership_is_suspect(const struct membership *members, int member)
{
    return members->states[member] == MEMBER_SUSPECT;
}

bool membership_is_lost(const struct membership *members, int member)
{
    return members->states[member] == MEMBER_LOST;
}

int membership_count(const struct membership *members, enum member_state state)
{
    int count = 0;
    for (int i = 0; i < members->count; i++) count += members->states[i] == state;
    return count;
}

int membership_left(const struct membership *members)
{
    return members->count - membership_count(members, MEMBER_LOST);
}

/* --------------------------------------------------------------------------------------------------- votes ---- */

struct vote vote_of(tutti_status status)
{
    struct vote vote = { .says = VOTE_DONE };
    vote_take(&vote, status);
    return vote;
}

struct vote vote_retry(void)
{
    return (struct vote) { .says = VOTE_RETRY };
}

struct vote vote_replay(void)
{
    return (struct vote) { .says = VOTE_REPLAY };
}

void vote_take(struct vote *vote, tutti_status status)
{
    if (status == TUTTI_OK) return;
    vote->says = VOTE_FAIL;
    vote->status = status;
    snprintf(vote->message, sizeof(vote->message), "%s", status_message());
}

bool vote_fails(const struct vote *vote)
{
    return vote->says == VOTE_FAIL;
}

tutti_status vote_status(const struct vote *vote)
{
    if (!vote_fails(vote)) return TUTTI_OK;
    status_set(vote->status, vote->message);
    return vote->status;
}
