/*
 * The one file that knows MPI.
 *
 * Every rank opens the model and reads the specification itself. Rank 0 keeps the file of results
 * and hands out blocks: tasks are lists of cells, answers are the same list with values. A
 * follower says twice at the start that it is ready and has so one task in hand and one waiting,
 * while rank 0 is busy with a block of its own. Consecutive blocks of a prompt go to the same rank,
 * which has its forward pass in memory.
 *
 * With plain MPI, a rank that dies takes the others with it. What it was computing is then missing
 * in the file, and the same command goes on from there.
 */
#define _POSIX_C_SOURCE 200809L
#include "cli/ranks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/text.h"

/* How many processes were started together; 1 when nobody says. */
static long told_size(void) {
    static const char *const names[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *text = getenv(names[i]);
        int64_t n = 0;
        if (text && qkv_parse_int(text, strlen(text), &n) && n > 0) return (long)n;
    }
    return 1;
}

#ifndef QKV_HAVE_MPI

int cli_ranks_start(cli_ranks *ranks, qkv_error *err) {
    *ranks = (cli_ranks){.n = 1};
    const long n = told_size();
    if (n == 1) return QKV_OK;
    return qkv_fail(err, QKV_ERR_UNSUPPORTED,
                    "this qkv was built without MPI: %ld processes would each do the whole sweep; "
                    "install Open MPI and build again, or use --shard",
                    n);
}

void cli_ranks_end(cli_ranks *ranks, int status) {
    (void)ranks;
    (void)status;
}

int cli_ranks_lead(const cli_ranks *ranks, const qkv_sweep *sweep, qkv_session *session,
                   qkv_results *results, const qkv_sweep_options *options, int *stopped,
                   qkv_error *err) {
    (void)ranks;
    return qkv_sweep_run(sweep, session, results, options, stopped, err);
}

int cli_ranks_follow(const cli_ranks *ranks, const qkv_sweep *sweep, qkv_session *session,
                     qkv_error *err) {
    (void)ranks, (void)sweep, (void)session;
    return qkv_fail(err, QKV_ERR_UNSUPPORTED, "this qkv was built without MPI");
}

#else

#include <mpi.h>

enum { TAG_TASK = 1, TAG_READY, TAG_ANSWER };

/* Tasks that a follower has, in hand and waiting. */
enum { CREDIT = 2 };

/* ---- starting and ending ---- */

int cli_ranks_start(cli_ranks *ranks, qkv_error *err) {
    *ranks = (cli_ranks){.n = 1};
    if (told_size() == 1) return QKV_OK;
    if (MPI_Init(NULL, NULL) != MPI_SUCCESS) {
        return qkv_fail(err, QKV_ERR_BACKEND, "MPI could not be started");
    }
    ranks->started = 1;
    MPI_Comm_rank(MPI_COMM_WORLD, &ranks->rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks->n);
    MPI_Comm local;
    int n_local = 1;
    if (MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &local) ==
        MPI_SUCCESS) {
        MPI_Comm_size(local, &n_local);
        MPI_Comm_free(&local);
    }
    const long cores = sysconf(_SC_NPROCESSORS_ONLN);
    ranks->threads = cores > n_local ? cores / n_local : 1;
    return QKV_OK;
}

void cli_ranks_end(cli_ranks *ranks, int status) {
    if (!ranks->started) return;
    /* Others may wait for this one: leaving without a word makes mpirun end them. */
    if (status == QKV_OK) MPI_Finalize();
    ranks->started = 0;
}

/* ---- messages ---- */

/* A task is n cells; an answer is n cells and their values, or a status and a message. */
typedef struct message {
    int64_t status, n;
    /* int64_t cells[n]; double values[n * n_metrics]; or char text[] */
} message;

typedef struct buffer {
    unsigned char *data;
    size_t cells; /* room for a block */
    size_t size;
} buffer;

static int buffer_new(buffer *b, const qkv_sweep *sweep, qkv_error *err) {
    /* The largest blocks stand at the front, behind a baseline perhaps. */
    for (int64_t i = 0; i < 2 && i < qkv_sweep_n_blocks(sweep); i++) {
        int64_t n;
        qkv_sweep_block(sweep, i, &n);
        if ((size_t)n > b->cells) b->cells = (size_t)n;
    }
    b->size = sizeof(message) + sizeof(qkv_error) +
              b->cells * (sizeof(int64_t) + qkv_sweep_n_metrics(sweep) * sizeof(double));
    b->data = qkv_calloc(b->size, 1);
    return b->data ? QKV_OK : qkv_fail_memory(err);
}

static int64_t *cells_of(const buffer *b) {
    return (int64_t *)(void *)(b->data + sizeof(message));
}

static double *values_of(const buffer *b, size_t n) {
    return (double *)(void *)(b->data + sizeof(message) + n * sizeof(int64_t));
}

static message *head_of(const buffer *b) {
    return (message *)(void *)b->data;
}

static void send_to(int rank, int tag, const buffer *b, size_t size) {
    MPI_Send(b->data, (int)size, MPI_BYTE, rank, tag, MPI_COMM_WORLD);
}

static MPI_Status receive(int rank, buffer *b) {
    MPI_Status from;
    MPI_Recv(b->data, (int)b->size, MPI_BYTE, rank, MPI_ANY_TAG, MPI_COMM_WORLD, &from);
    return from;
}

/* ---- followers ---- */

