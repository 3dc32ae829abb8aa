/*
 * OpenMP's teams, which ggml computes with.
 *
 * A session's threads are those that it was given, whatever the calling thread has set: OpenMP gives
 * smaller teams where it may adjust their size (OMP_DYNAMIC) or has no active levels. Both are set
 * otherwise while a session computes, and put back.
 */
#ifndef QKV_RUN_TEAM_H
#define QKV_RUN_TEAM_H

typedef struct qkv_team {
    /* of the calling thread, before */
    int dynamic, levels;
} qkv_team;

/* 1, or 0: there is no memory for the stacks of threads, and OpenMP would end the process. */
int qkv_team_enter(qkv_team *team, int n_threads);
void qkv_team_leave(qkv_team team);

#endif
