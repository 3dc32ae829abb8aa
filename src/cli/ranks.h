/*
 * Processes that share a sweep, started by mpirun. All of MPI is in ranks.c; a program that is
 * started alone never touches it.
 */
#ifndef QKV_CLI_RANKS_H
#define QKV_CLI_RANKS_H

#include "base/fail.h"
#include "qkv/sweep.h"

typedef struct cli_ranks {
    int rank, n;     /* 0 of 1 when alone */
    int64_t threads; /* what is left of the machine's cores for each; 0: all of them */
    int started;     /* MPI has to be ended */
} cli_ranks;

int cli_ranks_start(cli_ranks *ranks, qkv_error *err);
/* A process that failed ends all of them. */
void cli_ranks_end(cli_ranks *ranks, int status);

/* Rank 0: hands out blocks, computes some itself, and stores what comes back. */
int cli_ranks_lead(const cli_ranks *ranks, const qkv_sweep *sweep, qkv_session *session,
                   qkv_results *results, const qkv_sweep_options *options, int *stopped,
                   qkv_error *err);
/* The others: compute what they are given until there is no more. */
int cli_ranks_follow(const cli_ranks *ranks, const qkv_sweep *sweep, qkv_session *session,
                     qkv_error *err);

#endif
