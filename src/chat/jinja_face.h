/*
 * A chat template applied to a conversation: the C face of llama.cpp's Jinja engine.
 *
 * Templates are programs that come with files of models, so what they may use is bounded: steps,
 * depth, time, the size of texts and lists. They reach no files and nothing of the process but the
 * date they are given. No exception leaves this face.
 *
 * Each piece of the output says whether it is the template's own or was put in from the
 * conversation (jinja_text.h says how this is kept through Python's string methods).
 */
#ifndef QKV_CHAT_JINJA_FACE_H
#define QKV_CHAT_JINJA_FACE_H

#include <stddef.h>
#include <time.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct qkv_jinja_message {
    const char *role, *text;
} qkv_jinja_message;

/* A variable of the template, such as bos_token. */
typedef struct qkv_jinja_name {
    const char *name, *text;
} qkv_jinja_name;

typedef struct qkv_jinja_input {
    const char *source; /* the template */
    size_t length;
    const qkv_jinja_message *messages;
    size_t n_messages;
    const qkv_jinja_name *names;
    size_t n_names;
    int add_generation_prompt;
    struct tm date;
} qkv_jinja_input;

enum qkv_jinja_status {
    QKV_JINJA_OK,
    QKV_JINJA_FAILED, /* the template is wrong, refuses the conversation, or goes beyond a limit */
    QKV_JINJA_MEMORY
};

enum { QKV_JINJA_MESSAGE = 400, QKV_JINJA_MAX_SOURCE = 1 << 20 };

/* Takes a piece of the output; from_outside: it came from a message. Returns 0 when memory ran
 * short. */
typedef int qkv_jinja_sink(void *user, const char *text, size_t length, int from_outside);

/* `message` gets one line unless it is QKV_JINJA_OK. The template runs in a thread of its own, whose
 * stack has a known size, while the caller waits. */
enum qkv_jinja_status qkv_jinja_render(const qkv_jinja_input *input, qkv_jinja_sink *sink,
                                       void *user, char message[QKV_JINJA_MESSAGE]);

#ifdef __cplusplus
}
#endif

#endif
