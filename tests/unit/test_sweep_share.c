/* One sweep by one process and by many: the same rows, stopped and resumed, and what is refused. */
#define _POSIX_C_SOURCE 200809L
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "qkv/sweep.h"
#include "qkv/sweep_reader.h"
#include "support/engine.h"
#include "support/scratch.h"
#include "support/values.h"
#include "sweep/sweep.h"

static const char SPEC[] =
    "{\"prompts\": [\"one two three\", \"four five six\"], \"layers\": \"0-4\","
    " \"epsilon\": \"0.5,1e-3\", \"metrics\": \"sink,tv\"}";

static qkv_model *model;
static qkv_sweep *sweep;

static int open_sweep(void **state) {
    (void)state;
    qkv_error err = {0};
    expect_ok(qkv_model_open(&model, QKV_TEST_MODELS "/default.gguf", &err), &err, "model");
    expect_ok(qkv_sweep_new(&sweep, model, SPEC, &err), &err, "sweep");
    return 0;
}

static int close_sweep(void **state) {
    qkv_sweep_free(sweep);
    qkv_model_free(model);
    return scratch_clean(state);
}

static qkv_sweep_share_options with_processes(int32_t n) {
    qkv_sweep_share_options options = QKV_SWEEP_SHARE_OPTIONS_INIT;
    options.n_processes = n;
    return options;
}

static void run(const char *name, const qkv_sweep_share_options *options, int expect_stopped) {
    qkv_error err = {0};
    int stopped = -1;
    expect_ok(qkv_sweep_share(sweep, scratch_path(name), options, &stopped, &err), &err, name);
    assert_int_equal(stopped, expect_stopped);
}

/* ---- rows ---- */

static void read_rows(const char *name, const char *metric, qkv_sweep_rows **rows) {
    qkv_sweep_reader *file = NULL;
    qkv_error err = {0};
    expect_ok(qkv_sweep_reader_open(&file, scratch_path(name), &err), &err, name);
    expect_ok(qkv_sweep_reader_rows(file, metric, rows, &err), &err, metric);
    qkv_sweep_reader_close(file);
}

/* Bit for bit, and none missing. */
static void expect_same(const char *a, const char *b) {
    static const char *const metrics[] = {"sink", "tv"};
    for (size_t m = 0; m < 2; m++) {
        qkv_sweep_rows *x, *y;
        read_rows(a, metrics[m], &x);
        read_rows(b, metrics[m], &y);
        const size_t n = qkv_sweep_rows_count(x);
        assert_int_equal(n, qkv_sweep_n_cells(sweep));
        assert_int_equal(n, qkv_sweep_rows_count(y));
        for (size_t i = 0; i < n; i++) {
            const qkv_sweep_row of_x = sweep_row(x, i), of_y = sweep_row(y, i);
            assert_false(of_x.missing || of_y.missing);
            assert_memory_equal(&of_x.value, &of_y.value, sizeof of_x.value);
        }
        qkv_sweep_rows_free(x);
        qkv_sweep_rows_free(y);
    }
}

static void any_number_of_processes_gives_the_same_rows(void **state) {
    (void)state;
    static const int32_t numbers[] = {2, 5, 0};
    run("one.sqlite", NULL, 0);
    for (size_t i = 0; i < 3; i++) {
        char name[32];
        const qkv_sweep_share_options options = with_processes(numbers[i]);
        snprintf(name, sizeof name, "by%d.sqlite", (int)numbers[i]);
        run(name, &options, 0);
        expect_same("one.sqlite", name);
    }
}

static void *wait_for_end(void *lock) {
    pthread_mutex_lock(lock);
    pthread_mutex_unlock(lock);
    return NULL;
}

