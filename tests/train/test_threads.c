/* Several threads of the caller or the library. */
#include "tests/feeds.h"
#include "tests/train/test_devices.h"
#include "tests/train/training.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static void *train_and_free(void *argument)
{
    struct session *session = argument;
    for (int round = 0; round < 2; round++) {
        session_compile(session, KIND_NORM, NULL);
        ck_assert_msg(session->trainer, "%s", tutti_message(NULL));
        session_steps(session, 3);
        if (round > 0) break; /* the last ones are compared */
        tutti_trainer_free(session->trainer);
        tutti_network_free(session->network);
    }
    return NULL;
}

/* Each in a thread of its own, on the same devices; with memory of their own, which has queues of its own for copies.
 */
START_TEST(two_trainers_on_one_runtime)
{
    struct session alone, both[2];
    pthread_t threads[2];
    char folder[] = "/tmp/tutti-two-XXXXXX";
    ck_assert_ptr_nonnull(mkdtemp(folder));
    tutti_runtime *runtime = tutti_open(&(tutti_runtime_options) { .devices = "0,1", .cache_folder = folder });
    ck_assert_msg(runtime, "%s", tutti_message(NULL));
    for (int i = 0; _i > 0 && i < runtime->count; i++)
        runtime->devices[i].can.unified = runtime->devices[i].host_cpu = false;
    for (int i = 0; i < 2; i++) {
        both[i] = (struct session) { .runtime = runtime };
        ck_assert_int_eq(pthread_create(&threads[i], NULL, train_and_free, &both[i]), 0);
    }
    for (int i = 0; i < 2; i++) ck_assert_int_eq(pthread_join(threads[i], NULL), 0);
    session_open(&alone, "0,1", KIND_NORM, NULL);
    session_steps(&alone, 3);
    for (int i = 0; i < 2; i++) {
        same_bytes(&alone, &both[i]);
        tutti_trainer_free(both[i].trainer);
        tutti_network_free(both[i].network);
    }
    session_close(&alone);
    tutti_close(runtime);
    char command[64];
    snprintf(command, sizeof(command), "rm -rf '%s'", folder);
    ck_assert_int_eq(system(command), 0);
}
END_TEST

enum { USES = 100000 };

static void *use_arena(void *arena)
{
    for (int i = 0; i < USES; i++) {
        ((struct arena *)arena)->users++;
        arena_free(arena);
    }
    return NULL;
}

/* A plan that is made in the background takes and drops the arena of plans in use. */
START_TEST(arena_has_users_in_several_threads)
{
    struct session session;
    pthread_t threads[2];
    session_open(&session, "0", KIND_PLAIN, NULL);
    struct arena *arena = session.trainer->replicas[0].plans.plans[0].plan->memory.arena;
    const int users = arena->users;
    for (int i = 0; i < 2; i++) ck_assert_int_eq(pthread_create(&threads[i], NULL, use_arena, arena), 0);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    ck_assert_int_eq(arena->users, users);
    session_steps(&session, 1);
    session_close(&session);
}
END_TEST

struct asking {
    struct replica *replica;
    atomic_bool ends;
};

static void *ask_memory(void *argument)
{
    struct asking *asking = argument;
    while (!asking->ends) {
        plan_cache_lock(&asking->replica->plans);
        (void)replica_memory(asking->replica);
        plan_cache_unlock(&asking->replica->plans);
    }
    return NULL;
}

/* As the thread that makes a plan in the background does, while a step of the device is divided for the first time. */
START_TEST(memory_is_asked_for_during_a_step)
{
    struct session session;
    pthread_t thread;
    session_open(&session, "0,1", KIND_PLAIN, NULL);
    struct replica *replica = &session.trainer->replicas[1];
    struct asking asking = { .replica = replica };
    const uint64_t before = replica_memory(replica);
    ck_assert_int_eq(pthread_create(&thread, NULL, ask_memory, &asking), 0);
    replica->capacity = 3; /* of 8 samples */
    session_steps(&session, 2);
    asking.ends = true;
    pthread_join(thread, NULL);
    const size_t sums = (size_t)session.network->total_floats * sizeof(float);
    ck_assert_uint_ge(replica_memory(replica), before + sums);
    session_close(&session);
}
END_TEST

void threads_together(TCase *cases)
{
    add_cases(cases, two_trainers_on_one_runtime, 2);
}

void threads_alone(TCase *cases)
{
    tcase_add_test(cases, arena_has_users_in_several_threads);
    tcase_add_test(cases, memory_is_asked_for_during_a_step);
}
