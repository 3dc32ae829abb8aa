#define _POSIX_C_SOURCE 200809L
#include "base/forked.h"

#include <unistd.h>

static pid_t loaded_by;

/* When the library is loaded: the program that uses OpenMP before a fork may be the host. */
__attribute__((constructor)) static void note_process(void) {
    loaded_by = getpid();
}

int qkv_is_forked(void) {
    return getpid() != loaded_by;
}
