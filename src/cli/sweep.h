/*
 * What `qkv sweep`, `qkv recipe` and studies that are computed from cells have in common: the specification, the work.
 */
#ifndef QKV_CLI_SWEEP_H
#define QKV_CLI_SWEEP_H

#include "base/fail.h"
#include "cli/inputs.h"
#include "qkv/sweep.h"

/* ---- the specification: sweep_spec.c ---- */

/* Options that stand for keys of the specification. */
typedef struct sweep_flags {
    cli_list prompts;
    int parse_special;
    cli_chat chat; /* of prompts that are texts */
    const char *layers, *heads, *targets, *ops, *epsilon, *metrics, *at;
    int64_t length;
} sweep_flags;

/* The type needs the field `sweep_flags flags`. */
#define SWEEP_PROMPT_OPTIONS(type)                                                                 \
    CLI_PROMPT_TABLE(type, flags.prompts, flags.parse_special, flags.chat,                         \
                     "a prompt; may be repeated",                                                  \
                     "prompts from a file, one per line; '-' for standard input")

/* Sets the keys that were given on the command line. */
int sweep_spec_override(json_t *spec, const sweep_flags *flags, qkv_error *err);
/* "2/8": part 2 of 8; NULL: no part. */
int sweep_shard_read(const char *text, int64_t *shard, int64_t *n_shards, qkv_error *err);
/* Reads a file with a JSON object. */
int sweep_spec_read(json_t **spec, const char *path, qkv_error *err);
/* Every text among the prompts becomes the tokens of a conversation, where one is asked for. */
int sweep_spec_chat(json_t *spec, const sweep_flags *flags, const qkv_model *model, qkv_error *err);

/* ---- one sweep: sweep_work.c ---- */

typedef struct sweep_job {
    const char *name; /* of the command, for notices; NULL: sweep */
    const char *model, *output;
    int64_t shard, n_shards; /* 0: not a part */
    int64_t threads, memory;
    const sweep_flags *flags; /* for conversations; NULL: there are none */
    int explain;              /* say what there is to do, and do nothing */
    int quiet;
    int json; /* results are printed as JSON */
} sweep_job;

typedef struct sweep_work {
    const sweep_job *job;
    qkv_model *model;
    qkv_sweep *sweep;
    int under_mpi;
    qkv_sweep_transport transport; /* there */
    qkv_run_stats estimate;
    int64_t wanted, done, first_done; /* cells: all, by now, at the start */
    double started;                   /* seconds */
    int has_begun;
} sweep_work;

/* Checks the output and starts MPI, where that is wanted; the caller brings model and sweep. */
int sweep_work_start(sweep_work *work, const sweep_job *job, qkv_error *err);
/* The same; also opens the model and checks the specification, out of which the model's name is taken. Release it
 * also after a failure. */
int sweep_work_begin(sweep_work *work, const sweep_job *job, json_t *spec, qkv_error *err);
/* Estimates and runs it. */
int sweep_work_run(sweep_work *work, qkv_error *err);
/* What there was to do and, where it was done, how long it took. */
int sweep_work_print_json(const sweep_work *work, qkv_error *err);
/* 0 in the other processes of mpirun, which have nothing to print. */
int sweep_work_leads(const sweep_work *work);
void sweep_work_release(sweep_work *work);

/* A name that promises another format is refused. */
int sweep_output_check(const char *path, qkv_error *err);

/* ---- mpi_transport.c: processes of mpirun as a transport; the library knows nothing of MPI ---- */

/* 1 under mpirun, with more than one process. */
int cli_mpi_is_wanted(void);
int cli_mpi_start(qkv_sweep_transport *to, qkv_error *err);
/* After a failure the process just ends, and mpirun ends the others. */
void cli_mpi_end(int status);

#endif
