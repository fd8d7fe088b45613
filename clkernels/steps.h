/* Loops over steps that have barriers. As a CPU in a GPU's place (options define UNROLL_GPU, as nothing), a compiler sees that
 * they are entered: behind a loop that may be left out, POCL 6 makes a copy of what follows, in which it sometimes takes one
 * work-item's value for another's. On GPUs such loops would take more registers.
 *
 * STEPS_EXIST(more);    in front of a loop whose condition holds at first
 * STEPS(more) ...       the loop; with ALWAYS_STEPS 1 it is entered whatever the condition says */
#ifdef UNROLL_GPU
#define ALWAYS_STEPS 1
#define STEPS_EXIST(more)                                                                                              \
    if (!(more)) __builtin_unreachable()
#define STEPS(more) for (bool entered = true; entered || (more); entered = false)
#else
#define ALWAYS_STEPS 0
#define STEPS_EXIST(more)
#define STEPS(more) while (more)
#endif
