/* Checkpoints: round trips, files of other networks, and a kill at every moment of saving. */
#include "tests/train/folder.h"
#include "tests/train/test_train.h"

#include "base/memory.h"
#include "formats/safetensors.h"
#include "train/checkpoint.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { TRAINED = 128, TOTAL = 256 };

static struct parameter parameters[] = {
    { .name = "fc.weight", .shape = { 2, { 10, 6 } }, .elements = 60, .offset = 0 },
    { .name = "fc.bias", .shape = { 1, { 10 } }, .elements = 10, .offset = 64 },
    { .name = "bn.running_mean", .shape = { 1, { 3 } }, .elements = 3, .offset = 128, .kind = PARAMETER_STATISTIC },
    { .name = "bn.running_var", .shape = { 1, { 3 } }, .elements = 3, .offset = 192, .kind = PARAMETER_STATISTIC },
};
enum { PARAMETERS = sizeof(parameters) / sizeof(*parameters) };
static const struct optimizer adam = { .kind = TUTTI_ADAM, .learning_rate = 0.1f, .beta1 = 0.9f, .ema_decay = 0.5f };
static const struct optimizer sgd = { .kind = TUTTI_SGD, .learning_rate = 0.1f };

struct training {
    float weights[TOTAL], first[TRAINED], second[TRAINED], third[TRAINED];
    struct checkpoint checkpoint;
};

/* Every number of it tells the generation. */
static void training_make(struct training *training, const struct optimizer *optimizer, int generation)
{
    for (int i = 0; i < TOTAL; i++) training->weights[i] = (float)(1000 * generation + i);
    for (int i = 0; i < TRAINED; i++) training->first[i] = (float)(2000 * generation + i);
    for (int i = 0; i < TRAINED; i++) training->second[i] = (float)(3000 * generation + i);
    for (int i = 0; i < TRAINED; i++) training->third[i] = (float)(4000 * generation + i);
    training->checkpoint = (struct checkpoint) { .parameters = parameters,
        .count = PARAMETERS,
        .weights = { training->weights, NULL },
        .states = { training->first, training->second, training->third },
        .optimizer = optimizer,
        .seed = 0xfedcba9876543210u + (uint64_t)generation,
        .position = { .steps = generation,
            .epoch = 2,
            .samples = 30,
            .epoch_samples = 100,
            .loss = 0.1,
            .correct = 7,
            .plateau = { 1, 0.1 * generation, 2, generation },
            .best = { generation % 2, 0.3, -1, 0 } } };
    if (generation % 2 == 0) training->checkpoint.position.best = (struct best) { 0 };
}

/* The generation that is loaded, all of whose numbers must agree. */
static int loaded_generation(const char *name)
{
    struct training read, wanted;
    training_make(&read, &adam, 0);
    ck_assert_msg(checkpoint_load(&read.checkpoint, name) == TUTTI_OK, "%s", status_message());
    const int generation = (int)read.checkpoint.position.steps;
    training_make(&wanted, &adam, generation);
    ck_assert(read.checkpoint.seed == wanted.checkpoint.seed);
    ck_assert(memcmp(&read.checkpoint.position, &wanted.checkpoint.position, sizeof(struct position)) == 0);
    for (int i = 0; i < PARAMETERS; i++) {
        const size_t at = (size_t)parameters[i].offset, bytes = (size_t)parameters[i].elements * sizeof(float);
        ck_assert(memcmp(read.weights + at, wanted.weights + at, bytes) == 0);
        if (parameters[i].kind != PARAMETER_TRAINED) continue;
        ck_assert(memcmp(read.first + at, wanted.first + at, bytes) == 0);
        ck_assert(memcmp(read.second + at, wanted.second + at, bytes) == 0);
        ck_assert(memcmp(read.third + at, wanted.third + at, bytes) == 0);
    }
    return generation;
}

static void save(const char *name, int generation)
{
    struct training training;
    training_make(&training, &adam, generation);
    ck_assert_msg(checkpoint_save(&training.checkpoint, name) == TUTTI_OK, "%s", status_message());
}

START_TEST(round_trip)
{
    save(in_folder("a"), 1);
    ck_assert_int_eq(loaded_generation(in_folder("a")), 1);
    save(in_folder("a"), 2);
    ck_assert_int_eq(loaded_generation(in_folder("a")), 2);
    ck_assert_int_ne(access(in_folder("a.safetensors.new"), F_OK), 0);
}
END_TEST

