/*
 * Watching long work, and stopping it.
 *
 *     static int show(void *user, const char *what, double done, double total) {
 *         fprintf(stderr, "%.1f of %.0f %s\n", done, total, what);
 *         return *(int *)user;
 *     }
 *
 *     int main(void) {
 *         const int32_t tokens[] = {1, 20, 30, 40};
 *         int enough = 0;
 *         qkv_error err = {0};
 *         qkv_model *model = NULL;
 *         qkv_session *session = NULL;
 *         qkv_plan *plan = NULL;
 *         qkv_result *result = NULL;
 *         qkv_progress progress = QKV_PROGRESS_INIT;
 *         progress.step = show;
 *         progress.user = &enough;
 *         if (qkv_model_open(&model, "model.gguf", &err) == QKV_OK &&
 *             qkv_session_new(&session, model, NULL, &err) == QKV_OK &&
 *             qkv_session_set_progress(session, &progress, &err) == QKV_OK &&
 *             qkv_plan_new(&plan, model, tokens, 4, &err) == QKV_OK &&
 *             qkv_plan_add_capture(plan, "logits", &err) == QKV_OK &&
 *             qkv_session_run(session, &result, plan, &err) == QKV_ERR_CANCELLED) {
 *             puts("stopped");
 *         }
 *         qkv_result_free(result);
 *         qkv_plan_free(plan);
 *         qkv_session_free(session);
 *         qkv_model_free(model);
 *         return err.status != 0;
 *     }
 *
 * A session's callback covers all that computes through the session: runs, measuring, figures, studies, the
 * blocks of a sweep. Converting a model has one of its own (qkv/convert.h).
 *
 * It is called in the thread that called the library, before every pass and some 50 times a second
 * while one is computed, between two operations: one product of very large matrices is the longest
 * that it can be silent. From the beginning of a call of the library to its end `what` and `total` stay the
 * same, and `done` only grows, by work done: half of it is about half of the time. The last call has
 * `done` = `total`, and comes too late to stop anything.
 *
 * Anything but 0 stops the work; it is not called again, and the function returns QKV_ERR_CANCELLED.
 * Nothing half-written stays, and everything stays usable: the next run of the session gives the bits that
 * it would give otherwise. Several calls become one work by qkv_session_begin_work (qkv/session.h).
 *
 * The callback may do what it likes, except use or free what is at work, run another session in this
 * thread, and leave by longjmp or an exception.
 */
#ifndef QKV_PROGRESS_H
#define QKV_PROGRESS_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct qkv_progress {
    size_t size;
    /* `what` names what is counted: "variants" of a plan (with the baseline and the prompts that are
     * patched from), "cells" of a sweep, "bytes" of a file, "parts" of anything. `done` may be a fraction.
     * `total` is 0 where it is not known. */
    int (*step)(void *user, const char *what, double done, double total);
    void *user;
} qkv_progress;

#define QKV_PROGRESS_INIT                                                                          \
    { sizeof(qkv_progress), NULL, NULL }

#ifdef __cplusplus
}
#endif

#endif
