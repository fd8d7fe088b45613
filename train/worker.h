/* The thread of a device, which does one job at a time for its replica, and the watch over all threads of a trainer:
 * devices may hang. The trainer's thread, which waits for jobs no longer than they may take, notices it (watchdog.c).
 * The device is given up then, with the thread that is stuck in its driver and all that this thread may still use.
 *
 * The trainer's thread makes all calls but those that are said to be a job's. */
#ifndef TRAIN_WORKER_H
#define TRAIN_WORKER_H

#include "runtime/device.h"

#include <pthread.h>

struct replica;
struct worker;

typedef tutti_status worker_job(struct replica *replica, void *argument);

struct watch {
    pthread_mutex_t lock; /* guards what workers tell: their jobs, arrivals, meetings, plans in the background */
    pthread_cond_t changed;
    struct worker *workers;             /* the first one; they are linked */
    double step_limit_s, build_limit_s; /* 0: automatic */
    /* Under the lock, while somebody waits: moves on what else goes on, and returns the seconds until the next call; 0:
     * nothing goes on. */
    double (*carry)(void *user);
    void *user;
};

struct worker {
    struct watch *watch;
    struct worker *next;     /* of the same watch */
    struct replica *replica; /* whose jobs it does */
    const struct device *device;
    double pace_s; /* the most seconds per position that a step took, but for the first; 0: not known yet */
    bool threaded; /* else jobs are done by the trainer's thread */
    pthread_t thread;
    /* What follows is guarded by the watch's lock. */
    pthread_cond_t given; /* for the thread alone: a job, or `stop` */
    bool stop, busy;
    worker_job *job;
    void *argument;
    tutti_status status;
    char message[1024];
    bool guarded;               /* in the caller's memory: not to be given up now */
    bool waits;                 /* for other devices */
    bool abandoned;             /* took too long: its thread is, or was, stuck in the driver */
    double waited_s, allowed_s; /* for the present phase of its job */
};

void watch_open(struct watch *watch, double (*carry)(void *user), void *user);
void watch_close(struct watch *watch);
void watch_limits(struct watch *watch, double step_s, double build_s); /* 0: automatic */
bool watch_has_limit(const struct watch *watch);                       /* of steps, by the caller */
/* By any thread. */
void watch_lock(struct watch *watch);
void watch_unlock(struct watch *watch);
/* By any thread, under the lock: wakes all that wait. */
void watch_tell(struct watch *watch);
/* Under the lock: waits for watch_tell(), or a moment; gives up the devices that take longer than they may. */
void watch_wait(struct watch *watch);

/* Without a thread at first; it has one from worker_thread() on. */
void worker_open(struct worker *worker, struct watch *watch, struct replica *replica, const struct device *device);
tutti_status worker_thread(struct worker *worker);
/* False where its thread is stuck in the driver: then it is left alone. */
bool worker_close(struct worker *worker);

/* Runs a job on the thread, or at once where there is none; its status is that of worker_wait(), which also hands over
 * the message. */
void worker_start(struct worker *worker, worker_job *job, void *argument);
tutti_status worker_wait(struct worker *worker);
const char *worker_message(const struct worker *worker); /* why it was given up */
bool worker_is_busy(struct worker *worker);
bool worker_is_abandoned(const struct worker *worker); /* also for a job */
bool worker_is_stuck(const struct worker *worker);     /* its thread is, in the driver */
bool worker_has_thread(const struct worker *worker);
/* Under the lock: it works on its job; it has ended it, with a failure. */
bool worker_works(const struct worker *worker);
bool worker_failed(const struct worker *worker);
bool worker_gave_up(const struct worker *worker);   /* was given up */
bool worker_gave_up(const struct worker *worker);   /* was given up */
bool worker_has_ended(const struct worker *worker); /* however long that took */

/* By a job: what it does next may take so many seconds. */
void worker_allow(struct worker *worker, double seconds);
/* By a job before it touches memory that belongs to the caller, and after: in between it is not given up. False where
 * it was given up before: the memory may not exist any more. */
bool worker_guard(struct worker *worker);
void worker_unguard(struct worker *worker);
/* By a job, under the lock: sleeps for other devices; its own time limit stands still. */
void worker_sleep(struct worker *worker);
/* By a job: a step took so many seconds per position, which are samples times the length of their sequences. */
void worker_note_pace(struct worker *worker, double seconds);

/* Seconds that a device may take to make plans, or for this many positions. */
double worker_build_limit(const struct worker *worker);
double worker_step_limit(const struct worker *worker, int64_t positions);

#endif
