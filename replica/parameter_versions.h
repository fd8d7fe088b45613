/* Which versions of the parameters and of the optimizer's states a device has. The host counts versions
 * (parallel/parameter_store.h); a device gets what it lacks before its work. */
#ifndef REPLICA_PARAMETER_VERSIONS_H
#define REPLICA_PARAMETER_VERSIONS_H

#include "replica/optimizer.h"

/* Versions of the parameters on a device; 0: invalid. Its jobs set them, and between jobs the trainer's thread. */
struct parameter_versions {
    uint64_t parameters, states, frozen;
    bool partial; /* an update began and did not end: they may be of this step or of the last one */
};

/* What a device gets before its work. A copy, because the store may change while a device that was given up comes
 * back. */
struct parameter_snapshot {
    struct optimizer_arrays master; /* no parameters: the device has the newest */
    uint64_t version;
    const float *frozen;
    uint64_t frozen_version;
    bool has_next_copy; /* the exchange writes it, and with it the parameters that devices have mapped */
};

bool versions_lack_parameters(const struct parameter_versions *versions, const struct parameter_snapshot *snapshot);
bool versions_lack_states(const struct parameter_versions *versions, const struct parameter_snapshot *snapshot);
bool versions_lack_frozen(const struct parameter_versions *versions, const struct parameter_snapshot *snapshot);
void versions_took_frozen(struct parameter_versions *versions, const struct parameter_snapshot *snapshot);
void versions_took(struct parameter_versions *versions, const struct parameter_snapshot *snapshot, bool states);
/* After an update to this version, if the device has updated itself, or the exchange has written its memory. */
void versions_updated(struct parameter_versions *versions, uint64_t version, bool states);
void versions_invalidate_parameters(struct parameter_versions *versions);      /* it gets others before its next work */
void versions_invalidate(struct parameter_versions *versions);                 /* they may be half written */
void versions_mark_partial(struct parameter_versions *versions, bool partial); /* an update begins; it has ended */
bool versions_are_partial(const struct parameter_versions *versions);

/* Returns a checksum of an arena of parameters, by which a device's are compared with the master copy. */
uint64_t parameters_checksum(const tutti_network *network, const float *parameters);

#endif
