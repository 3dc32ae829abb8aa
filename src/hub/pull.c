/*
 * qkv_pull, from a name to a model in the cache:
 *
 *     the hub's list ─> which files ─> files in the cache, free space ─> bytes ─> links ─> reference
 *     listing           pull_choice    pull_cache                       pull_blob  pull_cache
 */
#include "qkv/pull.h"

#include <string.h>

#include "hub/package.h"
#include "hub/pull_cache.h"

typedef struct pull {
    qkv_pull_watch watch;
    qkv_hub hub;
    qkv_listing listing;
    qkv_pull_cache cache;
    qkv_pull_choice choice;
    uint64_t needed; /* bytes to be fetched */
} pull;

/* Tells the caller about every file, and counts. */
static int survey(pull *p, qkv_error *err) {
    const qkv_pull_options *options = &p->watch.options;
    for (size_t i = 0; i < p->choice.n; i++) {
        const int status = qkv_listing_complete(&p->listing, &p->hub, p->choice.files[i], err);
        if (status != QKV_OK) return status;
    }
    for (size_t i = 0; i < p->choice.n; i++) {
        const qkv_listed_file *file = p->choice.files[i];
        const qkv_pull_file facts = {.size = sizeof facts,
                                     .path = file->path,
                                     .n_bytes = file->size,
                                     .n_present = qkv_pull_cache_present(&p->cache, file)};
        p->watch.step.total += file->size;
        p->needed += file->size - facts.n_present;
        if (options->file) options->file(options->user, &facts);
    }
    return QKV_OK;
}

static int fetch_file(pull *p, qkv_listed_file *file, qkv_error *err) {
    int status = QKV_OK;
    if (qkv_pull_cache_has(&p->cache, file, NULL)) {
        qkv_pull_watch_skip(&p->watch, file->size);
    } else {
        qkv_pull_watch_file(&p->watch, file->path, file->size);
        status = qkv_pull_cache_prepare(&p->cache, err);
        if (status == QKV_OK) status = qkv_pull_blob(&p->cache, &p->hub, file, err);
        if (status == QKV_OK && qkv_pull_watch_show(&p->watch))
            status = qkv_fail(err, QKV_ERR_CANCELLED, "stopped");
    }
    return status == QKV_OK ? qkv_pull_cache_link(&p->cache, file, err) : status;
}

static int fetch_all(pull *p, qkv_error *err) {
    int status = p->needed ? qkv_pull_cache_check_space(&p->cache, p->needed, err) : QKV_OK;
    for (size_t i = 0; status == QKV_OK && i < p->choice.n; i++)
        status = fetch_file(p, p->choice.files[i], err);
    if (status == QKV_OK) status = qkv_pull_cache_refer(&p->cache, p->hub.name.revision, err);
    return status;
}

static int tell_end(const pull *p, qkv_error *err) {
    const qkv_pull_options *options = &p->watch.options;
    qkv_text path = {0};
    qkv_pull_cache_append_snapshot(&p->cache, &path, p->choice.gguf);
    const int status = path.failed ? qkv_fail_memory(err) : QKV_OK;
    if (status == QKV_OK && options->end) options->end(options->user, path.data);
    qkv_text_release(&path);
    return status;
}

static int run(pull *p, const char *name, qkv_error *err) {
    int status = qkv_hub_open(&p->hub, name, &p->watch, err);
    if (status == QKV_OK)
        status = qkv_pull_cache_open(&p->cache, p->hub.name.repository, &p->listing, err);
    if (status == QKV_OK) status = qkv_listing_read(&p->listing, &p->hub, err);
    if (status == QKV_OK)
        status = qkv_pull_choose(&p->choice, &p->listing, &p->hub, &p->cache, err);
    if (status == QKV_OK) status = survey(p, err);
    if (status == QKV_OK && !p->watch.options.dry_run) status = fetch_all(p, err);
    if (status == QKV_OK) status = tell_end(p, err);
    return status;
}

int qkv_pull(const char *name, const qkv_pull_options *options, qkv_error *err) {
    QKV_NEED(err, name);
    if (!strchr(name, '/')) return qkv_package_pull(name, options, err);
    pull p = {0};
    /* Not the caller's, which may be NULL: lines about attempts repeat what it says. */
    qkv_error own = {0};
    int status = qkv_pull_watch_start(&p.watch, options, &own);
    if (status == QKV_OK) status = run(&p, name, &own);
    if (status != QKV_OK && err) *err = own;
    qkv_pull_choice_release(&p.choice);
    qkv_pull_cache_close(&p.cache);
    qkv_listing_release(&p.listing);
    qkv_hub_close(&p.hub);
    return status;
}
