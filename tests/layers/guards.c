#include "tests/layers/guards.h"

#include "base/memory.h"
#include "plan/passes.h"

enum { POISON = 0x7fc0dead }; /* a quiet NaN */

tutti_status guards_poison(struct plan *plan)
{
    tutti_status status = TUTTI_OK;
    for (int i = 0; i < plan->memory.arena->count; i++)
        TRY(buffer_fill(plan->device, plan->memory.arena->slabs[i], 0, plan->memory.arena->sizes[i], POISON));
done:
    return status;
}

/* Checks that the guard after a place holds the poison. Bytes to the next multiple of 4 belong to the value. */
static tutti_status check_guard(struct plan *plan, const struct memory_slot *slot, const char *what, size_t number)
{
    uint32_t words[PLAN_GUARD_BYTES / 4];
    size_t start = size_round_up(slot->position.offset + slot->bytes, 4);
    size_t end = slot->position.offset + slot->bytes + PLAN_GUARD_BYTES;
    tutti_status status =
        buffer_read(plan->device, plan->memory.arena->slabs[slot->position.slab], start, words, end / 4 * 4 - start);
    if (status != TUTTI_OK) return status;
    for (size_t i = 0; i < (end / 4 * 4 - start) / 4; i++)
        if (words[i] != POISON)
            return fail(TUTTI_WRONG_RESULT, "a kernel wrote %zu bytes past the end of %s %zu", i * 4, what, number);
    return TUTTI_OK;
}

tutti_status guards_check(struct plan *plan)
{
    tutti_status status = TUTTI_OK;
    struct memory_plan memory = { 0 };
    if (!plan->options.guards) return fail(TUTTI_INVALID, "the plan was made without guards");
    TRY(pass_memory(plan, &memory));
    for (size_t v = 0; v < plan->graph.value_count; v++)
        if (memory.slots[v].kind == SLOT_ARENA) TRY(check_guard(plan, &memory.slots[v], "value", v));
    for (size_t n = 0; n < plan->graph.node_count; n++)
        if (memory.prepared[n].bytes) TRY(check_guard(plan, &memory.prepared[n], "prepared data of node", n));
    if (memory.workspace.bytes) TRY(check_guard(plan, &memory.workspace, "the workspace, node", 0));
done:
    memory_plan_free(&memory);
    return status;
}
