/*
 * Cases and kinds of letters, as Python's strings have them. Cases map one character to one; of
 * those that become several, only the German sharp s is known.
 */
#include <utf8proc.h>

#include "chat/jinja_functions.h"

namespace qkv_chat {

namespace {

constexpr utf8proc_int32_t sharp_s = 0xdf;

/* -1: no character. */
utf8proc_int32_t decode(const marked &text, size_t begin, size_t end) {
    utf8proc_int32_t code = -1;
    const auto *bytes = reinterpret_cast<const utf8proc_uint8_t *>(text.text.data());
    utf8proc_iterate(bytes + begin, static_cast<utf8proc_ssize_t>(end - begin), &code);
    return code;
}

bool has_case(utf8proc_int32_t code) {
    const utf8proc_category_t kind = utf8proc_category(code);
    return kind == UTF8PROC_CATEGORY_LU || kind == UTF8PROC_CATEGORY_LL ||
           kind == UTF8PROC_CATEGORY_LT;
}

bool is_letter(utf8proc_int32_t code) {
    const utf8proc_category_t kind = utf8proc_category(code);
    return has_case(code) || kind == UTF8PROC_CATEGORY_LM || kind == UTF8PROC_CATEGORY_LO;
}

bool is_digit(utf8proc_int32_t code) {
    return utf8proc_category(code) == UTF8PROC_CATEGORY_ND;
}

/* Does the filter title begin a word after it? [-\s({\[<] */
bool ends_word(utf8proc_int32_t code) {
    switch (utf8proc_category(code)) {
    case UTF8PROC_CATEGORY_ZS:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
        return true;
    default:
        return code == '-' || code == '(' || code == '{' || code == '[' || code == '<' ||
               (code >= '\t' && code <= '\r') || (code >= 0x1c && code <= 0x1f) || code == 0x85;
    }
}

std::string encode(utf8proc_int32_t code) {
    utf8proc_uint8_t bytes[4];
    const utf8proc_ssize_t n = utf8proc_encode_char(code, bytes);
    return std::string(reinterpret_cast<const char *>(bytes), static_cast<size_t>(n));
}

std::string raised(utf8proc_int32_t code, letters to) {
    const bool whole = to == letters::upper || to == letters::words;
    if (code == sharp_s) return whole ? "SS" : "Ss";
    return encode(whole ? utf8proc_toupper(code) : utf8proc_totitle(code));
}

/* Is the character after this one the first of a word? */
bool begins_after(utf8proc_int32_t code, letters to) {
    if (to == letters::title) return !has_case(code);
    return to == letters::words && ends_word(code);
}

marked in_case(const marked &text, letters to) {
    const auto starts = boundaries(text.text);
    marked out;
    bool begins = true;
    for (size_t i = 0; i + 1 < starts.size(); i++) {
        const bool mark = text.marks[starts[i]] != 0;
        const utf8proc_int32_t code = decode(text, starts[i], starts[i + 1]);
        if (code < 0)
            out.put(text, starts[i], starts[i + 1]);
        else if (to == letters::upper || (to != letters::lower && begins))
            out.put(raised(code, to), mark);
        else
            out.put(encode(utf8proc_tolower(code)), mark);
        begins = begins_after(code, to);
    }
    return out;
}

} // namespace

value change_case(const func_args &args, letters to) {
    return in_case(text_of(args.get_pos(0)), to).value();
}

marked lower_case(const marked &text) {
    return in_case(text, letters::lower);
}

int64_t count_words(const marked &text) {
    const auto starts = boundaries(text.text);
    int64_t n = 0;
    bool inside = false;
    for (size_t i = 0; i + 1 < starts.size(); i++) {
        const utf8proc_int32_t code = decode(text, starts[i], starts[i + 1]);
        const bool of_word = code == '_' || (code >= 0 && (is_letter(code) || is_digit(code)));
        n += of_word && !inside;
        inside = of_word;
    }
    return n;
}

value is_made_of(const func_args &args, bool letters_too, bool digits_too) {
    const marked text = text_argument(args, 0);
    const auto starts = boundaries(text.text);
    bool all = text.size() > 0;
    for (size_t i = 0; all && i + 1 < starts.size(); i++) {
        const utf8proc_int32_t code = decode(text, starts[i], starts[i + 1]);
        all = code >= 0 && ((letters_too && is_letter(code)) || (digits_too && is_digit(code)));
    }
    return mk_val<jinja::value_bool>(all);
}

} // namespace qkv_chat
