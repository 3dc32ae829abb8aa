/* What is refused before the parser sees it: tokens that would take it too deep, or mean another
 * thing to it than to Python. */
#include <algorithm>

#include "chat/jinja_guard.h"

namespace qkv_chat {

namespace {

/* What the parser recurses on, per {{ }} or {% %} and in all. */
constexpr size_t max_tokens = 4000, max_brackets = 100, max_blocks = 200;

/* The engine takes 1e3 for 1 and a name e3. */
void check_number(const std::vector<jinja::token> &tokens, size_t i) {
    using jinja::token;
    if (tokens[i].t != token::numeric_literal || i + 1 == tokens.size()) return;
    const bool touches = tokens[i + 1].pos == tokens[i].pos + tokens[i].value.size();
    if (touches && tokens[i + 1].t == token::identifier)
        fail("a number continues with letters: " + tokens[i].value + tokens[i + 1].value);
}

/* ---- tests with an argument and no brackets ---- */

bool opens(const jinja::token &t) {
    using jinja::token;
    return t.t == token::open_paren || t.t == token::open_square_bracket ||
           t.t == token::open_curly_bracket;
}

bool closes(const jinja::token &t) {
    using jinja::token;
    return t.t == token::close_paren || t.t == token::close_square_bracket ||
           t.t == token::close_curly_bracket;
}

/* After the bracket that closes the one at i. */
size_t after_brackets(const std::vector<jinja::token> &tokens, size_t i) {
    size_t depth = 0;
    do {
        depth += opens(tokens[i]) ? 1 : 0;
        depth -= closes(tokens[i]) ? 1 : 0;
    } while (++i < tokens.size() && depth > 0);
    return i;
}

/* Where the argument ends that begins at i: a name, a value or something in brackets, with what hangs on it
 * (.name, [0], (1)); i itself where there is none. */
size_t after_argument(const std::vector<jinja::token> &tokens, size_t i) {
    using jinja::token;
    static const char *const words[] = {"and", "else", "if", "in", "is", "not", "or"};
    const auto type = tokens[i].t;
    if (type == token::open_square_bracket || type == token::open_curly_bracket)
        i = after_brackets(tokens, i);
    else if (type == token::numeric_literal || type == token::string_literal ||
             (type == token::identifier &&
              std::find(std::begin(words), std::end(words), tokens[i].value) == std::end(words)))
        i++;
    else
        return i;
    while (i < tokens.size()) {
        if (tokens[i].t == token::open_paren || tokens[i].t == token::open_square_bracket)
            i = after_brackets(tokens, i);
        else if (tokens[i].t == token::dot && i + 1 < tokens.size())
            i += 2;
        else
            break;
    }
    return i;
}

} // namespace

void bracket_arguments(std::vector<jinja::token> &tokens) {
    using jinja::token;
    std::vector<jinja::token> out;
    std::vector<size_t> ends; /* of arguments that were opened */
    for (size_t i = 0; i < tokens.size(); i++) {
        out.push_back(tokens[i]);
        while (!ends.empty() && ends.back() == i + 1) {
            out.push_back({token::close_paren, ")", tokens[i].pos});
            ends.pop_back();
        }
        const size_t back = i > 1 && tokens[i - 1].value == "not" ? 2 : 1;
        const bool is_test = i > back && tokens[i].t == token::identifier &&
                             tokens[i - back].t == token::identifier &&
                             tokens[i - back].value == "is" && tokens[i].value != "not";
        if (!is_test || i + 1 == tokens.size()) continue;
        const size_t end = after_argument(tokens, i + 1);
        if (end == i + 1) continue;
        out.push_back({token::open_paren, "(", tokens[i + 1].pos});
        ends.push_back(end);
    }
    tokens = std::move(out);
}

void check_nesting(const std::vector<jinja::token> &tokens) {
    size_t in_tag = 0, brackets = 0, blocks = 0;
    for (size_t i = 0; i < tokens.size(); i++) {
        const auto type = tokens[i].t;
        using jinja::token;
        if (type == token::open_statement || type == token::open_expression) in_tag = brackets = 0;
        check_number(tokens, i);
        brackets += opens(tokens[i]) ? 1 : 0;
        brackets -= closes(tokens[i]) && brackets ? 1 : 0;
        if (++in_tag > max_tokens || brackets > max_brackets)
            fail_limit("an expression is nested too deep");
        if (type != token::open_statement || i + 1 == tokens.size()) continue;
        const std::string &word = tokens[i + 1].value;
        static const char *const starts[] = {"if", "elif", "for", "macro", "call", "filter", "set"};
        /* The parser keeps an elif open up to its endif, so all of a chain count until then. */
        if (std::find(std::begin(starts), std::end(starts), word) != std::end(starts)) blocks++;
        if (word == "set") {
            size_t k = i + 2;
            while (k < tokens.size() && tokens[k].t != token::equals &&
                   tokens[k].t != token::close_statement)
                k++;
            if (k < tokens.size() && tokens[k].t == token::equals) blocks--;
        }
        if (word.compare(0, 3, "end") == 0 && word != "endgeneration" && blocks) blocks--;
        if (blocks > max_blocks) fail_limit("blocks are nested too deep");
    }
}

} // namespace qkv_chat
