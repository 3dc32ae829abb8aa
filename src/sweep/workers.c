/*
 * How the work is shared out.
 *
 * A task is the number of a block, an answer that number with the block's values. A follower says
 * twice at the start that it is ready, and has so one task in hand and one waiting while the leader
 * is busy with a block of its own. Consecutive blocks of a prompt go to the same process, which has
 * its forward pass in memory.
 *
 * Every message of a follower is answered with a task or with the word that there are no more. After
 * as many of those as it said that it is ready it ends, and the leader forgets it. A follower that
 * is gone before that ends the run: what the others have in hand is stored, what it was computing
 * is missing in the file, and the next run resumes from there.
 */
#include "sweep/workers.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "sweep/sweep.h"

/* Tasks that a follower has, in hand and waiting. */
enum { CREDIT = 2 };

enum { READY, TASK, ANSWER, NO_MORE, GIVE_UP };

typedef struct head {
    int64_t kind, status, block;
} head;

/* An answer holds the values after its head, or the text of an error; so does a farewell. */
typedef struct message {
    head head;
    double values[];
} message;

/* Room for the largest message. */
static message *new_message(const qkv_sweep *sweep, size_t *size) {
    size_t cells = 0;
    /* The largest blocks stand at the front, after a baseline perhaps. */
    for (int64_t i = 0; i < 2 && i < qkv_sweep_n_blocks(sweep); i++) {
        int64_t n;
        qkv_sweep_block(sweep, i, &n);
        if ((size_t)n > cells) cells = (size_t)n;
    }
    const size_t values = cells * qkv_sweep_n_metrics(sweep) * sizeof(double);
    *size = sizeof(message) + (values > sizeof(qkv_error) ? values : sizeof(qkv_error));
    return qkv_calloc(*size, 1);
}

static size_t answer_size(const qkv_sweep *sweep, const message *m) {
    int64_t n;
    qkv_sweep_block(sweep, m->head.block, &n);
    return sizeof(message) + (size_t)n * qkv_sweep_n_metrics(sweep) * sizeof(double);
}

/* ---- followers ---- */

/* What goes wrong is told by the leader. */
static int send_problem(const qkv_sweep_transport *to, head first, const qkv_error *problem) {
    struct {
        head head;
        char text[sizeof problem->message];
    } m = {.head = first};
    memcpy(m.text, problem->message, sizeof m.text);
    return to->send(to->user, 0, &m, sizeof m);
}

void qkv_workers_give_up(const qkv_sweep_transport *to, int status, const qkv_error *problem) {
    (void)send_problem(to, (head){.kind = GIVE_UP, .status = status}, problem);
}

static int answer(const qkv_sweep_transport *to, const qkv_sweep *sweep, qkv_session *session,
                  message *m) {
    qkv_error problem = {0};
    const int status = qkv_sweep_compute(sweep, session, m->head.block, m->values, &problem);
    m->head = (head){ANSWER, status, m->head.block};
    if (status != QKV_OK) return send_problem(to, m->head, &problem);
    return to->send(to->user, 0, m, answer_size(sweep, m));
}

int qkv_workers_follow(const qkv_sweep_transport *to, const qkv_sweep *sweep, qkv_session *session,
                       qkv_error *err) {
    size_t room;
    message *m = new_message(sweep, &room);
    if (!m) return qkv_fail_memory(err);
    const head ready = {.kind = READY};
    int there = 1;
    for (int i = 0; i < CREDIT && there; i++) there = to->send(to->user, 0, &ready, sizeof ready);
    for (int credit = CREDIT; credit && there;) {
        int32_t from = 0;
        size_t size = room;
        there = to->receive(to->user, &from, m, &size);
        if (!there) break;
        if (m->head.kind == TASK) {
            there = answer(to, sweep, session, m);
        } else {
            credit--;
        }
    }
    free(m);
    return QKV_OK;
}

/* ---- the leader ---- */

/* A process: the blocks that it is at, and the messages of it that are still to come. */
typedef struct member {
    int64_t block, end;
    int credits;
} member;

