/*
 * Is this process a copy, made by fork, of the one that loaded the library?
 *
 * fork copies the calling thread alone. OpenMP does not know that the threads of its team are gone,
 * and would wait for them for ever. So everything that uses a team asks here, and a copy computes
 * with one thread. This also suits those who fork one process for each core.
 */
#ifndef QKV_BASE_FORKED_H
#define QKV_BASE_FORKED_H

int qkv_is_forked(void);

#endif
