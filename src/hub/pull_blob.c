#define _XOPEN_SOURCE 700
#include "hub/pull_cache.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "hub/digest.h"

enum { PIECE = 1 << 20 };

/* Attempts are counted anew when this much has come. */
#define GOOD_PROGRESS ((uint64_t)1 << 20)

typedef struct blob {
    const qkv_pull_cache *cache;
    qkv_hub *hub;
    const qkv_listed_file *file;
    qkv_text path, incomplete;
    int fd;
    qkv_digest *digest;        /* of what is in the file */
    uint64_t done;             /* bytes in it */
    uint64_t kept;             /* of them from an earlier process */
    uint64_t furthest;         /* the most that was ever done, when it was last looked at */
    int answered;              /* this answer's first bytes have come */
    int misplaced;             /* and they are not those that were asked for */
    char etag[QKV_HTTP_FIELD]; /* of the bytes that this process fetched */
} blob;

/* ---- one process at a time ---- */

static int fail_file(qkv_error *err, const char *path, int code) {
    return qkv_fail(err, QKV_ERR_IO, "cannot write %s: %s", path, strerror(code));
}

/* The descriptor of a lock that ends with the process; its file stays, as Hugging Face's tools leave
 * theirs: they wait for the same one. */
static int take_lock(int *lock, const blob *b, qkv_error *err) {
    qkv_text path = {0};
    qkv_text_printf(&path, "%s/%s.lock", b->cache->locks.data, b->file->blob);
    int status = path.failed ? qkv_fail_memory(err) : QKV_OK, told = 0;
    *lock = path.failed ? -1 : open(path.data, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (status == QKV_OK && *lock < 0) status = fail_file(err, path.data, errno);
    while (status == QKV_OK && flock(*lock, LOCK_EX | LOCK_NB) != 0) {
        /* A file system without locks: the digest still shows what two made together. */
        if (errno == ENOLCK || errno == ENOTSUP || errno == ENOSYS) break;
        if (errno != EWOULDBLOCK && errno != EINTR) {
            status = fail_file(err, path.data, errno);
        } else {
            if (!told)
                qkv_pull_watch_note(b->hub->watch, "another process is fetching %s: waiting for it",
                                    b->file->path);
            told = 1;
            if (qkv_pull_watch_sleep(b->hub->watch, 0.1))
                status = qkv_fail(err, QKV_ERR_CANCELLED, "stopped");
        }
    }
    qkv_text_release(&path);
    return status;
}

/* ---- the bytes that are there ---- */

/* Git's digest of a blob covers a line in front of the bytes. */
static int begin_digest(blob *b, qkv_error *err) {
    char header[32];
    const int is_git = strlen(b->file->blob) == 40;
    qkv_digest_free(b->digest);
    b->digest = NULL;
    int status = qkv_digest_new(&b->digest, is_git ? QKV_SHA1 : QKV_SHA256, err);
    if (status != QKV_OK || !is_git) return status;
    const int n = snprintf(header, sizeof header, "blob %" PRIu64, b->file->size);
    return qkv_digest_add(b->digest, header, (size_t)n + 1, err);
}

static int start_anew(blob *b, qkv_error *err) {
    b->done = b->kept = 0;
    b->etag[0] = '\0';
    qkv_pull_watch_reach(b->hub->watch, 0, 0);
    if (ftruncate(b->fd, 0) != 0 || lseek(b->fd, 0, SEEK_SET) != 0)
        return fail_file(err, b->incomplete.data, errno);
    return begin_digest(b, err);
}

/* Reads what an earlier process left. */
static int add_kept(blob *b, qkv_error *err) {
    char *piece = malloc(PIECE);
    int status = piece ? QKV_OK : qkv_fail_memory(err);
    while (status == QKV_OK) {
        const ssize_t n = read(b->fd, piece, PIECE);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) status = fail_file(err, b->incomplete.data, errno);
        if (n <= 0) break;
        status = qkv_digest_add(b->digest, piece, (size_t)n, err);
        b->done += (uint64_t)n;
        if (status == QKV_OK && qkv_pull_watch_reach(b->hub->watch, b->done, 0))
            status = qkv_fail(err, QKV_ERR_CANCELLED, "stopped");
    }
    b->kept = b->furthest = b->done;
    free(piece);
    return status;
}

