/*
 * From what people call a model to where it is: qkv_model_find.
 *
 * Paths go first, then qkv's own models, then Hugging Face's cache. Nothing is opened; what can be
 * seen to be missing is said together with the command that fetches it.
 */
#define _POSIX_C_SOURCE 200809L
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/memory.h"
#include "hub/gguf_choice.h"
#include "hub/name.h"
#include "hub/package.h"
#include "hub/places.h"
#include "hub/repository.h"
#include "hub/snapshot.h"
#include "model/model.h"
#include "qkv/package.h"

/* A file that exists but cannot be read counts as well: opening it says why. */
static int exists(const char *path) {
    struct stat facts;
    return lstat(path, &facts) == 0 || (errno != ENOENT && errno != ENOTDIR);
}

/* The command that fetches what has this name; for a name that none fetches, those that there are. */
static void append_advice(qkv_text *advice, const char *text) {
    const qkv_package_info *package;
    const size_t length = strcspn(text, "@:");
    if (qkv_hub_name_matches(text)) {
        qkv_text_printf(advice, "get it with: qkv pull %s", text);
        return;
    }
    qkv_text_puts(advice, "qkv pull fetches org/name");
    for (size_t i = 0; (package = qkv_package_get(i)); i++) {
        qkv_text_printf(advice, ", %s", package->name);
        if (strlen(package->name) != length || strncmp(package->name, text, length) != 0) continue;
        advice->length = 0;
        qkv_text_printf(advice, "get it with: qkv pull %s", package->name);
        return;
    }
}

/* The line about what is missing, and what to do about it. */
static int suggest_pull(int status, const char *text, qkv_error *err) {
    if (status != QKV_ERR_IO || !err) return status;
    qkv_text advice = {0};
    append_advice(&advice, text);
    if (!advice.failed) qkv_fail(err, status, "%.700s; %s", err->message, advice.data);
    qkv_text_release(&advice);
    return status;
}

/* ---- in a directory ---- */

static int locate_gguf(char **path, const qkv_snapshot *s, const char *file, const char *model,
                       qkv_error *err) {
    size_t i;
    const int status =
        qkv_gguf_choose(&i, (const char *const *)s->ggufs, s->n_ggufs, file, model, err);
    if (status != QKV_OK) return status;
    return qkv_snapshot_check_gguf(path, NULL, s, s->ggufs[i], model, err);
}

/* Any file can be named, also one that is never chosen by itself. */
static int has_named_file(const qkv_snapshot *s, const char *file) {
    qkv_text path = {0};
    qkv_text_printf(&path, "%s/%s", s->path, file);
    const int found = qkv_gguf_is_file_name(file) && !path.failed && exists(path.data);
    qkv_text_release(&path);
    return found;
}

/* The path of what is meant: `file`, a path or a quantisation, or NULL. `model` is what the user calls
 * the directory, for messages. */
static int locate_in_snapshot(char **path, const qkv_snapshot *s, const char *file,
                              const char *model, qkv_error *err) {
    *path = NULL;
    if (file && has_named_file(s, file))
        return qkv_snapshot_check_gguf(path, NULL, s, file, model, err);
    if (file || !qkv_snapshot_is_directory(s)) return locate_gguf(path, s, file, model, err);
    const int status = qkv_snapshot_check_directory(s, model, err);
    if (status != QKV_OK) return status;
    *path = qkv_strdup(s->path);
    return *path ? QKV_OK : qkv_fail_memory(err);
}

/* ---- in Hugging Face's cache ---- */

static int fill_from_cache(qkv_model_place *place, const char *text, const qkv_hub_name *name,
                           const qkv_repository *r, qkv_error *err) {
    const char *commit = NULL;
    char *path = NULL;
    qkv_text folder = {0};
    qkv_snapshot snapshot = {0};
    int status =
        suggest_pull(qkv_repository_find(&commit, r, name->revision, r->name, err), text, err);
    if (status != QKV_OK) return status;
    qkv_repository_append_snapshot(&folder, r, commit);
    status = folder.failed ? qkv_fail_memory(err) : qkv_snapshot_read(&snapshot, folder.data, err);
    if (status == QKV_OK) {
        status = locate_in_snapshot(&path, &snapshot, name->file, r->name, err);
        status = suggest_pull(status, text, err);
    }
    if (status == QKV_OK) {
        const qkv_model_place_info found = {.name = text,
                                            .path = path,
                                            .repository = r->name,
                                            .revision = name->revision,
                                            .commit = commit};
        status = qkv_place_fill(place, &found, err);
    }
    free(path);
    qkv_snapshot_release(&snapshot);
    qkv_text_release(&folder);
    return status;
}