/* PyTorch's load_state_dict(strict) needs the counter next to the running statistics. */
START_TEST(counts_batches_for_pytorch)
{
    struct safetensors *file;
    int64_t steps;
    save(in_folder("a"), 7);
    ck_assert_int_eq(safetensors_open(in_folder("a.safetensors"), &file), TUTTI_OK);
    const struct safetensors_tensor *tensor = safetensors_find(file, "bn.num_batches_tracked");
    ck_assert_ptr_nonnull(tensor);
    ck_assert_int_eq(tensor->type, SAFETENSORS_I64);
    ck_assert_int_eq(tensor->rank, 0);
    memcpy(&steps, tensor->data, sizeof(steps));
    ck_assert_int_eq(steps, 7);
    ck_assert_int_eq(safetensors_count(file), PARAMETERS + 1);
    safetensors_close(file);
}
END_TEST

START_TEST(weights_alone)
{
    struct training training, read;
    training_make(&training, &adam, 3);
    training_make(&read, &adam, 0);
    ck_assert_int_eq(weights_save(&training.checkpoint, in_folder("w.safetensors")), TUTTI_OK);
    ck_assert_int_eq(weights_load(&read.checkpoint, in_folder("w.safetensors")), TUTTI_OK);
    ck_assert(read.weights[192] == training.weights[192] && read.weights[0] == training.weights[0]);
    ck_assert_int_eq(weights_load(&read.checkpoint, in_folder("missing")), TUTTI_FILE);
}
END_TEST

/* Floats of every type, a scalar for a parameter of shape [1], and the counter of a batch normalisation alone. */
START_TEST(weights_of_other_types)
{
    static const uint16_t brains[2] = { 0x3f80, 0xc000 }, halves[2] = { 0x3c00, 0xc000 };
    static const double doubles[2] = { 1e-3, -2 };
    static const float scale = 2.5f;
    static const int64_t steps = 4;
    static const unsigned char bytes[2];
    struct parameter some[] = {
        { .name = "brains", .shape = { 1, { 2 } }, .elements = 2, .offset = 0 },
        { .name = "halves", .shape = { 1, { 2 } }, .elements = 2, .offset = 2 },
        { .name = "doubles", .shape = { 2, { 1, 2 } }, .elements = 2, .offset = 4 },
        { .name = "scale", .shape = { 1, { 1 } }, .elements = 1, .offset = 6 },
    };
    struct safetensors_tensor tensors[] = {
        { .name = "brains", .type = SAFETENSORS_BF16, .rank = 1, .sizes = { 2 }, .data = brains },
        { .name = "halves", .type = SAFETENSORS_F16, .rank = 1, .sizes = { 2 }, .data = halves },
        { .name = "doubles", .type = SAFETENSORS_F64, .rank = 2, .sizes = { 1, 2 }, .data = doubles },
        { .name = "scale", .type = SAFETENSORS_F32, .rank = 0, .data = &scale },
        { .name = "num_batches_tracked", .type = SAFETENSORS_I64, .rank = 0, .data = &steps },
    };
    static const float wanted[7] = { 1, -2, 1, -2, 1e-3f, -2, 2.5f };
    struct training read;
    training_make(&read, &adam, 0);
    read.checkpoint.parameters = some, read.checkpoint.count = 4;
    ck_assert_int_eq(safetensors_save(in_folder("w"), tensors, 5, NULL, 0), TUTTI_OK);
    ck_assert_msg(weights_load(&read.checkpoint, in_folder("w")) == TUTTI_OK, "%s", status_message());
    ck_assert(memcmp(read.weights, wanted, sizeof(wanted)) == 0);
    tensors[3] = (struct safetensors_tensor) { "scale", .type = SAFETENSORS_U8, .rank = 0, .data = bytes };
    ck_assert_int_eq(safetensors_save(in_folder("w"), tensors, 5, NULL, 0), TUTTI_OK);
    ck_assert_int_eq(weights_load(&read.checkpoint, in_folder("w")), TUTTI_MISMATCH);
    ck_assert_msg(strstr(status_message(), "of type U8"), "%s", status_message());
}
END_TEST

/* Each is refused with a message that has the word, and nothing is changed. */
static void refused(const char *path, tutti_status wanted, const char *word)
{
    struct training read, before;
    training_make(&read, &adam, 0);
    training_make(&before, &adam, 0);
    ck_assert_int_eq(weights_load(&read.checkpoint, path), wanted);
    ck_assert_msg(strstr(status_message(), word), "'%s' is not in: %s", word, status_message());
    ck_assert(memcmp(read.weights, before.weights, sizeof(read.weights)) == 0);
}

