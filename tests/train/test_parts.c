/* Parts that know nothing of trainers, by themselves: who takes part, votes, who has the newest parameters, the thread
 * of a device. */
#include "tests/train/test_train.h"

#include "base/status.h"
#include "parallel/membership.h"
#include "parallel/parameter_store.h"
#include "parallel/ranks.h"
#include "parallel/trainer.h"
#include "replica/worker.h"

#include <stdatomic.h>
#include <time.h>

/* ---------------------------------------------------------------------------------------------- membership ---- */

START_TEST(members_are_present_suspect_or_lost)
{
    struct membership members;
    ck_assert_int_eq(membership_open(&members, 3), TUTTI_OK);
    ck_assert_int_eq(membership_count(&members, MEMBER_PRESENT), 3);
    membership_suspect(&members, 0);
    membership_lose(&members, 1);
    membership_suspect(&members, 1); /* it stays lost */
    ck_assert(membership_is_suspect(&members, 0) && membership_is_lost(&members, 1));
    ck_assert(membership_is_present(&members, 2));
    ck_assert_int_eq(membership_left(&members), 2);
    membership_clear(&members);
    ck_assert(membership_is_present(&members, 0) && membership_is_lost(&members, 1));
    membership_suspect(&members, 0);
    membership_lose(&members, 0);
    membership_clear(&members);
    ck_assert_int_eq(membership_left(&members), 1);
    membership_lose_all(&members);
    ck_assert_int_eq(membership_left(&members), 0);
    membership_close(&members);
}
END_TEST

START_TEST(votes_keep_their_reason)
{
    struct vote vote = vote_of(TUTTI_OK);
    ck_assert(vote.says == VOTE_DONE && vote_status(&vote) == TUTTI_OK);
    vote = vote_retry();
    ck_assert(vote.says == VOTE_RETRY && !vote_fails(&vote) && vote_status(&vote) == TUTTI_OK);
    vote_take(&vote, TUTTI_OK);
    ck_assert(vote.says == VOTE_RETRY);
    vote_take(&vote, status_fail(TUTTI_FILE, __FILE__, __LINE__, "the %s", "reason"));
    status_set(TUTTI_INVALID, "another");
    ck_assert(vote_fails(&vote));
    ck_assert_int_eq(vote_status(&vote), TUTTI_FILE);
    ck_assert_str_eq(status_message(), "the reason");
    ck_assert(VOTE_DONE < VOTE_RETRY && VOTE_RETRY < VOTE_FAIL); /* the worst of all counts */
}
END_TEST

/* ---------------------------------------------------------------------------------------- newest parameters ---- */

START_TEST(newest_are_on_the_host_a_device_or_lost)
{
    char devices[2] = { 0 }; /* the store only compares where they are */
    struct replica *one = (void *)&devices[0], *other = (void *)&devices[1];
    struct parameter_store *store = parameters_open(NULL, NULL, NULL);
    ck_assert(!parameters_holder(store) && !parameters_claim(store));
    parameters_commit(store, one, false);
    ck_assert(parameters_holder(store) == one);
    parameters_lose(store, other); /* it has none */
    ck_assert(parameters_holder(store) == one);
    parameters_fetched(store);
    ck_assert(!parameters_holder(store));
    parameters_commit(store, one, false);
    const uint64_t version = store->version, frozen_version = store->frozen_version;
    parameters_lose(store, one);
    ck_assert(!parameters_holder(store) && store->version > version);
    ck_assert(store->frozen_version == frozen_version); /* the others have the frozen ones */
    parameters_fetched(store);                          /* there is nothing to fetch */
    ck_assert(parameters_claim(store));
    ck_assert(!parameters_claim(store)); /* once */
    parameters_commit(store, NULL, false);
    ck_assert_int_eq(store->newest, NEWEST_ON_HOST);
    parameters_close(store, NULL);
}
END_TEST

START_TEST(devices_are_given_what_they_lack)
{
    char device = 0;
    float parameters = 1, state = 2;
    struct replica *replica = (void *)&device;
    struct parameter_store store = { .master = { &parameters, { &state } }, .version = 1, .frozen_version = 1 };
    struct parameter_versions versions = { 0 };
    struct parameter_snapshot snapshot = parameters_snapshot(&store, replica);
    ck_assert(versions_lack_parameters(&versions, &snapshot) && versions_lack_states(&versions, &snapshot));
    ck_assert(versions_lack_frozen(&versions, &snapshot));
    versions_took_frozen(&versions, &snapshot);
    versions_took(&versions, &snapshot, false);
    ck_assert(!versions_lack_parameters(&versions, &snapshot) && versions_lack_states(&versions, &snapshot));
    ck_assert(!versions_lack_frozen(&versions, &snapshot));
    parameters_changed(&store);
    snapshot = parameters_snapshot(&store, replica);
    ck_assert(versions_lack_parameters(&versions, &snapshot) && versions_lack_frozen(&versions, &snapshot));
    parameters_commit(&store, replica, false);
    versions_updated(&versions, parameters_version(&store), true);
    snapshot = parameters_snapshot(&store, replica);
    ck_assert(!snapshot.master.parameters && !versions_lack_parameters(&versions, &snapshot)); /* it has newer ones */
    parameters_fetched(&store);
    snapshot = parameters_snapshot(&store, replica);
    ck_assert(!versions_lack_parameters(&versions, &snapshot) && !versions_lack_states(&versions, &snapshot));
    versions_invalidate(&versions);
    ck_assert(versions_lack_parameters(&versions, &snapshot) && versions_lack_states(&versions, &snapshot));
}
END_TEST

/* ---------------------------------------------------------------------------------------------- repartition ---- */

