/*
 * What a template may use: steps, time, stack, bytes of text, items of lists.
 *
 * One budget per rendering, which has a thread of its own. Everything that is spent goes through
 * these functions; they throw `limit` when it is too much.
 */
#ifndef QKV_CHAT_JINJA_BUDGET_H
#define QKV_CHAT_JINJA_BUDGET_H

#include <cstdint>
#include <ctime>
#include <stdexcept>
#include <string>

#include "jinja/runtime.h"

namespace qkv_chat {

struct limit : std::runtime_error {
    using std::runtime_error::runtime_error;
};

struct budget {
    const char *stack = nullptr; /* where it begins; it grows downwards */
    size_t steps = 0;
    size_t bytes = 0;
    size_t links = 0; /* lists and dictionaries put into others that exist already */
    std::tm date{};
    std::string failure; /* the first failure, as one line; the engine writes its own around it */
};

/* Nanoseconds of processor time that this thread has taken, and the check that as many more are left. */
int64_t time_spent();
void foresee_time(int64_t more);

/* The budget of this thread. */
budget &spent();

/* Throws limit, or the template's own error. */
[[noreturn]] void fail_limit(const std::string &what);
[[noreturn]] void fail(const std::string &what);

/* One more node of the template was executed; `cost` more of them. */
void step(size_t cost = 1);
/* Text was copied. */
void spend_bytes(size_t bytes);
void spend_text(const jinja::string &text);
/* A list of so many items is made or gone through. */
void spend_items(size_t items);
/* The value with all that is in it is gone through. */
void spend_tree(const jinja::value &value);
/* `into` got the value: it must not be within itself, nor too deep. */
void check_link(const jinja::value_t *into, const jinja::value &value);

} // namespace qkv_chat

#endif
