/*
 * ggml's log while the library is at work. It belongs to the whole process: the function that the program
 * set is put back when the last call has left, and meanwhile hears whatever other threads make ggml say.
 * What our own calls make it say is kept for messages, or dropped: the library never prints.
 */
#ifndef QKV_FORMAT_GGML_LOG_H
#define QKV_FORMAT_GGML_LOG_H

/* In pairs, in one thread; may be nested. */
void qkv_ggml_log_enter(void);
void qkv_ggml_log_leave(void);

/* The first complaint of this thread's calls since it was cleared, "" when there was none. */
const char *qkv_ggml_log_first(void);
void qkv_ggml_log_clear(void);

#endif
