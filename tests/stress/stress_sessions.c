/*
 * Whatever the mix of sessions, threads and models, a session gives the bits it gives alone.
 *
 *     stress_sessions SECONDS DIRECTORY
 *
 * A job is a plan on a model with a number of threads. What each gives alone is computed first, in
 * a process of its own that does nothing else. Then jobs are drawn at random and run together: in
 * threads at once, or one after the other with all their sessions open. Prints one line, and one for every
 * difference up to ten; fails when there is any, or when nothing was mixed.
 */
#define _POSIX_C_SOURCE 200809L
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "model/synthetic.h"
#include "qkv/measure.h"
#include "qkv/session.h"
#include "support/dice.h"
#include "support/values.h"

enum { MODELS = 2, MIXED = 4, ROUNDS = 3, SHOWN = 10 };

typedef struct job {
    int model;
    int32_t n_threads;
    int n_tokens;
    const char *edit, *capture; /* no capture: metrics are measured */
} job;

/* Wide enough for products that OpenBLAS shares between threads, long enough for attention in
 * blocks, small enough to be run often. */
static const char *const shapes[MODELS] = {"llama:2,8,4,512,1024,600", "gpt2:3,4,4,128,256,400"};
static const char *const types[MODELS] = {"f32", "q8_0"};

static const job jobs[] = {
    {0, 1, 200, "q@1.h1=scale:0.5", "pattern@1"}, {0, 2, 200, "q@1.h1=scale:0.5", "pattern@1"},
    {0, 3, 200, "v@0.h2=zero", "resid_post@1"},   {0, 0, 120, "k@0=scale:0.9", "logits"},
    {0, 1, 300, "q@0=scale:0.1", "z@1"},          {0, 2, 60, "z@1.h0=zero", NULL},
    {1, 1, 90, "q@2.h3=scale:0.01", "logits"},    {1, 2, 90, "q@2.h3=scale:0.01", "logits"},
    {1, 4, 150, "v@1=scale:2", "resid_post@2"},   {1, 1, 60, "k@1.h1=zero", NULL},
};
enum { JOBS = sizeof jobs / sizeof *jobs };

static char paths[MODELS][4096];
static qkv_model *models[MODELS];
static uint64_t alone[JOBS];

/* ---- a job ---- */

static void stop(const char *what, const qkv_error *err) {
    fprintf(stderr, "stress_sessions: %s: %s\n", what, err->message);
    exit(2);
}

static uint64_t mix_bytes(uint64_t hash, const void *data, size_t size) {
    const unsigned char *bytes = data;
    for (size_t i = 0; i < size; i++) hash = (hash ^ bytes[i]) * UINT64_C(0x100000001b3);
    return hash;
}

static qkv_plan *make_plan(const job *j, const qkv_model *model) {
    qkv_error err = {0};
    qkv_plan *plan = NULL;
    int32_t tokens[512];
    for (int i = 0; i < j->n_tokens; i++) tokens[i] = (i * 37 + 5) % 400;
    int status = qkv_plan_new(&plan, model, tokens, (size_t)j->n_tokens, &err);
    if (status == QKV_OK) status = qkv_plan_add_variant(plan, j->edit, NULL, &err);
    if (status == QKV_OK && j->capture) status = qkv_plan_add_capture(plan, j->capture, &err);
    if (status != QKV_OK) stop("plan", &err);
    return plan;
}

static uint64_t hash_result(const qkv_result *result) {
    uint64_t hash = 1;
    size_t variant;
    qkv_site site;
    int32_t layer;
    qkv_tensor t = QKV_TENSOR_INIT;
    for (size_t i = 0; qkv_result_item(result, i, &variant, &site, &layer, &t); i++) {
        size_t n = 1;
        for (int d = 0; d < t.n_dims; d++) n *= (size_t)t.shape[d];
        hash = mix_bytes(hash, t.data, n * sizeof *t.data);
    }
    return hash;
}

static uint64_t hash_table(const qkv_table *table) {
    uint64_t hash = 1;
    for (size_t i = 0; i < qkv_table_size(table); i++) {
        const double value = table_row(table, i).value;
        hash = mix_bytes(hash, &value, sizeof value);
    }
    return hash;
}

static uint64_t run_plan(qkv_session *session, const qkv_plan *plan) {
    qkv_error err = {0};
    qkv_result *result = NULL;
    if (qkv_session_run(session, &result, plan, &err) != QKV_OK) stop("run", &err);
    const uint64_t hash = hash_result(result);
    qkv_result_free(result);
    return hash;
}

static uint64_t measure_plan(qkv_session *session, qkv_plan *plan) {
    qkv_error err = {0};
    qkv_measure *measure = NULL;
    qkv_table *table = NULL;
    int status = qkv_measure_new(&measure, "sink,entropy,tv,effective_rank", NULL, &err);
    if (status == QKV_OK) status = qkv_measure_run(measure, &table, session, plan, &err);
    if (status != QKV_OK) stop("measure", &err);
    const uint64_t hash = hash_table(table);
    qkv_table_free(table);
    qkv_measure_free(measure);
    return hash;
}

static uint64_t run_job(const job *j, qkv_session *session) {
    qkv_plan *plan = make_plan(j, qkv_session_model(session));
    const uint64_t hash = j->capture ? run_plan(session, plan) : measure_plan(session, plan);
    qkv_plan_free(plan);
    return hash;
}

