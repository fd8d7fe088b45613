/* A fixed pool of threads for work on the host: sums of gradients, updates, preparation of batches. */
#ifndef BASE_THREADS_H
#define BASE_THREADS_H

#include "tutti.h"

struct thread_pool;

/* threads: 0 means one per processor that the process may run on. One thread is the caller's own. */
tutti_status thread_pool_new(struct thread_pool **pool, int threads);
void thread_pool_free(struct thread_pool *pool);
int thread_pool_size(const struct thread_pool *pool);
/* Calls work(argument, i) for 0 <= i < tasks, in any order, on the pool's threads and the caller's; returns when all
 * are done. Only one thread may use a pool at a time. */
void thread_pool_run(struct thread_pool *pool, int tasks, void (*work)(void *argument, int task), void *argument);
/* Processors that the process may run on. */
int processor_count(void);

#endif
