#define _POSIX_C_SOURCE 200809L
#include "hub/repository.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/memory.h"
#include "hub/folder.h"
#include "hub/name.h"
#include "hub/places.h"

#define REFS "refs"
#define SNAPSHOTS "snapshots"
#define MAX_REF 256        /* bytes of a file in refs/ */
#define MAX_DEPTH 4        /* of names with slashes */
#define MAX_ENTRIES 100000 /* of refs and of snapshots */
#define MIN_PREFIX 7       /* digits of a shortened commit */
#define MAX_LISTED 8       /* in messages */

/* ---- reading ---- */

/* Could it be a folder of snapshots/, and no other? */
static int is_folder_name(const char *text) {
    return text[0] != '.' && !strchr(text, '/') && qkv_hub_path_is_safe(text);
}

/* What the file says, without the end of its line; NULL where that is not a commit. */
static char *read_commit(const char *path) {
    char *text = NULL;
    size_t size = 0;
    struct stat facts;
    /* A pipe would be waited for. */
    if (stat(path, &facts) != 0 || !S_ISREG(facts.st_mode)) return NULL;
    if (qkv_read_file(&text, &size, path, MAX_REF, NULL) != QKV_OK) return NULL;
    while (size > 0 && qkv_is_space(text[size - 1])) text[--size] = '\0';
    if (strlen(text) == size && is_folder_name(text)) return text;
    free(text);
    return NULL;
}

static int add_ref(qkv_repository *r, const char *path, const char *name, qkv_error *err) {
    const qkv_ref ref = {qkv_strdup(name), read_commit(path)};
    if (ref.name && QKV_PUSH(r->refs, r->refs_capacity, r->n_refs, ref)) return QKV_OK;
    free(ref.name);
    free(ref.commit);
    return qkv_fail_memory(err);
}

static int add_commit(qkv_repository *r, const char *name, qkv_error *err) {
    char *copy = qkv_strdup(name);
    if (copy && QKV_PUSH(r->commits, r->commits_capacity, r->n_commits, copy)) return QKV_OK;
    free(copy);
    return qkv_fail_memory(err);
}

static int check_number(const qkv_repository *r, qkv_error *err) {
    if (r->n_refs + r->n_commits < MAX_ENTRIES) return QKV_OK;
    return qkv_fail(err, QKV_ERR_FORMAT, "%s: more than %d revisions", r->folder, MAX_ENTRIES);
}

static int read_commit_folder(void *user, const char *path, const char *name, qkv_error *err) {
    qkv_repository *r = user;
    const int status = check_number(r, err);
    return status == QKV_OK && qkv_is_directory(path) ? add_commit(r, name + sizeof SNAPSHOTS, err)
                                                      : status;
}

/* Names of branches may have slashes. */
static int read_ref(void *user, const char *path, const char *name, qkv_error *err) {
    qkv_repository *r = user;
    const int status = check_number(r, err);
    if (status != QKV_OK) return status;
    if (!qkv_is_directory(path)) return add_ref(r, path, name + sizeof REFS, err);
    if (qkv_folder_depth(name) > MAX_DEPTH) return QKV_OK;
    return qkv_folder_visit(r->folder, name, read_ref, r, err);
}

static int compare_refs(const void *a, const void *b) {
    return strcmp(((const qkv_ref *)a)->name, ((const qkv_ref *)b)->name);
}

int qkv_repository_read(qkv_repository *r, const char *name, qkv_error *err) {
    qkv_text folder = {0};
    *r = (qkv_repository){.name = qkv_strdup(name)};
    int status = r->name ? qkv_hub_folder(&folder, name, err) : qkv_fail_memory(err);
    r->folder = folder.data;
    if (status == QKV_OK) status = qkv_folder_visit(r->folder, REFS, read_ref, r, err);
    if (status == QKV_OK)
        status = qkv_folder_visit(r->folder, SNAPSHOTS, read_commit_folder, r, err);
    if (r->n_refs > 1) qsort(r->refs, r->n_refs, sizeof *r->refs, compare_refs);
    if (r->n_commits > 1) qsort(r->commits, r->n_commits, sizeof *r->commits, qkv_compare_strings);
    return status;
}

