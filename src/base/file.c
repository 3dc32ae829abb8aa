/* Read-only mappings and outputs that appear whole or not at all. */
#define _XOPEN_SOURCE 700 /* realpath */
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"

static int fail_output(qkv_error *err, const char *path, int code) {
    return qkv_fail(err, QKV_ERR_IO, "cannot write %s: %s", path, strerror(code));
}

static int exists_irregular(const char *path) {
    struct stat st;
    return stat(path, &st) == 0 && !S_ISREG(st.st_mode);
}

/* The file that a path leads to, through links, so that a link stays one. */
static char *resolve(const char *path) {
    char *target = realpath(path, NULL);
    return target || errno == ENOMEM ? target : qkv_strdup(path); /* not there yet */
}

/* Creates NAME.XXXXXX beside the target with the permissions an ordinary new file would get. */
static FILE *create_beside(const char *path, char **temporary) {
    size_t size = strlen(path) + sizeof ".XXXXXX";
    char *name = malloc(size);
    if (!name) return NULL;
    snprintf(name, size, "%s.XXXXXX", path);
    int fd = mkstemp(name);
    FILE *stream = NULL;
    if (fd >= 0) {
        mode_t mask = umask(0);
        umask(mask);
        if (fchmod(fd, 0666 & ~mask) == 0) stream = fdopen(fd, "wb");
    }
    if (!stream) {
        int code = errno;
        if (fd >= 0) {
            close(fd);
            unlink(name);
        }
        free(name);
        errno = code;
        return NULL;
    }
    *temporary = name;
    return stream;
}

int qkv_output_open(qkv_output *out, const char *path, qkv_error *err) {
    *out = (qkv_output){0};
    struct stat st;
    if (stat(path, &st) == 0 && S_ISDIR(st.st_mode)) return fail_output(err, path, EISDIR);
    out->path = qkv_strdup(path);
    out->target = resolve(path);
    if (!out->path || !out->target) {
        qkv_output_abandon(out);
        return qkv_fail_memory(err);
    }
    errno = 0;
    out->stream =
        exists_irregular(path) ? fopen(path, "wb") : create_beside(out->target, &out->temporary);
    if (!out->stream) {
        int code = errno ? errno : ENOMEM;
        qkv_output_abandon(out);
        return fail_output(err, path, code);
    }
    return QKV_OK;
}

static void release(qkv_output *out) {
    free(out->temporary);
    free(out->target);
    free(out->path);
    *out = (qkv_output){0};
}

int qkv_output_finish(qkv_output *out, qkv_error *err) {
    /* An earlier write may have failed already: what it left in errno is the reason. */
    int code = ferror(out->stream) ? (errno ? errno : EIO) : 0;
    errno = 0;
    if (fflush(out->stream) != 0 && !code) code = errno ? errno : EIO;
    if (fclose(out->stream) != 0 && !code) code = errno;
    out->stream = NULL;
    if (!code && out->temporary && rename(out->temporary, out->target) != 0) code = errno;
    if (code) {
        int status = fail_output(err, out->path, code);
        qkv_output_abandon(out);
        return status;
    }
    release(out);
    return QKV_OK;
}

void qkv_output_abandon(qkv_output *out) {
    if (out->stream) fclose(out->stream);
    if (out->temporary) unlink(out->temporary);
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
        struct stat st;
        if (stat(path, &st) == 0 && S_ISDIR(st.st_mode)) return fail_output(err, path, EISDIR);
        return access(path, W_OK) == 0 ? QKV_OK : fail_output(err, path, errno);
    }
    qkv_output out;
    int status = qkv_output_open(&out, path, err);
    if (status == QKV_OK) qkv_output_abandon(&out);
    return status;
}

int qkv_mapping_open(qkv_mapping *map, const char *path, qkv_error *err) {
    *map = (qkv_mapping){0};
    /* Without O_NONBLOCK, opening a pipe would wait for somebody to write into it. */
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

const char *qkv_path_name(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

void qkv_text_append_model(qkv_text *text, const char *name, const char *path) {
    const char *file = qkv_path_name(path);
    if (name[0]) {
        qkv_text_append_visible(text, name, strlen(name));
        qkv_text_puts(text, " (");
    }
    qkv_text_append_visible(text, file, strlen(file));
    if (name[0]) qkv_text_puts(text, ")");
}

const char *qkv_path_suffix(const char *path) {
    const char *dot = strrchr(path, '.');
    return dot && !strchr(dot, '/') ? dot + 1 : "";
}