static int open_incomplete(blob *b, qkv_error *err) {
    struct stat facts;
    b->fd = open(b->incomplete.data, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (b->fd < 0 || fstat(b->fd, &facts) != 0) return fail_file(err, b->incomplete.data, errno);
    if (!S_ISREG(facts.st_mode))
        return qkv_fail(err, QKV_ERR_IO, "cannot write %s: not a regular file", b->incomplete.data);
    if ((uint64_t)facts.st_size > b->file->size) return start_anew(b, err);
    const int status = begin_digest(b, err);
    return status == QKV_OK ? add_kept(b, err) : status;
}

/* ---- the bytes that come ---- */

/* Cannot become what was promised: the next attempt is not to continue it. */
static int fail_for_good(const blob *b, qkv_error *err, const char *what) {
    unlink(b->incomplete.data);
    return qkv_fail(err, QKV_ERR_FORMAT, "%s: %s", b->file->path, what);
}

static int write_bytes(blob *b, const char *bytes, size_t n, qkv_error *err) {
    while (n > 0) {
        const ssize_t written = write(b->fd, bytes, n);
        if (written < 0 && errno == EINTR) continue;
        if (written < 0) return fail_file(err, b->incomplete.data, errno);
        const int status = qkv_digest_add(b->digest, bytes, (size_t)written, err);
        if (status != QKV_OK) return status;
        b->done += (uint64_t)written;
        bytes += written;
        n -= (size_t)written;
    }
    return QKV_OK;
}

/* Whether the answer continues where the file ends, or brings all of it. */
static int begin_answer(blob *b, const qkv_http_answer *answer, qkv_error *err) {
    b->answered = 1;
    int status = QKV_OK;
    if (answer->status == 200 && b->done > 0) status = start_anew(b, err);
    if (status != QKV_OK) return status;
    const int64_t begins = answer->status == 206 ? answer->range_from : 0;
    const int64_t total = answer->status == 206 ? answer->range_total : answer->length;
    b->misplaced = begins != (int64_t)b->done;
    if (b->misplaced)
        return qkv_fail(err, QKV_ERR_FORMAT, "%s: %s sends another part than was asked for",
                        b->file->path, answer->host);
    if (total >= 0 && total != (int64_t)b->file->size)
        return fail_for_good(b, err, "its size is not the one that the hub's list gives");
    memcpy(b->etag, answer->etag, sizeof b->etag);
    return QKV_OK;
}

static int take_bytes(void *user, const qkv_http_answer *answer, const void *bytes, size_t n,
                      qkv_error *err) {
    blob *b = user;
    int status = b->answered ? QKV_OK : begin_answer(b, answer, err);
    if (status == QKV_OK && n > b->file->size - b->done)
        status = fail_for_good(b, err, "more bytes came than the hub's list gives");
    if (status == QKV_OK) status = write_bytes(b, bytes, n, err);
    if (status == QKV_OK && qkv_pull_watch_reach(b->hub->watch, b->done, n))
        status = qkv_fail(err, QKV_ERR_CANCELLED, "stopped");
    return status;
}

/* Who cannot send the rest is asked for the whole: else no pull would ever come further. */
static int give_up_parts(blob *b, int failure, qkv_http_answer *answer, qkv_error *err) {
    const int status = start_anew(b, err);
    answer->broken = status == QKV_OK;
    return status == QKV_OK ? failure : status;
}

static int ask_rest(blob *b, const char *url, qkv_http_answer *answer, qkv_error *err) {
    char etag[QKV_HTTP_FIELD];
    memcpy(etag, b->etag, sizeof etag);
    const qkv_http_request request = {
        .url = url, .from = b->done, .if_range = etag, .take = take_bytes, .user = b};
    b->answered = b->misplaced = 0;
    int status = qkv_http_ask(b->hub->http, &request, answer, err);
    /* Without a length only the list tells that something is missing. */
    if (status == QKV_OK && (answer->status == 200 || answer->status == 206) &&
        b->done < b->file->size) {
        answer->broken = 1;
        status = qkv_fail(err, QKV_ERR_IO, "%s: %s sent %" PRIu64 " of %" PRIu64 " bytes",
                          b->file->path, answer->host, b->done, b->file->size);
    }
    /* The range begins after the end of the file. */
    if (status == QKV_OK && answer->status == 416 && b->done > 0) {
        status = start_anew(b, err);
        if (status != QKV_OK) return status;
        answer->broken = 1;
        status = qkv_fail(err, QKV_ERR_IO, "%s: %s has fewer bytes than are here already",
                          b->file->path, answer->host);
    }
    return b->misplaced && b->done > 0 ? give_up_parts(b, status, answer, err) : status;
}

static int fetch_rest(blob *b, const char *url, qkv_error *err) {
    int tries = 0, status = QKV_OK;
    while (status == QKV_OK && b->done < b->file->size) {
        qkv_http_answer answer;
        int again;
        status = ask_rest(b, url, &answer, err);
        if (b->done >= b->furthest + GOOD_PROGRESS) {
            b->furthest = b->done;
            tries = 0;
        }
        status = qkv_hub_judge(b->hub, &tries, status, &answer, b->file->path, &again, err);
        qkv_http_answer_release(&answer);
    }
    return status;
}

/* From the hub, or from memory where an earlier step needed it. */
static int fetch(blob *b, qkv_error *err) {
    const qkv_text *content = &b->file->content;
    if (b->done < b->file->size && content->length) {
        int status = start_anew(b, err);
        if (status == QKV_OK && content->length != b->file->size)
            status = fail_for_good(b, err, "its size is not the one that the hub's list gives");
        if (status == QKV_OK) status = write_bytes(b, content->data, content->length, err);
        return status;
    }
    qkv_text url = {0};
    int status = qkv_hub_file_url(b->hub, &url, b->cache->listing->commit, b->file->path, err);
    if (status == QKV_OK) status = fetch_rest(b, url.data, err);
    qkv_text_release(&url);
    return status;
}

/* ---- the end ---- */

static int check(blob *b, int *matches, qkv_error *err) {
    char hex[QKV_DIGEST_SIZE];
    const int status = qkv_digest_end(b->digest, hex, err);
    *matches = status == QKV_OK && strcmp(hex, b->file->blob) == 0;
    return status;
}

/* What an earlier process left may have been spoilt since; what came now was sent so. */
static int fetch_checked(blob *b, qkv_error *err) {
    int matches = 0, status = fetch(b, err);
    if (status == QKV_OK) status = check(b, &matches, err);
    if (status == QKV_OK && !matches && b->kept > 0) {
        qkv_pull_watch_note(b->hub->watch, "%s: what an earlier pull left is not usable; anew",
                            b->file->path);
        status = start_anew(b, err);
        b->furthest = 0;
        if (status == QKV_OK) status = fetch(b, err);
        if (status == QKV_OK) status = check(b, &matches, err);
    }
    if (status != QKV_OK || matches) return status;
    return fail_for_good(b, err, "its digest is not the one that the hub's list gives");
}

static int give_name(const blob *b, qkv_error *err) {
    if (fsync(b->fd) != 0 && errno != EINVAL && errno != ENOTSUP)
        return fail_file(err, b->incomplete.data, errno);
    if (rename(b->incomplete.data, b->path.data) != 0) return fail_file(err, b->path.data, errno);
    qkv_sync_directory(b->path.data);
    return QKV_OK;
}

static int fetch_locked(blob *b, qkv_error *err) {
    if (qkv_pull_cache_has(b->cache, b->file, NULL)) {
        qkv_pull_watch_reach(b->hub->watch, b->file->size, 0);
        return QKV_OK;
    }
    int status = open_incomplete(b, err);
    if (status == QKV_OK) status = fetch_checked(b, err);
    if (status == QKV_OK) status = give_name(b, err);
    /* Nothing came: there is nothing to resume. */
    if (status != QKV_OK && b->fd >= 0 && b->done == 0) unlink(b->incomplete.data);
    return status;
}

int qkv_pull_blob(const qkv_pull_cache *cache, qkv_hub *hub, qkv_listed_file *file,
                  qkv_error *err) {
    blob b = {.cache = cache, .hub = hub, .file = file, .fd = -1};
    int lock = -1;
    qkv_pull_cache_append_blob(cache, &b.path, file, "");
    qkv_pull_cache_append_blob(cache, &b.incomplete, file, ".incomplete");
    int status = b.path.failed || b.incomplete.failed ? qkv_fail_memory(err) : QKV_OK;
    if (status == QKV_OK) status = take_lock(&lock, &b, err);
    if (status == QKV_OK) status = fetch_locked(&b, err);
    if (b.fd >= 0) close(b.fd);
    if (lock >= 0) close(lock);
    qkv_digest_free(b.digest);
    qkv_text_release(&b.path);
    qkv_text_release(&b.incomplete);
    return status;
}
