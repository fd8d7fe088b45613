/* clFFT's plans. The library generates and compiles kernels for each plan, which takes seconds, and keeps tables of its
 * own for all threads: calls are made one at a time in the whole process. The last plan frees the tables: the library
 * prints a warning at the end of a process that has not done so. */
#include "runtime/fft.h"

#include <limits.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/memory.h"
#include "runtime/clfft_library.h"
#include "runtime/memory.h"

static pthread_mutex_t one_at_a_time = PTHREAD_MUTEX_INITIALIZER;
static int plans; /* that exist */

struct call {
    struct fft fft;
    cl_mem x, y, scratch;
    clfftPlanHandle plan;
    bool baked;
};

/* Turns a status of the library into ours. Kernels that the driver's compiler refuses show when they are enqueued;
 * the library has then printed the compiler's reason on standard error. */
static tutti_status check(clfftStatus code, const struct fft *fft, const struct device *device)
{
    if (code == CLFFT_SUCCESS) return TUTTI_OK;
    if (code == CLFFT_INVALID_PROGRAM || code == CLFFT_BUILD_PROGRAM_FAILURE)
        return fail(TUTTI_UNSUPPORTED, "'%s' does not compile clFFT's kernels for transforms of length %lld",
            device->can.name, (long long)fft->length);
    const char *what = "clFFT's transforms of length %lld, %lld of them, on '%s'";
    const long long length = fft->length, count = fft->count;
    if (code < 0) /* an OpenCL error's own number */
        return opencl_fail((cl_int)code, __FILE__, __LINE__, what, length, count, device->can.name);
    return fail(TUTTI_DEVICE, "clFFT failed with status %d in transforms of length %lld, %lld of them, on '%s'",
        (int)code, length, count, device->can.name);
}

/* With the lock held. */
static clfftStatus plan_new(const struct fft *fft, const struct device *device, clfftPlanHandle *plan)
{
    const size_t length = (size_t)fft->length;
    clfftStatus code = CLFFT_SUCCESS;
    if (plans == 0) {
        /* clfftInitSetupData() is inline in clFFT's header, and not in its library. */
        const clfftSetupData data = {
            .major = clfftVersionMajor, .minor = clfftVersionMinor, .patch = clfftVersionPatch
        };
        code = clfftSetup(&data);
        if (code != CLFFT_SUCCESS) return code;
    }
    code = clfftCreateDefaultPlan(plan, device->context, CLFFT_1D, &length);
    if (code == CLFFT_SUCCESS)
        plans++;
    else if (plans == 0)
        (void)clfftTeardown();
    return code;
}

static void plan_free(clfftPlanHandle *plan)
{
    (void)clfftDestroyPlan(plan);
    if (--plans == 0) (void)clfftTeardown();
}

static clfftStatus describe(const struct fft *fft, clfftPlanHandle plan)
{
    const clfftLayout in = fft->real ? CLFFT_REAL : CLFFT_COMPLEX_INTERLEAVED;
    const clfftLayout out = fft->real ? CLFFT_HERMITIAN_INTERLEAVED : CLFFT_COMPLEX_INTERLEAVED;
    const size_t in_stride = (size_t)fft->in_stride, out_stride = (size_t)fft->out_stride;
    clfftStatus code = clfftSetPlanPrecision(plan, CLFFT_SINGLE);
    if (code == CLFFT_SUCCESS) code = clfftSetLayout(plan, in, out);
    if (code == CLFFT_SUCCESS) code = clfftSetResultLocation(plan, CLFFT_OUTOFPLACE);
    if (code == CLFFT_SUCCESS) code = clfftSetPlanBatchSize(plan, (size_t)fft->count);
    if (code == CLFFT_SUCCESS) code = clfftSetPlanInStride(plan, CLFFT_1D, (size_t *)&in_stride);
    if (code == CLFFT_SUCCESS) code = clfftSetPlanOutStride(plan, CLFFT_1D, (size_t *)&out_stride);
    if (code == CLFFT_SUCCESS) code = clfftSetPlanDistance(plan, (size_t)fft->in_distance, (size_t)fft->out_distance);
    if (code == CLFFT_SUCCESS) code = clfftSetPlanScale(plan, CLFFT_FORWARD, fft->inverse ? 1 : fft->scale);
    if (code == CLFFT_SUCCESS) code = clfftSetPlanScale(plan, CLFFT_BACKWARD, fft->inverse ? fft->scale : 1);
    return code;
}

