/* Option and result structs of programs that were built with an older header, or that declare them up to the last
 * member which they use: each of every legal size, at the end of a page after which nothing may be read or written. */
#include "parallel/ranks.h"
#include "tests/feeds.h"
#include "tests/train/folder.h"
#include "tests/train/test_devices.h"
#include "tests/train/training.h"

#include "tutti_advanced.h"
#include "tutti_data.h"
#include "tutti_finetune.h"
#include "tutti_hosts.h"
#include "tutti_inspect.h"
#include "tutti_onnx.h"
#include "tutti_scores.h"
#include "tutti_sequences.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Objects that the calls need besides the struct. */
static struct {
    struct session session;
    tutti_network *network; /* has no trainer */
    tutti_tensor image, sequence, heads, classes, list, numbers, rounded;
    tutti_data *data;
    tutti_scores *scores;
    tutti_tuner *tuner;
} with;

static int read_data(void *user, const int64_t *indices, int64_t count, const tutti_buffer *buffers, int buffer_count)
{
    (void)user, (void)indices;
    for (int b = 0; b < buffer_count; b++) memset(buffers[b].data, 0, (size_t)count * buffers[b].bytes);
    return 0;
}
static const tutti_source source = { .samples = STEP_SAMPLES, .read = read_data };

static void setup(void)
{
    const int32_t targets[] = { 1, 0 };
    const float outputs[] = { 0, 1, 2, 0, 1, 2 };
    data_make();
    folder_new();
    session_open(&with.session, "0", KIND_PLAIN, NULL);
    session_steps(&with.session, 1);
    ASSERT_OK(tutti_save(with.session.trainer, in_folder("m")));
    with.network = tutti_network_new(with.session.runtime);
    with.image = tutti_input(with.network, "image", TUTTI_SHAPE(2, 7, 7));
    with.sequence = tutti_input(with.network, "sequence", TUTTI_SHAPE(4, 6));
    with.heads = tutti_input(with.network, "heads", TUTTI_SHAPE(2, 4, 6));
    with.classes = tutti_input_typed(with.network, "classes", TUTTI_DTYPE_I32, NULL, 0);
    with.list = tutti_input_typed(with.network, "list", TUTTI_DTYPE_I32, (int64_t[]) { 2 }, 1);
    with.numbers = tutti_input(with.network, "numbers", TUTTI_SHAPE(6));
    with.rounded = tutti_relu(with.network, with.numbers);
    with.data = tutti_data_open("line", NULL);
    with.scores = tutti_scores_new(&(tutti_scores_options) { .classes = 3 });
    ASSERT_OK(tutti_scores_add(with.scores, outputs, targets, NULL, 2));
    const tutti_tensor output = { with.session.trainer->objective.outputs[0] };
    with.tuner = tutti_tuner_new(with.session.network, output, &(tutti_training) { .batch = 1 }, 0);
    ck_assert_msg(with.data && with.tuner, "%s", tutti_message(NULL));
}

static void teardown(void)
{
    tutti_tuner_free(with.tuner);
    tutti_scores_free(with.scores);
    tutti_data_free(with.data);
    tutti_network_free(with.network);
    session_close(&with.session);
    folder_remove();
}

/* ---------------------------------------------------------------------------------------------------- calls ---- */

static tutti_status added(tutti_tensor tensor)
{
    return tensor.id >= 0 ? TUTTI_OK : tutti_network_status(with.network);
}
#define LAYER(name, call)              \
    static tutti_status name(void *at) \
    {                                  \
        return added(call);            \
    }
LAYER(on_normalise, tutti_normalise(with.network, with.image, at))
LAYER(on_dense, tutti_dense(with.network, with.image, 3, at))
LAYER(on_conv2d, tutti_conv2d(with.network, with.image, 2, 3, at))
LAYER(on_conv, tutti_conv(with.network, with.image, 2, TUTTI_SHAPE(3, 3), at))
LAYER(on_transposed, tutti_conv_transpose(with.network, with.image, 2, TUTTI_SHAPE(3, 3), at))
LAYER(on_pooling, tutti_pool(with.network, with.image, TUTTI_POOL_MAX, TUTTI_SHAPE(3, 3), at))
LAYER(on_max_pool, tutti_max_pool(with.network, with.image, 3, at))
LAYER(on_average_pool, tutti_average_pool(with.network, with.image, 3, at))
LAYER(on_batch_norm, tutti_batch_norm(with.network, with.image, at))
LAYER(on_cross_entropy, tutti_cross_entropy(with.network, with.numbers, with.classes, at))
LAYER(on_nll, tutti_nll(with.network, with.rounded, with.classes, at))
LAYER(on_ctc, tutti_ctc(with.network, with.sequence, with.list, at))
LAYER(on_mse, tutti_mse(with.network, with.numbers, with.rounded, at))
LAYER(on_attention, tutti_attention(with.network, with.heads, with.heads, with.heads, at))
LAYER(on_lstm, tutti_lstm(with.network, with.sequence, 3, at))
LAYER(on_gru, tutti_gru(with.network, with.sequence, 3, at))
LAYER(on_rnn, tutti_rnn(with.network, with.sequence, 3, at))

