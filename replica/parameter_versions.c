#include "replica/parameter_versions.h"

#include <xxhash.h>

bool versions_lack_parameters(const struct parameter_versions *versions, const struct parameter_snapshot *snapshot)
{
    return snapshot->master.parameters && versions->parameters != snapshot->version;
}

bool versions_lack_states(const struct parameter_versions *versions, const struct parameter_snapshot *snapshot)
{
    return snapshot->master.parameters && versions->states != snapshot->version;
}

bool versions_lack_frozen(const struct parameter_versions *versions, const struct parameter_snapshot *snapshot)
{
    return versions->frozen != snapshot->frozen_version;
}

void versions_took_frozen(struct parameter_versions *versions, const struct parameter_snapshot *snapshot)
{
    versions->frozen = snapshot->frozen_version;
}

void versions_took(struct parameter_versions *versions, const struct parameter_snapshot *snapshot, bool states)
{
    versions->parameters = snapshot->version;
    if (states) versions->states = snapshot->version;
}

void versions_updated(struct parameter_versions *versions, uint64_t version, bool states)
{
    versions->parameters = version;
    if (states) versions->states = version;
}

void versions_invalidate_parameters(struct parameter_versions *versions)
{
    versions->parameters = 0;
}

void versions_invalidate(struct parameter_versions *versions)
{
    versions->parameters = versions->states = versions->frozen = 0;
}

void versions_mark_partial(struct parameter_versions *versions, bool partial)
{
    versions->partial = partial;
}

bool versions_are_partial(const struct parameter_versions *versions)
{
    return versions->partial;
}

uint64_t parameters_checksum(const tutti_network *network, const float *parameters)
{
    return XXH3_64bits(parameters, (size_t)network->total_floats * sizeof(*parameters));
}
