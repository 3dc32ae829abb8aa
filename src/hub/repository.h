/*
 * A repository in Hugging Face's cache: its branches and tags (refs/), each a file with a commit in
 * it, and the commits whose files are there (snapshots/). What a file of refs/ says is not believed
 * unless it could be the name of a folder of snapshots/.
 */
#ifndef QKV_HUB_REPOSITORY_H
#define QKV_HUB_REPOSITORY_H

#include "base/text.h"

typedef struct qkv_ref {
    char *name;   /* "main", "pr/1" */
    char *commit; /* NULL where the file holds none */
} qkv_ref;

typedef struct qkv_repository {
    char *name;   /* "org/name" */
    char *folder; /* in the cache */
    qkv_ref *refs;
    size_t n_refs, refs_capacity;
    char **commits; /* the folders of snapshots/; both are sorted */
    size_t n_commits, commits_capacity;
} qkv_repository;

/* A repository that is not there has neither refs nor commits. Release it also after a failure. */
int qkv_repository_read(qkv_repository *repository, const char *name, qkv_error *err);
void qkv_repository_release(qkv_repository *repository);

/*
 * The commit, borrowed, that a revision is, as Hugging Face's tools decide it without a network: what
 * refs/REVISION says, else the snapshot of that name; and commits may be shortened, to no less than 7
 * digits. Its snapshot is there. Fails with a line about `model`, what the user calls it.
 */
int qkv_repository_find(const char **commit, const qkv_repository *repository, const char *revision,
                        const char *model, qkv_error *err);

/* The path of a commit's files. */
void qkv_repository_append_snapshot(qkv_text *path, const qkv_repository *repository,
                                    const char *commit);

#endif
