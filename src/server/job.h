/*
 * Jobs: requests that wait for one of two threads. One computes, a pass of a model at a time; the
 * other does what needs no pass, so that no client waits for a pass for tokens or a list of models.
 *
 * The queue is bounded. A job is done when it has a reply; `done` is then called, in whatever thread
 * that happens. A job of the same client and slot with a higher number replaces those before it: one
 * that waits is answered at once that it was replaced, one that runs is told to stop.
 */
#ifndef QKV_SERVER_JOB_H
#define QKV_SERVER_JOB_H

#include <pthread.h>
#include <stdatomic.h>

#include "server/endpoint.h"

typedef struct qkv_job qkv_job;

struct qkv_job {
    const qkv_endpoint *endpoint;
    qkv_call call;
    qkv_reply reply;
    void (*done)(qkv_job *job); /* called once; the job may be gone when it returns */
    int (*is_gone)(
        const qkv_job *job); /* 1: no client waits for it any more; may be NULL; takes no lock */
    int gives_way; /* no client has asked for it: any job of its runner but the same one cancels it */
    void *user;
    int fd;
    atomic_int cancelled;
    qkv_job *next;
};

enum { QKV_QUEUE_LIMIT = 64 };

/* Who does a job. */
typedef enum qkv_runner {
    QKV_RUNNER_LIGHT,  /* jobs of QKV_RANK_LIGHT */
    QKV_RUNNER_PASSES, /* all others */
    QKV_RUNNER_COUNT
} qkv_runner;

typedef struct qkv_queue {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    qkv_job *waiting; /* in the order they came */
    size_t n_waiting;
    qkv_job *running[QKV_RUNNER_COUNT]; /* or NULL */
    int closed;
} qkv_queue;

void qkv_queue_init(qkv_queue *queue);
void qkv_queue_destroy(qkv_queue *queue);
/* Adds a job, which is answered in any case: at once where the queue is full or closed. */
void qkv_queue_add(qkv_queue *queue, qkv_job *job);
/* Waits for a job of this runner, the most urgent first, which is then its running one; NULL: the queue
 * is closed. */
qkv_job *qkv_queue_take(qkv_queue *queue, qkv_runner runner);
/* The runner's job has its reply. */
void qkv_queue_finish(qkv_queue *queue, qkv_runner runner);
/* Stops what runs, answers what waits, and takes no more. */
void qkv_queue_close(qkv_queue *queue);

#endif
