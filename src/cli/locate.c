/*
 * Finds the default model. A program that lies in its build tree uses the source tree's model; an
 * installed one uses what was installed with it, also when the build tree is still there.
 */
#define _POSIX_C_SOURCE 200809L
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "cli/inputs.h"

#define DEFAULT_MODEL "default.gguf"

enum { PATH_SIZE = 4096 };

/* The directory the program lies in, "" where the system does not tell. */
static void program_directory(char out[PATH_SIZE]) {
    const ssize_t n = readlink("/proc/self/exe", out, PATH_SIZE - 1);
    out[n > 0 ? n : 0] = '\0';
    char *slash = strrchr(out, '/');
    if (slash) *slash = '\0';
}

static int in_build_tree(const char *directory) {
    char marker[PATH_SIZE + 32];
    snprintf(marker, sizeof marker, "%s/CMakeCache.txt", directory);
    return directory[0] && access(marker, F_OK) == 0;
}

/* Takes the first candidate that is there; else adds it to the places looked at. */
static char *try_candidate(const char *base, const char *below, qkv_text *looked) {
    qkv_text path = {0};
    qkv_text_printf(&path, "%s%s/" DEFAULT_MODEL, base, below);
    if (!path.failed && access(path.data, R_OK) == 0) return path.data;
    if (!path.failed) qkv_text_printf(looked, "%s%s", looked->length ? ", " : "", path.data);
    qkv_text_release(&path);
    return NULL;
}

static int find_default(char **out, qkv_error *err) {
    char program[PATH_SIZE];
    program_directory(program);
    const int building = in_build_tree(program);
    const struct {
        const char *base, *below;
    } places[] = {{building ? QKV_MODEL_DIR_BUILD : NULL, ""},
                  {program[0] ? program : NULL, "/../share/qkv"},
                  {program[0] ? program : NULL, "/../models"},
                  {QKV_MODEL_DIR_INSTALLED, ""},
                  {building ? NULL : QKV_MODEL_DIR_BUILD, ""}};
    qkv_text looked = {0};
    *out = NULL;
    for (size_t i = 0; i < sizeof places / sizeof *places && !*out; i++) {
        if (places[i].base) *out = try_candidate(places[i].base, places[i].below, &looked);
    }
    int status = QKV_OK;
    if (!*out) {
        status =
            qkv_fail(err, QKV_ERR_IO,
                     "no model: give one with -m or QKV_MODEL; the default was looked for at %s",
                     looked.data ? looked.data : "no place");
    }
    qkv_text_release(&looked);
    return status;
}

int cli_model_open(qkv_model **out, const char *path, qkv_error *err) {
    *out = NULL;
    const char *named = path ? path : getenv("QKV_MODEL");
    if (named && (path || named[0])) return qkv_model_open(out, named, err);
    char *found = NULL;
    int status = find_default(&found, err);
    if (status == QKV_OK) status = qkv_model_open(out, found, err);
    free(found);
    return status;
}
