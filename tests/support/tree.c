#define _XOPEN_SOURCE 700
#include "support/tree.h"

#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char directory[PATH_MAX / 2];

int tree_enter(void **state) {
    (void)state;
    const char *base = getenv("TMPDIR");
    snprintf(directory, sizeof directory, "%s/qkv-tree-XXXXXX", base ? base : "/tmp");
    return mkdtemp(directory) && chdir(directory) == 0 ? 0 : -1;
}

static int remove_one(const char *path, const struct stat *facts, int kind, struct FTW *where) {
    (void)facts;
    (void)kind;
    (void)where;
    return remove(path);
}

void tree_remove(const char *path) {
    nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

int tree_leave(void **state) {
    (void)state;
    tree_remove(directory);
    return chdir("/");
}

const char *tree_path(void) {
    return directory;
}

static void make_folders(const char *path) {
    char folder[PATH_MAX];
    for (const char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/')) {
        snprintf(folder, sizeof folder, "%.*s", (int)(slash - path), path);
        mkdir(folder, 0777);
    }
}

static void must(int ok, const char *path) {
    if (ok) return;
    perror(path);
    abort();
}

void tree_write(const char *path, const char *text) {
    make_folders(path);
    FILE *file = fopen(path, "wb");
    must(file && fputs(text, file) >= 0 && fclose(file) == 0, path);
}

void tree_link(const char *path, const char *target) {
    make_folders(path);
    unlink(path);
    must(symlink(target, path) == 0, path);
}