static clfftStatus bake(struct call *call, struct device *device, size_t *scratch)
{
    clfftStatus code = plan_new(&call->fft, device, &call->plan);
    if (code != CLFFT_SUCCESS) return code;
    code = describe(&call->fft, call->plan);
    if (code == CLFFT_SUCCESS) code = clfftBakePlan(call->plan, 1, &device->queue, NULL, NULL);
    if (code == CLFFT_SUCCESS) code = clfftGetTmpBufSize(call->plan, scratch);
    call->baked = code == CLFFT_SUCCESS;
    if (!call->baked) plan_free(&call->plan);
    return code;
}

static tutti_status realise(struct device *device, void *state)
{
    struct call *call = state;
    tutti_status status = TUTTI_OK;
    size_t scratch = 0;
    if (call->baked) return TUTTI_OK;
    pthread_mutex_lock(&one_at_a_time);
    status = check(bake(call, device, &scratch), &call->fft, device);
    pthread_mutex_unlock(&one_at_a_time);
    if (status == TUTTI_OK && scratch) status = buffer_new(device, scratch, &call->scratch);
    return status;
}

static void release(void *state)
{
    struct call *call = state;
    if (call->baked) {
        pthread_mutex_lock(&one_at_a_time);
        plan_free(&call->plan);
        pthread_mutex_unlock(&one_at_a_time);
    }
    buffer_free(&call->scratch);
    free(call);
}

static tutti_status enqueue(struct device *device, void *state, cl_event *event)
{
    struct call *call = state;
    pthread_mutex_lock(&one_at_a_time);
    const clfftStatus code = clfftEnqueueTransform(call->plan, call->fft.inverse ? CLFFT_BACKWARD : CLFFT_FORWARD, 1,
        &device->queue, 0, NULL, event, &call->x, &call->y, call->scratch);
    pthread_mutex_unlock(&one_at_a_time);
    return check(code, &call->fft, device);
}

const char *fft_refusal(const struct fft *fft, const struct capabilities *can)
{
    static const int factors[] = { 2, 3, 5, 7, 11, 13 };
    const int64_t sizes[] = { fft->length, fft->count, fft->in_stride, fft->in_distance, fft->out_stride,
        fft->out_distance };
    int64_t rest = fft->length;
    if (can->class != DEVICE_GPU) return "it needs a GPU-class device";
    for (size_t i = 0; i < sizeof factors / sizeof *factors; i++)
        while (rest % factors[i] == 0) rest /= factors[i];
    if (rest != 1) return "clFFT takes lengths with the factors 2, 3, 5, 7, 11 and 13 alone";
    if (fft->real && fft->inverse) return "clFFT transforms real numbers forward";
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        if (sizes[i] > INT_MAX / 2) return "clFFT counts with 32 bits";
    return loaded_refusal(&clfft_library);
}

void fft_emit(const struct fft *fft, cl_mem x, cl_mem y, struct launch_list *list)
{
    struct call *call = memory_new(1, sizeof *call);
    if (!call) {
        if (list->status == TUTTI_OK) list->status = TUTTI_NO_MEMORY;
        return;
    }
    *call = (struct call) { .fft = *fft, .x = x, .y = y };
    struct launch *launch = launch_add_call(list, "clfft", enqueue, call);
    launch->realise = realise;
    launch->release = release;
    const double length = (double)fft->length, count = (double)fft->count;
    launch_work(launch, 0, 4 * (fft->real ? 2 : 4) * length * count);
}
