/*
 * A directory of its own for tests that need folders and links; the working directory while they run.
 */
#ifndef QKV_TESTS_TREE_H
#define QKV_TESTS_TREE_H

/* Setup and teardown of a cmocka group: the second removes everything. */
int tree_enter(void **state);
int tree_leave(void **state);

/* Its path. */
const char *tree_path(void);

/* Each makes the folders above as well; paths are seen from the directory. */
void tree_write(const char *path, const char *text);
void tree_link(const char *path, const char *target);
void tree_remove(const char *path);

#endif