static tutti_status on_parameter(void *at)
{
    static int count;
    char name[16];
    snprintf(name, sizeof(name), "p%d", count++);
    return added(tutti_parameter(with.network, name, TUTTI_SHAPE(3), at));
}

static tutti_status on_group(void *at)
{
    return tutti_group(with.network, "*", at);
}

static tutti_status on_runtime(void *at)
{
    tutti_device_info *list;
    int count;
    const tutti_status status = tutti_devices_list(at, &list, &count);
    tutti_devices_free(list);
    tutti_runtime *runtime = status == TUTTI_OK ? tutti_open(at) : NULL;
    const bool opened = runtime != NULL;
    tutti_close(runtime);
    return opened ? TUTTI_OK : TUTTI_INVALID;
}

static tutti_status compiled(const tutti_training *training)
{
    tutti_network *network = tutti_network_new(with.session.runtime);
    const tutti_tensor output = tutti_dense(network, tutti_input(network, "x", TUTTI_SHAPE(2)), 3, NULL);
    tutti_trainer *trainer = tutti_compile(network, output, training);
    const bool made = trainer != NULL;
    tutti_trainer_free(trainer);
    tutti_network_free(network);
    return made ? TUTTI_OK : TUTTI_INVALID;
}

static tutti_status on_training(void *at)
{
    return compiled(at);
}

static tutti_status on_advanced(void *at)
{
    return compiled(&(tutti_training) { .advanced = at });
}

static tutti_status on_tuner(void *at)
{
    const tutti_tensor output = { with.session.trainer->objective.outputs[0] };
    tutti_tuner *tuner = tutti_tuner_new(with.session.network, output, at, 0);
    const bool made = tuner != NULL;
    tutti_tuner_free(tuner);
    return made ? TUTTI_OK : TUTTI_INVALID;
}

static tutti_status on_fitting(void *at)
{
    return tutti_fit(with.session.trainer, FEED_PAIR(images, labels), STEP_SAMPLES, at);
}

static tutti_status on_schedule(void *at)
{
    return on_fitting(&(tutti_fitting) { .schedule = at });
}

static tutti_status on_match(void *at)
{
    return tutti_load_matching(with.session.trainer, in_folder("m.safetensors"), at, NULL);
}

static tutti_status on_match_result(void *at)
{
    return tutti_load_matching(with.session.trainer, in_folder("m.safetensors"), NULL, at);
}

static tutti_status on_rate(void *at)
{
    tutti_rate_result result = { .size = sizeof(result) };
    const tutti_status status = tutti_find_rate(with.session.trainer, &source, at, &result);
    free(result.rates);
    free(result.losses);
    free(result.smoothed);
    return status;
}

static tutti_status on_checkpoint_info(void *at)
{
    return tutti_checkpoint_read(in_folder("m"), at);
}

static tutti_status on_hosts(void *at)
{
    tutti_hosts *hosts = tutti_hosts_open(at);
    const bool opened = hosts != NULL;
    tutti_hosts_close(hosts);
    return opened ? TUTTI_OK : TUTTI_INVALID;
}

static tutti_status on_data(void *at)
{
    tutti_data *data = tutti_data_open("line", at);
    const bool opened = data != NULL;
    tutti_data_free(data);
    return opened ? TUTTI_OK : TUTTI_INVALID;
}

static tutti_status on_scores(void *at)
{
    tutti_scores *scores = tutti_scores_new(at);
    const bool made = scores != NULL;
    tutti_scores_free(scores);
    return made ? TUTTI_OK : TUTTI_INVALID;
}

#define RESULT(name, call)             \
    static tutti_status name(void *at) \
    {                                  \
        return call;                   \
    }
