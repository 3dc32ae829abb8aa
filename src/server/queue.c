#define _POSIX_C_SOURCE 200809L
#include <string.h>

#include "server/job.h"

void qkv_queue_init(qkv_queue *queue) {
    *queue = (qkv_queue){0};
    pthread_mutex_init(&queue->lock, NULL);
    pthread_cond_init(&queue->changed, NULL);
}

void qkv_queue_destroy(qkv_queue *queue) {
    pthread_cond_destroy(&queue->changed);
    pthread_mutex_destroy(&queue->lock);
}

/* Does a newer job make an older one pointless? */
static int replaces(const qkv_job *newer, const qkv_job *older) {
    const qkv_request_common *a = &newer->call.common, *b = &older->call.common;
    return a->client[0] && a->slot[0] && strcmp(a->client, b->client) == 0 &&
           strcmp(a->slot, b->slot) == 0 && a->seq > b->seq;
}

static void answer(qkv_job *job, unsigned status, const char *code, const char *message) {
    qkv_reply_error(&job->reply, status, code, message);
    job->done(job);
}

static void answer_replaced(qkv_job *job) {
    answer(job, 409, "replaced", "a newer request of the same client and slot replaced this one");
}

/* Takes a waiting job out, and puts it into a list of those to be answered. */
static void take_out(qkv_queue *queue, qkv_job **at, qkv_job **list) {
    qkv_job *job = *at;
    *at = job->next;
    job->next = *list;
    *list = job;
    queue->n_waiting--;
}

/* The jobs that a newer one replaces. */
static void take_replaced(qkv_queue *queue, const qkv_job *newer, qkv_job **list) {
    for (qkv_job **at = &queue->waiting; *at;) {
        if (replaces(newer, *at))
            take_out(queue, at, list);
        else
            at = &(*at)->next;
    }
    for (int i = 0; i < QKV_RUNNER_COUNT; i++) {
        qkv_job *running = queue->running[i];
        if (running && replaces(newer, running)) running->cancelled = 1;
    }
}

/* Those who left must not keep others out. */
static void take_gone(qkv_queue *queue, qkv_job **list) {
    for (qkv_job **at = &queue->waiting; *at;) {
        if ((*at)->is_gone && (*at)->is_gone(*at))
            take_out(queue, at, list);
        else
            at = &(*at)->next;
    }
}

static qkv_runner runner_of(const qkv_job *job) {
    return job->endpoint->rank == QKV_RANK_LIGHT ? QKV_RUNNER_LIGHT : QKV_RUNNER_PASSES;
}

/* A job that no client has asked for gives way to every one that asks for something else. */
static void give_way(qkv_job *job, const qkv_job *newer) {
    const char *a = job->call.key, *b = newer->call.key;
    const int same = a && b && strcmp(a, b) == 0;
    if (job->gives_way && runner_of(job) == runner_of(newer) && !same) job->cancelled = 1;
}

static void ask_to_give_way(qkv_queue *queue, const qkv_job *newer) {
    for (qkv_job *job = queue->waiting; job; job = job->next) give_way(job, newer);
    for (int i = 0; i < QKV_RUNNER_COUNT; i++) {
        if (queue->running[i]) give_way(queue->running[i], newer);
    }
}

/* Is there a job that makes this one pointless already? Requests may overtake each other. */
static int is_late(const qkv_queue *queue, const qkv_job *job) {
    for (int i = 0; i < QKV_RUNNER_COUNT; i++) {
        if (queue->running[i] && replaces(queue->running[i], job)) return 1;
    }
    for (const qkv_job *other = queue->waiting; other; other = other->next) {
        if (replaces(other, job)) return 1;
    }
    return 0;
}

static void append(qkv_queue *queue, qkv_job *job) {
    qkv_job **end = &queue->waiting;
    while (*end) end = &(*end)->next;
    job->next = NULL;
    *end = job;
    queue->n_waiting++;
    pthread_cond_broadcast(&queue->changed); /* each runner looks whether it is one of its own */
}

static void answer_list(qkv_job *list) {
    while (list) {
        qkv_job *job = list;
        list = job->next;
        answer_replaced(job);
    }
}

void qkv_queue_add(qkv_queue *queue, qkv_job *job) {
    qkv_job *replaced = NULL;
    pthread_mutex_lock(&queue->lock);
    const int closed = queue->closed, late = is_late(queue, job);
    take_replaced(queue, job, &replaced);
    if (queue->n_waiting >= QKV_QUEUE_LIMIT) take_gone(queue, &replaced);
    ask_to_give_way(queue, job);
    const int full = queue->n_waiting >= QKV_QUEUE_LIMIT;
    if (!closed && !full && !late) append(queue, job);
    pthread_mutex_unlock(&queue->lock);
    answer_list(replaced);
    if (closed)
        answer(job, 503, "stopped", "the server is being stopped");
    else if (late)
        answer_replaced(job);
    else if (full)
        answer(job, 503, "busy", "too many requests wait already; try again");
}

/* The first of the most urgent ones of a runner; NULL: it has none. */
static qkv_job *take_first(qkv_queue *queue, qkv_runner runner) {
    qkv_job **best = NULL;
    for (qkv_job **at = &queue->waiting; *at; at = &(*at)->next) {
        if (runner_of(*at) != runner) continue;
        if (!best || (*at)->endpoint->rank < (*best)->endpoint->rank) best = at;
    }
    if (!best) return NULL;
    qkv_job *job = *best;
    *best = job->next;
    queue->n_waiting--;
    return job;
}

qkv_job *qkv_queue_take(qkv_queue *queue, qkv_runner runner) {
    qkv_job *job = NULL;
    pthread_mutex_lock(&queue->lock);
    while (!queue->closed && !(job = take_first(queue, runner)))
        pthread_cond_wait(&queue->changed, &queue->lock);
    queue->running[runner] = job;
    pthread_mutex_unlock(&queue->lock);
    return job;
}

void qkv_queue_finish(qkv_queue *queue, qkv_runner runner) {
    pthread_mutex_lock(&queue->lock);
    qkv_job *job = queue->running[runner];
    queue->running[runner] = NULL;
    pthread_mutex_unlock(&queue->lock);
    job->done(job);
}

void qkv_queue_close(qkv_queue *queue) {
    pthread_mutex_lock(&queue->lock);
    qkv_job *list = queue->waiting;
    queue->closed = 1;
    queue->waiting = NULL;
    queue->n_waiting = 0;
    for (int i = 0; i < QKV_RUNNER_COUNT; i++) {
        if (queue->running[i]) queue->running[i]->cancelled = 1;
    }
    pthread_cond_broadcast(&queue->changed);
    pthread_mutex_unlock(&queue->lock);
    while (list) {
        qkv_job *job = list;
        list = job->next;
        answer(job, 503, "stopped", "the server is being stopped");
    }
}
