/* The processor's tile instructions (AMX with bfloat16) on processors without them, for tests of the kernels that use
 * them: a handler of SIGILL carries them out. */
#ifndef TESTS_TILES_H
#define TESTS_TILES_H

#include "runtime/device.h"

/* Makes bf16 dot products on the runtime's CPU-class devices be made of tiles. NULL, or why they cannot be. */
const char *tiles_use(tutti_runtime *runtime);

#endif
