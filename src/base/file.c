/* Read-only mappings and outputs that appear whole or not at all. */
#define _GNU_SOURCE /* fchown, fopencookie */
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/number.h"

static int fail_output(qkv_error *err, const char *path, int code) {
    if (code == ENOMEM) return qkv_fail_memory(err);
    return qkv_fail(err, QKV_ERR_IO, "cannot write %s: %s", path, strerror(code));
}

static int exists_irregular(const char *path) {
    struct stat st;
    return stat(path, &st) == 0 && !S_ISREG(st.st_mode);
}

/* ---- where a path leads to ---- */

/* The descriptor that a path like /dev/fd/1 names, or -1. */
static int descriptor_of(const char *path) {
    static const char *const places[] = {"/dev/fd/", "/proc/self/fd/"};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        const size_t length = strlen(places[i]);
        int64_t number;
        if (strncmp(path, places[i], length) == 0 &&
            qkv_parse_int(path + length, strlen(path + length), &number) && number <= INT_MAX)
            return (int)number;
    }
    return -1;
}

/* What a link holds, seen from where the link is. */
static char *beside(const char *path, const char *link, size_t length) {
    const char *slash = strrchr(path, '/');
    const size_t head = slash && link[0] != '/' ? (size_t)(slash + 1 - path) : 0;
    char *joined = malloc(head + length + 1);
    if (!joined) return NULL;
    memcpy(joined, path, head);
    memcpy(joined + head, link, length);
    joined[head + length] = '\0';
    return joined;
}

/* The file that a path leads to, through links, so that a link stays one, also where the file is
 * not there yet. An open descriptor's name is left as it is. NULL and errno on failure. */
static char *resolve(const char *path) {
    enum { MOST_LINKS = 40 };
    char *target = qkv_strdup(path), link[PATH_MAX];
    for (int i = 0; target && i < MOST_LINKS && descriptor_of(target) < 0; i++) {
        const ssize_t length = readlink(target, link, sizeof link);
        if (length < 0) return target; /* no link */
        char *next = beside(target, link, (size_t)length);
        free(target);
        target = next;
    }
    if (!target || descriptor_of(target) >= 0) return target;
    free(target);
    errno = ELOOP;
    return NULL;
}

/* ---- outputs ---- */

/* The new file is as private as the one that it replaces. A group that cannot be kept gets what
 * everybody has. */
static int keep_mode(int fd, const struct stat *old) {
    mode_t mode = old->st_mode & 0777;
    if (fchown(fd, old->st_uid, old->st_gid) != 0 && fchown(fd, (uid_t)-1, old->st_gid) != 0)
        mode = (mode & 0707) | (mode & 0007) << 3;
    return fchmod(fd, mode);
}

static int create_beside(qkv_output *out) {
    struct stat old;
    const int exists = stat(out->target, &old) == 0;
    const int fd = qkv_temporary_create(&out->temporary, out->target, exists ? 0600 : 0666);
    if (fd < 0 || !exists || keep_mode(fd, &old) == 0) return fd;
    const int code = errno;
    close(fd);
    errno = code;
    return -1;
}

/* Where standard output or another descriptor is meant it is written on, from where it is. */
static int open_target(qkv_output *out) {
    const int descriptor = descriptor_of(out->target);
    if (descriptor >= 0) return fcntl(descriptor, F_DUPFD_CLOEXEC, 0);
    if (!exists_irregular(out->target)) return create_beside(out);
    return open(out->target, O_WRONLY | O_CLOEXEC);
}

static int open_stream(qkv_output *out) {
    const int fd = open_target(out);
    out->stream = fd >= 0 ? fdopen(fd, "wb") : NULL;
    if (out->stream) return 0;
    /* A descriptor that was opened for reading only. */
    const int code = errno == EINVAL ? EBADF : errno ? errno : ENOMEM;
    if (fd >= 0) close(fd);
    return code;
}

int qkv_output_open(qkv_output *out, const char *path, qkv_error *err) {
    *out = (qkv_output){0};
    if (qkv_is_directory(path)) return fail_output(err, path, EISDIR);
    errno = 0;
    out->path = qkv_strdup(path);
    out->target = out->path ? resolve(path) : NULL;
    // NOLINTNEXTLINE(clang-analyzer-unix.Malloc): *out holds the path; qkv_output_finish frees it
    const int code = out->target ? open_stream(out) : errno ? errno : ENOMEM;
    if (!code) return QKV_OK;
    qkv_output_abandon(out);
    return fail_output(err, path, code);
}