static qkv_session *open_session(const job *j, const qkv_model *model) {
    qkv_error err = {0};
    qkv_session *session = NULL;
    const qkv_session_options options = {.size = sizeof(qkv_session_options),
                                         .n_threads = j->n_threads};
    if (qkv_session_new(&session, model, &options, &err) != QKV_OK) stop("session", &err);
    return session;
}

static qkv_model *open_model(int index) {
    qkv_error err = {0};
    qkv_model *model = NULL;
    if (qkv_model_open(&model, paths[index], &err) != QKV_OK) stop("model", &err);
    return model;
}

/* ---- alone ---- */

static void run_alone(const job *j, int pipe_end) {
    qkv_model *model = open_model(j->model);
    qkv_session *session = open_session(j, model);
    const uint64_t hash = run_job(j, session);
    const int written = write(pipe_end, &hash, sizeof hash) == (ssize_t)sizeof hash;
    qkv_session_free(session);
    qkv_model_free(model);
    exit(written ? 0 : 2);
}

/* Forked before this process has any threads. */
static void find_alone(int index) {
    int ends[2], status = 1;
    if (pipe(ends) != 0) abort();
    const pid_t child = fork();
    if (child == 0) run_alone(&jobs[index], ends[1]);
    close(ends[1]);
    const ssize_t n = read(ends[0], &alone[index], sizeof alone[index]);
    close(ends[0]);
    if (child < 0 || waitpid(child, &status, 0) != child || status != 0 ||
        n != (ssize_t)sizeof alone[index]) {
        fprintf(stderr, "stress_sessions: job %d alone failed\n", index);
        exit(2);
    }
}

/* ---- together ---- */

typedef struct part {
    int index;
    qkv_session *session;
    int differences;
} part;

static void step(part *p) {
    if (run_job(&jobs[p->index], p->session) != alone[p->index]) p->differences++;
}

static void *run_thread(void *user) {
    part *p = user;
    const job *j = &jobs[p->index];
    p->session = open_session(j, models[j->model]);
    for (int i = 0; i < ROUNDS; i++) step(p);
    qkv_session_free(p->session);
    return NULL;
}

static void run_at_once(part *parts, int n) {
    pthread_t threads[MIXED];
    for (int i = 0; i < n; i++) {
        if (pthread_create(&threads[i], NULL, run_thread, &parts[i]) != 0) abort();
    }
    for (int i = 0; i < n; i++) pthread_join(threads[i], NULL);
}

static void run_by_turns(part *parts, int n) {
    for (int i = 0; i < n; i++) {
        const job *j = &jobs[parts[i].index];
        parts[i].session = open_session(j, models[j->model]);
    }
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < n; i++) step(&parts[i]);
    }
    for (int i = 0; i < n; i++) qkv_session_free(parts[i].session);
}

static void show(const part *p, const part *parts, int n, int at_once) {
    printf("sessions: job %d (%d threads) differs from itself alone in %d of %d runs, %s with",
           p->index, (int)jobs[p->index].n_threads, p->differences, ROUNDS,
           at_once ? "at once" : "in turn");
    for (int i = 0; i < n; i++) {
        if (&parts[i] != p)
            printf(" job %d (%d threads)", parts[i].index, (int)jobs[parts[i].index].n_threads);
    }
    printf("\n");
}

typedef struct tally {
    long mixes, runs, differences;
} tally;

static void mix(dice *random, tally *t) {
    part parts[MIXED] = {{0}};
    const int n = 2 + (int)dice_below(random, MIXED - 1);
    const int at_once = (int)dice_below(random, 2);
    for (int i = 0; i < n; i++) parts[i].index = (int)dice_below(random, JOBS);
    (at_once ? run_at_once : run_by_turns)(parts, n);
    t->mixes++;
    for (int i = 0; i < n; i++) {
        t->runs += ROUNDS;
        if (parts[i].differences && t->differences < SHOWN) show(&parts[i], parts, n, at_once);
        t->differences += parts[i].differences;
    }
}

static void prepare(const char *directory) {
    qkv_error err = {0};
    for (int i = 0; i < MODELS; i++) {
        snprintf(paths[i], sizeof paths[i], "%s/stress%d.gguf", directory, i);
        if (qkv_synthetic_write(paths[i], shapes[i], types[i], 7, &err) != QKV_OK)
            stop("writing a model", &err);
    }
    for (int i = 0; i < JOBS; i++) find_alone(i);
    for (int i = 0; i < MODELS; i++) models[i] = open_model(i);
}

int main(int argc, char **argv) {
    if (argc != 3) {
        fprintf(stderr, "usage: stress_sessions SECONDS DIRECTORY\n");
        return 2;
    }
    const time_t end = time(NULL) + atoi(argv[1]);
    dice random = {(uint64_t)time(NULL) ^ ((uint64_t)getpid() << 32)};
    tally t = {0};
    prepare(argv[2]);
    do mix(&random, &t);
    while (time(NULL) < end);
    for (int i = 0; i < MODELS; i++) qkv_model_free(models[i]);
    printf("sessions: %ld mixes, %ld runs, %ld of them not as alone\n", t.mixes, t.runs,
           t.differences);
    return t.differences ? 1 : 0;
}
