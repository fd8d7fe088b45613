/* A product of GPU-class devices besides our own: CLBlast (https://github.com/CNugteren/CLBlast), which is tuned for
 * most GPUs and has parameters for the rest. It has no epilogue: another matrix is copied into C first, bias and
 * activation are one small launch after. */
#include "base/memory.h"
#include "runtime/clblast_library.h"
#include "runtime/gemm_implementations.h"

#include <pthread.h>

/* CLBlast up to 1.6.0 loses programs when two threads store into its cache at once (its issue 486), and Debian 12 has
 * 1.5.3: calls, which only enqueue, are made one at a time in the whole process. */
static pthread_mutex_t one_at_a_time = PTHREAD_MUTEX_INITIALIZER;
static bool has_programs; /* in CLBlast's cache */

struct call {
    struct gemm gemm;
    cl_mem a, b, c;
};

static CLBlastStatusCode product(const struct call *call, cl_command_queue *queue, cl_event *event)
{
    const struct gemm *g = &call->gemm;
    const CLBlastTranspose a = g->transpose_a ? CLBlastTransposeYes : CLBlastTransposeNo;
    const CLBlastTranspose b = g->transpose_b ? CLBlastTransposeYes : CLBlastTransposeNo;
    const float beta = g->accumulate ? 1.0f : 0.0f;
    if (g->batch == 1)
        return CLBlastSgemm(CLBlastLayoutRowMajor, a, b, (size_t)g->m, (size_t)g->n, (size_t)g->k, 1.0f, call->a, 0,
            (size_t)g->a.ld, call->b, 0, (size_t)g->b.ld, beta, call->c, 0, (size_t)g->c.ld, queue, event);
    return CLBlastSgemmStridedBatched(CLBlastLayoutRowMajor, a, b, (size_t)g->m, (size_t)g->n, (size_t)g->k, 1.0f,
        call->a, 0, (size_t)g->a.ld, (size_t)g->a.stride, call->b, 0, (size_t)g->b.ld, (size_t)g->b.stride, beta,
        call->c, 0, (size_t)g->c.ld, (size_t)g->c.stride, (size_t)g->batch, queue, event);
}

static tutti_status enqueue(struct device *device, void *state, cl_event *event)
{
    const struct call *call = state;
    const struct gemm *g = &call->gemm;
    pthread_mutex_lock(&one_at_a_time);
    has_programs = true;
    const CLBlastStatusCode code = product(call, &device->queue, event);
    pthread_mutex_unlock(&one_at_a_time);
    if (code == CLBlastSuccess) return TUTTI_OK;
    const char *what = "CLBlast's product of %lld x %lld x %lld on '%s'";
    const long long m = g->m, n = g->n, k = g->k;
    if (code > -1000 && code < 0) /* an OpenCL error's own number */
        return opencl_fail((cl_int)code, __FILE__, __LINE__, what, m, n, k, device->can.name);
    return fail(TUTTI_DEVICE, "CLBlast failed with status %d in a product of %lld x %lld x %lld on '%s'", (int)code, m,
        n, k, device->can.name);
}

void gemm_forget_programs(void)
{
    pthread_mutex_lock(&one_at_a_time);
    if (has_programs) CLBlastClearCache();
    has_programs = false;
    pthread_mutex_unlock(&one_at_a_time);
}

static const char *refusal(const struct gemm *gemm, const struct capabilities *can)
{
    (void)gemm;
    if (can->class != DEVICE_GPU) return "it needs a GPU-class device";
    return loaded_refusal(&clblast_library);
}

/* C = added. */
static void emit_copy(const struct gemm *gemm, const struct gemm_buffers *buffers, struct launch_list *list)
{
    const size_t group = list->device->can.group_max < 64 ? list->device->can.group_max : 64;
    struct launch *launch = launch_add(list, "gemm_finish", "gemm_copy", "%s", "");
    launch_buffer(launch, buffers->c);
    launch_buffer(launch, buffers->added);
    launch_int(launch, gemm->n);
    launch_int(launch, gemm->c.ld);
    launch_long(launch, gemm->c.stride);
    launch_grid(launch, 3, size_round_up((size_t)gemm->n, group), (size_t)gemm->m, (size_t)gemm->batch, group, 1, 1);
    launch_work(launch, 0, 8 * (double)gemm->m * (double)gemm->n * (double)gemm->batch);
}

static void emit(const struct gemm *gemm, const struct gemm_buffers *buffers, struct launch_list *list)
{
    if (gemm->accumulate && buffers->added != buffers->c) emit_copy(gemm, buffers, list);
    struct call *call = memory_new(1, sizeof *call);
    if (!call) {
        if (list->status == TUTTI_OK) list->status = TUTTI_NO_MEMORY;
        return;
    }
    *call = (struct call) { .gemm = *gemm, .a = buffers->a, .b = buffers->b, .c = buffers->c };
    call->gemm.activation = NULL; /* the caller's text does not outlive this function */
    gemm_work(gemm, launch_add_call(list, "clblast", enqueue, call));
    if (gemm->bias || gemm->activation) {
        struct gemm rest = *gemm;
        rest.accumulate = false; /* that is done */
        const struct gemm_sums in_place = {
            .buffer = buffers->c, .ld = gemm->c.ld, .stride = gemm->c.stride, .parts = 1
        };
        gemm_emit_finish(&rest, &in_place, buffers->c, buffers->bias, list);
    }
}

const struct gemm_implementation gemm_clblast = { .refusal = refusal, .emit = emit };