/* Threads of the host that wait, and those that a session has left, do not exist in the copies. */
static void threads_from_before_do_no_harm(void **state) {
    (void)state;
    enum { TOKENS = 120 };
    int32_t tokens[TOKENS];
    static const char *const captures[] = {"logits[-1]", NULL};
    engine e;
    pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_t other;
    for (int i = 0; i < TOKENS; i++) tokens[i] = i + 1;
    pthread_mutex_lock(&lock);
    assert_int_equal(pthread_create(&other, NULL, wait_for_end, &lock), 0);
    engine_open(&e, QKV_TEST_MODELS "/default.gguf", 2);
    const engine_run work = {.tokens = tokens, .n_tokens = TOKENS, .captures = captures};
    qkv_result_free(engine_execute(&e, &work));
    const qkv_sweep_share_options shared = with_processes(3);
    run("alone.sqlite", NULL, 0);
    run("threads.sqlite", &shared, 0);
    expect_same("alone.sqlite", "threads.sqlite");
    qkv_result_free(engine_execute(&e, &work));
    engine_close(&e);
    pthread_mutex_unlock(&lock);
    pthread_join(other, NULL);
}

/* ---- progress ---- */

typedef struct watch {
    int64_t calls, first, last, wanted;
    int64_t stop_at; /* cells; 0: never */
} watch;

static int look(void *user, int64_t done, int64_t wanted) {
    watch *w = user;
    if (w->calls++ == 0) w->first = done;
    assert_true(done >= w->last);
    w->last = done;
    w->wanted = wanted;
    return w->stop_at && done >= w->stop_at;
}

static void watch_run(const char *name, int32_t n, watch *w, int expect_stopped) {
    qkv_sweep_share_options options = with_processes(n);
    options.progress = look;
    options.user = w;
    run(name, &options, expect_stopped);
}

static void a_callback_stops_it_and_the_same_call_goes_on(void **state) {
    (void)state;
    static const int32_t numbers[] = {1, 2, 5};
    run("whole.sqlite", NULL, 0);
    const int64_t cells = qkv_sweep_n_cells(sweep);
    for (size_t i = 0; i < 3; i++) {
        char name[32];
        watch first = {.stop_at = 1}, second = {0}, third = {0};
        snprintf(name, sizeof name, "stop%d.sqlite", (int)numbers[i]);
        watch_run(name, numbers[i], &first, 1);
        assert_int_equal(first.first, 0);
        assert_true(first.last > 0 && first.last < cells);
        watch_run(name, numbers[i], &second, 0);
        assert_int_equal(second.first, first.last);
        assert_int_equal(second.last, cells);
        assert_int_equal(second.wanted, cells);
        expect_same("whole.sqlite", name);
        watch_run(name, numbers[i], &third, 0); /* nothing is left to do */
        assert_int_equal(third.calls, 1);
        assert_int_equal(third.first, cells);
    }
}

static void a_part_is_a_part(void **state) {
    (void)state;
    int64_t cells = 0;
    for (int64_t i = 1; i <= 2; i++) {
        char name[32];
        watch w = {0};
        qkv_sweep_share_options options = with_processes(2);
        options.shard = i;
        options.n_shards = 2;
        options.progress = look;
        options.user = &w;
        snprintf(name, sizeof name, "part%d.sqlite", (int)i);
        run(name, &options, 0);
        assert_int_equal(w.last, w.wanted);
        assert_int_equal(w.wanted, qkv_sweep_shard_cells(sweep, i, 2));
        cells += w.last;
    }
    assert_int_equal(cells, qkv_sweep_n_cells(sweep));
}

/* ---- the host ---- */

static int at_exit_pipe;

static void tell_of_exit(void) {
    if (write(at_exit_pipe, "x", 1) != 1) _exit(3);
}

/* Handlers of atexit run once, and what is buffered is written once: in the host itself. */
static void copies_run_nothing_of_the_host(void **state) {
    (void)state;
    int ends[2];
    char seen[64];
    assert_int_equal(pipe(ends), 0);
    const pid_t host = fork();
    if (host == 0) {
        const qkv_sweep_share_options options = with_processes(4);
        FILE *buffered = fdopen(dup(ends[1]), "w");
        close(ends[0]);
        at_exit_pipe = ends[1];
        fputs("b", buffered);
        if (atexit(tell_of_exit) != 0) _exit(4);
        exit(qkv_sweep_share(sweep, scratch_path("host.sqlite"), &options, NULL, NULL) == QKV_OK
                 ? 0
                 : 5);
    }
    close(ends[1]);
    size_t n = 0;
    ssize_t got;
    while (n < sizeof seen && (got = read(ends[0], seen + n, sizeof seen - n)) > 0)
        n += (size_t)got;
    close(ends[0]);
    int status = 0;
    assert_int_equal(waitpid(host, &status, 0), host);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    assert_int_equal(n, 2);
}

