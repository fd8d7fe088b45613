/* What takes rights from a process that reads hostile files. seccomp's filter has what decoders need: memory, threads,
 * clocks, and reading and writing what is open already. It cannot open, connect to, start or signal anything. */
#include "formats/decode/decode.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
#define SANITIZED 1
#elif defined __has_feature
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#define SANITIZED 1
#endif
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif

#if defined __x86_64__
#define ARCHITECTURE AUDIT_ARCH_X86_64
#elif defined __aarch64__
#define ARCHITECTURE AUDIT_ARCH_AARCH64
#elif defined __riscv && __riscv_xlen == 64
#define ARCHITECTURE AUDIT_ARCH_RISCV64
#elif defined __powerpc64__ && defined __LITTLE_ENDIAN__
#define ARCHITECTURE AUDIT_ARCH_PPC64LE
#else
#define ARCHITECTURE 0 /* unknown: refused */
#endif

enum { MOST_SECONDS = 7200, MOST_DESCRIPTORS = 16 };
#define MOST_ADDRESSES ((rlim_t)4 << 30)

#define LOAD(member) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, member))
/* The lower half of an argument, on a little-endian machine. */
#define LOAD_ARGUMENT(number) LOAD(args[number])
#define RETURN(what) BPF_STMT(BPF_RET | BPF_K, what)
/* Skips `no` instructions unless the loaded value is equal to this one, or has one of these bits. */
#define UNLESS_EQUAL(value, no) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, no)
#define UNLESS_BITS(value, no) BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, value, 0, no)
#define ALLOW(call) UNLESS_EQUAL(SYS_##call, 1), RETURN(SECCOMP_RET_ALLOW)
/* Memory may not become code. */
#define ALLOW_WITHOUT_CODE(call)                                                                                 \
    UNLESS_EQUAL(SYS_##call, 4), LOAD_ARGUMENT(2), UNLESS_BITS(PROT_EXEC, 1), RETURN(SECCOMP_RET_ERRNO | EPERM), \
        RETURN(SECCOMP_RET_ALLOW)

static struct sock_filter filter[] = {
    LOAD(arch),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ARCHITECTURE, 1, 0),
    RETURN(SECCOMP_RET_KILL_PROCESS),
    LOAD(nr),
    /* what is open */
    ALLOW(read),
    ALLOW(write),
    ALLOW(pread64),
    ALLOW(lseek),
    ALLOW(recvmsg),
    ALLOW(close),
    /* memory */
    ALLOW(brk),
    ALLOW(munmap),
    ALLOW(mremap),
    ALLOW(madvise),
    ALLOW_WITHOUT_CODE(mmap),
    ALLOW_WITHOUT_CODE(mprotect),
    /* threads: clone() makes nothing else; clone3(), whose flags cannot be seen, seems to be missing */
    UNLESS_EQUAL(SYS_clone, 4),
    LOAD_ARGUMENT(0),
    UNLESS_BITS(CLONE_THREAD, 1),
    RETURN(SECCOMP_RET_ALLOW),
    RETURN(SECCOMP_RET_ERRNO | EPERM),
#ifdef SYS_clone3
    UNLESS_EQUAL(SYS_clone3, 1),
    RETURN(SECCOMP_RET_ERRNO | ENOSYS),
#endif
#ifdef SYS_rseq
    ALLOW(rseq),
#endif
    ALLOW(set_robust_list),
    ALLOW(futex),
    ALLOW(gettid),
    ALLOW(getpid),
    ALLOW(sched_yield),
    ALLOW(sched_getaffinity),
    ALLOW(sigaltstack),
    ALLOW(rt_sigprocmask),
    ALLOW(rt_sigaction),
    ALLOW(rt_sigreturn),
    ALLOW(exit),
    ALLOW(exit_group),
    /* time and chance */
    ALLOW(setitimer),
#ifdef SYS_alarm
    ALLOW(alarm),
#endif
    ALLOW(clock_gettime),
    ALLOW(gettimeofday),
    ALLOW(clock_nanosleep),
    ALLOW(nanosleep),
    ALLOW(getrandom),
    RETURN(SECCOMP_RET_ERRNO | EPERM),
};

static bool limit(__rlimit_resource_t what, rlim_t most)
{
    struct rlimit now;
    if (getrlimit(what, &now) != 0) return false;
    if (most > now.rlim_max) most = now.rlim_max;
    return setrlimit(what, &(struct rlimit) { .rlim_cur = most, .rlim_max = most }) == 0;
}

bool sandbox_enter(void)
{
    const struct sock_fprog program = { .len = sizeof filter / sizeof *filter, .filter = filter };
    return ARCHITECTURE != 0 && limit(RLIMIT_CORE, 0) && limit(RLIMIT_FSIZE, 0) &&
        limit(RLIMIT_NOFILE, MOST_DESCRIPTORS) && limit(RLIMIT_CPU, MOST_SECONDS) &&
        (SANITIZED || limit(RLIMIT_AS, MOST_ADDRESSES)) && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) == 0;
}
