/* The watchdog over the threads of all devices of a trainer, which may hang (worker.h). */
#ifndef REPLICA_WATCHDOG_H
#define REPLICA_WATCHDOG_H

#include <pthread.h>
#include <stdbool.h>

struct worker;

struct watchdog {
    pthread_mutex_t lock; /* guards jobs, arrived gradients, exchanged statistics and plans in the background */
    pthread_cond_t changed;
    struct worker *workers;             /* a linked list */
    double step_limit_s, build_limit_s; /* 0: automatic */
    /* Called under the lock while a thread waits: makes progress with the communication between ranks. Returns the
     * seconds until the next call, or 0 if there is no communication. */
    double (*progress)(void *user);
    void *user;
};

void watchdog_open(struct watchdog *watchdog, double (*progress)(void *user), void *user);
void watchdog_close(struct watchdog *watchdog);
void watchdog_set_limits(struct watchdog *watchdog, double step_s, double build_s); /* 0: automatic */
bool watchdog_has_limit(const struct watchdog *watchdog);                           /* the caller has limited steps */
/* Any thread may call these two. */
void watchdog_lock(struct watchdog *watchdog);
void watchdog_unlock(struct watchdog *watchdog);
/* Wakes all waiting threads. Any thread may call it, under the lock. */
void watchdog_notify(struct watchdog *watchdog);
/* Under the lock: waits for watchdog_notify() or a short time, then abandons the devices that exceed their limits. */
void watchdog_wait(struct watchdog *watchdog);

#endif
