/* What a replica takes of its device's memory. */
#include "replica/replica.h"

size_t replica_fixed_bytes(const struct replica *replica, bool micro_batches)
{
    const struct replica_setup *setup = replica->setup;
    size_t arenas = 1;
    if (setup->trains) arenas += 1 + micro_batches;
    size_t bytes =
        (arenas * (size_t)setup->network->total_floats + (size_t)setup->network->frozen_floats) * sizeof(float);
    bytes += gradient_transport(replica)->device_bytes(replica);
    if (setup->trains && (!setup->exchange || setup->automatic)) /* it may be the sole replica */
        bytes += (size_t)optimizer_states(setup->optimizer) * (size_t)setup->network->trained_floats * sizeof(float) +
            setup->optimizer->group_count * sizeof(struct optimizer_group);
    for (int i = 0; i < setup->carries->count; i++) bytes += 2 * (size_t)setup->batch * setup->carries->items[i].bytes;
    return bytes;
}

uint64_t replica_memory(const struct replica *replica)
{
    return replica_fixed_bytes(replica, gradients_have_sum(&replica->gradients)) + prefetch_bytes(&replica->prefetch) +
        plan_cache_bytes(&replica->plans);
}
