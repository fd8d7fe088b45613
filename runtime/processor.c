#include "runtime/processor.h"

#include <stdbool.h>

#if defined(__x86_64__) && defined(__linux__)
#include <cpuid.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    LEAF_FEATURES = 1,
    FEATURES_ECX_OSXSAVE = 1 << 27,
    LEAF_EXTENDED = 7,
    EXTENDED_EBX_AVX512F = 1 << 16,
    EXTENDED_EDX_AMX_BF16 = 1 << 22,
    EXTENDED_EDX_AMX_TILE = 1 << 24,
    EXTENDED_1_EAX_AVX512_BF16 = 1 << 5,
    STATES_AVX512 = 0xe6,        /* XMM, YMM, mask and both halves of ZMM registers */
    STATES_TILES = 3 << 17,      /* configuration and data */
    REQUEST_PERMISSION = 0x1023, /* ARCH_REQ_XCOMP_PERM */
    TILE_DATA = 18,
};

/* Which registers the operating system saves. */
static unsigned saved_states(void)
{
    unsigned eax, ebx, ecx, edx;
    if (!__get_cpuid(LEAF_FEATURES, &eax, &ebx, &ecx, &edx) || !(ecx & FEATURES_ECX_OSXSAVE)) return 0;
    __asm__ volatile("xgetbv" : "=a"(eax), "=d"(edx) : "c"(0));
    return eax;
}

static bool saves(unsigned states)
{
    return (saved_states() & states) == states;
}

const char *processor_dots_refusal(void)
{
    unsigned eax = 0, ebx = 0, ecx, edx, more = 0;
    if (!__get_cpuid_count(LEAF_EXTENDED, 0, &eax, &ebx, &ecx, &edx) || eax < 1 ||
        !__get_cpuid_count(LEAF_EXTENDED, 1, &more, &ecx, &ecx, &edx) || !(ebx & EXTENDED_EBX_AVX512F) ||
        !(more & EXTENDED_1_EAX_AVX512_BF16))
        return "the processor has no AVX512_BF16";
    return saves(STATES_AVX512) ? NULL : "the operating system does not save the registers of AVX-512";
}

static const char *tiles_refusal;

static void ask_for_tiles(void)
{
    const unsigned wanted = EXTENDED_EDX_AMX_BF16 | EXTENDED_EDX_AMX_TILE;
    unsigned eax, ebx, ecx, edx = 0;
    if (!__get_cpuid_count(LEAF_EXTENDED, 0, &eax, &ebx, &ecx, &edx) || (edx & wanted) != wanted)
        tiles_refusal = "the processor has no AMX with bfloat16";
    else if (!saves(STATES_TILES))
        tiles_refusal = "the operating system does not save the tiles of AMX";
    else if (syscall(SYS_arch_prctl, REQUEST_PERMISSION, TILE_DATA) != 0)
        tiles_refusal = "the operating system does not permit AMX to this process";
}

const char *processor_tiles_refusal(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, ask_for_tiles);
    return tiles_refusal;
}
#else
const char *processor_dots_refusal(void)
{
    return "it needs an x86-64 processor and Linux";
}

const char *processor_tiles_refusal(void)
{
    return "it needs an x86-64 processor and Linux";
}
#endif