static void write_tensors(const char *path, const struct safetensors_tensor *tensors, int count)
{
    ck_assert_int_eq(safetensors_save(path, tensors, count, NULL, 0), TUTTI_OK);
}

START_TEST(weights_of_another_network)
{
    static const float zeros[100];
    struct safetensors_tensor tensors[] = {
        { .name = "fc.weight", .type = SAFETENSORS_F32, .rank = 2, .sizes = { 10, 6 }, .data = zeros },
        { .name = "fc.bias", .type = SAFETENSORS_F32, .rank = 1, .sizes = { 10 }, .data = zeros },
        { .name = "bn.running_mean", .type = SAFETENSORS_F32, .rank = 1, .sizes = { 3 }, .data = zeros },
        { .name = "bn.running_var", .type = SAFETENSORS_F32, .rank = 1, .sizes = { 3 }, .data = zeros },
        { .name = "extra", .type = SAFETENSORS_F32, .rank = 1, .sizes = { 3 }, .data = zeros },
    };
    struct training read;
    training_make(&read, &adam, 0);
    const char *path = in_folder("other.safetensors");
    write_tensors(path, tensors, 4);
    ck_assert_int_eq(weights_load(&read.checkpoint, path), TUTTI_OK); /* without num_batches_tracked too */
    write_tensors(path, tensors, 5);
    refused(path, TUTTI_MISMATCH, "extra");
    write_tensors(path, tensors, 3);
    refused(path, TUTTI_MISMATCH, "bn.running_var");
    tensors[0].sizes[0] = 6, tensors[0].sizes[1] = 10;
    write_tensors(path, tensors, 4);
    refused(path, TUTTI_MISMATCH, "[6, 10]");
    tensors[0].sizes[0] = 10, tensors[0].sizes[1] = 6;
    tensors[1].type = SAFETENSORS_I32;
    write_tensors(path, tensors, 4);
    refused(path, TUTTI_MISMATCH, "I32");
}
END_TEST

START_TEST(state_of_another_training)
{
    struct training other;
    training_make(&other, &sgd, 1);
    save(in_folder("a"), 1);
    ck_assert_int_eq(checkpoint_load(&other.checkpoint, in_folder("a")), TUTTI_MISMATCH);
    ck_assert_msg(strstr(status_message(), "adam"), "%s", status_message());
    ck_assert_int_eq(checkpoint_load(&other.checkpoint, in_folder("nothing")), TUTTI_FILE);
    /* Without momentum there are no arrays of state, with it there are. */
    struct optimizer momentum = sgd;
    momentum.momentum = 0.9f;
    ck_assert_int_eq(checkpoint_save(&other.checkpoint, in_folder("b")), TUTTI_OK);
    ck_assert_int_eq(checkpoint_load(&other.checkpoint, in_folder("b")), TUTTI_OK);
    other.checkpoint.optimizer = &momentum;
    ck_assert_int_eq(checkpoint_load(&other.checkpoint, in_folder("b")), TUTTI_MISMATCH);
}
END_TEST

START_TEST(files_that_do_not_belong_together)
{
    save(in_folder("a"), 1);
    save(in_folder("b"), 2);
    ck_assert_int_eq(rename(in_folder("b.safetensors"), in_folder("a.safetensors")), 0);
    struct training read;
    training_make(&read, &adam, 0);
    ck_assert_int_eq(checkpoint_load(&read.checkpoint, in_folder("a")), TUTTI_MISMATCH);
    ck_assert_msg(strstr(status_message(), "not from the same save"), "%s", status_message());
}
END_TEST

