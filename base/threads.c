#include "base/threads.h"

#include "base/memory.h"
#include "base/status.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct thread_pool {
    pthread_mutex_t lock;
    pthread_cond_t wake, idle;
    pthread_t *workers;
    int count; /* workers; the caller is one thread more */
    bool stop;
    bool open;  /* tasks may be taken */
    int inside; /* workers that take tasks right now */
    void (*work)(void *argument, int task);
    void *argument;
    int tasks;
    atomic_int next;
};

static void take_tasks(struct thread_pool *pool)
{
    for (int task; (task = atomic_fetch_add(&pool->next, 1)) < pool->tasks;) pool->work(pool->argument, task);
}

static void *worker(void *argument)
{
    struct thread_pool *pool = argument;
    pthread_mutex_lock(&pool->lock);
    while (true) {
        while (!pool->stop && !(pool->open && atomic_load(&pool->next) < pool->tasks))
            pthread_cond_wait(&pool->wake, &pool->lock);
        if (pool->stop) break;
        pool->inside++;
        pthread_mutex_unlock(&pool->lock);
        take_tasks(pool);
        pthread_mutex_lock(&pool->lock);
        if (--pool->inside == 0) pthread_cond_signal(&pool->idle);
    }
    pthread_mutex_unlock(&pool->lock);
    return NULL;
}

int processor_count(void)
{
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof(set), &set) == 0) return CPU_COUNT(&set);
    long online = sysconf(_SC_NPROCESSORS_ONLN); /* more processors than a cpu_set_t holds */
    return online > 0 ? (int)online : 1;
}

tutti_status thread_pool_new(struct thread_pool **made, int threads)
{
    if (threads <= 0) threads = processor_count();
    struct thread_pool *pool = memory_new(1, sizeof(*pool));
    if (!pool) return TUTTI_NO_MEMORY;
    pool->workers = memory_new((size_t)threads, sizeof(*pool->workers));
    if (!pool->workers) {
        free(pool);
        return TUTTI_NO_MEMORY;
    }
    pthread_mutex_init(&pool->lock, NULL);
    pthread_cond_init(&pool->wake, NULL);
    pthread_cond_init(&pool->idle, NULL);
    for (; pool->count < threads - 1; pool->count++) {
        int error = pthread_create(&pool->workers[pool->count], NULL, worker, pool);
        if (error) {
            tutti_status status = fail(TUTTI_NO_MEMORY, "cannot start thread %d of %d: %s: ask for fewer threads",
                pool->count + 2, threads, strerror(error));
            thread_pool_free(pool);
            return status;
        }
    }
    *made = pool;
    return TUTTI_OK;
}

void thread_pool_free(struct thread_pool *pool)
{
    if (!pool) return;
    pthread_mutex_lock(&pool->lock);
    pool->stop = true;
    pthread_cond_broadcast(&pool->wake);
    pthread_mutex_unlock(&pool->lock);
    for (int i = 0; i < pool->count; i++) pthread_join(pool->workers[i], NULL);
    pthread_cond_destroy(&pool->idle);
    pthread_cond_destroy(&pool->wake);
    pthread_mutex_destroy(&pool->lock);
    free(pool->workers);
    free(pool);
}

int thread_pool_size(const struct thread_pool *pool)
{
    return pool->count + 1;
}

void thread_pool_run(struct thread_pool *pool, int tasks, void (*work)(void *argument, int task), void *argument)
{
    if (tasks <= 1 || pool->count == 0) {
        for (int task = 0; task < tasks; task++) work(argument, task);
        return;
    }
    pthread_mutex_lock(&pool->lock);
    pool->work = work;
    pool->argument = argument;
    pool->tasks = tasks;
    atomic_store(&pool->next, 0);
    pool->open = true;
    pthread_cond_broadcast(&pool->wake);
    pthread_mutex_unlock(&pool->lock);
    take_tasks(pool);
    pthread_mutex_lock(&pool->lock);
    pool->open = false; /* a worker that wakes up late must not look at a run that is over */
    while (pool->inside > 0) pthread_cond_wait(&pool->idle, &pool->lock);
    pthread_mutex_unlock(&pool->lock);
}