typedef struct leader {
    const qkv_sweep_transport *to;
    const qkv_sweep *sweep;
    qkv_session *session;
    qkv_sweep_writer *results;
    const qkv_sweep_options *options;
    member *ranks;
    int64_t next, unit; /* the next block that no process has, and how many are taken at a time */
    int64_t done, wanted;
    int credits;   /* of all followers together */
    int stopped;   /* by the sweep's callback */
    int cancelled; /* by the session's */
    int status;
    qkv_error problem; /* the first one */
    message *m, *own;
    size_t room;
} leader;

static void note(leader *l, int status, const qkv_error *problem) {
    if (status == QKV_ERR_CANCELLED) l->cancelled = 1;
    if (status == QKV_OK || l->status != QKV_OK) return;
    l->status = status;
    l->problem = *problem;
}

/* Whether somebody has to compute the block. */
static int is_open(leader *l, int64_t block) {
    int64_t missing = 0;
    qkv_error problem = {0};
    if (!qkv_sweep_in_shard(l->sweep, block, l->options->shard, l->options->n_shards)) return 0;
    note(l, qkv_sweep_writer_n_missing(l->results, block, &missing, &problem), &problem);
    return missing > 0;
}

/* The next block for a process; -1 when there is none. */
static int64_t next_task(leader *l, int rank) {
    member *at = &l->ranks[rank];
    while (l->status == QKV_OK && !l->stopped) {
        if (at->block == at->end) {
            if (l->next >= qkv_sweep_n_blocks(l->sweep)) return -1;
            at->block = l->next;
            at->end = l->next += l->unit;
        }
        const int64_t block = at->block++;
        if (is_open(l, block)) return block;
    }
    return -1;
}

/* What is done, for those who watch the session; `next` cells are computed here now. */
static void reach(leader *l, int64_t next) {
    qkv_error problem = {0};
    note(l, qkv_session_reach(l->session, (double)l->done, (double)next, &problem), &problem);
}

/* Said at the start too: it may be all there is. */
static void report(leader *l) {
    if (l->done < l->wanted) reach(l, 0); /* all of it cannot be stopped any more */
    if (l->options->progress && l->options->progress(l->options->user, l->done, l->wanted) != 0) {
        l->stopped = l->done < l->wanted;
    }
}

static void store(leader *l, const message *m) {
    qkv_error problem = {0};
    int64_t n;
    qkv_sweep_block(l->sweep, m->head.block, &n);
    const int status = qkv_sweep_writer_put(l->results, m->head.block, m->values, &problem);
    note(l, status, &problem);
    if (status != QKV_OK) return;
    l->done += n;
    report(l);
}

static void take_answer(leader *l) {
    if (l->m->head.status == QKV_OK) {
        store(l, l->m);
        return;
    }
    qkv_error problem = {0};
    const char *text = (const char *)l->m->values;
    note(l,
         qkv_fail(&problem, (int)l->m->head.status, "%.*s", (int)sizeof problem.message - 1, text),
         &problem);
}

/* So many messages fewer are to come from a follower. */
static void take_back(leader *l, int rank, int credits) {
    l->ranks[rank].credits -= credits;
    l->credits -= credits;
    if (l->ranks[rank].credits == 0 && l->to->forget) l->to->forget(l->to->user, rank);
}

/* No rank of a follower: messages cannot be received at all. */
static void lose(leader *l, int rank) {
    qkv_error problem = {0};
    if (rank < 1 || rank >= l->to->n_processes) {
        l->credits = 0;
    } else {
        take_back(l, rank, l->ranks[rank].credits);
    }
    note(l,
         qkv_fail(&problem, QKV_ERR_BACKEND,
                  "process %d is gone; run the sweep again to resume from the stored cells", rank),
         &problem);
}

/* The message of a caller's transport is not taken on trust. */
static int is_message(const leader *l, int32_t from, size_t size) {
    const head *h = &l->m->head;
    if (from < 1 || from >= l->to->n_processes || l->ranks[from].credits < 1) return 0;
    if (size < sizeof *h || size > l->room) return 0;
    if (h->kind == READY || h->kind == GIVE_UP) return 1;
    if (h->kind != ANSWER || h->block < 0 || h->block >= qkv_sweep_n_blocks(l->sweep)) return 0;
    return h->status != QKV_OK || size == answer_size(l->sweep, l->m);
}

