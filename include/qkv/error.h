/*
 * Statuses and error messages.
 *
 * Every function of the library that can fail returns an int: QKV_OK (0) or a negative QKV_ERR_*
 * status. Its last parameter is a qkv_error supplied by the caller, which may be NULL; on failure
 * it holds the status and one clear line: what is wrong, where, and what to do. The library never
 * prints and never exits.
 */
#ifndef QKV_ERROR_H
#define QKV_ERROR_H

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

typedef struct qkv_error {
    int status;
    char message[1024];
} qkv_error;

/* A short text for a status, never NULL. */
QKV_API const char *qkv_status_text(int status);

/* Version of the library, "0.1.0". */
QKV_API const char *qkv_version(void);

#ifdef __cplusplus
}
#endif

#endif
