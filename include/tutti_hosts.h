/* Training over several processes, on one host or several. docs/hosts.md describes how to start them; the conventions
 * are those of tutti.h. */
#ifndef TUTTI_HOSTS_H
#define TUTTI_HOSTS_H

#include <tutti.h>

#ifdef __cplusplus
extern "C" {
#endif

/* mpirun starts the processes ("ranks") that train one network together. Every rank makes the same network and calls
 * the same functions of its trainer in the same order; each rank uses all of its own devices. Gradients are summed over
 * all ranks in every step, so the parameters do not depend on the number of ranks, up to rounding. */
typedef struct tutti_hosts_options {
    size_t size; /* sizeof(tutti_hosts_options), or 0 */
    /* Seconds without a heartbeat after which a rank is lost while others wait for it. 0: TUTTI_HOST_LIMIT, else
     * 45. */
    double limit_s;
} tutti_hosts_options;
/* Joins the other ranks; returns NULL on failure. A process that was started alone becomes rank 0 of 1 and does not use
 * MPI. Otherwise the function initialises MPI with MPI_THREAD_SERIALIZED, unless the program has initialised it with at
 * least that level. The library uses communicators of its own and calls MPI only from the thread that uses the trainer.
 * Errors: TUTTI_UNSUPPORTED if several processes were started and this build has no MPI, or MPI is missing. */
TUTTI_API tutti_hosts *tutti_hosts_open(const tutti_hosts_options *options);
/* Waits for all ranks to call it; free the trainers that use `hosts` first. Finalises MPI if tutti_hosts_open()
 * initialised it; MPI cannot be opened again then. After TUTTI_HOST_LOST it neither waits nor finalises: mpirun ends
 * the other ranks when this process ends. */
TUTTI_API void tutti_hosts_close(tutti_hosts *hosts);
TUTTI_API int tutti_hosts_rank(const tutti_hosts *hosts);  /* from 0; 0 for NULL */
TUTTI_API int tutti_hosts_count(const tutti_hosts *hosts); /* number of ranks; 1 for NULL */
/* Returns TUTTI_OK on every rank if every rank passes TUTTI_OK, else a failure on every rank. Use it after work that
 * each rank does by itself: a rank that failed would leave the others waiting in the next common call. For NULL it
 * returns `status`. */
TUTTI_API tutti_status tutti_hosts_agree(tutti_hosts *hosts, tutti_status status);

#ifdef __cplusplus
}
#endif
#endif
