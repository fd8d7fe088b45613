/* Functions for few programs: other exchanges between devices and ranks, and measuring kernels. */
#ifndef TUTTI_ADVANCED_H
#define TUTTI_ADVANCED_H

#include <tutti.h>

#ifdef __cplusplus
extern "C" {
#endif

/* tutti_training.advanced. */
struct tutti_advanced_options {
    size_t size; /* sizeof(tutti_advanced_options), or 0 */
    /* Several ranks. 0: gradients are summed in every step. K: each rank trains alone, and after every K steps the
     * parameters and optimizer states are averaged, weighted by samples (McMahan et al. 2017). This is less exact and
     * meant for slow links. */
    int64_t average_every;
    /* Several devices: before each update, compare a checksum of each device's parameters with the master copy's. A
     * device whose parameters differ is lost, and the others retry the step. Frozen parameters are not compared. */
    bool check_replicas;
    /* Several devices or ranks: precision of gradients in transfer, TUTTI_FP32 or TUTTI_BF16. TUTTI_BF16 rounds them to
     * bfloat16, half the bytes, between ranks and from devices with their own memory to the host; the host sums in
     * float32. Gradients in memory shared by host and device are not transferred and not rounded. Running statistics,
     * parameters and optimizer states stay float32. */
    tutti_precision wire;
};

/* Tuning: measures the kernels of a network on one device, one candidate at a time. Kernels may hang or crash; a caller
 * that must survive this calls these functions in a child process, as `tutti tune` does. Results are not kept;
 * docs/tuning.md describes the file of results. */
typedef struct tutti_tuner tutti_tuner;
typedef struct tutti_candidate {
    size_t size;         /* sizeof(tutti_candidate), or 0; set it before the call */
    const char *problem; /* its name in tuning tables; candidates of one problem are adjacent */
    const char *layer;   /* name of the first layer with this problem, or "" */
    const char *kernel;
    const char *refusal; /* why the kernel cannot be tried, else NULL */
    int uses;            /* number of places in the network with this problem */
    bool present;        /* the kernel that is used now; it is the first candidate of its problem */
} tutti_candidate;
typedef struct tutti_trial {
    double least, median;                 /* shortest and median time of the candidate, in seconds */
    double present_least, present_median; /* times of the present kernel, measured in turns with the candidate */
    double noise; /* relative difference between two measurements of the present kernel; at least 0.03 */
    double gain;  /* relative time saved by the candidate; the smaller of shortest and median */
} tutti_trial;
/* Creates a tuner for the opened device at position `device`. `training` must not be NULL; the tuner reads its loss,
 * losses, loss_weights, batch, sequence, exact and precision. The network must outlive the tuner. Returns NULL on
 * failure. */
TUTTI_API tutti_tuner *tutti_tuner_new(
    tutti_network *network, tutti_tensor output, const tutti_training *training, int device);
/* Describes candidate `index`, from 0. Its strings are valid until the tuner is freed. Errors: TUTTI_INVALID past the
 * last candidate, or if the size is impossible. */
TUTTI_API tutti_status tutti_tuner_candidate(const tutti_tuner *tuner, int index, tutti_candidate *candidate);
/* Computes the candidate's problem with the plain kernel and keeps the results until another problem is computed.
 * tutti_tuner_try() compares candidates of this problem with them. Slow. */
TUTTI_API tutti_status tutti_tuner_refer(tutti_tuner *tuner, int index);
/* Measures a candidate in turns with the present kernel. Use the candidate if gain is larger than noise. Errors:
 * TUTTI_WRONG_RESULT if its results differ from those of tutti_tuner_refer(); TUTTI_INVALID if it is the present kernel
 * or has a refusal. */
TUTTI_API tutti_status tutti_tuner_try(tutti_tuner *tuner, int index, tutti_trial *trial);
TUTTI_API void tutti_tuner_free(tutti_tuner *tuner);

#ifdef __cplusplus
}
#endif
#endif
