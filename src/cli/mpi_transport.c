/*
 * The one file that knows MPI: messages between the processes of mpirun. It is compiled into the
 * program, not into the library, and a program that is started alone never calls it.
 */
#define _POSIX_C_SOURCE 200809L
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/number.h"
#include "base/text.h"
#include "cli/sweep.h"

/* How many processes were started together, as Open MPI and others say; 1 when none does. */
static int64_t told_size(void) {
    static const char *const names[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *text = getenv(names[i]);
        int64_t n = 0;
        if (text && qkv_parse_int(text, strlen(text), &n) && n > 0) return n;
    }
    return 1;
}

int cli_mpi_is_wanted(void) {
    return told_size() > 1;
}

#ifndef QKV_HAVE_MPI

int cli_mpi_start(qkv_sweep_transport *to, qkv_error *err) {
    (void)to;
    return qkv_fail(err, QKV_ERR_UNSUPPORTED,
                    "this qkv was built without MPI, and each of %lld processes would do the whole "
                    "sweep; install Open MPI and build again, or use --shard",
                    (long long)told_size());
}

void cli_mpi_end(int status) {
    (void)status;
}

#else

#include <mpi.h>

static int own_rank;

static int mpi_send(void *user, int32_t to, const void *data, size_t size) {
    (void)user;
    return MPI_Send(data, (int)size, MPI_BYTE, to, 0, MPI_COMM_WORLD) == MPI_SUCCESS;
}

static int mpi_receive(void *user, int32_t *from, void *data, size_t *size) {
    MPI_Status status;
    int length = 0;
    (void)user;
    const int source = own_rank == 0 ? MPI_ANY_SOURCE : 0;
    if (MPI_Recv(data, (int)*size, MPI_BYTE, source, 0, MPI_COMM_WORLD, &status) != MPI_SUCCESS) {
        return 0;
    }
    MPI_Get_count(&status, MPI_BYTE, &length);
    *from = status.MPI_SOURCE;
    *size = (size_t)length;
    return 1;
}

static int mpi_is_waiting(void *user, int milliseconds) {
    static const struct timespec one = {.tv_nsec = 1000000};
    int waiting = 0;
    (void)user;
    for (int i = 0; !waiting; i++) {
        MPI_Iprobe(MPI_ANY_SOURCE, 0, MPI_COMM_WORLD, &waiting, MPI_STATUS_IGNORE);
        if (i >= milliseconds) break;
        if (!waiting) nanosleep(&one, NULL);
    }
    return waiting;
}

/* No process is forgotten: those of MPI stay until all of them end together. None is abandoned:
 * when the leader ends without MPI_Finalize, mpirun ends the others. */
int cli_mpi_start(qkv_sweep_transport *to, qkv_error *err) {
    int size = 1;
    *to = (qkv_sweep_transport)QKV_SWEEP_TRANSPORT_INIT;
    to->send = mpi_send;
    to->receive = mpi_receive;
    to->is_waiting = mpi_is_waiting;
    if (MPI_Init(NULL, NULL) != MPI_SUCCESS) {
        return qkv_fail(err, QKV_ERR_BACKEND, "MPI could not be started");
    }
    MPI_Comm_rank(MPI_COMM_WORLD, &own_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    to->rank = own_rank;
    to->n_processes = size;
    return QKV_OK;
}

void cli_mpi_end(int status) {
    if (status == QKV_OK) MPI_Finalize();
}

#endif
