/*
 * Processes that share a sweep. One leads: it keeps the file of results, hands out blocks, and
 * computes some itself. The others follow: they compute what they are given.
 *
 * How messages travel is a qkv_sweep_transport, of which there are two: to processes forked on this
 * machine (workers_local.c), and those that callers bring along. Every process computes with one
 * thread, because a matrix product that threads share comes out a little different in its last
 * bits: so the values do not depend on how many there are.
 */
#ifndef QKV_SWEEP_WORKERS_H
#define QKV_SWEEP_WORKERS_H

#include "base/fail.h"
#include "sweep/sweep.h"

/* ---- workers.c ---- */

int qkv_workers_lead(const qkv_sweep_transport *to, const qkv_sweep *sweep, qkv_session *session,
                     qkv_sweep_writer *results, const qkv_sweep_options *options, int *stopped,
                     qkv_error *err);
int qkv_workers_follow(const qkv_sweep_transport *to, const qkv_sweep *sweep, qkv_session *session,
                       qkv_error *err);
/* A follower that cannot continue tells the leader why, as the last thing it does. */
void qkv_workers_give_up(const qkv_sweep_transport *to, int status, const qkv_error *problem);

/* ---- workers_local.c ---- */

/* Starts n followers, which are copies of this process (about threads: qkv_sweep_share). Returns in
 * all of them, with their ranks. To be ended also after a failure. */
int qkv_workers_local_start(qkv_sweep_transport *to, int32_t n, qkv_error *err);
/* Waits for the followers; a follower ends here and does not return. */
void qkv_workers_local_end(qkv_sweep_transport *to);

#endif