/* ---- errors ---- */

static void refuse(const qkv_sweep *given, const char *path, const qkv_sweep_share_options *options,
                   int status, const char *part) {
    qkv_error err = {0};
    int stopped = 7;
    assert_int_equal(qkv_sweep_share(given, path, options, &stopped, &err), status);
    assert_int_equal(stopped, 0);
    if (!strstr(err.message, part)) fail_msg("'%s' lacks '%s'", err.message, part);
    assert_int_equal(qkv_sweep_share(given, path, options, NULL, NULL), status);
}

static int no_send(void *user, int32_t to, const void *data, size_t size) {
    (void)user, (void)to, (void)data, (void)size;
    return 0;
}

static int garbage(void *user, int32_t *from, void *data, size_t *size) {
    *from = *(int32_t *)user;
    memset(data, 0x5a, *size);
    return 1;
}

static int is_waiting(void *user, int milliseconds) {
    (void)milliseconds;
    (void)user;
    return 1;
}

static void arguments_are_checked(void **state) {
    (void)state;
    const char *path = scratch_path("refused.sqlite");
    qkv_sweep_share_options options = with_processes(1);
    refuse(NULL, path, NULL, QKV_ERR_ARGUMENT, "no sweep");
    refuse(sweep, NULL, NULL, QKV_ERR_ARGUMENT, "no path");
    refuse(sweep, scratch_path("no/such/place.sqlite"), NULL, QKV_ERR_IO, "place.sqlite");
    options.n_processes = -1;
    refuse(sweep, path, &options, QKV_ERR_ARGUMENT, "n_processes");
    options.n_processes = 1025;
    refuse(sweep, path, &options, QKV_ERR_ARGUMENT, "n_processes");
    options = with_processes(2);
    options.shard = 3, options.n_shards = 2;
    refuse(sweep, path, &options, QKV_ERR_ARGUMENT, "part 3 of 2");
    options = with_processes(2);
    options.size = 0;
    refuse(sweep, path, &options, QKV_ERR_ARGUMENT, "_INIT");
    assert_int_not_equal(access(path, F_OK), 0);
}

static void transports_are_checked(void **state) {
    (void)state;
    const char *path = scratch_path("foreign.sqlite");
    int32_t from = 1;
    qkv_sweep_transport to = QKV_SWEEP_TRANSPORT_INIT;
    qkv_sweep_share_options options = with_processes(1);
    options.transport = &to;
    refuse(sweep, path, &options, QKV_ERR_ARGUMENT, "send, receive");
    to.send = no_send, to.receive = garbage, to.is_waiting = is_waiting, to.user = &from;
    to.n_processes = 2, to.rank = 2;
    refuse(sweep, path, &options, QKV_ERR_ARGUMENT, "rank 2 of 2");
    to.rank = 0;
    options.n_processes = 2;
    refuse(sweep, path, &options, QKV_ERR_ARGUMENT, "n_processes must be 1");
    options.n_processes = 1;
    refuse(sweep, path, &options, QKV_ERR_BACKEND, "not a message of a sweep");
    from = 9;
    refuse(sweep, path, &options, QKV_ERR_BACKEND, "process 9");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_number_of_processes_gives_the_same_rows),
        cmocka_unit_test(threads_from_before_do_no_harm),
        cmocka_unit_test(a_callback_stops_it_and_the_same_call_goes_on),
        cmocka_unit_test(a_part_is_a_part),
        cmocka_unit_test(copies_run_nothing_of_the_host),
        cmocka_unit_test(arguments_are_checked),
        cmocka_unit_test(transports_are_checked),
    };
    return cmocka_run_group_tests(tests, open_sweep, close_sweep);
}
