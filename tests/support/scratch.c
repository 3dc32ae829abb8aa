/* The directory is made at first use. It is flat: tests put files into it, never directories. */
#define _POSIX_C_SOURCE 200809L

#include "support/scratch.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PATH_SIZE = 512, PATHS = 16 };

static char directory[PATH_SIZE / 2];

static void scratch_make(void) {
    const char *base = getenv("TMPDIR");
    snprintf(directory, sizeof directory, "%s/qkv-test-XXXXXX", base ? base : "/tmp");
    if (!mkdtemp(directory)) {
        perror(directory);
        abort();
    }
}

const char *scratch_path(const char *name) {
    static char paths[PATHS][PATH_SIZE];
    static unsigned next;
    if (directory[0] == '\0') scratch_make();
    char *path = paths[next++ % PATHS];
    snprintf(path, PATH_SIZE, "%s/%.200s", directory, name);
    return path;
}

const char *scratch_write(const char *name, const void *data, size_t size) {
    const char *path = scratch_path(name);
    FILE *file = fopen(path, "wb");
    if (!file || fwrite(data, 1, size, file) != size || fclose(file) != 0) {
        perror(path);
        abort();
    }
    return path;
}

void scratch_remove(void) {
    if (directory[0] == '\0') return;
    DIR *dir = opendir(directory);
    for (struct dirent *entry = NULL; dir && (entry = readdir(dir));) {
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            unlink(scratch_path(entry->d_name));
    }
    if (dir) closedir(dir);
    rmdir(directory);
    directory[0] = '\0';
}

int scratch_clean(void **state) {
    (void)state;
    scratch_remove();
    return 0;
}