RESULT(on_data_info, tutti_data_describe(with.data, at))
RESULT(on_candidate, tutti_tuner_candidate(with.tuner, 0, at))
RESULT(on_tensor, tutti_network_tensor(with.network, with.image, at))
RESULT(on_node, tutti_network_node(with.network, 0, at))
RESULT(on_times, tutti_report_times(with.session.trainer, 0, at))
RESULT(on_summary, tutti_scores_summarise(with.scores, at))
RESULT(on_class, tutti_scores_class(with.scores, 0, at))
RESULT(on_mistake, tutti_scores_mistake(with.scores, 0, at))
/* Files that are not there, or no output: what counts is the struct. */
RESULT(on_import, tutti_import_onnx(with.session.runtime, "/none", at, &(tutti_onnx) { 0 }))
RESULT(on_imported, tutti_import_onnx(with.session.runtime, "/none", NULL, at))
RESULT(on_export, tutti_export_onnx(with.network, NULL, "/none/none", at))

/* ----------------------------------------------------------------------------------------------------- sizes ---- */

/* `size` bytes, set to zero but for the first member, before a page that cannot be accessed. */
static void *at_the_end(size_t size)
{
    static unsigned char *end;
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), room = 16 * page;
    ck_assert_uint_le(size, room);
    if (!end) {
        unsigned char *pages = mmap(NULL, room + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        ck_assert(pages != MAP_FAILED && mprotect(pages + room, page, PROT_NONE) == 0);
        end = pages + room;
    }
    memset(end - room, 0xff, room - size);
    memset(end - size, 0, size);
    memcpy(end - size, &size, sizeof(size));
    return end - size;
}

#define OF(type, call)            \
    {                             \
#type, sizeof(type), call \
    }
static const struct {
    const char *type;
    size_t size;
    tutti_status (*call)(void *at);
} structs[] = { OF(tutti_normalise_options, on_normalise), OF(tutti_parameter_options, on_parameter),
    OF(tutti_dense_options, on_dense), OF(tutti_conv2d_options, on_conv2d), OF(tutti_conv_options, on_conv),
    OF(tutti_conv_options, on_transposed), OF(tutti_pooling_options, on_pooling), OF(tutti_pool_options, on_max_pool),
    OF(tutti_pool_options, on_average_pool), OF(tutti_batch_norm_options, on_batch_norm),
    OF(tutti_loss_options, on_cross_entropy), OF(tutti_loss_options, on_nll), OF(tutti_loss_options, on_mse),
    OF(tutti_ctc_options, on_ctc), OF(tutti_attention_options, on_attention), OF(tutti_recurrent_options, on_lstm),
    OF(tutti_recurrent_options, on_gru), OF(tutti_recurrent_options, on_rnn), OF(tutti_group_options, on_group),
    OF(tutti_runtime_options, on_runtime), OF(tutti_training, on_training), OF(tutti_training, on_tuner),
    OF(tutti_advanced_options, on_advanced), OF(tutti_fitting, on_fitting), OF(tutti_schedule, on_schedule),
    OF(tutti_match_options, on_match), OF(tutti_match_result, on_match_result), OF(tutti_rate_options, on_rate),
    OF(tutti_checkpoint_info, on_checkpoint_info), OF(tutti_hosts_options, on_hosts), OF(tutti_data_options, on_data),
    OF(tutti_data_info, on_data_info), OF(tutti_scores_options, on_scores), OF(tutti_scores_summary, on_summary),
    OF(tutti_class_scores, on_class), OF(tutti_mistake, on_mistake), OF(tutti_candidate, on_candidate),
    OF(tutti_tensor_info, on_tensor), OF(tutti_node_info, on_node), OF(tutti_device_times, on_times),
    OF(tutti_onnx_options, on_import), OF(tutti_onnx, on_imported), OF(tutti_onnx_export_options, on_export) };
enum { STRUCTS = sizeof(structs) / sizeof(*structs) };

/* All sizes do the same; the first member alone selects all defaults. */
START_TEST(structs_of_every_size)
{
    for (size_t i = 0; i < STRUCTS; i++) {
        const tutti_status whole = structs[i].call(at_the_end(structs[i].size));
        for (size_t size = sizeof(size_t); size < structs[i].size; size += sizeof(size_t)) {
            const tutti_status status = structs[i].call(at_the_end(size));
            ck_assert_msg(status == whole, "%s of %zu bytes: %s, not %s; %s", structs[i].type, size,
                tutti_status_name(status), tutti_status_name(whole), tutti_message(NULL));
        }
    }
}
END_TEST

Suite *suite_options(void)
{
    Suite *suite = suite_create("options");
    TCase *cases = cases_new(suite, "options", setup, teardown);
    tcase_add_test(cases, structs_of_every_size);
    return suite;
}
