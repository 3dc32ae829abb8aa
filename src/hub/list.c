/*
 * The models on this machine that have names: qkv_model_list_new.
 *
 * Of each repository every snapshot is listed, under the shortest name that leads to it, and in it
 * the directory as a model, each GGUF file, or what is missing. Names come out sorted, so that two
 * lists of the same files are equal.
 */
#define _POSIX_C_SOURCE 200809L
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/memory.h"
#include "hub/folder.h"
#include "hub/gguf_choice.h"
#include "hub/name.h"
#include "hub/places.h"
#include "hub/repository.h"
#include "hub/snapshot.h"

#define FOLDER_START "models--"
#define SHORT_COMMIT 12

struct qkv_model_list {
    qkv_model_place *places;
    size_t n, capacity;
};

/* What the rows of one directory have in common. */
typedef struct row_source {
    qkv_model_list *list;
    const char *name; /* what -m takes, without a file */
    const char *repository, *revision, *commit;
} row_source;

/* `problem` in place of a path. */
static int add_row(const row_source *source, const char *name, const char *path, uint64_t size,
                   const char *problem, qkv_error *err) {
    const qkv_model_place_info info = {.name = name,
                                       .path = path,
                                       .repository = source->repository,
                                       .revision = source->revision,
                                       .commit = source->commit,
                                       .problem = problem,
                                       .size = size};
    qkv_model_list *list = source->list;
    qkv_model_place place = {0};
    int status = qkv_place_fill(&place, &info, err);
    if (status == QKV_OK && !QKV_PUSH(list->places, list->capacity, list->n, place))
        status = qkv_fail_memory(err);
    if (status != QKV_OK) qkv_place_release(&place);
    return status;
}

/* One that is found, or the reason why not. */
static int add_found(const row_source *source, const char *name, int found, const char *path,
                     uint64_t size, const qkv_error *why, qkv_error *err) {
    if (found == QKV_ERR_MEMORY) return qkv_fail_memory(err);
    const int is_there = found == QKV_OK;
    return add_row(source, name, is_there ? path : "", size, is_there ? "" : why->message, err);
}

/* The name of a directory's only model needs no file, unless that tells how it is quantised. */
static void append_name(qkv_text *name, const row_source *source, const qkv_snapshot *s, size_t i) {
    qkv_text choice = {0};
    qkv_gguf_append_choice(&choice, (const char *const *)s->ggufs, s->n_ggufs, i);
    const char *text = choice.data ? choice.data : "";
    const int is_only = s->n_ggufs == 1 && !qkv_snapshot_is_directory(s);
    qkv_text_puts(name, source->name);
    if (!is_only || !qkv_gguf_is_file_name(text)) qkv_text_printf(name, ":%s", text);
    name->failed |= choice.failed;
    qkv_text_release(&choice);
}

static int add_gguf(const row_source *source, const qkv_snapshot *s, size_t i, qkv_error *err) {
    qkv_text name = {0};
    qkv_error why = {0};
    char *path = NULL;
    uint64_t size = 0;
    append_name(&name, source, s, i);
    const int found = qkv_snapshot_check_gguf(&path, &size, s, s->ggufs[i], source->name, &why);
    const int status = name.failed ? qkv_fail_memory(err)
                                   : add_found(source, name.data, found, path, size, &why, err);
    free(path);
    qkv_text_release(&name);
    return status;
}

static int add_snapshot(const row_source *source, const char *folder, qkv_error *err) {
    qkv_snapshot s;
    qkv_error why = {0};
    int found = qkv_snapshot_read(&s, folder, &why), status = QKV_OK;
    if (found != QKV_OK || qkv_snapshot_is_directory(&s)) {
        if (found == QKV_OK) found = qkv_snapshot_check_directory(&s, source->name, &why);
        status = add_found(source, source->name, found, folder, s.size, &why, err);
    }
    for (size_t i = 0; i < s.n_ggufs && status == QKV_OK; i++)
        status = add_gguf(source, &s, i, err);
    qkv_snapshot_release(&s);
    return status;
}

/* ---- Hugging Face's cache ---- */

/* The one of a commit's names that is shortest to write: main's needs none. */
static const qkv_ref *best_ref(const qkv_repository *r, const char *commit) {
    const qkv_ref *best = NULL;
    for (size_t i = 0; i < r->n_refs; i++) {
        const qkv_ref *ref = &r->refs[i];
        if (!ref->commit || strcmp(ref->commit, commit) != 0) continue;
        if (strcmp(ref->name, "main") == 0) return ref;
        if (!best) best = ref;
    }
    return best;
}

static void append_revision(qkv_text *name, const qkv_ref *ref, const char *commit) {
    if (ref && strcmp(ref->name, "main") == 0) return;
    if (ref)
        qkv_text_printf(name, "@%s", ref->name);
    else if (strspn(commit, "0123456789abcdef") == 40 && !commit[40])
        qkv_text_printf(name, "@%.*s", SHORT_COMMIT, commit);
    else
        qkv_text_printf(name, "@%s", commit);
}

