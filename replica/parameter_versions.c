#include "replica/parameter_versions.h"

#include <xxhash.h>

bool versions_lack_parameters(const struct parameter_versions *versions, const struct supply *supply)
{
    return supply->master.parameters && versions->parameters != supply->version;
}

bool versions_lack_states(const struct parameter_versions *versions, const struct supply *supply)
{
    return supply->master.parameters && versions->states != supply->version;
}

bool versions_lack_frozen(const struct parameter_versions *versions, const struct supply *supply)
{
    return versions->frozen != supply->frozen_version;
}

void versions_took_frozen(struct parameter_versions *versions, const struct supply *supply)
{
    versions->frozen = supply->frozen_version;
}

void versions_took(struct parameter_versions *versions, const struct supply *supply, bool states)
{
    versions->parameters = supply->version;
    if (states) versions->states = supply->version;
}

void versions_updated(struct parameter_versions *versions, uint64_t version, bool states)
{
    versions->parameters = version;
    if (states) versions->states = version;
}

void versions_drop_parameters(struct parameter_versions *versions)
{
    versions->parameters = 0;
}

void versions_drop(struct parameter_versions *versions)
{
    versions->parameters = versions->states = versions->frozen = 0;
}

void versions_tear(struct parameter_versions *versions, bool torn)
{
    versions->torn = torn;
}

bool versions_are_torn(const struct parameter_versions *versions)
{
    return versions->torn;
}

uint64_t parameters_checksum(const tutti_network *network, const float *parameters)
{
    return XXH3_64bits(parameters, (size_t)network->total_floats * sizeof(*parameters));
}
