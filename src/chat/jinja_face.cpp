#include "chat/jinja_face.h"

#include <clocale>
#include <csignal>
#include <cstring>
#include <pthread.h>

#include "chat/jinja_guard.h"
#include "jinja/parser.h"

namespace {

constexpr size_t stack_size = 32u << 20; /* 12 MiB of it for the template: jinja_budget.cpp */

struct job {
    const qkv_jinja_input *input;
    qkv_jinja_sink *sink;
    void *user;
    char *message;
    enum qkv_jinja_status status;
};

/* The engine's own way from \r\n to \n takes time that grows with the square of the text. */
std::string with_plain_line_ends(const char *source, size_t length) {
    std::string out;
    for (size_t i = 0; i < length; i++) {
        if (source[i] == '\r' && i + 1 < length && source[i + 1] == '\n') continue;
        out.push_back(source[i] == '\r' ? '\n' : source[i]);
    }
    return out;
}

/* The engine drops a first character with nothing but spaces between it and a tag. After an
 * expression that writes nothing it stays. */
std::string with_first_character(std::string source) {
    const size_t tag = source.find_first_not_of(" \t", 1);
    if (tag == std::string::npos || tag + 1 == source.size() || source[tag] != '{') return source;
    const bool is_text = !strchr(" \t\n", source[0]) && (source[0] != '{' || tag > 1);
    return is_text && strchr("%#-", source[tag + 1]) ? "{{''}}" + source : source;
}

jinja::value messages_of(const qkv_jinja_input *input) {
    auto list = jinja::mk_val<jinja::value_array>();
    for (size_t i = 0; i < input->n_messages; i++) {
        auto message = jinja::mk_val<jinja::value_object>();
        auto content = jinja::mk_val<jinja::value_string>(std::string(input->messages[i].text));
        content->mark_input();
        message->insert("role",
                        jinja::mk_val<jinja::value_string>(std::string(input->messages[i].role)));
        message->insert("content", content);
        list->push_back(message);
    }
    return list;
}

void set_variables(jinja::context &context, const qkv_jinja_input *input) {
    context.set_val("messages", messages_of(input));
    context.set_val("add_generation_prompt",
                    jinja::mk_val<jinja::value_bool>(input->add_generation_prompt != 0));
    /* As apply_chat_template passes them when there are none. */
    context.set_val("tools", jinja::mk_val<jinja::value_none>());
    context.set_val("documents", jinja::mk_val<jinja::value_none>());
    for (size_t i = 0; i < input->n_names; i++)
        context.set_val(input->names[i].name,
                        jinja::mk_val<jinja::value_string>(std::string(input->names[i].text)));
}

void render(job *job) {
    const qkv_jinja_input *input = job->input;
    jinja::lexer lexer;
    auto tokens =
        lexer.tokenize(with_first_character(with_plain_line_ends(input->source, input->length)));
    qkv_chat::bracket_arguments(tokens.tokens);
    qkv_chat::check_nesting(tokens.tokens);
    jinja::program program = jinja::parse_from_tokens(tokens);
    qkv_chat::guard_block(program.body);
    jinja::context context(tokens.source);
    qkv_chat::add_functions(context);
    set_variables(context, input);
    jinja::runtime runtime(context);
    const auto text = jinja::runtime::gather_string_parts(runtime.execute(program));
    for (const auto &part : text->val_str.parts) {
        if (part.val.empty()) continue;
        if (!job->sink(job->user, part.val.data(), part.val.size(), part.is_input))
            throw std::bad_alloc();
    }
}

/* The engine writes several lines around what is wrong: "... at line 3, column 7 in source: ...
 * Error: what". */
std::string one_line(const std::string &what) {
    const size_t place = what.find("line "), error = what.rfind("\nError: ");
    std::string out = "the chat template fails: ";
    if (error != std::string::npos && place < error)
        out = "the chat template fails at " +
              what.substr(place, what.find(" in source", place) - place) + ": " +
              what.substr(error + 8);
    else
        out += what.substr(0, what.find('\n'));
    return out;
}

void tell(job *job, const std::string &what) {
    job->status = QKV_JINJA_FAILED;
    std::string text =
        qkv_chat::spent().failure.empty() ? one_line(what) : qkv_chat::spent().failure;
    for (char &c : text)
        if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = ' ';
    snprintf(job->message, QKV_JINJA_MESSAGE, "%.*s", QKV_JINJA_MESSAGE - 1, text.c_str());
}

void run_caught(job *job) {
    try {
        try {
            render(job);
        } catch (const std::bad_alloc &) {
            throw;
        } catch (const jinja::break_statement::signal &) {
            tell(job, "break outside of a loop");
        } catch (const jinja::continue_statement::signal &) {
            tell(job, "continue outside of a loop");
        } catch (const std::exception &e) {
            tell(job, e.what());
        }
    } catch (...) {
        job->status = QKV_JINJA_MEMORY;
        snprintf(job->message, QKV_JINJA_MESSAGE, "out of memory");
    }
}

/* Numbers and letters are ASCII's, whatever locale the host has. */
void *run(void *argument) {
    job *own = static_cast<job *>(argument);
    const char here = 0;
    locale_t plain = newlocale(LC_ALL_MASK, "C", static_cast<locale_t>(0));
    if (!plain) {
        own->status = QKV_JINJA_MEMORY;
        snprintf(own->message, QKV_JINJA_MESSAGE, "out of memory");
        return nullptr;
    }
    locale_t before = uselocale(plain);
    qkv_chat::spent() = qkv_chat::budget();
    qkv_chat::spent().stack = &here;
    qkv_chat::spent().date = own->input->date;
    run_caught(own);
    uselocale(before);
    freelocale(plain);
    return nullptr;
}

/* Signals are for the host's threads. */
int start(pthread_t *thread, job *job) {
    pthread_attr_t attributes;
    sigset_t all, before;
    if (pthread_attr_init(&attributes) != 0) return 0;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const int ok = pthread_attr_setstacksize(&attributes, stack_size) == 0 &&
                   pthread_create(thread, &attributes, run, job) == 0;
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    pthread_attr_destroy(&attributes);
    return ok;
}

} // namespace

enum qkv_jinja_status qkv_jinja_render(const qkv_jinja_input *input, qkv_jinja_sink *sink,
                                       void *user, char message[QKV_JINJA_MESSAGE]) {
    job own = {input, sink, user, message, QKV_JINJA_OK};
    pthread_t thread;
    if (!start(&thread, &own)) {
        snprintf(message, QKV_JINJA_MESSAGE, "no memory for a thread");
        return QKV_JINJA_MEMORY;
    }
    pthread_join(thread, nullptr);
    return own.status;
}