/* Finds nothing where the cache has no such repository: *found is 0 then. */
static int find_in_cache(qkv_model_place *place, const char *text, const qkv_hub_name *name,
                         int *found, qkv_error *err) {
    qkv_repository repository;
    if (!qkv_hub_cache_is_known()) return QKV_OK;
    int status = qkv_repository_read(&repository, name->repository, err);
    *found = status == QKV_OK && repository.n_refs + repository.n_commits > 0;
    if (*found) status = fill_from_cache(place, text, name, &repository, err);
    qkv_repository_release(&repository);
    return status;
}

/* ---- qkv's own ---- */

static int find_own(qkv_model_place *place, const char *text, const qkv_hub_name *name, int *found,
                    qkv_error *err) {
    qkv_text folder = {0};
    qkv_snapshot snapshot = {0};
    char *path = NULL;
    if (!qkv_own_models_is_known()) return QKV_OK;
    int status = qkv_own_models(&folder, err);
    qkv_text_printf(&folder, "/%s", name->repository);
    if (status == QKV_OK && folder.failed) status = qkv_fail_memory(err);
    *found = status == QKV_OK && exists(folder.data);
    if (*found) {
        status = qkv_snapshot_read(&snapshot, folder.data, err);
        if (status == QKV_OK) {
            status = locate_in_snapshot(&path, &snapshot, name->file, name->repository, err);
            /* A file that was never part of it is not fetched either. */
            if (!name->file) status = suggest_pull(status, text, err);
        }
        const qkv_model_place_info info = {.name = text, .path = path};
        if (status == QKV_OK) status = qkv_place_fill(place, &info, err);
    }
    free(path);
    qkv_snapshot_release(&snapshot);
    qkv_text_release(&folder);
    return status;
}

/* ---- all of them ---- */

static int is_name(const char *text) {
    return qkv_hub_name_matches(text) || qkv_hub_plain_name_matches(text);
}

/* *found is 0 where the name is nowhere. */
static int find_name(qkv_model_place *place, const char *text, int *found, qkv_error *err) {
    qkv_hub_name name;
    const int has_org = qkv_hub_name_matches(text);
    int status =
        has_org ? qkv_hub_name_parse(&name, text, err) : qkv_hub_plain_name_parse(&name, text, err);
    if (status != QKV_OK) return status;
    /* They have no revisions. */
    if (!has_org && text[strlen(name.repository)] != '@')
        status = find_own(place, text, &name, found, err);
    if (status == QKV_OK && !*found) status = find_in_cache(place, text, &name, found, err);
    qkv_hub_name_release(&name);
    return status;
}

/* A path with a mistake in it looks like a name, too. */
static int fail_absent(qkv_error *err, const char *text) {
    const int status = qkv_fail(err, QKV_ERR_IO,
                                "cannot open %s: No such file or directory, nor is a model of that "
                                "name on this machine",
                                text);
    return suggest_pull(status, text, err);
}

static int find(qkv_model_place *place, const char *text, qkv_error *err) {
    int found = 0;
    if (!exists(text) && is_name(text)) {
        const int status = find_name(place, text, &found, err);
        if (status != QKV_OK || found) return status;
        /* Without a colon that is a file's name. */
        if (strchr(text, ':') || !qkv_gguf_is_file_name(text)) return fail_absent(err, text);
    }
    const qkv_model_place_info as_given = {.name = text, .path = text};
    return qkv_place_fill(place, &as_given, err);
}

int qkv_model_find(qkv_model_place **out, const char *name, qkv_error *err) {
    QKV_NEED(err, out);
    *out = NULL;
    if (!name || !*name) return qkv_fail(err, QKV_ERR_ARGUMENT, "no model file was named");
    qkv_model_place *place = qkv_calloc(1, sizeof *place);
    const int status = place ? find(place, name, err) : qkv_fail_memory(err);
    if (status == QKV_OK)
        *out = place;
    else
        qkv_model_place_free(place);
    return status;
}

int qkv_model_is_name(const char *text) {
    return text && !exists(text) && qkv_hub_name_matches(text);
}

int qkv_model_open(qkv_model **out, const char *name, qkv_error *err) {
    QKV_NEED(err, out);
    *out = NULL;
    qkv_model_place *place = NULL;
    int status = qkv_model_find(&place, name, err);
    if (status == QKV_OK)
        status = qkv_model_open_by(out, place->info.path, qkv_model_file_open, err);
    qkv_model_place_free(place);
    return status;
}