/* From now on no process is listened to. */
static void refuse(leader *l, int32_t from) {
    qkv_error problem = {0};
    note(l,
         qkv_fail(&problem, QKV_ERR_BACKEND,
                  "process %d sent something that is not a message of a sweep", (int)from),
         &problem);
    l->credits = 0;
}

static void serve(leader *l) {
    int32_t from = 0;
    size_t size = l->room;
    if (!l->to->receive(l->to->user, &from, l->m, &size)) {
        lose(l, from);
        return;
    }
    if (!is_message(l, from, size)) {
        refuse(l, from);
        return;
    }
    if (l->m->head.kind != READY) take_answer(l);
    if (l->m->head.kind == GIVE_UP) {
        take_back(l, from, l->ranks[from].credits);
        return;
    }
    const int64_t block = next_task(l, from);
    const head task = {.kind = block < 0 ? NO_MORE : TASK, .block = block};
    if (!l->to->send(l->to->user, from, &task, sizeof task)) {
        lose(l, from);
    } else if (block < 0) {
        take_back(l, from, 1);
    }
}

/* One block of its own; 0 when there is none. */
static int compute_own(leader *l) {
    qkv_error problem = {0};
    const int64_t block = next_task(l, 0);
    if (block < 0) return 0;
    l->own->head.block = block;
    int64_t n;
    qkv_sweep_block(l->sweep, block, &n);
    reach(l, n);
    if (l->cancelled) return 0;
    const int status = qkv_sweep_compute(l->sweep, l->session, block, l->own->values, &problem);
    note(l, status, &problem);
    if (status == QKV_OK) store(l, l->own);
    return 1;
}

/* Ends when all is done; when it is to stop, with what has arrived by then. */
static void lead(leader *l) {
    enum { WAIT = 100 }; /* milliseconds */
    int busy = 1;
    while ((l->credits || busy) && !l->stopped && !l->cancelled) {
        if (l->credits && l->to->is_waiting(l->to->user, busy ? 0 : WAIT)) {
            serve(l);
        } else if (busy) {
            busy = compute_own(l);
        } else {
            reach(l, 0); /* is the whole to stop? */
        }
    }
    while (l->credits && l->to->is_waiting(l->to->user, 0)) serve(l);
    if (l->credits && l->to->abandon) l->to->abandon(l->to->user);
}

int qkv_workers_lead(const qkv_sweep_transport *to, const qkv_sweep *sweep, qkv_session *session,
                     qkv_sweep_writer *results, const qkv_sweep_options *options, int *stopped,
                     qkv_error *err) {
    const int followers = to->n_processes - 1;
    leader l = {.to = to,
                .sweep = sweep,
                .session = session,
                .results = results,
                .options = options,
                .credits = CREDIT * followers};
    l.ranks = qkv_calloc((size_t)followers + 1, sizeof *l.ranks);
    for (int i = 1; l.ranks && i <= followers; i++) l.ranks[i].credits = CREDIT;
    l.m = new_message(sweep, &l.room);
    l.own = new_message(sweep, &l.room);
    l.unit = qkv_sweep_unit(sweep, options->n_shards ? options->n_shards : followers + 1);
    l.wanted = qkv_sweep_shard_cells(sweep, options->shard, options->n_shards);
    int status = l.ranks && l.m && l.own ? QKV_OK : qkv_fail_memory(err);
    if (status == QKV_OK) status = qkv_sweep_writer_n_done(results, &l.done, err);
    if (status == QKV_OK) {
        status = qkv_session_begin_work(session, "cells", (double)l.wanted, err);
    }
    if (status == QKV_OK) {
        report(&l);
        lead(&l);
        status = l.status;
        (void)qkv_session_end_work(session, l.stopped ? QKV_ERR_CANCELLED : status);
        if (status != QKV_OK && err) *err = l.problem;
    }
    *stopped = l.stopped;
    free(l.ranks);
    free(l.m);
    free(l.own);
    return status;
}
