/* Loops over steps that have barriers. For a CPU of GPU class (options define UNROLL_GPU as nothing), the compiler is
 * shown that they are entered. Behind a loop that may be left out, POCL 6 copies the code that follows, and in the
 * copy it sometimes takes one work-item's value for another's. On GPUs such loops would take more registers.
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
