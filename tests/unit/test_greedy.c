/*
 * Sets of heads: the choice is that of a search written out here, whose angles come from captured states
 * by power iteration; a search that was broken off resumes where it was.
 */
#define _POSIX_C_SOURCE 200809L
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>
#include <sqlite3.h>

#include "qkv/weights.h"
#include "study/greedy.h"
#include "support/engine.h"
#include "support/scratch.h"

enum { N_PROMPTS = 3, N_HEADS = 12, N_STEPS = 3 };

static int32_t TOKENS[N_PROMPTS][7] = {
    {1, 20, 30, 40, 50, 60, 70}, {1, 99, 3, 17, 250, 8, 44}, {1, 300, 200, 100, 5, 6, 7}};
static const qkv_own_prompt PROMPTS[N_PROMPTS] = {{.tokens = TOKENS[0], .n_tokens = 7},
                                                  {.tokens = TOKENS[1], .n_tokens = 5},
                                                  {.tokens = TOKENS[2], .n_tokens = 7}};

static engine e;
static greedy_head heads[N_HEADS];

static int open_all(void **state) {
    (void)state;
    engine_open(&e, QKV_TEST_MODELS "/default.gguf", 1);
    for (int i = 0; i < N_HEADS; i++) heads[i] = (greedy_head){1 + i / 4, i % 4};
    return 0;
}

static int close_all(void **state) {
    engine_close(&e);
    return scratch_clean(state);
}

static greedy_task task_of(const char *metric) {
    return (greedy_task){.session = e.session,
                         .prompts = PROMPTS,
                         .n_prompts = N_PROMPTS,
                         .target = "q",
                         .op = "scale:1e-05",
                         .metric = metric,
                         .candidates = heads,
                         .n_candidates = N_HEADS,
                         .n_steps = N_STEPS};
}

static greedy search(const greedy_task *task) {
    greedy found;
    qkv_error err = {0};
    int stopped = 7;
    expect_ok(qkv_greedy_run(&found, task, &stopped, &err), &err, task->metric);
    assert_int_equal(stopped, 0);
    assert_int_equal(found.n_steps, task->n_steps);
    return found;
}

/* ---- the same, written out ---- */

/* The model's final norm, from the weights: x / sqrt(mean x² + 1e-5) times the weight. */
static void norm(double *x) {
    const size_t width = (size_t)e.info->n_embd;
    double squares = 0;
    float *weight = calloc(width, sizeof *weight);
    qkv_error err = {0};
    expect_ok(qkv_weight_read(e.model, "output_norm", -1, 0, (int64_t)width, weight, &err), &err,
              "weight of the norm");
    for (size_t i = 0; i < width; i++) squares += x[i] * x[i];
    const double scale = 1 / sqrt(squares / (double)width + 1e-5);
    for (size_t i = 0; i < width; i++) x[i] *= scale * (double)weight[i];
    free(weight);
}

/* The last tokens' states under these edits, after the final norm: N_PROMPTS × n_embd. */
static double *states_of(const char *edits) {
    const size_t width = (size_t)e.info->n_embd;
    double *all = calloc(N_PROMPTS * width, sizeof *all);
    char capture[32];
    snprintf(capture, sizeof capture, "resid_post@%d", (int)e.info->n_layer - 1);
    for (size_t p = 0; p < N_PROMPTS; p++) {
        const char *const variants[] = {edits, NULL}, *const captures[] = {capture, NULL};
        const engine_run run = {PROMPTS[p].tokens, PROMPTS[p].n_tokens, edits[0] ? variants : NULL,
                                captures, NULL};
        qkv_result *result = engine_execute(&e, &run);
        const qkv_tensor x =
            engine_tensor(result, edits[0] != '\0', QKV_SITE_RESID_POST, e.info->n_layer - 1);
        const float *last = x.data + (PROMPTS[p].n_tokens - 1) * width;
        for (size_t i = 0; i < width; i++) all[p * width + i] = (double)last[i];
        norm(all + p * width);
        qkv_result_free(result);
    }
    return all;
}

