/* Loops over steps that have barriers. For a CPU of GPU class (options define UNROLL_GPU as nothing), the compiler is
 * shown that they are entered. After a loop that may be left out, POCL 6 copies the code that follows, and in the
 * copy it sometimes takes one work-item's value for another's. On GPUs such loops would take more registers.
 *
 * POCL 6 also takes a variable that differs between work-items for one that does not, at random: its analysis remembers
 * values by their addresses in memory, which later values get. It happens to what the compiler makes of branches before a barrier and uses after it. KEPT variables are read anew at each use, so that nothing else outlives a barrier.
 *
 * STEPS_EXIST(more);    before a loop whose condition holds at first
 * STEPS(more) ...       the loop; with ALWAYS_STEPS 1 it is entered whatever the condition says
 * KEPT                  qualifies variables that differ between work-items and are used before and after a barrier */
#ifdef UNROLL_GPU
#define ALWAYS_STEPS 1
#define KEPT volatile
#define STEPS_EXIST(more)                                                                                              \
    if (!(more)) __builtin_unreachable()
#define STEPS(more) for (bool entered = true; entered || (more); entered = false)
#else
#define ALWAYS_STEPS 0
#define KEPT
#define STEPS_EXIST(more)
#define STEPS(more) while (more)
#endif
