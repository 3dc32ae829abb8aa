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
        fail("a number goes on with letters: " + tokens[i].value + tokens[i + 1].value);
}

} // namespace

void check_nesting(const std::vector<jinja::token> &tokens) {
    size_t in_tag = 0, brackets = 0, blocks = 0;
    for (size_t i = 0; i < tokens.size(); i++) {
        const auto type = tokens[i].t;
        using jinja::token;
        if (type == token::open_statement || type == token::open_expression) in_tag = brackets = 0;
        check_number(tokens, i);
        const bool opens = type == token::open_paren || type == token::open_square_bracket ||
                           type == token::open_curly_bracket;
        const bool closes = type == token::close_paren || type == token::close_square_bracket ||
                            type == token::close_curly_bracket;
        brackets += opens ? 1 : 0;
        brackets -= closes && brackets ? 1 : 0;
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
