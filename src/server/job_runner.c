#define _POSIX_C_SOURCE 200809L
#include "server/job_runner.h"

#include <omp.h>
#include <string.h>
#include <time.h>

#include "base/memory.h"

#define MOST_KEPT ((size_t)64 << 20)

static double seconds_now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* ---- one job ---- */

static int is_unwanted(const qkv_job *job) {
    return job->cancelled || (job->is_gone && job->is_gone(job));
}

static int should_stop(void *user) {
    const qkv_job_runner *runner = user;
    return is_unwanted(runner->job) || seconds_now() > runner->deadline;
}

/* Names may mean other models since the answers were computed: their files are opened anew. */
static void forget_old(qkv_job_runner *runner) {
    const uint64_t n_opened = qkv_model_pool_n_opened(runner->pool);
    if (n_opened != runner->n_opened) qkv_reply_cache_clear(runner->cache);
    runner->n_opened = n_opened;
}

static void run(qkv_job_runner *runner, qkv_job *job) {
    const double start = seconds_now();
    runner->deadline = start + runner->time_limit;
    qkv_call_run(&job->call, job->endpoint, runner->pool, &job->reply);
    if (job->reply.status == 409 && !job->cancelled && seconds_now() > runner->deadline)
        qkv_reply_error(&job->reply, 503, "time", "it took longer than a request may take");
    job->reply.seconds = seconds_now() - start;
}

static void run_kept(qkv_job_runner *runner, qkv_job *job) {
    forget_old(runner);
    job->reply.kept = qkv_reply_cache_get(runner->cache, job->call.key, &job->reply);
    if (job->reply.kept) return;
    run(runner, job);
    const int same_models = qkv_model_pool_n_opened(runner->pool) == runner->n_opened;
    if (job->reply.status == 200 && same_models)
        qkv_reply_cache_put(runner->cache, job->call.key, &job->reply);
}

static void do_job(qkv_job_runner *runner, qkv_job *job) {
    runner->job = job;
    if (is_unwanted(job))
        qkv_reply_error(&job->reply, 409, "replaced", "the client no longer waits for it");
    else if (job->call.key && runner->cache)
        run_kept(runner, job);
    else
        run(runner, job);
    runner->job = NULL;
}

/* ---- the thread ---- */

static void *work(void *user) {
    qkv_job_runner *runner = user;
    qkv_job *job;
    const int32_t n_threads = qkv_model_pool_options(runner->pool)->n_threads;
    if (n_threads > 0)
        omp_set_num_threads(n_threads); /* of this thread: for what no session does */
    while ((job = qkv_queue_take(runner->queue, runner->kind))) {
        do_job(runner, job);
        qkv_queue_finish(runner->queue, runner->kind);
    }
    return NULL;
}

int qkv_job_runner_start(qkv_job_runner *runner, qkv_error *err) {
    if (runner->kind == QKV_RUNNER_PASSES) {
        runner->cache = qkv_reply_cache_new(MOST_KEPT);
        if (!runner->cache) return qkv_fail_memory(err);
        qkv_model_pool_watch(runner->pool, should_stop, runner);
    }
    const int why = pthread_create(&runner->thread, NULL, work, runner);
    runner->started = why == 0;
    return why ? qkv_fail(err, QKV_ERR_BACKEND, "no thread could be started: %s", strerror(why))
               : QKV_OK;
}

void qkv_job_runner_join(qkv_job_runner *runner) {
    if (runner->started) pthread_join(runner->thread, NULL);
    qkv_reply_cache_free(runner->cache);
    runner->started = 0;
    runner->cache = NULL;
}

/* ---- before the page is there ---- */

static void release_job(qkv_job *job) {
    qkv_call_release(&job->call);
    qkv_reply_release(&job->reply);
}

int qkv_job_runner_expect_page(qkv_queue *queue, const qkv_model_pool *pool, qkv_job *job,
                               qkv_error *err) {
    /* As src/server/page/early.js asks; what it leaves out is what the server takes then. */
    static const char body[] = "{\"metric\": \"sink\"}";
    *job = (qkv_job){.endpoint = qkv_endpoint_find("/api/overview"),
                     .reply = QKV_REPLY_INIT,
                     .done = release_job,
                     .gives_way = 1};
    char *copy = qkv_strdup(body);
    int status = copy ? qkv_call_read(&job->call, job->endpoint, pool, copy, strlen(body), err)
                      : qkv_fail_memory(err);
    if (status == QKV_OK)
        qkv_queue_add(queue, job);
    else
        qkv_call_release(&job->call);
    return status;
}
