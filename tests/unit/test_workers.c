/* Processes that share a sweep: followers that have finished, that give up, and that are lost. */
#define _POSIX_C_SOURCE 200809L
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "support/engine.h"
#include "support/scratch.h"
#include "sweep/sweep.h"
#include "sweep/workers.h"

enum { FOLLOWERS = 5 };

typedef struct qkv_workers_test {
    engine e;
    qkv_sweep *sweep;
    qkv_sweep_writer *results;
} qkv_workers_test;

static void open_test(qkv_workers_test *t, const char *name) {
    qkv_error err = {0};
    engine_open(&t->e, QKV_TEST_MODELS "/default.gguf", 1);
    expect_ok(qkv_sweep_new(&t->sweep, t->e.model,
                            "{\"prompts\": \"one two three\", \"layers\": \"0-2\","
                            " \"epsilon\": \"0.5\", \"metrics\": \"tv\"}",
                            &err),
              &err, "sweep");
    expect_ok(qkv_sweep_writer_open(&t->results, t->sweep, scratch_path(name), NULL, &err), &err,
              name);
}

static int64_t close_test(qkv_workers_test *t) {
    int64_t done = 0;
    qkv_error err = {0};
    expect_ok(qkv_sweep_writer_n_done(t->results, &done, &err), &err, "count");
    expect_ok(qkv_sweep_writer_close(t->results, &err), &err, "close");
    qkv_sweep_free(t->sweep);
    engine_close(&t->e);
    return done;
}

/* What a follower does in place of its work; it ends in there, or continues. */
typedef void follower_act(qkv_sweep_transport *workers);

static void no_act(qkv_sweep_transport *workers) {
    (void)workers;
}

static void give_up(qkv_sweep_transport *workers) {
    qkv_error problem = {0};
    if (workers->rank != 2) return;
    qkv_fail(&problem, QKV_ERR_MEMORY, "the session of this process has no memory");
    qkv_workers_give_up(workers, QKV_ERR_MEMORY, &problem);
    qkv_workers_local_end(workers);
}

static void vanish(qkv_sweep_transport *workers) {
    if (workers->rank == 2) _exit(0);
}

/* The leader's status and error. */
static int share(const qkv_workers_test *t, follower_act *act, qkv_error *err) {
    qkv_sweep_transport workers;
    int stopped = 0;
    const qkv_sweep_options options = QKV_SWEEP_OPTIONS_INIT;
    expect_ok(qkv_workers_local_start(&workers, FOLLOWERS, err), err, "start");
    if (workers.rank != 0) {
        act(&workers);
        qkv_workers_follow(&workers, t->sweep, t->e.session, err);
        qkv_workers_local_end(&workers);
    }
    const int status =
        qkv_workers_lead(&workers, t->sweep, t->e.session, t->results, &options, &stopped, err);
    qkv_workers_local_end(&workers);
    assert_false(stopped);
    return status;
}

/* Three blocks for six processes; then none at all. */
static void followers_without_work_are_no_loss(void **state) {
    (void)state;
    qkv_workers_test t;
    open_test(&t, "finished.sqlite");
    for (int i = 0; i < 20; i++) {
        qkv_error err = {0};
        expect_ok(share(&t, no_act, &err), &err, "sweep");
    }
    const int64_t wanted = qkv_sweep_n_cells(t.sweep);
    assert_int_equal(close_test(&t), wanted);
}

static void a_follower_says_why_it_gives_up(void **state) {
    (void)state;
    qkv_workers_test t;
    open_test(&t, "given_up.sqlite");
    qkv_error err = {0};
    assert_int_equal(share(&t, give_up, &err), QKV_ERR_MEMORY);
    assert_string_equal(err.message, "the session of this process has no memory");
    close_test(&t);
}

static void a_lost_follower_is_an_error(void **state) {
    (void)state;
    qkv_workers_test t;
    open_test(&t, "lost.sqlite");
    qkv_error err = {0};
    assert_int_equal(share(&t, vanish, &err), QKV_ERR_BACKEND);
    if (!strstr(err.message, "process 2 is gone")) fail_msg("%s", err.message);
    close_test(&t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(followers_without_work_are_no_loss),
        cmocka_unit_test(a_follower_says_why_it_gives_up),
        cmocka_unit_test(a_lost_follower_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, scratch_clean);
}
