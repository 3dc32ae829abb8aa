/* Temporary files and the list of them. See temporary.h. */
#define _DEFAULT_SOURCE /* getentropy */
#include "base/temporary.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/fail.h"
#include "base/text.h"

enum { SLOTS = 32, TRIES = 100, RANDOM = sizeof "XXXXXX" - 1, LONGEST_NAME = 255 };

/* ---- the list ---- */

/* A slot is written while no thread reads it: FREE -> FILLING -> LISTED -> FREE, each step one atomic
 * exchange. A handler takes LISTED -> REMOVING and never gives the slot back: the process ends. */
enum { FREE, FILLING, LISTED, REMOVING };

typedef struct slot {
    atomic_int state;
    pid_t owner; /* a fork's child must not remove what its parent writes */
    char name[PATH_MAX];
} slot;

static slot list[SLOTS];

static int change(slot *s, int from, int to) {
    return atomic_compare_exchange_strong(&s->state, &from, to);
}

int qkv_temporary_note(const char *name) {
    const size_t size = strlen(name) + 1;
    if (size > PATH_MAX) return -1;
    for (int i = 0; i < SLOTS; i++) {
        if (!change(&list[i], FREE, FILLING)) continue;
        memcpy(list[i].name, name, size);
        list[i].owner = getpid();
        atomic_store(&list[i].state, LISTED);
        return i;
    }
    return -1;
}

void qkv_temporary_forget(int at) {
    if (at >= 0) change(&list[at], LISTED, FREE);
}

void qkv_temporaries_remove(void) {
    const int code = errno;
    for (int i = 0; i < SLOTS; i++) {
        if (!change(&list[i], LISTED, REMOVING)) continue;
        if (list[i].owner == getpid()) unlink(list[i].name);
    }
    /* Directories, which are empty now. */
    for (int i = 0; i < SLOTS; i++) {
        if (atomic_load(&list[i].state) == REMOVING && list[i].owner == getpid())
            rmdir(list[i].name);
    }
    errno = code;
}

/* ---- files ---- */

static uint64_t random_bits(void) {
    uint64_t bits;
    struct timespec now;
    if (getentropy(&bits, sizeof bits) == 0) return bits;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_nsec << 20 ^ (uint64_t)getpid();
}

static void fill_random(char *out) {
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
    uint64_t bits = random_bits();
    for (int i = 0; i < RANDOM; i++, bits /= sizeof letters - 1)
        out[i] = letters[bits % (sizeof letters - 1)];
}

/* PATH.XXXXXX, its last part cut where it would be longer than a name may be. */
static char *name_for(const char *path) {
    const char *slash = strrchr(path, '/');
    const size_t head = slash ? (size_t)(slash + 1 - path) : 0, tail = strlen(path + head);
    const size_t most = LONGEST_NAME - RANDOM - 1, length = head + (tail < most ? tail : most);
    char *name = malloc(length + 1 + RANDOM + 1);
    if (!name) return NULL;
    memcpy(name, path, length);
    memcpy(name + length, ".XXXXXX", 1 + RANDOM + 1);
    return name;
}

static void forget(qkv_temporary *temporary) {
    const int code = errno;
    qkv_temporary_forget(temporary->slot);
    free(temporary->name);
    *temporary = (qkv_temporary){NULL, -1};
    errno = code;
}

int qkv_temporary_create(qkv_temporary *temporary, const char *path, mode_t mode) {
    *temporary = (qkv_temporary){name_for(path), -1};
    if (!temporary->name) return errno = ENOMEM, -1;
    char *random = temporary->name + strlen(temporary->name) - RANDOM;
    for (int i = 0; i < TRIES; i++) {
        fill_random(random);
        temporary->slot = qkv_temporary_note(temporary->name);
        const int fd = open(temporary->name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
        if (fd >= 0) return fd;
        qkv_temporary_forget(temporary->slot);
        temporary->slot = -1;
        if (errno != EEXIST) break;
    }
    forget(temporary);
    return -1;
}

int qkv_temporary_rename(qkv_temporary *temporary, const char *target) {
    if (rename(temporary->name, target) != 0) return -1;
    forget(temporary);
    return 0;
}

void qkv_temporary_remove(qkv_temporary *temporary) {
    if (!temporary->name) return;
    unlink(temporary->name);
    forget(temporary);
}

/* ---- scratch files ---- */

int qkv_scratch_make(qkv_scratch *made, const char *name, qkv_error *err) {
    const char *given = getenv("TMPDIR"), *directory = given && given[0] ? given : "/tmp";
    static const char *const suffixes[] = {"-wal", "-shm"};
    qkv_text path = {0};
    qkv_text_printf(&path, "%s/%s", directory, name);
    const int file = path.failed ? -1 : qkv_temporary_create(&made->file, path.data, 0600);
    qkv_text_release(&path);
    if (file < 0)
        return qkv_fail(err, QKV_ERR_IO, "cannot make a file in %s: %s", directory,
                        strerror(errno));
    close(file);
    for (int i = 0; i < 2; i++) {
        qkv_text beside = {0};
        qkv_text_printf(&beside, "%s%s", made->file.name, suffixes[i]);
        made->beside[i] = beside.failed ? -1 : qkv_temporary_note(beside.data);
        qkv_text_release(&beside);
    }
    return QKV_OK;
}

void qkv_scratch_remove(qkv_scratch *made) {
    if (!made->file.name) return;
    for (int i = 0; i < 2; i++) qkv_temporary_forget(made->beside[i]);
    qkv_temporary_remove(&made->file);
}