/* Plans for a division that nobody wants any more do not keep the devices' shares as they are. */
START_TEST(shares_are_kept_for_an_awaited_division)
{
    struct ranks ranks = { .division.repartition.state = REPARTITION_WAITING };
    const struct tutti_trainer alone = { 0 }, trainer = { .ranks = &ranks };
    ck_assert(!repartition_keeps_shares(&alone) && !repartition_keeps_shares(&trainer));
    ranks.division.repartition.state = REPARTITION_BUILDING;
    ck_assert(repartition_keeps_shares(&trainer));
    ranks.division.repartition.state = REPARTITION_READY;
    ranks.division.preparing = true;
    ck_assert(repartition_keeps_shares(&trainer));
    ranks.division.preparing = false;
    ranks.division.next_step = 3;
    ck_assert(repartition_keeps_shares(&trainer));
    ranks.division.next_step = 0;
    ck_assert(!repartition_keeps_shares(&trainer));
}
END_TEST

/* --------------------------------------------------------------------------------------------------- worker ---- */

static double nothing_else(void *user)
{
    (void)user;
    return 0;
}

static tutti_status add_one(struct replica *replica, void *argument)
{
    (void)replica;
    *(int *)argument += 1;
    return *(int *)argument < 3 ? TUTTI_OK : status_fail(TUTTI_DEVICE, __FILE__, __LINE__, "no more than 2");
}

/* With a thread (1) and without (0). */
START_TEST(worker_does_jobs)
{
    int number = 0;
    struct watchdog watchdog;
    struct worker worker;
    const struct device device = { .index = 7 };
    watchdog_open(&watchdog, nothing_else, NULL);
    worker_open(&worker, &watchdog, NULL, &device);
    if (_i == 1) ck_assert_int_eq(worker_thread(&worker), TUTTI_OK);
    for (int i = 0; i < 2; i++) {
        worker_start(&worker, add_one, &number);
        ck_assert_int_eq(worker_wait(&worker), TUTTI_OK);
    }
    worker_start(&worker, add_one, &number);
    ck_assert_int_eq(worker_wait(&worker), TUTTI_DEVICE);
    ck_assert_str_eq(status_message(), "no more than 2");
    ck_assert(number == 3 && !worker_is_busy(&worker) && !worker_is_abandoned(&worker));
    ck_assert(worker_close(&worker));
    watchdog_close(&watchdog);
}
END_TEST

struct hang {
    struct worker *worker;
    atomic_bool ends;
    bool guarded;
};

static tutti_status hang(struct replica *replica, void *argument)
{
    (void)replica;
    struct hang *it = argument;
    while (!it->ends) nanosleep(&(struct timespec) { .tv_nsec = 1000000 }, NULL);
    it->guarded = worker_guard(it->worker);
    return TUTTI_OK;
}

START_TEST(worker_that_hangs_is_given_up)
{
    struct watchdog watchdog;
    struct worker worker;
    const struct device device = { .index = 7 };
    struct hang it = { .worker = &worker };
    watchdog_open(&watchdog, nothing_else, NULL);
    watchdog_set_limits(&watchdog, 0.1, 0.1);
    worker_open(&worker, &watchdog, NULL, &device);
    ck_assert_int_eq(worker_thread(&worker), TUTTI_OK);
    worker_start(&worker, hang, &it);
    ck_assert_int_eq(worker_wait(&worker), TUTTI_DEVICE_LOST);
    ck_assert(worker_is_abandoned(&worker) && worker_is_stuck(&worker));
    it.ends = true;
    while (worker_is_stuck(&worker)) nanosleep(&(struct timespec) { .tv_nsec = 1000000 }, NULL);
    ck_assert(!it.guarded); /* the caller's memory may not be there any more */
    ck_assert_int_eq(worker_wait(&worker), TUTTI_DEVICE_LOST);
    ck_assert(worker_close(&worker));
    watchdog_close(&watchdog);
}
END_TEST

/* A limit of the caller's holds at once, one that follows the pace when this is known. */
START_TEST(steps_have_limits)
{
    struct watchdog watchdog;
    struct worker worker;
    const struct device device = { .index = 7 };
    watchdog_open(&watchdog, nothing_else, NULL);
    worker_open(&worker, &watchdog, NULL, &device);
    ck_assert_double_eq(worker_step_limit(&worker, 100), worker_build_limit(&worker));
    watchdog_set_limits(&watchdog, 2, 0);
    ck_assert_double_eq(worker_step_limit(&worker, 100), 2);
    worker_note_pace(&worker, 0.5);
    worker_note_pace(&worker, 0.25);
    ck_assert_double_eq(worker_step_limit(&worker, 100), 2);
    watchdog_set_limits(&watchdog, 0, 0);
    ck_assert_double_eq(worker_step_limit(&worker, 100), 20 * 0.5 * 100);
    ck_assert_double_eq(worker_step_limit(&worker, 1), 60);
    ck_assert(worker_close(&worker));
    watchdog_close(&watchdog);
}
END_TEST

Suite *suite_parts(void)
{
    Suite *suite = suite_create("parts");
    TCase *cases = tcase_create("parts");
    tcase_add_test(cases, members_are_present_suspect_or_lost);
    tcase_add_test(cases, votes_keep_their_reason);
    tcase_add_test(cases, newest_are_on_the_host_a_device_or_lost);
    tcase_add_test(cases, devices_are_given_what_they_lack);
    tcase_add_test(cases, shares_are_kept_for_an_awaited_division);
    tcase_add_loop_test(cases, worker_does_jobs, 0, 2);
    tcase_add_test(cases, worker_that_hangs_is_given_up);
    tcase_add_test(cases, steps_have_limits);
    suite_add_tcase(suite, cases);
    return suite;
}
