/*
 * A text with a mark for every byte: 1 where it came from the conversation. The engine keeps texts as
 * lists of pieces; here they are one text, which is what methods of strings want.
 */
#ifndef QKV_CHAT_JINJA_MARKED_H
#define QKV_CHAT_JINJA_MARKED_H

#include "chat/jinja_budget.h"

namespace qkv_chat {

struct marked {
    std::string text, marks;

    marked() = default;
    explicit marked(const jinja::string &from) {
        spend_text(from);
        for (const auto &part : from.parts) put(part.val, part.is_input);
    }

    size_t size() const {
        return text.size();
    }
    void put(const std::string &more, bool from_outside) {
        text += more;
        marks.append(more.size(), from_outside ? '\1' : '\0');
    }
    void put(const marked &from, size_t begin, size_t end) {
        text.append(from.text, begin, end - begin);
        marks.append(from.marks, begin, end - begin);
    }
    void put(const marked &from) {
        put(from, 0, from.size());
    }
    marked part(size_t begin, size_t end) const {
        marked out;
        out.put(*this, begin, end);
        return out;
    }

    jinja::string pieces() const {
        jinja::string out;
        for (size_t at = 0; at < size();) {
            const size_t end = std::min(marks.find(marks[at] ? '\0' : '\1', at), size());
            out.parts.push_back({marks[at] != 0, text.substr(at, end - at)});
            at = end;
        }
        spend_text(out);
        return out;
    }
    jinja::value value() const {
        return jinja::mk_val<jinja::value_string>(pieces());
    }
};

/* How many bytes the character at `at` has; a malformed byte is one of its own. */
inline size_t character_at(const std::string &text, size_t at) {
    const unsigned char lead = static_cast<unsigned char>(text[at]);
    const size_t want = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : lead >= 0xc0 ? 2 : 1;
    size_t n = 1;
    while (n < want && at + n < text.size() && (text[at + n] & 0xc0) == 0x80) n++;
    return n == want ? n : 1;
}

/* Where every character begins, and the end of the text. */
inline std::vector<size_t> boundaries(const std::string &text) {
    std::vector<size_t> out;
    spend_bytes(text.size());
    for (size_t at = 0; at < text.size(); at += character_at(text, at)) out.push_back(at);
    out.push_back(text.size());
    return out;
}

} // namespace qkv_chat

#endif
