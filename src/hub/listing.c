#include "hub/listing.h"

#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/memory.h"
#include "format/json_scan.h"

enum {
    LIST_LIMIT = 256 << 20, /* bytes: a million files */
    PAGE_LIMIT = 32 << 20,
    MOST_PAGES = 2000,
    /* The hub cuts a list of this length and more short without saying so: pages have all of it. */
    DOUBTFUL_LENGTH = 5000,
};
#define LARGEST_FILE ((double)(1ULL << 50))

/* ---- what counts ---- */

static int has_suffix(const char *path, const char *const *suffixes, size_t n) {
    for (size_t i = 0; i < n; i++) {
        if (qkv_equal_ignoring_case(qkv_path_suffix(path), suffixes[i])) return 1;
    }
    return 0;
}

int qkv_is_pickle(const char *path) {
    static const char *const suffixes[] = {"bin",  "pt", "pth",     "pkl", "pickle",
                                           "ckpt", "h5", "msgpack", "npz", "joblib"};
    return has_suffix(path, suffixes, sizeof suffixes / sizeof *suffixes);
}

/* GGUF files wherever they are, everything else at the top. */
static int counts(const char *path) {
    static const char *const top[] = {"safetensors", "json", "txt", "model", "jinja"};
    static const char *const anywhere[] = {"gguf"};
    if (has_suffix(path, anywhere, 1)) return 1;
    return !strchr(path, '/') && has_suffix(path, top, sizeof top / sizeof *top);
}

static int is_hex(const char *text, size_t length) {
    return strlen(text) == length && strspn(text, "0123456789abcdef") == length;
}

/* ---- one file of a list ---- */

typedef struct entry {
    qkv_text path, git, sha256, type;
    double size, lfs_size;
    int has_lfs;
} entry;

static void entry_release(entry *e) {
    qkv_text_release(&e->path);
    qkv_text_release(&e->git);
    qkv_text_release(&e->sha256);
    qkv_text_release(&e->type);
}

static void read_size(double *size, qkv_json_span value) {
    if (!qkv_json_number(value, size)) *size = -1;
}

static int scan_lfs(entry *e, qkv_json_span value) {
    qkv_json_scan scan;
    qkv_json_span key;
    int more = 0;
    if (!qkv_json_open(&scan, value) || !scan.is_object) return 1; /* null: not in LFS */
    e->has_lfs = 1;
    while ((more = qkv_json_next(&scan, &key, &value)) == 1) {
        if (qkv_json_equals(key, "sha256") || qkv_json_equals(key, "oid"))
            qkv_json_append_string(value, &e->sha256);
        else if (qkv_json_equals(key, "size"))
            read_size(&e->lfs_size, value);
    }
    return more == 0;
}

/* A sibling ({"rfilename", "blobId", ...}) or an entry of a tree ({"path", "oid", ...}). */
static int scan_entry(entry *e, qkv_json_span value) {
    qkv_json_scan scan;
    qkv_json_span key;
    int more = 0;
    *e = (entry){.size = -1, .lfs_size = -1};
    if (!qkv_json_open(&scan, value) || !scan.is_object) return 0;
    while ((more = qkv_json_next(&scan, &key, &value)) == 1) {
        if (qkv_json_equals(key, "rfilename") || qkv_json_equals(key, "path"))
            qkv_json_append_string(value, &e->path);
        else if (qkv_json_equals(key, "blobId") || qkv_json_equals(key, "oid"))
            qkv_json_append_string(value, &e->git);
        else if (qkv_json_equals(key, "type"))
            qkv_json_append_string(value, &e->type);
        else if (qkv_json_equals(key, "size"))
            read_size(&e->size, value);
        else if (qkv_json_equals(key, "lfs") && !scan_lfs(e, value))
            return 0;
    }
    return more == 0 && e->path.length > 0;
}

static int check_path(const qkv_hub *hub, const qkv_text *path, qkv_error *err) {
    if (strlen(path->data) == path->length && qkv_hub_path_is_safe(path->data)) return QKV_OK;
    qkv_text visible = {0};
    qkv_text_append_short(&visible, path->data, path->length, 200);
    const int status =
        qkv_fail(err, QKV_ERR_FORMAT, "%s has a file whose name is not a path inside it: '%s'",
                 hub->name.repository, visible.data ? visible.data : "");
    qkv_text_release(&visible);
    return status;
}

/* The size and the name of the bytes, as far as the list tells. */
static int read_facts(qkv_listed_file *file, const entry *e, qkv_error *err) {
    const char *blob = e->has_lfs ? e->sha256.data : e->git.data;
    const double size = e->lfs_size >= 0 ? e->lfs_size : e->size;
    if (blob && strncmp(blob, "sha256:", 7) == 0) blob += 7;
    if (!blob || !is_hex(blob, e->has_lfs ? 64 : 40) || size < 0) return QKV_OK;
    if (!(size <= LARGEST_FILE))
        return qkv_fail(err, QKV_ERR_FORMAT, "the hub gives %s a size that makes no sense",
                        e->path.data);
    file->size = (uint64_t)size;
    memcpy(file->blob, blob, strlen(blob) + 1);
    return QKV_OK;
}

