/* How far a command is, on standard error. See progress.c. */
#ifndef QKV_CLI_PROGRESS_H
#define QKV_CLI_PROGRESS_H

enum { CLI_DURATION_SIZE = 32 };

/* "3 min 20 s". */
void cli_duration(char out[CLI_DURATION_SIZE], double seconds);

/* Which command it is. */
void cli_progress_name(const char *command);
/* The command says itself when it is done. */
void cli_progress_end_is_told(void);
/* `done` of `total`. The first call is the beginning of some work, one with all of it its end. The
 * callback of sessions (cli_progress) does that. */
void cli_progress_show(const char *what, double done, double total);
/* Leaves the terminal's line for what is said next. */
void cli_progress_clear(void);
/* Shows nothing from now on: the terminal belongs to what the command writes. */
void cli_progress_off(void);

#endif