/* Turns the task in the buffer into its answer and sends it. */
static void answer(const qkv_sweep *sweep, qkv_session *session, buffer *b) {
    const size_t n = (size_t)head_of(b)->n, n_metrics = qkv_sweep_n_metrics(sweep);
    qkv_error problem = {0};
    const int status = qkv_sweep_compute(sweep, session, cells_of(b), n, values_of(b, n), &problem);
    head_of(b)->status = status;
    size_t size = sizeof(message) + n * (sizeof(int64_t) + n_metrics * sizeof(double));
    if (status != QKV_OK) {
        head_of(b)->n = 0;
        memcpy(b->data + sizeof(message), problem.message, sizeof problem.message);
        size = sizeof(message) + sizeof problem.message;
    }
    send_to(0, TAG_ANSWER, b, size);
}

int cli_ranks_follow(const cli_ranks *ranks, const qkv_sweep *sweep, qkv_session *session,
                     qkv_error *err) {
    (void)ranks;
    buffer b = {0};
    int status = buffer_new(&b, sweep, err);
    for (int i = 0; i < CREDIT && status == QKV_OK; i++) send_to(0, TAG_READY, &b, sizeof(message));
    /* An empty task takes back one credit. What goes wrong is told by rank 0, in order. */
    for (int credit = CREDIT; credit && status == QKV_OK;) {
        receive(0, &b);
        if (head_of(&b)->n == 0) {
            credit--;
        } else {
            answer(sweep, session, &b);
        }
    }
    free(b.data);
    return status;
}

/* ---- rank 0 ---- */

/* The blocks that a rank is at. */
typedef struct stretch {
    int64_t block, end;
} stretch;

typedef struct leader {
    const qkv_sweep *sweep;
    qkv_session *session;
    qkv_results *results;
    const qkv_sweep_options *options;
    stretch *ranks;
    int64_t next, unit; /* the next block nobody has, and how many are taken at a time */
    int64_t done;
    int credits; /* of all followers, given and not taken back */
    int stopped;
    int status;
    qkv_error problem;
    buffer b, own;
} leader;

static void note(leader *l, int status) {
    if (l->status == QKV_OK) l->status = status;
}

/* The next cells for a rank, into the buffer; 0 when there are no more. */
static size_t next_task(leader *l, int rank, buffer *b) {
    stretch *at = &l->ranks[rank];
    size_t n = 0;
    while (n == 0 && l->status == QKV_OK && !l->stopped) {
        if (at->block == at->end) {
            if (l->next >= qkv_sweep_n_blocks(l->sweep)) return 0;
            *at = (stretch){l->next, l->next + l->unit};
            l->next = at->end;
        }
        note(l, qkv_results_missing(l->results, at->block++, cells_of(b), &n,
                                    l->status == QKV_OK ? &l->problem : NULL));
    }
    return l->status == QKV_OK ? n : 0;
}

static void store(leader *l, const buffer *b, size_t n) {
    note(l, qkv_results_put(l->results, cells_of(b), n, values_of(b, n),
                            l->status == QKV_OK ? &l->problem : NULL));
    l->done += (int64_t)n;
    if (l->options->progress &&
        l->options->progress(l->options->user, l->done, qkv_sweep_n_cells(l->sweep)) != 0 &&
        l->done < qkv_sweep_n_cells(l->sweep)) {
        l->stopped = 1;
    }
}

static void take_answer(leader *l) {
    const message *head = head_of(&l->b);
    if (head->status == QKV_OK) {
        store(l, &l->b, (size_t)head->n);
    } else if (l->status == QKV_OK) {
        const char *text = (const char *)l->b.data + sizeof(message);
        l->status = qkv_fail(&l->problem, (int)head->status, "%s", text);
    }
}

static void serve(leader *l) {
    const MPI_Status from = receive(MPI_ANY_SOURCE, &l->b);
    if (from.MPI_TAG == TAG_ANSWER) take_answer(l);
    const size_t n = next_task(l, from.MPI_SOURCE, &l->b);
    if (n == 0) l->credits--;
    *head_of(&l->b) = (message){.n = (int64_t)n};
    send_to(from.MPI_SOURCE, TAG_TASK, &l->b, sizeof(message) + n * sizeof(int64_t));
}

/* One block of its own; 0 when there is none. */
static int compute_own(leader *l) {
    const size_t n = next_task(l, 0, &l->own);
    if (n == 0) return 0;
    note(l, qkv_sweep_compute(l->sweep, l->session, cells_of(&l->own), n, values_of(&l->own, n),
                              &l->problem));
    if (l->status == QKV_OK) store(l, &l->own, n);
    return 1;
}

static void lead(leader *l) {
    int busy = 1;
    while (l->credits || busy) {
        int waiting = 0;
        MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &waiting, MPI_STATUS_IGNORE);
        if (waiting || (!busy && l->credits)) {
            serve(l);
        } else {
            busy = compute_own(l);
        }
    }
}

int cli_ranks_lead(const cli_ranks *ranks, const qkv_sweep *sweep, qkv_session *session,
                   qkv_results *results, const qkv_sweep_options *options, int *stopped,
                   qkv_error *err) {
    leader l = {.sweep = sweep,
                .session = session,
                .results = results,
                .options = options,
                .unit = qkv_sweep_unit(sweep, ranks->n),
                .credits = CREDIT * (ranks->n - 1),
                .ranks = qkv_calloc((size_t)ranks->n, sizeof(stretch))};
    int status = l.ranks ? QKV_OK : qkv_fail_memory(err);
    if (status == QKV_OK) status = buffer_new(&l.b, sweep, err);
    if (status == QKV_OK) status = buffer_new(&l.own, sweep, err);
    if (status == QKV_OK) status = qkv_results_n_done(results, &l.done, err);
    if (status == QKV_OK) {
        lead(&l);
        status = l.status;
        if (status != QKV_OK && err) *err = l.problem;
    }
    *stopped = l.stopped;
    free(l.ranks);
    free(l.b.data);
    free(l.own.data);
    return status;
}

#endif
