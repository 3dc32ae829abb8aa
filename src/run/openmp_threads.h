/*
 * Settings of OpenMP, whose threads ggml computes with.
 *
 * A session has the number of threads that it was given, whatever the calling thread has set: OpenMP starts
 * fewer where it may adjust their number (OMP_DYNAMIC) or has no active levels. Both settings are changed
 * while a session computes, and put back.
 */
#ifndef QKV_RUN_OPENMP_THREADS_H
#define QKV_RUN_OPENMP_THREADS_H

/* Of the calling thread. */
typedef struct qkv_openmp_settings {
    int dynamic, levels;
} qkv_openmp_settings;

/* 1, or 0: there is no memory for the stacks of threads, and OpenMP would end the process. *before receives the
 * settings to put back. */
int qkv_openmp_enter(qkv_openmp_settings *before, int n_threads);
void qkv_openmp_leave(qkv_openmp_settings before);

#endif