/* The state between the two renames, and after the next save, killed or not. */
START_TEST(between_the_renames)
{
    save(in_folder("b"), 1);
    save(in_folder("a"), 2);
    ck_assert_int_eq(rename(in_folder("a.safetensors"), in_folder("a.safetensors.new")), 0);
    ck_assert_int_eq(loaded_generation(in_folder("a")), 2); /* the weights had not been there before */
    ck_assert_int_eq(rename(in_folder("b.safetensors"), in_folder("a.safetensors")), 0);
    ck_assert_int_eq(loaded_generation(in_folder("a")), 2); /* or older ones were */
    save(in_folder("a"), 3);
    ck_assert_int_eq(loaded_generation(in_folder("a")), 3);
    /* A leftover that belongs to nothing, whole or cut. */
    save(in_folder("b"), 4);
    ck_assert_int_eq(rename(in_folder("b.safetensors"), in_folder("a.safetensors.new")), 0);
    ck_assert_int_eq(loaded_generation(in_folder("a")), 3);
    ck_assert_int_eq(truncate(in_folder("a.safetensors.new"), 100), 0);
    ck_assert_int_eq(loaded_generation(in_folder("a")), 3);
    save(in_folder("a"), 5);
    ck_assert_int_eq(loaded_generation(in_folder("a")), 5);
}
END_TEST

static int files_in_folder(void)
{
    int files = 0;
    DIR *directory = opendir(test_folder);
    ck_assert_ptr_nonnull(directory);
    for (const struct dirent *entry; (entry = readdir(directory));) files += entry->d_name[0] != '.';
    closedir(directory);
    return files;
}

/* Saves in a child that is killed at its system call number `calls`, counted from where saving begins. False when
 * saving ended before. */
static bool save_killed_at(const char *name, int generation, int calls)
{
    const pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        struct training training;
        training_make(&training, &adam, generation);
        if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0) _exit(9);
        raise(SIGSTOP);
        _exit(checkpoint_save(&training.checkpoint, name) == TUTTI_OK ? 0 : 8);
    }
    int state;
    ck_assert_int_eq(waitpid(child, &state, 0), child);
    ck_assert_msg(WIFSTOPPED(state), "the child could not be traced");
    for (int stops = 0;; stops++) { /* two for each call: before and after it */
        if (stops == calls) {
            kill(child, SIGKILL);
            ck_assert_int_eq(waitpid(child, &state, 0), child);
            return true;
        }
        ck_assert_int_eq(ptrace(PTRACE_SYSCALL, child, NULL, NULL), 0);
        ck_assert_int_eq(waitpid(child, &state, 0), child);
        if (!WIFSTOPPED(state)) break;
    }
    ck_assert(WIFEXITED(state) && WEXITSTATUS(state) == 0);
    return false;
}

/* After each kill the pair is the older or the newer one, and never goes back. Some saves are killed one after another,
 * so that leftovers of all kinds meet. */
START_TEST(killed_at_every_system_call)
{
    const char *name = in_folder("a");
    char kept[128];
    snprintf(kept, sizeof(kept), "%s", name);
    int generation = 1, kills = 0, older = 0, newer = 0;
    save(kept, generation);
    for (int calls = 0; save_killed_at(kept, generation + 1, calls); calls++, kills++) {
        const int found = loaded_generation(kept);
        ck_assert_msg(found == generation || found == generation + 1, "%d after %d", found, generation);
        *(found == generation ? &older : &newer) += 1;
        generation = found;
    }
    ck_assert_int_eq(loaded_generation(kept), generation + 1);
    ck_assert_int_ge(kills, 40);
    ck_assert_int_ge(older, 20); /* both kinds did occur */
    ck_assert_int_ge(newer, 5);
    ck_assert_int_eq(files_in_folder(), 2); /* the temporary files of the killed are gone */
}
END_TEST

/* Two processes save to one name at the same time: afterwards the files are those of one of them. */
START_TEST(two_processes_save_to_one_name)
{
    enum { ROUNDS = 20 };
    char name[128];
    snprintf(name, sizeof(name), "%s", in_folder("a"));
    for (int round = 0; round < ROUNDS; round++) {
        const int first = 2 * round + 1;
        const pid_t child = fork();
        ck_assert_int_ge(child, 0);
        if (child == 0) {
            struct training training;
            training_make(&training, &adam, first);
            _exit(checkpoint_save(&training.checkpoint, name) == TUTTI_OK ? 0 : 8);
        }
        struct training training;
        int state;
        training_make(&training, &adam, first + 1);
        const tutti_status status = checkpoint_save(&training.checkpoint, name);
        ck_assert_int_eq(waitpid(child, &state, 0), child);
        ck_assert_msg(status == TUTTI_OK, "%s", status_message());
        ck_assert_int_eq(state, 0);
        const int found = loaded_generation(name);
        ck_assert_msg(found == first || found == first + 1, "%d in round %d", found, round);
        ck_assert_int_eq(files_in_folder(), 2);
    }
}
END_TEST

