/*
 * Ends the program with an error when one piece of work takes minutes that should take a moment: a
 * guard against quadratic time and endless loops, no measure of speed (bench/ is). Limits are so
 * generous that neither load nor sanitizers reach them.
 */
#ifndef QKV_TESTS_TIME_LIMIT_H
#define QKV_TESTS_TIME_LIMIT_H

/* `what` is printed when the time is up; only its first 100 bytes are. */
void time_limit_begin(unsigned seconds, const char *what);
void time_limit_end(void);

#endif
