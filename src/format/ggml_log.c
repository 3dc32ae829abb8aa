#include "format/ggml_log.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "ggml.h"

static struct {
    pthread_mutex_t lock;
    int n_inside; /* calls, of all threads */
    _Atomic(ggml_log_callback) host;
} shared = {.lock = PTHREAD_MUTEX_INITIALIZER};

static _Thread_local int depth; /* this thread is inside so many calls */
static _Thread_local char first[256];

static void keep(enum ggml_log_level level, const char *text) {
    if (level != GGML_LOG_LEVEL_ERROR && level != GGML_LOG_LEVEL_WARN) return;
    if (first[0]) return; /* the first complaint is the precise one */
    const char *colon = strstr(text, ": ");
    snprintf(first, sizeof first, "%s", colon ? colon + 2 : text);
    first[strcspn(first, "\n")] = '\0';
}

static void on_log(enum ggml_log_level level, const char *text, void *user) {
    if (depth > 0)
        keep(level, text);
    else
        shared.host(level, text, user);
}

/* The host's data stay in place: another thread that logs at this moment sees either callback with
 * them. */
void qkv_ggml_log_enter(void) {
    ggml_log_callback set;
    void *user;
    depth++;
    pthread_mutex_lock(&shared.lock);
    shared.n_inside++;
    ggml_log_get(&set, &user);
    if (set != on_log) {
        shared.host = set;
        ggml_log_set(on_log, user);
    }
    pthread_mutex_unlock(&shared.lock);
}

/* What the host has set in the meantime stays. */
void qkv_ggml_log_leave(void) {
    ggml_log_callback set;
    void *user;
    pthread_mutex_lock(&shared.lock);
    ggml_log_get(&set, &user);
    if (--shared.n_inside == 0 && set == on_log) ggml_log_set(shared.host, user);
    pthread_mutex_unlock(&shared.lock);
    depth--;
}

const char *qkv_ggml_log_first(void) {
    return first;
}

void qkv_ggml_log_clear(void) {
    first[0] = '\0';
}
