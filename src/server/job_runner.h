/*
 * The threads that do jobs (job.h): one computes passes and owns the sessions of the pool, one does
 * what needs no pass. The first keeps answers, and computes what the page shows first before anybody
 * has asked for it.
 */
#ifndef QKV_SERVER_JOB_RUNNER_H
#define QKV_SERVER_JOB_RUNNER_H

#include "server/job.h"
#include "server/reply_cache.h"

typedef struct qkv_job_runner {
    qkv_queue *queue;
    qkv_model_pool *pool;
    double time_limit; /* seconds that a job may take */
    qkv_runner kind;

    qkv_job *job; /* what is done now */
    double deadline;
    qkv_reply_cache *cache; /* NULL: nothing is kept */
    uint64_t n_opened;      /* models that had been opened when the kept answers were computed */
    pthread_t thread;
    int started;
} qkv_job_runner;

/* Starts the thread of a runner whose first four fields are set. It ends when the queue is closed. */
int qkv_job_runner_start(qkv_job_runner *runner, qkv_error *err);
/* Waits for the end, and releases what it kept. */
void qkv_job_runner_join(qkv_job_runner *runner);

/* Puts the first request of the page, as it is without a fragment, into the queue. It gives way to
 * anything else that is asked for. `job` stays the caller's, and must until the queue is destroyed. */
int qkv_job_runner_expect_page(qkv_queue *queue, const qkv_model_pool *pool, qkv_job *job,
                               qkv_error *err);

#endif