static int add_entry(qkv_listing *listing, const qkv_hub *hub, entry *e, qkv_error *err) {
    if (e->type.length && strcmp(e->type.data, "file") != 0) return QKV_OK;
    int status = check_path(hub, &e->path, err);
    if (status != QKV_OK) return status;
    listing->n_listed++;
    if (!listing->pickle && qkv_is_pickle(e->path.data) &&
        !(listing->pickle = qkv_strdup(e->path.data)))
        return qkv_fail_memory(err);
    if (!counts(e->path.data)) return QKV_OK;
    qkv_listed_file file = {.path = qkv_strdup(e->path.data)};
    if (!file.path || !QKV_PUSH(listing->files, listing->capacity, listing->n, file)) {
        free(file.path);
        return qkv_fail_memory(err);
    }
    return read_facts(&listing->files[listing->n - 1], e, err);
}

static int fail_list(const qkv_hub *hub, qkv_error *err) {
    return qkv_fail(err, QKV_ERR_FORMAT, "%s: what %s sends is not a list of files",
                    hub->name.repository, hub->shown);
}

static int add_all(qkv_listing *listing, const qkv_hub *hub, qkv_json_span list, qkv_error *err) {
    qkv_json_scan scan;
    qkv_json_span key, value;
    int more = 0, status = QKV_OK;
    if (!qkv_json_open(&scan, list) || scan.is_object) return fail_list(hub, err);
    while (status == QKV_OK && (more = qkv_json_next(&scan, &key, &value)) == 1) {
        entry e;
        const int fine = scan_entry(&e, value);
        if (e.path.failed || e.git.failed || e.sha256.failed || e.type.failed)
            status = qkv_fail_memory(err);
        else
            status = fine ? add_entry(listing, hub, &e, err) : fail_list(hub, err);
        entry_release(&e);
    }
    return status == QKV_OK && more < 0 ? fail_list(hub, err) : status;
}

/* ---- the list ---- */

static void forget_files(qkv_listing *listing) {
    for (size_t i = 0; i < listing->n; i++) {
        free(listing->files[i].path);
        qkv_text_release(&listing->files[i].content);
    }
    free(listing->files);
    free(listing->pickle);
    listing->files = NULL;
    listing->pickle = NULL;
    listing->n = listing->capacity = listing->n_listed = 0;
}

void qkv_listing_release(qkv_listing *listing) {
    forget_files(listing);
    *listing = (qkv_listing){0};
}

static int keep_commit(qkv_listing *listing, const qkv_hub *hub, qkv_json_span value,
                       qkv_error *err) {
    qkv_text commit = {0};
    int status = QKV_OK;
    if (!qkv_json_append_string(value, &commit) || commit.failed ||
        !is_hex(commit.data ? commit.data : "", QKV_COMMIT_NAME - 1))
        status = fail_list(hub, err);
    else
        memcpy(listing->commit, commit.data, sizeof listing->commit);
    qkv_text_release(&commit);
    return status;
}

static int by_path(const void *a, const void *b) {
    return strcmp(((const qkv_listed_file *)a)->path, ((const qkv_listed_file *)b)->path);
}

static void sort_files(qkv_listing *listing) {
    if (listing->n) qsort(listing->files, listing->n, sizeof *listing->files, by_path);
}

int qkv_listing_parse(qkv_listing *listing, const qkv_hub *hub, const qkv_text *body,
                      qkv_error *err) {
    *listing = (qkv_listing){0};
    qkv_json_scan scan;
    qkv_json_span key, value;
    int more = 0, status = QKV_OK;
    if (!qkv_json_open(&scan, qkv_json_whole(body->data, body->length)) || !scan.is_object)
        return fail_list(hub, err);
    while (status == QKV_OK && (more = qkv_json_next(&scan, &key, &value)) == 1) {
        if (qkv_json_equals(key, "sha"))
            status = keep_commit(listing, hub, value, err);
        else if (qkv_json_equals(key, "siblings"))
            status = add_all(listing, hub, value, err);
    }
    if (status == QKV_OK && (more < 0 || !listing->commit[0])) status = fail_list(hub, err);
    sort_files(listing);
    return status;
}

/* ENDPOINT/api/models/ORG/NAME/KIND/REVISION */
static int list_url(const qkv_hub *hub, qkv_text *url, const char *kind, const char *revision,
                    const char *query, qkv_error *err) {
    qkv_text_printf(url, "%s/api/models/%s/%s/", hub->endpoint, hub->name.repository, kind);
    qkv_http_append_escaped(url, revision, 0);
    qkv_text_puts(url, query);
    return url->failed ? qkv_fail_memory(err) : QKV_OK;
}