static int add_commit(qkv_model_list *list, const qkv_repository *r, const char *commit,
                      qkv_error *err) {
    const qkv_ref *ref = best_ref(r, commit);
    qkv_text name = {0}, folder = {0};
    qkv_text_puts(&name, r->name);
    append_revision(&name, ref, commit);
    qkv_repository_append_snapshot(&folder, r, commit);
    const row_source source = {.list = list,
                               .name = name.data,
                               .repository = r->name,
                               .revision = ref ? ref->name : commit,
                               .commit = commit};
    const int status = name.failed || folder.failed ? qkv_fail_memory(err)
                                                    : add_snapshot(&source, folder.data, err);
    qkv_text_release(&name);
    qkv_text_release(&folder);
    return status;
}

/* A revision that does not lead to a snapshot: a download that has not come far. */
static int add_lost_ref(qkv_model_list *list, const qkv_repository *r, const qkv_ref *ref,
                        qkv_error *err) {
    const char *commit;
    qkv_error why = {0};
    if (qkv_repository_find(&commit, r, ref->name, r->name, &why) == QKV_OK) return QKV_OK;
    qkv_text name = {0};
    qkv_text_puts(&name, r->name);
    append_revision(&name, ref, "");
    const row_source source = {list, name.data, r->name, ref->name, ref->commit};
    const int status =
        name.failed ? qkv_fail_memory(err) : add_row(&source, name.data, "", 0, why.message, err);
    qkv_text_release(&name);
    return status;
}

static int add_repository(qkv_model_list *list, const char *name, qkv_error *err) {
    const row_source source = {.list = list, .name = name, .repository = name};
    qkv_repository r;
    qkv_error why = {0};
    const int found = qkv_repository_read(&r, name, &why);
    int status = found == QKV_OK ? QKV_OK : add_found(&source, name, found, NULL, 0, &why, err);
    for (size_t i = 0; i < r.n_commits && status == QKV_OK; i++)
        status = add_commit(list, &r, r.commits[i], err);
    for (size_t i = 0; i < r.n_refs && status == QKV_OK; i++)
        status = add_lost_ref(list, &r, &r.refs[i], err);
    qkv_repository_release(&r);
    return status;
}

/* models--org--name; folders that are called otherwise hold other things. */
static int add_cache_folder(void *user, const char *path, const char *folder, qkv_error *err) {
    (void)path;
    const size_t start = sizeof FOLDER_START - 1;
    if (strncmp(folder, FOLDER_START, start) != 0) return QKV_OK;
    const char *rest = folder + start, *dashes = strstr(rest, "--");
    qkv_text name = {0};
    qkv_text_append(&name, rest, dashes ? (size_t)(dashes - rest) : strlen(rest));
    if (dashes) qkv_text_printf(&name, "/%s", dashes + 2);
    int status = name.failed ? qkv_fail_memory(err) : QKV_OK;
    if (status == QKV_OK && name.data && !strpbrk(name.data, "@:") &&
        (qkv_hub_name_matches(name.data) || qkv_hub_plain_name_matches(name.data)))
        status = add_repository(user, name.data, err);
    qkv_text_release(&name);
    return status;
}

/* ---- qkv's own ---- */

static int add_own(void *user, const char *path, const char *name, qkv_error *err) {
    const row_source source = {.list = user, .name = name};
    if (!qkv_is_directory(path) || strpbrk(name, "@:") || !qkv_hub_plain_name_matches(name))
        return QKV_OK;
    return add_snapshot(&source, path, err);
}

/* ---- all of them ---- */

static int compare_places(const void *a, const void *b) {
    const qkv_model_place *p = a, *q = b;
    const int order = strcmp(p->info.repository, q->info.repository);
    return order ? order : strcmp(p->info.name, q->info.name);
}

/* What a folder adds, sorted. */
static int add_folder(qkv_model_list *list, int (*place)(qkv_text *path, qkv_error *err),
                      qkv_folder_visitor *add, qkv_error *err) {
    qkv_text path = {0};
    const size_t first = list->n;
    int status = place(&path, err);
    if (status == QKV_OK) status = qkv_folder_visit(path.data, "", add, list, err);
    qkv_text_release(&path);
    if (list->n > first)
        qsort(list->places + first, list->n - first, sizeof *list->places, compare_places);
    return status;
}

int qkv_model_list_new(qkv_model_list **out, qkv_error *err) {
    QKV_NEED(err, out);
    qkv_model_list *list = *out = qkv_calloc(1, sizeof *list);
    if (!list) return qkv_fail_memory(err);
    int status = QKV_OK;
    if (qkv_own_models_is_known()) status = add_folder(list, qkv_own_models, add_own, err);
    if (status == QKV_OK && qkv_hub_cache_is_known())
        status = add_folder(list, qkv_hub_cache, add_cache_folder, err);
    if (status == QKV_OK) return QKV_OK;
    qkv_model_list_free(list);
    *out = NULL;
    return status;
}

size_t qkv_model_list_count(const qkv_model_list *list) {
    return list ? list->n : 0;
}

const qkv_model_place_info *qkv_model_list_get(const qkv_model_list *list, size_t index) {
    return list && index < list->n ? &list->places[index].info : NULL;
}

void qkv_model_list_free(qkv_model_list *list) {
    if (!list) return;
    for (size_t i = 0; i < list->n; i++) qkv_place_release(&list->places[i]);
    free(list->places);
    free(list);
}
