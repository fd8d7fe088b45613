/* The thread of a device, which runs one job at a time for its replica. Devices may hang: the trainer's thread waits
 * for a job only as long as the job's limit (watchdog.c). After that it abandons the device, the thread that is stuck
 * in the driver, and the memory that this thread may still use.
 *
 * The trainer's thread makes all calls, unless a comment says that a job makes them. */
#ifndef REPLICA_WORKER_H
#define REPLICA_WORKER_H

#include "replica/watchdog.h"
#include "runtime/device.h"

#include <pthread.h>
#include <stdint.h>

struct replica;

typedef tutti_status worker_job(struct replica *replica, void *argument);

struct worker {
    struct watchdog *watchdog;
    struct worker *next;     /* of the same watchdog */
    struct replica *replica; /* whose jobs it does */
    const struct device *device;
    double pace_s; /* the most seconds per position that a training step took, but for the first; 0: not known yet */
    bool threaded; /* else the trainer's thread runs the jobs */
    pthread_t thread;
    /* The watchdog's lock guards the members below. */
    pthread_cond_t given; /* wakes the thread for a job or `stop` */
    bool stop, busy;
    worker_job *job;
    void *argument;
    tutti_status status;
    char message[1024];
    bool guarded;               /* the job uses the caller's memory: it must not be abandoned now */
    bool waits;                 /* for other devices */
    bool abandoned;             /* a job exceeded its limit: the thread is, or was, stuck in the driver */
    double waited_s, allowed_s; /* of the present phase of the job: the time so far, and its limit */
};

/* The worker has no thread before worker_thread() starts it. */
void worker_open(
    struct worker *worker, struct watchdog *watchdog, struct replica *replica, const struct device *device);
tutti_status worker_thread(struct worker *worker);
/* Returns false if the thread is stuck in the driver; the thread then continues to exist. */
bool worker_close(struct worker *worker);

/* Runs a job on the thread, or at once if there is no thread. worker_wait() returns the status of the job and sets its
 * message. */
void worker_start(struct worker *worker, worker_job *job, void *argument);
tutti_status worker_wait(struct worker *worker);
const char *worker_message(const struct worker *worker); /* of the last failure */
bool worker_is_busy(struct worker *worker);
bool worker_is_abandoned(const struct worker *worker); /* a job may call it, too */
bool worker_is_stuck(const struct worker *worker);     /* its thread hangs in the driver */
bool worker_has_thread(const struct worker *worker);   /* a job may call it, too */
/* Under the lock, in any thread. */
bool worker_is_busy_locked(const struct worker *worker);      /* a job runs that may still succeed */
bool worker_failed_locked(const struct worker *worker);       /* the last job has failed, or was abandoned */
bool worker_is_abandoned_locked(const struct worker *worker); /* a job exceeded its limit */
bool worker_is_idle_locked(const struct worker *worker);      /* no job runs, not even one that was abandoned */

/* Limits in seconds: of a job that builds plans, and of a step with this many positions, but for the first (run.c). If
 * the caller has not limited steps, and no pace is known, they are equal. A job may call them, too. */
double worker_build_limit(const struct worker *worker);
double worker_step_limit(const struct worker *worker, int64_t positions);
/* A job calls it: its next phase may take so many seconds. */
void worker_allow(struct worker *worker, double seconds);
/* A job calls them before and after it uses the caller's memory: in between it cannot be abandoned. Returns false if it
 * was abandoned before: the memory may no longer exist. */
bool worker_guard(struct worker *worker);
tutti_status worker_guard_or_fail(struct worker *worker); /* TUTTI_DEVICE_LOST, with a message, instead of false */
void worker_unguard(struct worker *worker);
/* A job calls it under the lock: waits for other devices. The wait does not count for its limit. */
void worker_wait_for_others(struct worker *worker);
/* A job calls it: a step took so many seconds per position. Positions are samples times the length of sequences. */
void worker_note_pace(struct worker *worker, double seconds);

#endif
