#include "parallel/lookahead.h"

void lookahead_announce(struct lookahead *lookahead, const struct batch *next)
{
    lookahead->next = *next;
    lookahead->next.number = ++lookahead->announced;
}

void lookahead_withdraw(struct lookahead *lookahead)
{
    lookahead->next = (struct batch) { 0 };
}

void lookahead_reset(struct lookahead *lookahead)
{
    lookahead->expected = lookahead->next = (struct batch) { 0 };
}

void lookahead_advance(struct lookahead *lookahead)
{
    lookahead->expected = lookahead->next;
    lookahead->next = (struct batch) { 0 };
}

uint64_t lookahead_number(const struct lookahead *lookahead, const struct batch *batch)
{
    const struct batch *expected = &lookahead->expected;
    const bool same = batch->samples == expected->samples && arrays_equal(&batch->feeds, &expected->feeds);
    return same ? expected->number : 0;
}

struct batch lookahead_next(const struct lookahead *lookahead, int64_t samples)
{
    return lookahead->next.samples == samples ? lookahead->next : (struct batch) { 0 };
}