/* Not open_memstream: where memory is short, glibc's drops what was written and sets no error. */
static ssize_t append_to_text(void *cookie, const char *bytes, size_t n) {
    qkv_text *text = cookie;
    qkv_text_append(text, bytes, n);
    return text->failed ? 0 : (ssize_t)n;
}

int qkv_output_open_memory(qkv_output *out, qkv_error *err) {
    *out = (qkv_output){0};
    const cookie_io_functions_t functions = {.write = append_to_text};
    out->stream = fopencookie(&out->text, "wb", functions);
    return out->stream ? QKV_OK : qkv_fail_memory(err);
}

static void release(qkv_output *out) {
    qkv_text_release(&out->text);
    free(out->target);
    free(out->path);
    *out = (qkv_output){0};
}

/* After a crash of the machine the name must not stand for an empty file. Not every file system can
 * be asked. */
static int sync_file(FILE *stream) {
    if (fsync(fileno(stream)) == 0 || errno == EINVAL || errno == ENOTSUP) return 0;
    return errno;
}

void qkv_sync_directory(const char *path) {
    const char *slash = strrchr(path, '/');
    char *directory = slash ? qkv_strndup(path, (size_t)(slash + 1 - path)) : qkv_strdup(".");
    const int fd = directory ? open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    if (fd >= 0) {
        fsync(fd);
        close(fd);
    }
    free(directory);
}

int qkv_output_finish(qkv_output *out, qkv_error *err) {
    /* An earlier write may have failed already: what it left in errno is the reason. */
    int code = ferror(out->stream) ? (errno ? errno : EIO) : 0;
    errno = 0;
    if (fflush(out->stream) != 0 && !code) code = errno ? errno : EIO;
    if (!code && out->temporary.name) code = sync_file(out->stream);
    if (fclose(out->stream) != 0 && !code) code = errno;
    out->stream = NULL;
    if (!code && out->temporary.name) {
        if (qkv_temporary_rename(&out->temporary, out->target) != 0)
            code = errno;
        else
            qkv_sync_directory(out->target); /* so that the new name lasts as well */
    }
    if (code) {
        int status = fail_output(err, out->path, code);
        qkv_output_abandon(out);
        return status;
    }
    release(out);
    return QKV_OK;
}

int qkv_output_take(qkv_output *out, char **bytes, size_t *n_bytes, qkv_error *err) {
    const int failed = ferror(out->stream);
    const int closed = fclose(out->stream);
    out->stream = NULL;
    *bytes = NULL;
    *n_bytes = 0;
    qkv_text_append(&out->text, "", 0); /* so that one that is empty has its NUL, too */
    if (failed || closed != 0 || out->text.failed) {
        qkv_output_abandon(out);
        return qkv_fail_memory(err);
    }
    *bytes = out->text.data;
    *n_bytes = out->text.length;
    out->text = (qkv_text){0};
    release(out);
    return QKV_OK;
}

void qkv_output_abandon(qkv_output *out) {
    if (out->stream) fclose(out->stream);
    qkv_temporary_remove(&out->temporary);
    release(out);
}

int qkv_output_write(const char *path, const char *bytes, size_t n_bytes, qkv_error *err) {
    qkv_output out;
    const int status = qkv_output_open(&out, path, err);
    if (status != QKV_OK) return status;
    errno = 0;
    if (fwrite(bytes, 1, n_bytes, out.stream) != n_bytes) {
        const int code = errno ? errno : EIO;
        qkv_output_abandon(&out);
        return fail_output(err, path, code);
    }
    return qkv_output_finish(&out, err);
}

int qkv_output_check(const char *path, qkv_error *err) {
    if (exists_irregular(path)) {
        if (qkv_is_directory(path)) return fail_output(err, path, EISDIR);
        return access(path, W_OK) == 0 ? QKV_OK : fail_output(err, path, errno);
    }
    qkv_output out;
    int status = qkv_output_open(&out, path, err);
    if (status == QKV_OK) qkv_output_abandon(&out);
    return status;
}

int qkv_mapping_open(qkv_mapping *map, const char *path, qkv_error *err) {
    *map = (qkv_mapping){0};
    /* Without O_NONBLOCK, opening a pipe would wait for a writer. */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) return qkv_fail(err, QKV_ERR_IO, "cannot open %s: %s", path, strerror(errno));
    struct stat st;
    int status = QKV_OK;
    if (fstat(fd, &st) != 0) {
        status = qkv_fail(err, QKV_ERR_IO, "cannot read %s: %s", path, strerror(errno));
    } else if (!S_ISREG(st.st_mode)) {
        status = qkv_fail(err, QKV_ERR_IO, "cannot read %s: not a regular file", path);
    } else if (st.st_size == 0) {
        status = qkv_fail(err, QKV_ERR_FORMAT, "%s is empty", path);
    } else {
        void *data = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
        if (data == MAP_FAILED) {
            status = qkv_fail(err, QKV_ERR_IO, "cannot map %s: %s", path, strerror(errno));
        } else {
            map->data = data;
            map->size = (size_t)st.st_size;
        }
    }
    close(fd);
    return status;
}

