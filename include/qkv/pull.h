/*
 * Unstable: may change in every version.
 *
 * Fetching models by name from a Hugging Face hub.
 *
 *     static int show(void *user, const qkv_pull_step *step) {
 *         (void)user;
 *         printf("%s: %.0f of %.0f bytes, %.0f a second\n", step->file, (double)step->done,
 *                (double)step->total, step->speed);
 *         return 0;
 *     }
 *
 *     static void say_where(void *user, const char *path) {
 *         (void)user;
 *         printf("the model is at %s\n", path);
 *     }
 *
 *     int main(void) {
 *         qkv_error err = {0};
 *         qkv_pull_options options = QKV_PULL_OPTIONS_INIT;
 *         options.step = show;
 *         options.end = say_where;
 *         if (qkv_pull("org/name@main:Q4_K_M", &options, &err) != QKV_OK) puts(err.message);
 *         return 0;
 *     }
 *
 * Files go where Hugging Face's own tools keep theirs, in the same layout, so that either finds what
 * the other has fetched. A complete file is not fetched again; a file that was fetched in part
 * is resumed. No file has its final name before it is whole and its digest was checked, and a revision
 * leads to a snapshot only when all files of the model are there.
 *
 * The environment says from where and to where, as for those tools: HF_ENDPOINT, HF_TOKEN (or the
 * file HF_TOKEN_PATH, else HF_HOME/token), HF_HUB_CACHE, HF_HOME, HF_HUB_OFFLINE, and the proxies that
 * libcurl knows. The token is sent to the endpoint's own host and port only.
 *
 * Any thread may pull, several at once too. Callbacks are called in the thread that called the
 * library. A host that uses libcurl itself calls curl_global_init before it starts threads.
 */
#ifndef QKV_PULL_H
#define QKV_PULL_H

#include <stddef.h>
#include <stdint.h>

#include "qkv/error.h"

#ifdef __cplusplus
extern "C" {
#endif

/* One file of the model; before anything is fetched. The library fills it. */
typedef struct qkv_pull_file {
    size_t size;
    const char *path;   /* in the repository */
    uint64_t n_bytes;   /* of the whole file */
    uint64_t n_present; /* of these are on this machine: all, or what an earlier pull has left */
} qkv_pull_file;

/* How far the fetching has come. The library fills it. */
typedef struct qkv_pull_step {
    size_t size;
    const char *file;              /* that is being fetched, or checked; "" before the first */
    uint64_t file_done, file_size; /* its bytes */
    uint64_t done, total;          /* bytes of all files; what was there before counts as done */
    double speed;                  /* bytes a second, of the last few seconds; 0: not known yet;
                                    * below 0: it will not be, for npm fetches */
    double seconds_left;           /* for all files; below 0: not known yet */
} qkv_pull_step;

/* Callbacks may be NULL. */
typedef struct qkv_pull_options {
    size_t size;
    /* Not 0: finds out what would be fetched, tells `file`, and changes nothing on this machine. */
    int dry_run;
    void *user; /* for the callbacks */
    /* Once for every file of the model, in the order of fetching. */
    void (*file)(void *user, const qkv_pull_file *file);
    /* A few times a second while something is fetched, checked or waited for, and when a file is
     * complete (file_done == file_size). Anything but 0 stops the work, which returns
     * QKV_ERR_CANCELLED; what was fetched is kept for the next time. */
    int (*step)(void *user, const qkv_pull_step *step);
    /* One line about something that takes time: another pull is waited for, the hub asked for a
     * pause, a connection broke and is made anew. */
    void (*note)(void *user, const char *line);
    /* The model is complete (or would be, in a dry run): the directory or the GGUF file to open. */
    void (*end)(void *user, const char *path);
} qkv_pull_options;

#define QKV_PULL_OPTIONS_INIT                                                                      \
    { .size = sizeof(qkv_pull_options) }

/* Fetches "org/name[@REVISION][:FILE or QUANT]": configuration, tokenizer and weights of the
 * repository, or the one GGUF file that is named, or is the only one. Pickled weights are never
 * fetched. options may be NULL. */
QKV_API int qkv_pull(const char *name, const qkv_pull_options *options, qkv_error *err);

#ifdef __cplusplus
}
#endif

#endif
