#define _XOPEN_SOURCE 700
#include "hub/pull_cache.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"
#include "hub/folder.h"
#include "hub/places.h"

int qkv_pull_cache_open(qkv_pull_cache *cache, const char *repository, const qkv_listing *listing,
                        qkv_error *err) {
    *cache = (qkv_pull_cache){.listing = listing};
    int status = qkv_hub_folder(&cache->folder, repository, err);
    if (status == QKV_OK) status = qkv_hub_cache(&cache->locks, err);
    if (status != QKV_OK) return status;
    qkv_text_printf(&cache->locks, "/.locks/%s", qkv_path_base(cache->folder.data));
    return cache->locks.failed ? qkv_fail_memory(err) : QKV_OK;
}

void qkv_pull_cache_close(qkv_pull_cache *cache) {
    qkv_text_release(&cache->folder);
    qkv_text_release(&cache->locks);
}

/* ---- files in the cache ---- */

void qkv_pull_cache_append_blob(const qkv_pull_cache *cache, qkv_text *path,
                                const qkv_listed_file *file, const char *suffix) {
    qkv_text_printf(path, "%s/blobs/%s%s", cache->folder.data, file->blob, suffix);
}

void qkv_pull_cache_append_snapshot(const qkv_pull_cache *cache, qkv_text *path, const char *file) {
    qkv_text_printf(path, "%s/snapshots/%s%s%s", cache->folder.data, cache->listing->commit,
                    file ? "/" : "", file ? file : "");
}

/* The size of a regular file, -1 where there is none. */
static int64_t size_of(const qkv_text *path) {
    struct stat facts;
    const int found = !path->failed && stat(path->data, &facts) == 0 && S_ISREG(facts.st_mode);
    return found ? (int64_t)facts.st_size : -1;
}

/* Where links cannot be made, Hugging Face's tools leave the file itself in the snapshot. */
int qkv_pull_cache_has(const qkv_pull_cache *cache, const qkv_listed_file *file, qkv_text *path) {
    qkv_text blob = {0}, link = {0};
    qkv_pull_cache_append_blob(cache, &blob, file, "");
    qkv_pull_cache_append_snapshot(cache, &link, file->path);
    const int is_blob = size_of(&blob) == (int64_t)file->size;
    const int found = is_blob || size_of(&link) == (int64_t)file->size;
    if (found && path) qkv_text_puts(path, is_blob ? blob.data : link.data);
    qkv_text_release(&blob);
    qkv_text_release(&link);
    return found;
}

uint64_t qkv_pull_cache_present(const qkv_pull_cache *cache, const qkv_listed_file *file) {
    if (qkv_pull_cache_has(cache, file, NULL)) return file->size;
    qkv_text path = {0};
    qkv_pull_cache_append_blob(cache, &path, file, ".incomplete");
    const int64_t begun = size_of(&path);
    qkv_text_release(&path);
    return begun > 0 && (uint64_t)begun <= file->size ? (uint64_t)begun : 0;
}

int qkv_pull_cache_check_space(const qkv_pull_cache *cache, uint64_t needed, qkv_error *err) {
    char *path = qkv_strdup(cache->folder.data);
    if (!path) return qkv_fail_memory(err);
    /* The nearest folder that there is: nothing is made before it is known that all of it fits. */
    while (access(path, F_OK) != 0) {
        char *slash = strrchr(path, '/');
        if (slash) slash[slash == path] = '\0';
        if (!slash || slash == path) break;
    }
    const int exists = access(path, F_OK) == 0;
    const int status = qkv_folder_check_space(exists ? path : ".", needed, err);
    free(path);
    return status;
}

/* ---- folders, links, references ---- */

static int fail_write(qkv_error *err, const char *path, int code) {
    return qkv_fail(err, QKV_ERR_IO, "cannot write %s: %s", path, strerror(code));
}

/* The folder that a file is to be in. */
static int make_folder_of(const char *path, qkv_error *err) {
    char *folder = qkv_strndup(path, (size_t)(strrchr(path, '/') - path));
    const int status = folder ? qkv_folder_make(folder, err) : qkv_fail_memory(err);
    free(folder);
    return status;
}

int qkv_pull_cache_prepare(const qkv_pull_cache *cache, qkv_error *err) {
    qkv_text blobs = {0};
    qkv_text_printf(&blobs, "%s/blobs", cache->folder.data);
    int status = blobs.failed ? qkv_fail_memory(err) : qkv_folder_make(blobs.data, err);
    if (status == QKV_OK) status = qkv_folder_make(cache->locks.data, err);
    qkv_text_release(&blobs);
    return status;
}

/* Seen from snapshots/COMMIT/FILE. */
static void append_target(qkv_text *target, const qkv_listed_file *file) {
    qkv_text_puts(target, "../../");
    for (const char *c = file->path; *c; c++) {
        if (*c == '/') qkv_text_puts(target, "../");
    }
    qkv_text_printf(target, "blobs/%s", file->blob);
}

/* Under another name first: a link is there or not, and never a wrong one. The name is one of this
 * thread, among the blobs, where a stray one does no harm. */
static int make_link(const char *target, const char *blob, const char *path, qkv_error *err) {
    qkv_text other = {0};
    qkv_text_printf(&other, "%s.%ld.%p.link", blob, (long)getpid(), (void *)&other);
    int status = other.failed ? qkv_fail_memory(err) : QKV_OK;
    if (status == QKV_OK) {
        unlink(other.data);
        if (symlink(target, other.data) != 0 || rename(other.data, path) != 0) {
            status = fail_write(err, path, errno);
            unlink(other.data);
        }
        qkv_sync_directory(path);
    }
    qkv_text_release(&other);
    return status;
}

int qkv_pull_cache_link(const qkv_pull_cache *cache, const qkv_listed_file *file, qkv_error *err) {
    qkv_text path = {0}, blob = {0}, target = {0};
    qkv_pull_cache_append_snapshot(cache, &path, file->path);
    qkv_pull_cache_append_blob(cache, &blob, file, "");
    append_target(&target, file);
    int status = QKV_OK;
    struct stat there, meant;
    if (path.failed || blob.failed || target.failed) {
        status = qkv_fail_memory(err);
    } else if (stat(blob.data, &meant) == 0 &&
               (stat(path.data, &there) != 0 || there.st_dev != meant.st_dev ||
                there.st_ino != meant.st_ino)) {
        status = make_folder_of(path.data, err);
        if (status == QKV_OK) status = make_link(target.data, blob.data, path.data, err);
    }
    qkv_text_release(&path);
    qkv_text_release(&blob);
    qkv_text_release(&target);
    return status;
}

static int says(const char *path, const char *commit) {
    char *text = NULL;
    size_t size;
    const int same = access(path, R_OK) == 0 &&
                     qkv_read_file(&text, &size, path, 4096, NULL) == QKV_OK &&
                     strcmp(text, commit) == 0;
    free(text);
    return same;
}

int qkv_pull_cache_refer(const qkv_pull_cache *cache, const char *revision, qkv_error *err) {
    const char *commit = cache->listing->commit;
    if (strcmp(revision, commit) == 0) return QKV_OK;
    qkv_text path = {0};
    qkv_text_printf(&path, "%s/refs/%s", cache->folder.data, revision);
    int status = path.failed ? qkv_fail_memory(err) : QKV_OK;
    if (status == QKV_OK && !says(path.data, commit)) {
        status = make_folder_of(path.data, err);
        if (status == QKV_OK) status = qkv_output_write(path.data, commit, strlen(commit), err);
    }
    qkv_text_release(&path);
    return status;
}