void qkv_mapping_close(qkv_mapping *map) {
    if (map->data) munmap((void *)map->data, map->size);
    *map = (qkv_mapping){0};
}

static int read_stream(FILE *stream, char **data, size_t *size, const char *path, size_t limit,
                       qkv_error *err) {
    char *buffer = NULL;
    size_t length = 0, capacity = 0;
    for (;;) {
        if (!qkv_grow((void **)&buffer, &capacity, length, 1)) {
            free(buffer);
            return qkv_fail_memory(err);
        }
        size_t got = fread(buffer + length, 1, capacity - length, stream);
        length += got;
        if (got == 0) break;
        if (length > limit) {
            free(buffer);
            return qkv_fail(err, QKV_ERR_FORMAT, "%s is larger than %zu bytes", path, limit);
        }
    }
    if (ferror(stream)) {
        free(buffer);
        return qkv_fail(err, QKV_ERR_IO, "cannot read %s: %s", path, strerror(errno));
    }
    buffer[length] = '\0'; /* fread left at least one byte free when it returned 0 */
    *data = buffer;
    *size = length;
    return QKV_OK;
}

int qkv_read_file(char **data, size_t *size, const char *path, size_t limit, qkv_error *err) {
    *data = NULL;
    *size = 0;
    int standard_input = strcmp(path, "-") == 0;
    FILE *stream = standard_input ? stdin : fopen(path, "rb");
    if (!stream) return qkv_fail(err, QKV_ERR_IO, "cannot open %s: %s", path, strerror(errno));
    int status = read_stream(stream, data, size, path, limit, err);
    if (!standard_input) fclose(stream);
    return status;
}

int qkv_is_directory(const char *path) {
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

const char *qkv_path_base(const char *path) {
    const char *end = path + strlen(path);
    while (end > path && end[-1] == '/') end--;
    while (end > path && end[-1] != '/') end--;
    return end;
}

/* Where the part before one begins, NULL where there is none. */
static const char *part_before(const char *path, const char *part) {
    const char *end = part;
    while (end > path && end[-1] == '/') end--;
    if (end == path) return NULL;
    while (end > path && end[-1] != '/') end--;
    return end;
}

const char *qkv_path_snapshot(const char *path) {
    static const char above[] = "snapshots/", folder[] = "models--";
    const char *part = part_before(path, qkv_path_base(path));
    if (!part || strncmp(part, above, sizeof above - 1) != 0) return NULL;
    part = part_before(path, part);
    return part && strncmp(part, folder, sizeof folder - 1) == 0 ? part : NULL;
}

const char *qkv_path_model(const char *path) {
    const char *snapshot = qkv_path_snapshot(path);
    return snapshot ? snapshot : qkv_path_base(path);
}

const char *qkv_path_pulled(const char *path, size_t *length) {
    static const char above[] = "models/", suffix[] = ".gguf";
    const char *file = qkv_path_base(path), *folder = part_before(path, file);
    const char *models = folder ? part_before(path, folder) : NULL;
    if (!models || strncmp(models, above, sizeof above - 1) != 0) return NULL;
    *length = strcspn(folder, "/");
    return strncmp(file, folder, *length) == 0 && strcmp(file + *length, suffix) == 0 ? folder
                                                                                      : NULL;
}

void qkv_text_append_model(qkv_text *text, const char *name, const char *path,
                           const char *weights) {
    enum { MOST = 80 }; /* characters: more is not a name, and would push the rest off the page */
    const char *file = qkv_path_base(path);
    const size_t length = strlen(name);
    const int begins = length && strncmp(name, file, length) == 0;
    /* A directory's name is the model's: once is enough, also with a slash after it. */
    const int same = begins && (!file[length] || file[length] == '/');
    const int is_file = begins && strcmp(file + length, ".gguf") == 0;
    const int two = length && !same && !is_file;
    if (two || is_file) qkv_text_append_short(text, name, length, MOST);
    if (two) qkv_text_puts(text, " (");
    if (!is_file) qkv_text_append_short(text, file, strlen(file), MOST);
    if (two) qkv_text_puts(text, ")");
    if (weights[0]) qkv_text_printf(text, ", %s", weights);
}

const char *qkv_path_suffix(const char *path) {
    const char *dot = strrchr(path, '.');
    return dot && !strchr(dot, '/') ? dot + 1 : "";
}
