/* The master copy of the parameters and of the optimizer's states, and who has newer ones. Devices that exchange
 * gradients leave the newest on the host after each step; a device that trains alone keeps them until somebody asks.
 *
 * A frozen parameter is changed by the caller alone: the host always has the newest. */
#ifndef TRAIN_PARAMETER_STORE_H
#define TRAIN_PARAMETER_STORE_H

#include "graph/network.h"
#include "train/optimizer.h"

struct replica;

/* Where the newest parameters are. The transitions are functions of parameter_store.c:
 *
 *   ON_HOST    parameters_updated(device): it has updated itself               ON_DEVICE
 *   ON_DEVICE  parameters_fetched(): they were copied                          ON_HOST
 *   ON_DEVICE  parameters_lose(): with the device                              LOST
 *   LOST       parameters_claim(): others repeat its steps, see journal.c      ON_HOST */
enum newest { NEWEST_ON_HOST, NEWEST_ON_DEVICE, NEWEST_LOST };

struct parameter_store {
    const tutti_network *network;
    const struct optimizer *optimizer;
    enum newest newest;
    struct replica *holder;         /* the device, if they are there; else NULL */
    struct optimizer_arrays master; /* on the host; where the only device has newer ones, they are dropped */
    struct optimizer_arrays next;   /* of a step under way, where devices exchange gradients */
    float *gradients;               /* their sum, of all ranks; NULL where it is not kept */
    float *frozen;
    uint64_t version, frozen_version; /* count changes */
    bool shows_average;               /* the master copy's trained parameters and their averages have changed places */
};

/* What a device has of the parameters: versions; 0: nothing that holds. Set by its jobs, and between them by the
 * trainer's thread. */
struct holding {
    uint64_t parameters, states, frozen;
    bool torn; /* it failed while it updated them: they may be of this step or of the last one */
};

/* What a device is given before its work. It is not read from the store, which may change while a device that was given
 * up comes back. */
struct supply {
    struct optimizer_arrays master; /* no parameters: the device has the newest ones */
    uint64_t version;
    const float *frozen;
    uint64_t frozen_version;
    bool exposes; /* the exchange writes new parameters where devices share the host's memory */
};

void parameters_open(struct parameter_store *store, const tutti_network *network, const struct optimizer *optimizer);
void parameters_close(struct parameter_store *store);
/* Arrays on the host as a training begins, where devices exchange gradients; `sums`: these are kept, and updated from
 * when all are there. */
tutti_status parameters_make(struct parameter_store *store, bool exchanges, bool sums);
/* The optimizer's states, which the host does not have before the first step, and never without a loss; the parameters,
 * after they were dropped. */
tutti_status parameters_make_states(struct parameter_store *store);
tutti_status parameters_make_parameters(struct parameter_store *store);
void parameters_drop(struct parameter_store *store); /* all but the frozen ones */

/* Arrays as long as those of the master copy, with as many states; one with no parameters: the host has no memory. */
struct optimizer_arrays parameters_copy_new(const struct parameter_store *store);
void parameters_copy_free(struct optimizer_arrays *copy);
/* They become the master copy, and that becomes `copy`. */
void parameters_exchange(struct parameter_store *store, struct optimizer_arrays *copy);

/* The arrays; they stay where they are until the next step. */
struct optimizer_arrays parameters_master(const struct parameter_store *store);
struct optimizer_arrays parameters_next(const struct parameter_store *store);
struct parameter_arenas parameters_arenas(const struct parameter_store *store); /* by which parameters are found */
float *parameters_gradients(const struct parameter_store *store);
uint64_t parameters_checksum(const tutti_network *network, const float *parameters);

/* With an average of the parameters, whose newest values are on the host: what is evaluated and saved are the averages,
 * what is trained are the others. Averages begin as the parameters, and again where the caller sets these. */
void parameters_show(struct parameter_store *store, bool average);
bool parameters_shows_average(const struct parameter_store *store);
void parameters_begin_average(struct parameter_store *store, int64_t first, int64_t count);

/* Transitions. */
struct replica *parameters_holder(const struct parameter_store *store);         /* NULL: not a device */
void parameters_updated(struct parameter_store *store, struct replica *holder); /* NULL: the host has updated its own */
void parameters_adopt_next(struct parameter_store *store); /* a step's next arrays become the master copy */
void parameters_fetched(struct parameter_store *store);
void parameters_lose(struct parameter_store *store, const struct replica *replica); /* if it is the holder */
bool parameters_claim(struct parameter_store *store);   /* whether there is something to repeat */
void parameters_changed(struct parameter_store *store); /* the caller has changed the master copy */

/* What a replica is given, and has then. */
struct supply parameters_supply(const struct parameter_store *store, const struct replica *replica);
bool holding_lacks_parameters(const struct holding *holding, const struct supply *supply);
bool holding_lacks_states(const struct holding *holding, const struct supply *supply);
bool holding_lacks_frozen(const struct holding *holding, const struct supply *supply);
void holding_took_frozen(struct holding *holding, const struct supply *supply);
void holding_took(struct holding *holding, const struct supply *supply, bool states);
/* After parameters_updated(): by the device itself, or by the exchange in its memory. */
void holding_updated(struct holding *holding, const struct parameter_store *store, bool states);
void holding_drop_parameters(struct holding *holding); /* others are given before its next work */
void holding_drop(struct holding *holding);            /* they may be half written */
void holding_tear(struct holding *holding, bool torn); /* an update begins; it has ended */
bool holding_is_torn(const struct holding *holding);

#endif
