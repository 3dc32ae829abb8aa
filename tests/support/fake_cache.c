#define _XOPEN_SOURCE 700
#include "support/fake_cache.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "qkv/hub.h"
#include "support/scratch.h"
#include "support/tree.h"

int cache_enter(void **state) {
    static const char *const names[] = {"HF_HOME", "HUGGINGFACE_HUB_CACHE", "XDG_CACHE_HOME"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) unsetenv(names[i]);
    setenv("HF_HUB_CACHE", "hub", 1);
    setenv("QKV_CACHE", "own", 1);
    return tree_enter(state);
}

int cache_leave(void **state) {
    scratch_remove();
    return tree_leave(state);
}

void cache_add_file(const char *folder, const char *commit, const char *file, const char *text) {
    static int n;
    char link[512], blob[512], target[600] = "../../";
    snprintf(link, sizeof link, "hub/%s/snapshots/%s/%s", folder, commit, file);
    for (const char *slash = strchr(file, '/'); slash; slash = strchr(slash + 1, '/'))
        strcat(target, "../");
    snprintf(blob, sizeof blob, "blobs/%d", ++n);
    strcat(target, blob);
    tree_link(link, target);
    snprintf(blob, sizeof blob, "hub/%s/blobs/%d", folder, n);
    if (text) tree_write(blob, text);
}

void cache_add_ref(const char *folder, const char *name, const char *commit) {
    char path[512];
    snprintf(path, sizeof path, "hub/%s/refs/%s", folder, name);
    tree_write(path, commit);
}

int cache_empty(void **state) {
    (void)state;
    tree_remove("hub");
    tree_remove("own");
    return 0;
}

char *cache_find_path(const char *name, qkv_error *err) {
    qkv_model_place *place = NULL;
    *err = (qkv_error){0};
    if (qkv_model_find(&place, name, err) != QKV_OK) {
        assert_null(place);
        return NULL;
    }
    char *path = strdup(qkv_model_place_get_info(place)->path);
    assert_string_equal(qkv_model_place_get_info(place)->name, name);
    qkv_model_place_free(place);
    return path;
}

void cache_expect_found(const char *name, const char *wanted) {
    qkv_error err;
    char *path = cache_find_path(name, &err);
    if (!path) fail_msg("%s: %s", name, err.message);
    assert_string_equal(path, wanted);
    free(path);
}

void cache_expect_refused(const char *name, const char *const *words) {
    qkv_error err;
    char *path = cache_find_path(name, &err);
    if (path) fail_msg("%s is %s", name, path);
    assert_null(strchr(err.message, '\n'));
    for (; *words; words++) {
        if (!strstr(err.message, *words)) fail_msg("'%s' does not say '%s'", err.message, *words);
    }
}

void cache_add_directory(const char *folder, const char *commit) {
    cache_add_file(folder, commit, "config.json", "{}");
    cache_add_file(folder, commit, "model.safetensors", "weights");
}