/* A disk that is full after so many bytes: the older pair stays whole, and nothing is left behind. */
/* Whatever is read while another process saves is one whole pair. */
START_TEST(read_while_another_saves)
{
    enum { SAVES = 60 };
    save(in_folder("a"), 0);
    const pid_t writer = fork();
    if (writer == 0) {
        for (int generation = 1; generation <= SAVES; generation++) save(in_folder("a"), generation);
        _exit(0);
    }
    int status, newest = 0;
    while (waitpid(writer, &status, WNOHANG) == 0) {
        const int generation = loaded_generation(in_folder("a"));
        ck_assert_int_ge(generation, newest);
        newest = generation;
    }
    ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    ck_assert_int_eq(loaded_generation(in_folder("a")), SAVES);
}
END_TEST

/* Files that a killed process left are removed by the next write of the file, whichever function writes it. */
START_TEST(orphans_are_swept)
{
    struct training training;
    training_make(&training, &adam, 1);
    const char *const orphans[] = { "w.safetensors.0123456789abcdef.tmp", "a.safetensors.new.0123456789abcdef.tmp",
        "a.state.safetensors.0123456789abcdef.tmp" };
    for (int i = 0; i < 3; i++) fclose(fopen(in_folder(orphans[i]), "w"));
    ck_assert_int_eq(weights_save(&training.checkpoint, in_folder("w.safetensors")), TUTTI_OK);
    save(in_folder("a"), 1);
    for (int i = 0; i < 3; i++) ck_assert_int_ne(access(in_folder(orphans[i]), F_OK), 0);
}
END_TEST

START_TEST(full_disk)
{
    save(in_folder("a"), 1);
    signal(SIGXFSZ, SIG_IGN);
    struct stat weights, state;
    ck_assert_int_eq(stat(in_folder("a.safetensors"), &weights), 0);
    ck_assert_int_eq(stat(in_folder("a.state.safetensors"), &state), 0);
    ck_assert_int_lt(weights.st_size, state.st_size);
    const rlim_t sizes[] = { 0, 10, (rlim_t)weights.st_size - 1, (rlim_t)weights.st_size, (rlim_t)state.st_size - 1 };
    for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
        struct rlimit before, limit;
        struct training training;
        training_make(&training, &adam, 3);
        ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &before), 0);
        limit = (struct rlimit) { .rlim_cur = sizes[i], .rlim_max = before.rlim_max };
        ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
        const tutti_status status = checkpoint_save(&training.checkpoint, in_folder("a"));
        ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &before), 0);
        ck_assert_int_eq(status, TUTTI_FILE);
        ck_assert_int_eq(loaded_generation(in_folder("a")), 1);
        ck_assert_int_ne(access(in_folder("a.safetensors.new"), F_OK), 0);
    }
    save(in_folder("a"), 5);
    ck_assert_int_eq(loaded_generation(in_folder("a")), 5);
}
END_TEST

/* The scale of losses and the steps that it has cost; a checkpoint without any, and ones that cannot be. */
START_TEST(scale_of_losses)
{
    struct training training, read;
    training_make(&training, &adam, 7);
    training_make(&read, &adam, 0);
    training.checkpoint.loss_scale = (struct loss_scale) { .on = true, .scale = 0x1p20, .good = 17, .skipped = 3 };
    ck_assert_int_eq(checkpoint_save(&training.checkpoint, in_folder("a")), TUTTI_OK);
    ck_assert_int_eq(checkpoint_load(&read.checkpoint, in_folder("a")), TUTTI_OK);
    const struct loss_scale *s = &read.checkpoint.loss_scale;
    ck_assert(s->on && s->scale == 0x1p20 && s->good == 17 && s->skipped == 3);
    training.checkpoint.loss_scale = (struct loss_scale) { .scale = 1, .skipped = 4 };
    ck_assert_int_eq(checkpoint_save(&training.checkpoint, in_folder("a")), TUTTI_OK);
    ck_assert_int_eq(checkpoint_load(&read.checkpoint, in_folder("a")), TUTTI_OK);
    ck_assert(!s->on && s->scale == 1 && s->good == 0 && s->skipped == 4);
    static const struct loss_scale bad[] = { { .on = true, .scale = 3 }, { .on = true, .scale = 0.5 },
        { .on = true, .scale = 0x1p25 }, { .scale = 1, .skipped = 8 } };
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        training.checkpoint.loss_scale = bad[i];
        ck_assert_int_eq(checkpoint_save(&training.checkpoint, in_folder("a")), TUTTI_OK);
        ck_assert_int_eq(checkpoint_load(&read.checkpoint, in_folder("a")), TUTTI_FORMAT);
        ck_assert_msg(strstr(status_message(), bad[i].on ? "power of two" : "8 of 7 steps"), "%s", status_message());
        ck_assert(s->skipped == 4);
    }
}
END_TEST

