/*
 * Runs a fuzzer over files and directories of files that are there already: its corpus, where
 * inputs that once broke something stay. Needs no libFuzzer, so that every build can do it.
 */
#define _POSIX_C_SOURCE 200809L

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/text.h"
#include "harness.h"
#include "mutators.h"

enum { LARGEST = 1 << 20 };

/* Mutators of fuzzers want it; here nothing is mutated. */
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size) {
    (void)data;
    (void)max_size;
    return size;
}

static int replay_file(const char *path) {
    char *data = NULL;
    size_t size = 0;
    qkv_error err = {0};
    if (qkv_read_file(&data, &size, path, LARGEST, &err) != QKV_OK) {
        fprintf(stderr, "%s\n", err.message);
        return 0;
    }
    /* The exact size, so that a sanitizer sees a read past the end. */
    uint8_t *input = malloc(size ? size : 1);
    if (!input) abort();
    memcpy(input, data, size);
    free(data);
    fprintf(stderr, "%s\n", path); /* the last line, should it crash */
    LLVMFuzzerTestOneInput(input, size);
    free(input);
    return 1;
}

/* How many files were run, or -1. */
static int replay_directory(const char *path) {
    struct dirent **entries = NULL;
    int count = 0, n = scandir(path, &entries, NULL, alphasort);
    if (n < 0) perror(path);
    for (int i = 0; i < n; i++) {
        qkv_text name = {0};
        qkv_text_printf(&name, "%s/%s", path, entries[i]->d_name);
        if (name.failed) abort();
        if (entries[i]->d_name[0] != '.' && count >= 0)
            count = replay_file(name.data) ? count + 1 : -1;
        qkv_text_release(&name);
        free(entries[i]);
    }
    free(entries);
    return n < 0 ? -1 : count;
}

int main(int argc, char **argv) {
    int total = 0;
    for (int i = 1; i < argc; i++) {
        struct stat st;
        int is_directory = stat(argv[i], &st) == 0 && S_ISDIR(st.st_mode);
        int count = is_directory ? replay_directory(argv[i]) : replay_file(argv[i]);
        if (count < 0 || (!is_directory && count == 0)) return 1;
        total += count;
    }
    if (total == 0) {
        fprintf(stderr, "no input was run\n");
        return 1;
    }
    printf("%d inputs\n", total);
    return 0;
}
