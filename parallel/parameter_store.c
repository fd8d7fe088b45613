#include "parallel/parameter_store.h"

#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

/* -------------------------------------------------------------------------------------------------- arrays ---- */

struct parameter_store *parameters_open(
    struct tutti_trainer *owner, const tutti_network *network, const struct optimizer *optimizer)
{
    struct parameter_store *store = memory_new(1, sizeof(*store));
    if (!store) return NULL;
    *store = (struct parameter_store) { .network = network, .optimizer = optimizer, .owner = owner, .users = 1 };
    pthread_mutex_init(&store->turns.mutex, NULL);
    pthread_cond_init(&store->turns.next, NULL);
    return store;
}

struct parameter_store *parameters_share(struct parameter_store *store)
{
    parameters_lock(store);
    store->users++;
    parameters_unlock(store);
    return store;
}

void parameters_abandon(struct parameter_store *store, const struct tutti_trainer *user)
{
    parameters_lock(store);
    if (store->owner == user) store->owner = NULL;
    parameters_unlock(store);
}

struct tutti_trainer *parameters_owner(struct parameter_store *store)
{
    return store->owner;
}

void parameters_leak(struct parameter_store *store)
{
    store->leaked = store->frozen_leaked = true;
}

void parameters_lock(struct parameter_store *store)
{
    struct turns *turns = &store->turns;
    pthread_mutex_lock(&turns->mutex);
    if (turns->depth == 0 || !pthread_equal(turns->thread, pthread_self())) {
        const uint64_t ticket = turns->tickets++;
        while (ticket != turns->served) pthread_cond_wait(&turns->next, &turns->mutex);
        turns->thread = pthread_self();
    }
    turns->depth++;
    pthread_mutex_unlock(&turns->mutex);
}

void parameters_unlock(struct parameter_store *store)
{
    struct turns *turns = &store->turns;
    pthread_mutex_lock(&turns->mutex);
    if (--turns->depth == 0) {
        turns->served++;
        pthread_cond_broadcast(&turns->next);
    }
    pthread_mutex_unlock(&turns->mutex);
}

static tutti_status make(float **array, int64_t floats)
{
    if (!*array) *array = memory_new((size_t)floats, sizeof(float));
    return *array ? TUTTI_OK : TUTTI_NO_MEMORY;
}

static tutti_status make_states(const struct parameter_store *store, struct optimizer_arrays *arrays)
{
    tutti_status status = TUTTI_OK;
    for (int i = 0; i < optimizer_states(store->optimizer); i++)
        TRY(make(&arrays->states[i], store->network->trained_floats));
done:
    return status;
}

tutti_status parameters_make(struct parameter_store *store, bool exchanges, bool sums)
{
    tutti_status status = TUTTI_OK;
    const int64_t total = store->network->total_floats, frozen = store->network->frozen_floats;
    TRY(parameters_make_parameters(store));
    if (frozen > 0) TRY(make(&store->frozen, frozen));
    if (optimizer_ema_state(store->optimizer) >= 0) TRY(make_states(store, &store->master)); /* their EMA begins here */
    store->version = store->frozen_version = 1;
    if (!exchanges) return TUTTI_OK;
    TRY(make_states(store, &store->master));
    if (sums) return make(&store->gradients, total);
    TRY(make(&store->next.parameters, total));
    TRY(make_states(store, &store->next));
done:
    return status;
}

tutti_status parameters_make_states(struct parameter_store *store)
{
    return make_states(store, &store->master);
}

tutti_status parameters_make_parameters(struct parameter_store *store)
{
    return make(&store->master.parameters, store->network->total_floats);
}

struct optimizer_arrays parameters_copy_new(const struct parameter_store *store)
{
    struct optimizer_arrays copy = { 0 };
    if (make(&copy.parameters, store->network->total_floats) != TUTTI_OK || make_states(store, &copy) != TUTTI_OK)
        parameters_copy_free(&copy);
    return copy;
}

void parameters_copy_free(struct optimizer_arrays *copy)
{
    free(copy->parameters);
    for (int i = 0; i < OPTIMIZER_STATES; i++) free(copy->states[i]);
    *copy = (struct optimizer_arrays) { 0 };
}

void parameters_drop(struct parameter_store *store)
{
    if (store->leaked) {
        store->master = store->next = (struct optimizer_arrays) { 0 };
        store->gradients = NULL;
        store->leaked = false; /* those that are made next are others */
    }
    parameters_copy_free(&store->master);
    parameters_copy_free(&store->next);
    free(store->gradients);
    store->gradients = NULL;
}