START_TEST(folder_that_cannot_be_written)
{
    struct training training;
    training_make(&training, &adam, 2);
    ck_assert_int_eq(checkpoint_save(&training.checkpoint, in_folder("no/such/folder/a")), TUTTI_FILE);
    ck_assert_msg(strstr(status_message(), "no/such/folder/a"), "%s", status_message());
    ck_assert_ptr_null(strchr(status_message(), '\n'));
    ck_assert_int_eq(checkpoint_save(&training.checkpoint, "/proc/a"), TUTTI_FILE);
}
END_TEST

/* Texts lie next to the weights, whatever the order in which they were set; resuming takes those that were not. */
START_TEST(texts_of_the_weights)
{
    struct training training;
    struct metadata texts = { 0 }, read = { 0 };
    training_make(&training, &adam, 2);
    training.checkpoint.metadata = &texts;
    ck_assert_int_eq(metadata_set(&texts, "zoo", "last"), TUTTI_OK);
    ck_assert_int_eq(metadata_set(&texts, "data", "before"), TUTTI_OK);
    ck_assert_int_eq(metadata_set(&texts, "data", "{\"classes\":[\"b\303\244r\"]}"), TUTTI_OK);
    ck_assert_int_eq(metadata_set(&texts, "gone", "x"), TUTTI_OK);
    ck_assert_int_eq(metadata_set(&texts, "gone", NULL), TUTTI_OK);
    ck_assert_int_eq(metadata_set(&texts, "format", "x"), TUTTI_INVALID);
    ck_assert_int_eq(metadata_set(&texts, "", "x"), TUTTI_INVALID);
    ck_assert_int_eq(metadata_set(&texts, "data", "\xff"), TUTTI_INVALID);
    ck_assert_int_eq(checkpoint_save(&training.checkpoint, in_folder("a")), TUTTI_OK);
    char *text = tutti_weights_metadata(in_folder("a.safetensors"), "data");
    ck_assert_str_eq(text, "{\"classes\":[\"b\303\244r\"]}");
    free(text);
    ck_assert_ptr_null(tutti_weights_metadata(in_folder("a.safetensors"), "gone"));
    ck_assert_ptr_null(tutti_weights_metadata(in_folder("none"), "data"));
    training.checkpoint.metadata = &read;
    ck_assert_int_eq(metadata_set(&read, "data", "newer"), TUTTI_OK);
    ck_assert_int_eq(checkpoint_load(&training.checkpoint, in_folder("a")), TUTTI_OK);
    ck_assert_int_eq(read.count, 2);
    ck_assert_str_eq(read.entries[0].value, "newer");
    ck_assert_str_eq(read.entries[1].key, "zoo");
    metadata_free(&texts);
    metadata_free(&read);
}
END_TEST

Suite *suite_checkpoint(void)
{
    Suite *suite = suite_create("checkpoint");
    TCase *cases = tcase_create("checkpoint");
    tcase_add_checked_fixture(cases, folder_new, folder_remove);
    tcase_set_timeout(cases, 120); /* a disk that is busy flushes slowly */
    tcase_add_test(cases, round_trip);
    tcase_add_test(cases, counts_batches_for_pytorch);
    tcase_add_test(cases, weights_alone);
    tcase_add_test(cases, weights_of_other_types);
    tcase_add_test(cases, texts_of_the_weights);
    tcase_add_test(cases, weights_of_another_network);
    tcase_add_test(cases, state_of_another_training);
    tcase_add_test(cases, files_that_do_not_belong_together);
    tcase_add_test(cases, between_the_renames);
    tcase_add_test(cases, killed_at_every_system_call);
    tcase_add_test(cases, two_processes_save_to_one_name);
    tcase_add_test(cases, read_while_another_saves);
    tcase_add_test(cases, orphans_are_swept);
    tcase_add_test(cases, full_disk);
    tcase_add_test(cases, scale_of_losses);
    tcase_add_test(cases, folder_that_cannot_be_written);
    suite_add_tcase(suite, cases);
    return suite;
}
