#include "runtime/forked.h"

#include "base/status.h"

#include <stdatomic.h>
#include <unistd.h>

static atomic_int user; /* the process that used drivers first; 0: none */

bool is_forked(void)
{
    const int process = atomic_load(&user);
    return process && process != (int)getpid();
}

tutti_status forked_check(void)
{
    if (!is_forked()) return TUTTI_OK;
    return fail(TUTTI_UNSUPPORTED,
        "this process is a child that process %d made with fork() after its first use of OpenCL devices, whose drivers "
        "do not work in a child: call fork() before tutti_open(), or start a program in the child with exec()",
        atomic_load(&user));
}

tutti_status forked_begin(void)
{
    int none = 0;
    (void)atomic_compare_exchange_strong(&user, &none, (int)getpid());
    return forked_check();
}