static int read_list(qkv_listing *listing, qkv_hub *hub, qkv_error *err) {
    qkv_text url = {0}, body = {0};
    int status = list_url(hub, &url, "revision", hub->name.revision, "?blobs=true", err);
    if (status == QKV_OK) status = qkv_hub_read(hub, url.data, NULL, LIST_LIMIT, &body, NULL, err);
    if (status == QKV_OK) status = qkv_listing_parse(listing, hub, &body, err);
    qkv_text_release(&url);
    qkv_text_release(&body);
    return status;
}

/* The whole list, page by page, into `listing`, which has the commit. */
static int read_pages(qkv_listing *listing, qkv_hub *hub, qkv_error *err) {
    qkv_text url = {0}, body = {0}, next = {0};
    int status = list_url(hub, &url, "tree", listing->commit, "?recursive=true", err);
    for (int i = 0; status == QKV_OK && url.length; i++) {
        if (i >= MOST_PAGES) {
            status = qkv_fail(err, QKV_ERR_FORMAT, "%s: the list of files has more than %d pages",
                              hub->name.repository, MOST_PAGES);
            break;
        }
        next.length = 0;
        status = qkv_hub_read(hub, url.data, NULL, PAGE_LIMIT, &body, &next, err);
        if (status == QKV_OK)
            status = add_all(listing, hub, qkv_json_whole(body.data, body.length), err);
        url.length = 0;
        if (next.length) qkv_text_puts(&url, next.data);
        if (status == QKV_OK && (url.failed || next.failed)) status = qkv_fail_memory(err);
    }
    qkv_text_release(&url);
    qkv_text_release(&body);
    qkv_text_release(&next);
    sort_files(listing);
    return status;
}

/* A hub without pages has sent all that it has. */
static int read_long_list(qkv_listing *listing, qkv_hub *hub, qkv_error *err) {
    qkv_listing whole = {0};
    memcpy(whole.commit, listing->commit, sizeof whole.commit);
    int status = read_pages(&whole, hub, err);
    if (status == QKV_OK && whole.n_listed >= listing->n_listed) {
        forget_files(listing);
        *listing = whole;
        return QKV_OK;
    }
    qkv_listing_release(&whole);
    return status != QKV_OK && hub->status == 404 ? QKV_OK : status;
}

int qkv_listing_read(qkv_listing *listing, qkv_hub *hub, qkv_error *err) {
    *listing = (qkv_listing){0};
    int status = read_list(listing, hub, err);
    if (status == QKV_OK && listing->n_listed >= DOUBTFUL_LENGTH)
        status = read_long_list(listing, hub, err);
    return status;
}

qkv_listed_file *qkv_listing_find(const qkv_listing *listing, const char *path) {
    /* Only its path is looked at. */
    const qkv_listed_file wanted = {.path = (char *)path};
    if (!listing->n) return NULL;
    return bsearch(&wanted, listing->files, listing->n, sizeof wanted, by_path);
}

/* ---- what the list does not say ---- */

/* An ETag without its quotes; W/ says that it is weak. */
static void keep_etag(qkv_listed_file *file, const char *etag) {
    char text[QKV_HTTP_FIELD];
    size_t n = 0;
    if (strncmp(etag, "W/", 2) == 0) etag += 2;
    for (; *etag && n + 1 < sizeof text; etag++) {
        if (*etag != '"') text[n++] = *etag;
    }
    text[n] = '\0';
    if (is_hex(text, 64) || is_hex(text, 40)) memcpy(file->blob, text, n + 1);
}

static int ask_head(qkv_hub *hub, const char *url, qkv_listed_file *file, qkv_error *err) {
    const qkv_http_request request = {.url = url, .head = 1};
    int tries = 0, again = 1, status = QKV_OK;
    while (again && status == QKV_OK) {
        qkv_http_answer answer;
        status = qkv_http_ask(hub->http, &request, &answer, err);
        /* To where it redirects does not matter here. */
        if (status == QKV_OK && answer.status >= 300 && answer.status < 400) answer.status = 200;
        status = qkv_hub_judge(hub, &tries, status, &answer, file->path, &again, err);
        const int64_t size = answer.linked_size >= 0 ? answer.linked_size : answer.length;
        if (status == QKV_OK && !again && size >= 0) {
            keep_etag(file, answer.linked_etag[0] ? answer.linked_etag : answer.etag);
            file->size = (uint64_t)size;
        }
        qkv_http_answer_release(&answer);
    }
    return status;
}

int qkv_listing_complete(const qkv_listing *listing, qkv_hub *hub, qkv_listed_file *file,
                         qkv_error *err) {
    if (file->blob[0]) return QKV_OK;
    qkv_text url = {0};
    int status = qkv_hub_file_url(hub, &url, listing->commit, file->path, err);
    if (status == QKV_OK) status = ask_head(hub, url.data, file, err);
    qkv_text_release(&url);
    if (status == QKV_OK && (!file->blob[0] || (double)file->size > LARGEST_FILE))
        status = qkv_fail(err, QKV_ERR_FORMAT,
                          "%s tells no size and digest of %s, so it cannot be checked", hub->shown,
                          file->path);
    return status;
}