/* The first left singular vector: the largest of M Mᵀ, by power iteration. */
static void first_vector(const double *states, double vector[N_PROMPTS]) {
    const size_t width = (size_t)e.info->n_embd;
    double gram[N_PROMPTS][N_PROMPTS] = {{0}};
    for (size_t a = 0; a < N_PROMPTS; a++) {
        for (size_t b = 0; b < N_PROMPTS; b++) {
            for (size_t i = 0; i < width; i++)
                gram[a][b] += states[a * width + i] * states[b * width + i];
        }
    }
    for (size_t i = 0; i < N_PROMPTS; i++) vector[i] = 1 + (double)i;
    for (int round = 0; round < 20000; round++) {
        double next[N_PROMPTS] = {0}, length = 0;
        for (size_t a = 0; a < N_PROMPTS; a++) {
            for (size_t b = 0; b < N_PROMPTS; b++) next[a] += gram[a][b] * vector[b];
            length += next[a] * next[a];
        }
        for (size_t a = 0; a < N_PROMPTS; a++) vector[a] = next[a] / sqrt(length);
    }
}

static double angle_of(const double base[N_PROMPTS], const char *edits) {
    double edited[N_PROMPTS], dot = 0;
    double *states = states_of(edits);
    first_vector(states, edited);
    free(states);
    for (size_t i = 0; i < N_PROMPTS; i++) dot += base[i] * edited[i];
    return acos(fmin(fabs(dot), 1)) * 180 / acos(-1);
}

static void choices_are_the_largest_angles(void **state) {
    (void)state;
    double base[N_PROMPTS];
    double *states = states_of("");
    first_vector(states, base);
    free(states);
    const greedy_task task = task_of("subspace_angle");
    greedy found = search(&task);
    int chosen[N_HEADS] = {0};
    char before[256] = "";
    for (size_t s = 0; s < N_STEPS; s++) {
        size_t best = N_HEADS;
        double angles[N_HEADS];
        for (size_t h = 0; h < N_HEADS; h++) {
            char edits[320];
            const double value = found.steps[s].values[h];
            assert_int_equal(isnan(value) != 0, chosen[h]);
            if (chosen[h]) continue;
            snprintf(edits, sizeof edits, "%sq@%d.h%d=scale:1e-05", before, (int)heads[h].layer,
                     (int)heads[h].head);
            angles[h] = angle_of(base, edits);
            if (!(fabs(angles[h] - value) < 1e-5 + 1e-6 * value))
                fail_msg("step %zu, %s: %.9g, not %.9g", s, edits, value, angles[h]);
            if (best == N_HEADS || angles[h] > angles[best]) best = h;
        }
        assert_int_equal(found.steps[s].chosen, best);
        chosen[best] = 1;
        const size_t n = strlen(before);
        snprintf(before + n, sizeof before - n, "q@%d.h%d=scale:1e-05 + ", (int)heads[best].layer,
                 (int)heads[best].head);
    }
    qkv_greedy_release(&found);
}

/* ---- resuming ---- */

static void expect_same(const greedy *a, const greedy *b) {
    for (size_t s = 0; s < a->n_steps; s++) {
        assert_int_equal(a->steps[s].chosen, b->steps[s].chosen);
        assert_memory_equal(a->steps[s].values, b->steps[s].values, N_HEADS * sizeof(double));
    }
}

typedef struct watch {
    int64_t first, stop_at, wanted; /* of `done` */
    int killed;
} watch;

static int look(void *user, int64_t done, int64_t wanted) {
    watch *w = user;
    if (w->first < 0) w->first = done;
    w->wanted = wanted;
    if (w->killed && done >= w->stop_at) kill(getpid(), SIGKILL);
    return w->stop_at && done >= w->stop_at;
}

