/*
 * Statuses and error messages.
 *
 *     qkv_model *model = NULL;
 *     qkv_error problem;
 *     if (qkv_model_open(&model, "no-such-file.gguf", &problem) != QKV_OK) {
 *         printf("%s: %s\n", qkv_status_text(problem.status), problem.message);
 *     }
 *
 * Every function of the library that can fail returns an int: QKV_OK (0) or a negative QKV_ERR_*
 * status. Its last parameter is a qkv_error supplied by the caller, which may be NULL; on failure
 * it holds the status and one clear line: what is wrong, where, and what to do. Functions that only
 * look something up have no qkv_error: they return 1 or 0, or NULL where there is nothing. The
 * library never prints and never exits. An error belongs to its caller: threads have their own.
 */
#ifndef QKV_ERROR_H
#define QKV_ERROR_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define QKV_API __attribute__((visibility("default")))
#else
#define QKV_API
#endif

/* X(name, value, text) */
#define QKV_STATUS_LIST(X)                                                                         \
    X(OK, 0, "success")                                                                            \
    X(ERR_ARGUMENT, -1, "invalid argument")                                                        \
    X(ERR_MEMORY, -2, "out of memory")                                                             \
    X(ERR_IO, -3, "input or output failed")                                                        \
    X(ERR_FORMAT, -4, "malformed file")                                                            \
    X(ERR_UNSUPPORTED, -5, "not supported")                                                        \
    X(ERR_SYNTAX, -6, "malformed notation")                                                        \
    X(ERR_PLAN, -7, "plan cannot be run")                                                          \
    X(ERR_NUMERIC, -8, "result is not finite")                                                     \
    X(ERR_BACKEND, -9, "computation failed")                                                       \
    X(ERR_CANCELLED, -10, "stopped")

#define QKV_STATUS_ENUM(name, value, text) QKV_##name = (value),
enum qkv_status { QKV_STATUS_LIST(QKV_STATUS_ENUM) };
#undef QKV_STATUS_ENUM

/* Will never grow. */
typedef struct qkv_error {
    int status;
    char message[1024];
} qkv_error;

/* A short text for a status, never NULL. */
QKV_API const char *qkv_status_text(int status);

/* The statuses one after the other: the name, "QKV_ERR_MEMORY"; NULL past the end. *status (may be
 * NULL) receives the number. */
QKV_API const char *qkv_status_name(size_t index, int *status);

#ifdef __cplusplus
}
#endif

#endif
