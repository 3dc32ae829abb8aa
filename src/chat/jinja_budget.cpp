#include "chat/jinja_budget.h"

#include <cstdint>
#include <ctime>
#include <unordered_set>

namespace qkv_chat {

namespace {

/* A step takes about a microsecond. Published templates take some hundred steps a message. */
constexpr size_t max_steps = 500000;
/* Of this thread's processor time. What was made must be freed, too, which takes half as long:
 * together with loading a model and on a busy machine it should still be over within a second. */
constexpr long max_milliseconds = 250;
constexpr size_t max_stack = 12u << 20;
constexpr size_t max_text = 8u << 20;
constexpr size_t max_bytes = 128u << 20; /* copied, all together */
constexpr size_t max_items = 100000;     /* of a list; as range() in Jinja's sandbox */
constexpr size_t max_tree = 100000;
constexpr size_t max_depth = 100;
constexpr size_t max_links = 1000;
constexpr size_t part_cost = 64; /* bytes that a piece of a text takes besides its own */

thread_local budget current;

/* How much there is in a value, counted again wherever it occurs again. */
size_t count_tree(const jinja::value_t *value, size_t depth, size_t &left) {
    if (depth > max_depth) fail_limit("lists are nested more than 100 deep");
    if (left-- == 0) fail_limit("a list holds more than 100000 things");
    size_t bytes = value->val_str.length() + part_cost;
    for (const auto &item : value->val_arr) bytes += count_tree(item.get(), depth + 1, left);
    for (const auto &item : value->val_obj) {
        bytes += count_tree(item.first.get(), depth + 1, left);
        bytes += count_tree(item.second.get(), depth + 1, left);
    }
    return bytes;
}

bool is_container(const jinja::value &value) {
    return jinja::is_val<jinja::value_array>(value) || jinja::is_val<jinja::value_object>(value);
}

bool holds(const jinja::value_t *value, const jinja::value_t *wanted, size_t depth,
           std::unordered_set<const jinja::value_t *> &seen) {
    if (value == wanted) return true;
    if (depth > max_depth) fail_limit("lists are nested more than 100 deep");
    if (!seen.insert(value).second) return false;
    step();
    for (const auto &item : value->val_arr)
        if (holds(item.get(), wanted, depth + 1, seen)) return true;
    for (const auto &item : value->val_obj)
        if (holds(item.second.get(), wanted, depth + 1, seen)) return true;
    return false;
}

} // namespace

int64_t time_spent() {
    timespec now{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

void foresee_time(int64_t more) {
    if (time_spent() + more > max_milliseconds * INT64_C(1000000))
        fail_limit("it takes longer than a quarter of a second");
}

budget &spent() {
    return current;
}

void fail_limit(const std::string &what) {
    const std::string text = "the template goes beyond a limit: " + what;
    if (current.failure.empty()) current.failure = text;
    throw limit(text);
}

void fail(const std::string &what) {
    throw std::runtime_error(what);
}

void step(size_t cost) {
    const char here = 0;
    const size_t before = current.steps / 64;
    current.steps += cost;
    if (current.steps > max_steps) fail_limit("it takes more than 500000 steps");
    if (current.stack && static_cast<size_t>(current.stack - &here) > max_stack)
        fail_limit("its macros or expressions are nested too deep");
    if (current.steps / 64 != before) foresee_time(0);
}

void spend_bytes(size_t bytes) {
    if (bytes > max_text) fail_limit("a text has more than 8 MiB");
    const size_t before = current.bytes >> 20;
    current.bytes += bytes;
    if (current.bytes > max_bytes) fail_limit("it copies more than 128 MiB of text");
    if (current.bytes >> 20 != before) foresee_time(0);
}

void spend_text(const jinja::string &text) {
    spend_bytes(text.length() + part_cost * text.parts.size());
}

void spend_items(size_t items) {
    if (items > max_items) fail_limit("a list has more than 100000 items");
    step(1 + items / 16);
}

void spend_tree(const jinja::value &value) {
    if (!is_container(value)) {
        spend_text(value->val_str);
        return;
    }
    size_t left = max_tree;
    spend_bytes(count_tree(value.get(), 0, left));
    step(1 + (max_tree - left) / 16);
}

void check_link(const jinja::value_t *into, const jinja::value &value) {
    if (!is_container(value)) return;
    if (++current.links > max_links) fail_limit("it links more than 1000 lists");
    std::unordered_set<const jinja::value_t *> seen;
    if (holds(value.get(), into, 0, seen)) fail_limit("a list is put into itself");
}

} // namespace qkv_chat
