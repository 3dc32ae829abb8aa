/*
 * Unstable: may change in every version.
 *
 * For programs that own their process. A library must not decide what happens when a dependency
 * gives up; a program may.
 *
 *     static void give_up(const char *message) {
 *         fprintf(stderr, "%s\n", message);
 *         exit(1);
 *     }
 *
 *     int main(void) {
 *         qkv_host_on_abort(give_up);
 *         return 0;
 *     }
 */
#ifndef QKV_HOST_H
#define QKV_HOST_H

#include "qkv/error.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Called with a reason before ggml aborts the process: what passed all checks and still went wrong,
 * such as memory that ran out half way. When the callback returns, the process is aborted. NULL: ggml's
 * own way. One for the whole process; call it before there are threads. */
QKV_API void qkv_host_on_abort(void (*callback)(const char *message));

#ifdef __cplusplus
}
#endif

#endif
