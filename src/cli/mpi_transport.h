/* Processes of mpirun as a transport. Part of the program: the library knows nothing of MPI. */
#ifndef QKV_CLI_MPI_TRANSPORT_H
#define QKV_CLI_MPI_TRANSPORT_H

#include "base/fail.h"
#include "qkv/sweep.h"

/* 1 under mpirun, with more than one process. */
int cli_mpi_is_wanted(void);
int cli_mpi_start(qkv_sweep_transport *to, qkv_error *err);
/* After a failure the process just ends, and mpirun ends the others. */
void cli_mpi_end(int status);

#endif