/* Killed in the second step. A step of the file that is complete is not computed again. */
static void a_killed_search_goes_on(void **state) {
    (void)state;
    greedy_task task = task_of("subspace_angle");
    greedy whole = search(&task);
    task.file = scratch_path("killed.sqlite"); /* before the fork: the same for both */
    const pid_t child = fork();
    watch w = {.first = -1, .stop_at = N_HEADS * N_PROMPTS + 1, .killed = 1};
    task.progress = look;
    task.user = &w;
    if (child == 0) {
        greedy lost;
        int stopped;
        engine_renew(&e, NULL);
        task.session = e.session;
        qkv_greedy_run(&lost, &task, &stopped, NULL);
        _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    w = (watch){.first = -1};
    greedy rest = search(&task);
    assert_int_equal(w.wanted, (12 + 11 + 10) * N_PROMPTS);
    assert_int_equal(w.first, 12 * N_PROMPTS); /* the first step was kept */
    expect_same(&whole, &rest);
    qkv_greedy_release(&rest);
    /* Once more: nothing is left to do. */
    qkv_run_stats old = QKV_RUN_STATS_INIT, now = QKV_RUN_STATS_INIT;
    qkv_session_get_stats(e.session, &old);
    rest = search(&task);
    qkv_session_get_stats(e.session, &now);
    assert_int_equal(old.n_passes, now.n_passes);
    expect_same(&whole, &rest);
    qkv_greedy_release(&rest);
    qkv_greedy_release(&whole);
}

static void more_steps_go_on_too(void **state) {
    (void)state;
    greedy_task task = task_of("output_kl");
    greedy whole = search(&task);
    task.file = scratch_path("more.sqlite");
    task.n_steps = 1;
    greedy one = search(&task);
    expect_same(&one, &whole);
    qkv_greedy_release(&one);
    watch w = {.first = -1, .stop_at = N_HEADS * N_PROMPTS + 1};
    greedy_task stopping = task;
    int stopped = 0;
    qkv_error err = {0};
    stopping.n_steps = N_STEPS;
    stopping.progress = look;
    stopping.user = &w;
    expect_ok(qkv_greedy_run(&one, &stopping, &stopped, &err), &err, "stopped");
    assert_true(stopped && one.n_steps == 1);
    qkv_greedy_release(&one);
    task.n_steps = N_STEPS;
    greedy rest = search(&task);
    expect_same(&whole, &rest);
    qkv_greedy_release(&rest);
    qkv_greedy_release(&whole);
}

/* ---- refusals ---- */

static void refuse(const greedy_task *task, const char *part) {
    greedy found;
    qkv_error err = {0};
    int stopped;
    assert_int_not_equal(qkv_greedy_run(&found, task, &stopped, &err), QKV_OK);
    if (!strstr(err.message, part)) fail_msg("'%s' lacks '%s'", err.message, part);
    qkv_greedy_release(&found);
}

static const char *former_file(const char *name, const char *sql) {
    const char *path = scratch_path(name);
    sqlite3 *db = NULL;
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
    return path;
}

static void what_is_refused(void **state) {
    (void)state;
    greedy_task task = task_of("subspace_angle");
    task.n_prompts = 1;
    refuse(&task, "give at least two");
    task = task_of("subspace_angle:3");
    refuse(&task, "no value with 3 prompts");
    task = task_of("sink");
    refuse(&task, "not by sink");
    task = task_of("output_kl,ships");
    refuse(&task, "one metric");
    task = task_of("output_kl");
    task.n_steps = N_HEADS + 1;
    refuse(&task, "13 heads cannot be chosen out of 12");
    const greedy_head wrong = {99, 0};
    task = task_of("output_kl");
    task.candidates = &wrong;
    task.n_candidates = task.n_steps = 1;
    refuse(&task, "layer 99");
    task = task_of("output_kl");
    task.n_steps = 1;
    task.file = scratch_path("other.sqlite");
    greedy found = search(&task);
    qkv_greedy_release(&found);
    task.op = "zero";
    refuse(&task, "another search");
    task.file = former_file("former.sqlite", "CREATE TABLE search (task TEXT NOT NULL);"
                                             "CREATE TABLE tried (step INTEGER, value REAL)");
    refuse(&task, "earlier version of qkv");
    task.file = scratch_write("text.sqlite", "no database", 11);
    refuse(&task, "text.sqlite");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(choices_are_the_largest_angles),
        cmocka_unit_test(a_killed_search_goes_on),
        cmocka_unit_test(more_steps_go_on_too),
        cmocka_unit_test(what_is_refused),
    };
    return cmocka_run_group_tests_name("greedy", tests, open_all, close_all);
}
