#define _POSIX_C_SOURCE 200809L
#include "hub/package.h"

#include <dirent.h>
#include <string.h>

#include "hub/program.h"

/* ---- what went wrong ---- */

/* Lines of npm's that only its authors understand. */
static int is_noise(const char *line, size_t length) {
    static const char *const noise[] = {"code ", "syscall ", "errno ", "path ",
                                        "A complete log of"};
    for (size_t i = 0; i < sizeof noise / sizeof *noise; i++) {
        const size_t n = strlen(noise[i]);
        if (length >= n && strncmp(line, noise[i], n) == 0) return 1;
    }
    return length == 0;
}

/* After "npm error " or, before version 10, "npm ERR! "; NULL: it is not such a line. */
static const char *message_of(const char *line) {
    static const char *const marks[] = {"npm error", "npm ERR!"};
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++) {
        const size_t n = strlen(marks[i]);
        if (strncmp(line, marks[i], n) == 0) return line + n + strspn(line + n, " ");
    }
    return NULL;
}

/* npm's first line with a reason; else, when it ended otherwise, the last line there is. */
static void append_reason(qkv_text *out, const char *errors) {
    const char *last = NULL;
    size_t last_length = 0;
    for (const char *line = errors; *line;) {
        const size_t length = strcspn(line, "\n");
        const char *message = message_of(line);
        const size_t rest = message ? length - (size_t)(message - line) : 0;
        if (message && message <= line + length && !is_noise(message, rest)) {
            qkv_text_append_short(out, message, rest, 300);
            return;
        }
        if (length > 0 && !message) {
            last = line;
            last_length = length;
        }
        line += length + (line[length] == '\n');
    }
    if (last) qkv_text_append_short(out, last, last_length, 300);
}

static int fail_npm(const qkv_program *npm, const char *package, qkv_error *err) {
    qkv_text reason = {0};
    append_reason(&reason, npm->errors.data ? npm->errors.data : "");
    const int status =
        reason.failed || !reason.data
            ? qkv_fail(err, QKV_ERR_IO, "npm could not fetch %s: it ended with status %d", package,
                       npm->code)
            : qkv_fail(err, QKV_ERR_IO, "npm could not fetch %s: %s", package, reason.data);
    qkv_text_release(&reason);
    return status;
}

/* ---- what it left ---- */

static int find_archive(qkv_text *archive, const char *package, const char *folder,
                        qkv_error *err) {
    DIR *directory = opendir(folder);
    size_t found = 0;
    for (const struct dirent *entry; directory && (entry = readdir(directory)) != NULL;) {
        const char *dot = strrchr(entry->d_name, '.');
        if (!dot || strcmp(dot, ".tgz") != 0 || found++) continue;
        qkv_text_printf(archive, "%s/%s", folder, entry->d_name);
    }
    if (directory) closedir(directory);
    if (archive->failed) return qkv_fail_memory(err);
    if (found == 1) return QKV_OK;
    return qkv_fail(err, QKV_ERR_IO, "npm left %s for %s",
                    found ? "more than one archive" : "no archive", package);
}

int qkv_npm_fetch(qkv_text *archive, const char *package, const char *folder, qkv_steps *steps,
                  qkv_error *err) {
    const char *const argv[] = {
        "npm",   "pack", "--loglevel=error", "--ignore-scripts", "--pack-destination", folder,
        package, NULL};
    qkv_program npm = {.argv = argv, .steps = steps};
    int missing = 0;
    int status = qkv_program_run(&npm, &missing, err);
    if (missing)
        status = qkv_fail(err, QKV_ERR_IO,
                          "npm is not installed, which fetches %s (on Debian: apt install npm)",
                          package);
    if (status == QKV_OK && npm.code != 0) status = fail_npm(&npm, package, err);
    if (status == QKV_OK) status = find_archive(archive, package, folder, err);
    qkv_text_release(&npm.errors);
    return status;
}
