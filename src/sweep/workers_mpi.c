/*
 * The one file that knows MPI: messages between the processes of mpirun. A program that is started
 * alone never calls it.
 */
#define _POSIX_C_SOURCE 200809L
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/number.h"
#include "base/text.h"
#include "sweep/workers.h"

/* How many processes were started together, as Open MPI and others say; 1 when nobody does. */
static int64_t told_size(void) {
    static const char *const names[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *text = getenv(names[i]);
        int64_t n = 0;
        if (text && qkv_parse_int(text, strlen(text), &n) && n > 0) return n;
    }
    return 1;
}

int qkv_workers_mpi_is_wanted(void) {
    return told_size() > 1;
}

#ifndef QKV_HAVE_MPI

int qkv_workers_mpi_start(qkv_workers *workers, qkv_error *err) {
    (void)workers;
    return qkv_fail(err, QKV_ERR_UNSUPPORTED,
                    "this qkv was built without MPI, and each of %lld processes would do the whole "
                    "sweep; install Open MPI and build again, or use --shard",
                    (long long)told_size());
}

void qkv_workers_mpi_end(qkv_workers *workers, int status) {
    (void)workers;
    (void)status;
}

#else

#include <mpi.h>

static int mpi_send(qkv_workers *workers, int to, const void *data, size_t size) {
    (void)workers;
    return MPI_Send(data, (int)size, MPI_BYTE, to, 0, MPI_COMM_WORLD) == MPI_SUCCESS;
}

static int mpi_receive(qkv_workers *workers, int *from, void *data, size_t *size) {
    MPI_Status status;
    int length = 0;
    const int source = workers->rank == 0 ? MPI_ANY_SOURCE : 0;
    if (MPI_Recv(data, (int)*size, MPI_BYTE, source, 0, MPI_COMM_WORLD, &status) != MPI_SUCCESS) {
        return 0;
    }
    MPI_Get_count(&status, MPI_BYTE, &length);
    *from = status.MPI_SOURCE;
    *size = (size_t)length;
    return 1;
}

static int mpi_is_waiting(qkv_workers *workers, int milliseconds) {
    static const struct timespec one = {.tv_nsec = 1000000};
    int waiting = 0;
    (void)workers;
    for (int i = 0; !waiting; i++) {
        MPI_Iprobe(MPI_ANY_SOURCE, 0, MPI_COMM_WORLD, &waiting, MPI_STATUS_IGNORE);
        if (i >= milliseconds) break;
        if (!waiting) nanosleep(&one, NULL);
    }
    return waiting;
}

/* Processes of MPI stay until all of them end together. */
static void mpi_forget(qkv_workers *workers, int rank) {
    (void)workers;
    (void)rank;
}

/* When the leader ends without MPI_Finalize, mpirun ends the others. */
static void mpi_abandon(qkv_workers *workers) {
    (void)workers;
}

int qkv_workers_mpi_start(qkv_workers *workers, qkv_error *err) {
    int size = 1;
    *workers = (qkv_workers){.send = mpi_send,
                             .receive = mpi_receive,
                             .is_waiting = mpi_is_waiting,
                             .forget = mpi_forget,
                             .abandon = mpi_abandon};
    if (MPI_Init(NULL, NULL) != MPI_SUCCESS) {
        return qkv_fail(err, QKV_ERR_BACKEND, "MPI could not be started");
    }
    MPI_Comm_rank(MPI_COMM_WORLD, &workers->rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    workers->n_followers = workers->rank == 0 ? size - 1 : 0;
    return QKV_OK;
}

void qkv_workers_mpi_end(qkv_workers *workers, int status) {
    (void)workers;
    if (status == QKV_OK) MPI_Finalize();
}

#endif
