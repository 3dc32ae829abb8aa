/*
 * Finds the model that is meant, and what comes with the program: the default model, the recipes. A
 * program that lies in its build tree uses the source tree's; an installed one uses what was
 * installed with it, also when the build tree is still there.
 */
#define _POSIX_C_SOURCE 200809L
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/number.h"
#include "cli/inputs.h"
#include "cli/messages.h"

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
static char *try_candidate(const char *base, const char *below, const char *name,
                           qkv_text *looked) {
    qkv_text path = {0};
    qkv_text_printf(&path, "%s%s/%s", base, below, name);
    if (!path.failed && access(path.data, R_OK) == 0) return path.data;
    looked->failed |= path.failed;
    if (!path.failed) qkv_text_printf(looked, "%s%s", looked->length ? ", " : "", path.data);
    qkv_text_release(&path);
    return NULL;
}

/* `source` is its folder in the source tree, `installed` its folder below share/qkv. */
static char *find_file(const char *source, const char *installed, const char *name,
                       qkv_text *looked) {
    char program[PATH_SIZE], shared[64], beside[64];
    program_directory(program);
    snprintf(shared, sizeof shared, "/../share/qkv%s", installed);
    snprintf(beside, sizeof beside, "/..%s", source);
    const int building = in_build_tree(program);
    const struct {
        const char *base, *below;
    } places[] = {{building ? QKV_SOURCE_DIR : NULL, source},
                  {program[0] ? program : NULL, shared},
                  {program[0] ? program : NULL, beside},
                  {QKV_DATA_DIR_INSTALLED, installed},
                  {building ? NULL : QKV_SOURCE_DIR, source}};
    char *found = NULL;
    for (size_t i = 0; i < sizeof places / sizeof *places && !found; i++) {
        if (places[i].base) found = try_candidate(places[i].base, places[i].below, name, looked);
    }
    return found;
}

int cli_default_model(char **out, qkv_error *err) {
    qkv_text looked = {0};
    *out = find_file("/models", "", DEFAULT_MODEL, &looked);
    int status = QKV_OK;
    if (looked.failed) {
        status = qkv_fail_memory(err);
    } else if (!*out) {
        status =
            qkv_fail(err, QKV_ERR_IO,
                     "no model: give one with -m or QKV_MODEL; the default was looked for at %s",
                     looked.data ? looked.data : "no place");
    }
    qkv_text_release(&looked);
    return status;
}

int cli_recipe_find(char **out, const char *name, qkv_error *err) {
    qkv_text looked = {0};
    *out = find_file("/recipes", "/recipes", name, &looked);
    int status = QKV_OK;
    if (looked.failed) {
        status = qkv_fail_memory(err);
    } else if (!*out) {
        status = qkv_fail(err, QKV_ERR_IO, "there is no recipe file %s; it was looked for at %s",
                          name, looked.data ? looked.data : "no place");
    }
    qkv_text_release(&looked);
    return status;
}

int cli_model_find(qkv_model_place **out, const char *given, qkv_error *err) {
    *out = NULL;
    const char *named = given ? given : getenv("QKV_MODEL");
    if (named && (given || named[0])) return qkv_model_find(out, named, err);
    char *found = NULL;
    int status = cli_default_model(&found, err);
    if (status == QKV_OK) status = qkv_model_find(out, found, err);
    free(found);
    return status;
}

static void tell_model(const qkv_model *model, double seconds) {
    const qkv_model_info *info = qkv_model_get_info(model);
    char size[QKV_BYTES_SIZE];
    cli_detail("model %s: %s, %d layers, %d heads, %s, opened in %.3g s", info->path,
               info->architecture, (int)info->n_layer, (int)info->n_head,
               qkv_format_bytes(size, info->file_size), seconds);
}

/* Opens a model and says what there is to know about it. */
static int open_path(qkv_model **out, const char *path, qkv_error *err) {
    const double start = cli_seconds();
    const int status = qkv_model_open(out, path, err);
    if (status == QKV_OK) tell_model(*out, cli_seconds() - start);
    const char *notice;
    for (size_t i = 0; status == QKV_OK && (notice = qkv_model_notice(*out, i)); i++)
        cli_warn("%s", notice);
    return status;
}

int cli_model_open(qkv_model **out, const char *given, qkv_error *err) {
    qkv_model_place *place = NULL;
    *out = NULL;
    int status = cli_model_find(&place, given, err);
    if (status == QKV_OK) status = open_path(out, qkv_model_place_get_info(place)->path, err);
    qkv_model_place_free(place);
    return status;
}