void parameters_close(struct parameter_store *store, const struct tutti_trainer *user)
{
    if (!store) return;
    parameters_lock(store);
    if (store->owner == user) {
        store->owner = NULL;
        parameters_drop(store);
        if (!store->frozen_leaked) free(store->frozen);
        store->frozen = NULL;
    }
    const bool used = --store->users > 0;
    parameters_unlock(store);
    if (used) return;
    pthread_cond_destroy(&store->turns.next);
    pthread_mutex_destroy(&store->turns.mutex);
    free(store);
}

void parameters_swap(struct parameter_store *store, struct optimizer_arrays *copy)
{
    const struct optimizer_arrays master = store->master;
    store->master = *copy;
    *copy = master;
}

struct optimizer_arrays parameters_master(const struct parameter_store *store)
{
    return store->master;
}

struct optimizer_arrays parameters_next(const struct parameter_store *store)
{
    return store->next;
}

struct parameter_arenas parameters_arenas(const struct parameter_store *store)
{
    return (struct parameter_arenas) { store->master.parameters, store->frozen };
}

float *parameters_gradients(const struct parameter_store *store)
{
    return store->gradients;
}

/* ----------------------------------------------------------------------------------------------------- ema ---- */

static float *ema_of(const struct parameter_store *store)
{
    const int state = optimizer_ema_state(store->optimizer);
    return state >= 0 ? store->master.states[state] : NULL;
}

void parameters_use_ema(struct parameter_store *store, bool use)
{
    float *parameters = store->master.parameters, *ema = ema_of(store);
    if (!ema || store->uses_ema == use) return;
    for (int64_t i = 0; i < store->network->trained_floats; i++) {
        const float value = parameters[i];
        parameters[i] = ema[i];
        ema[i] = value;
    }
    store->uses_ema = use;
    store->version++;
}

bool parameters_are_ema(const struct parameter_store *store)
{
    return store->uses_ema;
}

void parameters_begin_ema(struct parameter_store *store, int64_t first, int64_t count)
{
    float *ema = ema_of(store);
    const int64_t trained = network_trained_in(store->network, first, count);
    if (ema && trained > 0) memcpy(ema + first, store->master.parameters + first, (size_t)trained * sizeof(float));
}

/* --------------------------------------------------------------------------------------------- transitions ---- */

static void go_to(struct parameter_store *store, enum newest newest, struct replica *holder)
{
    store->newest = newest;
    store->holder = holder;
}

struct replica *parameters_holder(const struct parameter_store *store)
{
    return store->holder;
}

void parameters_commit(struct parameter_store *store, struct replica *holder, bool adopt_next)
{
    if (adopt_next) parameters_swap(store, &store->next);
    go_to(store, holder ? NEWEST_ON_DEVICE : NEWEST_ON_HOST, holder);
    store->version++;
}

void parameters_fetched(struct parameter_store *store)
{
    if (store->newest == NEWEST_ON_DEVICE) go_to(store, NEWEST_ON_HOST, NULL);
}

void parameters_lose(struct parameter_store *store, const struct replica *replica)
{
    if (store->newest != NEWEST_ON_DEVICE || store->holder != replica) return;
    go_to(store, NEWEST_LOST, NULL);
    store->version++; /* the host's copy counts again, which no device has */
}

bool parameters_are_lost(const struct parameter_store *store)
{
    return store->newest == NEWEST_LOST;
}

bool parameters_claim(struct parameter_store *store)
{
    if (store->newest != NEWEST_LOST) return false;
    go_to(store, NEWEST_ON_HOST, NULL);
    return true;
}

void parameters_changed(struct parameter_store *store)
{
    store->version++;
    store->frozen_version++;
}

/* ------------------------------------------------------------------------------------------------- devices ---- */

uint64_t parameters_version(const struct parameter_store *store)
{
    return store->version;
}

struct parameter_snapshot parameters_snapshot(const struct parameter_store *store, const struct replica *replica)
{
    struct parameter_snapshot snapshot = { .version = store->version,
        .frozen = store->frozen,
        .frozen_version = store->frozen_version,
        .has_next_copy = store->next.parameters != NULL };
    if (store->holder != replica) snapshot.master = store->master;
    return snapshot;
}