void qkv_repository_release(qkv_repository *r) {
    for (size_t i = 0; i < r->n_refs; i++) {
        free(r->refs[i].name);
        free(r->refs[i].commit);
    }
    for (size_t i = 0; i < r->n_commits; i++) free(r->commits[i]);
    free(r->refs);
    free(r->commits);
    free(r->folder);
    free(r->name);
    *r = (qkv_repository){0};
}

void qkv_repository_append_snapshot(qkv_text *path, const qkv_repository *r, const char *commit) {
    qkv_text_printf(path, "%s/snapshots/%s", r->folder, commit);
}

/* ---- revisions ---- */

/* "main, v1.0, 3f2a…": what can stand after the @. */
static void append_revisions(qkv_text *text, const qkv_repository *r) {
    size_t listed = 0;
    for (size_t i = 0; i < r->n_refs && listed < MAX_LISTED; i++, listed++)
        qkv_text_printf(text, "%s%s", listed ? ", " : "", r->refs[i].name);
    for (size_t i = 0; i < r->n_commits && listed < MAX_LISTED; i++, listed++)
        qkv_text_printf(text, "%s%.12s", listed ? ", " : "", r->commits[i]);
    if (r->n_refs + r->n_commits > listed) qkv_text_puts(text, ", " QKV_ELLIPSIS);
}

static int fail_revision(qkv_error *err, const qkv_repository *r, const char *revision,
                         const char *model) {
    qkv_text list = {0};
    append_revisions(&list, r);
    const int status = qkv_fail(err, QKV_ERR_IO, "%s: no revision %s in %s; there is %.300s", model,
                                revision, r->folder, list.data ? list.data : "none");
    qkv_text_release(&list);
    return status;
}

/* The snapshots that begin so; *commit is one of them. */
static size_t count_prefix(const char **commit, const qkv_repository *r, const char *prefix) {
    const size_t length = strlen(prefix);
    size_t count = 0;
    if (length < MIN_PREFIX || strspn(prefix, "0123456789abcdef") != length) return 0;
    for (size_t i = 0; i < r->n_commits; i++) {
        if (strncmp(r->commits[i], prefix, length) != 0) continue;
        *commit = r->commits[i];
        count++;
    }
    return count;
}

static const qkv_ref *find_ref(const qkv_repository *r, const char *name) {
    const qkv_ref key = {.name = (char *)name};
    return r->n_refs ? bsearch(&key, r->refs, r->n_refs, sizeof key, compare_refs) : NULL;
}

static const char *find_commit(const qkv_repository *r, const char *name) {
    char *const *found = r->n_commits ? bsearch(&name, r->commits, r->n_commits, sizeof *r->commits,
                                                qkv_compare_strings)
                                      : NULL;
    return found ? *found : NULL;
}

static int find_by_ref(const char **commit, const qkv_repository *r, const qkv_ref *ref,
                       const char *model, qkv_error *err) {
    if (!ref->commit)
        return qkv_fail(err, QKV_ERR_IO, "%s: %s/refs/%s does not hold a commit", model, r->folder,
                        ref->name);
    *commit = find_commit(r, ref->commit);
    if (*commit) return QKV_OK;
    return qkv_fail(err, QKV_ERR_IO, "%s: the files of revision %s (commit %.12s) are not in %s",
                    model, ref->name, ref->commit, r->folder);
}

int qkv_repository_find(const char **commit, const qkv_repository *r, const char *revision,
                        const char *model, qkv_error *err) {
    const qkv_ref *ref = find_ref(r, revision);
    if (ref) return find_by_ref(commit, r, ref, model, err);
    *commit = find_commit(r, revision);
    if (*commit) return QKV_OK;
    const size_t n = count_prefix(commit, r, revision);
    if (n > 1)
        return qkv_fail(err, QKV_ERR_ARGUMENT, "%s: %zu commits in %s begin with %s", model, n,
                        r->folder, revision);
    return n ? QKV_OK : fail_revision(err, r, revision, model);
}
