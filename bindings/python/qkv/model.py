"""Models: opened once, used by any thread."""
from __future__ import annotations

import os
import threading
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any, Iterable, Mapping, NamedTuple, Optional, Sequence, Union

from ._core import (
    Prompt,
    Session,
    Strings,
    check,
    encoded,
    ffi,
    lib,
    new_error,
    new_struct,
    refuse_inside,
    text_of,
    wrong,
)
from . import selections
from ._studies import Studies
from .edits import Edits, Variants
from .hooks import hooks, translated
from .notices import notice_idle

if TYPE_CHECKING:
    import numpy as np

    from .explorer import Explorer
    from .figures import Figure
    from .generation import Generation
    from .predictions import Predictions
    from .results import Result
    from .study import Study
    from .sweeps import Sweep
    from .tables import Rows
    from .weights import Weights

__all__ = ["Info", "Model", "open"]

Captures = Union[str, tuple[Any, ...], Sequence[Any]]
Prompts = Union[None, str, Sequence[Any]]
Progress = Union[bool, Any]


class Info(NamedTuple):
    """Facts about a model.

    >>> import qkv
    >>> info = qkv.open().info
    >>> info.architecture, info.n_head, info.n_kv_head, info.causal
    ('llama', 4, 2, True)
    """

    path: str
    name: str
    architecture: str
    position: str
    tensor_types: str
    tokenizer: str
    n_layer: int
    n_embd: int
    n_head: int
    n_kv_head: int
    head_dim: int
    n_ff: int
    n_vocab: int
    n_ctx: int
    window: int
    tied_output: bool
    n_files: int
    n_params: int
    file_size: int
    n_windowed: int
    causal: bool
    n_expert: int
    n_expert_used: int
    has_logits: bool
    has_sink: bool
    notices: str
    chunk: int


_TRUTHS = ("tied_output", "causal", "has_logits", "has_sink")


def _info_of(pointer: Any) -> Info:
    info = lib.qkv_model_get_info(pointer)
    values: list[Any] = []
    for name in Info._fields:
        value = getattr(info, name)
        values.append(
            text_of(value) if isinstance(value, ffi.CData) else bool(value) if name in _TRUTHS else int(value)
        )
    return Info(*values)


def is_prompt(given: Any) -> bool:
    """One prompt, and not several: a text, or whole numbers."""
    if isinstance(given, str):
        return True
    if hasattr(given, "dtype") and hasattr(given, "ndim"):
        return bool(given.ndim == 1 and getattr(given.dtype, "kind", "i") in "iu")
    if not isinstance(given, (list, tuple, range)) or len(given) == 0:
        return False
    return all(hasattr(i, "__index__") and not selections.is_list(i) for i in given)  # arrays have an __index__ too


def prompt_list(given: Any) -> list[Any]:
    """One prompt or several, as a list."""
    if not is_prompt(given) and (isinstance(given, (bytes, Mapping)) or not hasattr(given, "__iter__")):
        raise TypeError(f"a prompt is a text or a list of token ids, and prompts are a list of these, not {given!r}")
    return [given] if is_prompt(given) else list(selections.ordered(given, "prompts"))


def source_items(sources: Any) -> list[tuple[str, Any]]:
    """Other prompts with their names."""
    if sources is not None and not (isinstance(sources, Mapping) and all(isinstance(name, str) for name in sources)):
        raise TypeError(f'sources are prompts by name: {{"clean": "The new mill."}}, not {sources!r}')
    return list((sources or {}).items())


class Others:
    """What edits take values from: prompts by name, a set of them, vectors by name."""

    def __init__(self, sources: Any, set_prompts: Any, vectors: Any = None) -> None:
        self.sources = source_items(sources)
        if vectors is not None and not (isinstance(vectors, Mapping) and all(isinstance(n, str) for n in vectors)):
            raise TypeError(f'vectors are arrays by name: {{"happy": array}}, not {vectors!r}')
        self.vectors = dict(vectors or {})
        if set_prompts is not None and (is_prompt(set_prompts) or not hasattr(set_prompts, "__iter__")):
            raise TypeError(f"set_prompts are several prompts, not {set_prompts!r}")
        self.set_prompts = [] if set_prompts is None else list(selections.ordered(set_prompts, "set_prompts"))

    def data(self, model: "Model", variants: Variants, special: bool, parse_special: bool) -> Any:
        """The set and the vectors, also those that edits take from files, as C takes them."""
        out, err = ffi.new("qkv_edit_data **"), new_error()
        check(lib.qkv_edit_data_new(out, err), err)
        data = ffi.gc(out[0], lib.qkv_edit_data_free)
        if self.set_prompts:
            found = [model._ids(prompt, special, parse_special) for prompt in self.set_prompts]
            tokens = ffi.new("int32_t *[]", [ids for ids, _, _ in found])
            lengths = ffi.new("size_t[]", [n for _, n, _ in found])
            check(lib.qkv_edit_data_set_prompts(data, tokens, lengths, len(found), err), err)
        for name, values in self.vectors.items():
            _add_vector(data, name, values)
        for text in variants.texts:
            check(lib.qkv_edit_data_read_vectors(data, encoded(text), err), err)
        return data


def _add_vector(data: Any, name: str, values: Any) -> None:
    import numpy as np

    array = np.ascontiguousarray(values, dtype=np.float32)
    err = new_error()
    shape = ffi.new("int64_t[]", list(array.shape))
    numbers = ffi.cast("float *", ffi.from_buffer(array))
    check(lib.qkv_edit_data_add_vector(data, encoded(name), numbers, shape, array.ndim, err), err)


class Plan:
    """A plan of C with what it needs: variants, functions, captures."""

    def __init__(
        self,
        model: "Model",
        prompt: Prompt,
        variants: Variants,
        captures: Iterable[str],
        others: Others,
        special: bool,
        parse_special: bool,
    ) -> None:
        out, err = ffi.new("qkv_plan **"), new_error()
        ids, n, text = model._ids(prompt, special, parse_special)
        check(lib.qkv_plan_new(out, model._pointer, ids, n, err), err)
        self.pointer: Any = ffi.gc(out[0], lib.qkv_plan_free)
        self.variants = variants
        variants.check_masks(model, n)
        if text is not None:
            check(lib.qkv_plan_set_prompt(self.pointer, text, len(text), err), err)
        for name, other in others.sources:
            source, n_source, _ = model._ids(other, special, parse_special)
            check(lib.qkv_plan_add_source(self.pointer, encoded(name), source, n_source, err), err)
        data = others.data(model, variants, special, parse_special)
        check(lib.qkv_plan_set_edit_data(self.pointer, data, err), err)
        variants.add_to(self.pointer)
        for capture in captures:
            check(lib.qkv_plan_add_capture(self.pointer, encoded(capture), err), err)


def _captures(given: Captures, model: "Model") -> list[str]:
    """Texts; ("pattern", 8) is pattern@8, and a hook of TransformerLens its site."""
    if isinstance(given, str):
        return [given]
    if isinstance(given, tuple) and len(given) == 2 and isinstance(given[0], str) and not isinstance(given[1], str):
        return [f"{translated(given[0])}@{selections.for_model(given[1], 'a layer', 'L', model)}"]
    if isinstance(given, (dict, bytes)) or not hasattr(given, "__iter__"):
        raise TypeError(f"capture is a text such as 'pattern@3', or a list of them, not {given!r}")
    found: list[str] = []
    for one in given:
        if not isinstance(one, (str, tuple)):
            raise TypeError(f"a capture is a text such as 'pattern@3', not {one!r}")
        found += _captures(one, model)
    return found


class Model(Studies):
    """An opened model. Any thread may use it; each gets a session of its own when it first computes.

    >>> import qkv
    >>> m = qkv.open()
    >>> m
    <qkv.Model 'default.gguf': llama, 6 layers, 4 heads in 2 groups, vocabulary 4096>
    >>> m.info.n_layer, m.info.head_dim
    (6, 32)
    """

    def __init__(self, path: str, threads: int = 0, memory: int = 0, name: Optional[str] = None) -> None:
        out, err = ffi.new("qkv_model **"), new_error()
        check(lib.qkv_model_open(out, encoded(os.fsencode(path)), err), err)
        self._pointer = ffi.gc(out[0], lib.qkv_model_free)
        self._threads, self._memory = selections.number(threads, "threads"), selections.number(memory, "memory")
        self._local = threading.local()
        #: What it was opened as.
        self.name = name if name is not None else path
        #: Facts: layers, heads, widths, the tokenizer, ...
        self.info = _info_of(self._pointer)

    def __repr__(self) -> str:
        i = self.info
        heads = f"{i.n_head} heads" if i.n_kv_head == i.n_head else f"{i.n_head} heads in {i.n_kv_head} groups"
        return (
            f"<qkv.Model {os.path.basename(self.name)!r}: {i.architecture}, {i.n_layer} layers, {heads}, "
            f"vocabulary {i.n_vocab}>"
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return Model, (self.info.path, self._threads, self._memory, self.name)

    def _session(self) -> Session:
        """The session of this thread."""
        refuse_inside()
        session: Optional[Session] = getattr(self._local, "session", None)
        if session is None:
            session = self._local.session = Session(self._pointer, self._threads, self._memory)
        return session

    @property
    def notices(self) -> list[str]:
        """What users of the model should know, a line each."""
        return [n for n in self.info.notices.split("; ") if n]

    @property
    def backend(self) -> str:
        """What computes, and what the processor can do.

        >>> import qkv
        >>> qkv.open().backend.split()[0]
        'CPU'
        """
        return text_of(lib.qkv_session_backend(self._session().pointer))

    def hash(self) -> str:
        """What identifies the model's files: XXH3-128. Reads every byte the first time.

        >>> import qkv
        >>> len(qkv.open().hash())
        32
        """
        out, err = ffi.new("char[33]"), new_error()
        check(lib.qkv_model_hash(self._pointer, out, err), err)
        return text_of(out)

    # ---- text and tokens ----

    def _ids(self, prompt: Prompt, special: bool = True, parse_special: bool = False) -> tuple[Any, int, Any]:
        """Token ids for C, how many, and the text's bytes (None: ids were given)."""
        if isinstance(prompt, str):
            text = prompt.encode("utf-8", "surrogateescape")
            out, n, err = ffi.new("int32_t **"), ffi.new("size_t *"), new_error()
            flags = (lib.QKV_TOKENIZE_ADD_SPECIAL if special else 0) | (
                lib.QKV_TOKENIZE_PARSE_SPECIAL if parse_special else 0
            )
            check(lib.qkv_tokenize(self._pointer, out, n, text, len(text), flags, err), err)
            return ffi.gc(out[0], lib.qkv_tokens_free), n[0], text
        if isinstance(prompt, (bytes, dict)) or not hasattr(prompt, "__iter__"):
            raise TypeError(f"a prompt is a text or a list of token ids, not {prompt!r}")
        try:
            given = selections.ordered(prompt, "token ids")
            ids = ffi.new("int32_t[]", [selections.number(i, "a token id") for i in given])
        except TypeError as problem:
            raise TypeError(f"a prompt is a text or a list of token ids: {problem}") from None
        except OverflowError:
            raise wrong(f"token ids are 0 to {self.info.n_vocab - 1}") from None
        return ids, len(ids), None

    def tokenize(self, text: str, *, special: bool = True, parse_special: bool = False) -> "np.ndarray[Any, Any]":
        """The token ids of a text, with BOS and the like as the model wants them unless `special` is False.

        >>> import qkv
        >>> qkv.open().tokenize("The river")
        array([   0,  373, 2290], dtype=int32)
        """
        import numpy as np

        ids, n, _ = self._ids(text, special, parse_special)
        return np.frombuffer(ffi.buffer(ids, n * 4), dtype=np.int32).copy()

    def detokenize(self, tokens: Sequence[int], *, special: bool = False) -> str:
        """The text of token ids; control tokens are written where `special` is True.

        >>> import qkv
        >>> qkv.open().detokenize([0, 373, 2290])
        'The river'
        """
        return self._decode(tokens, special).decode("utf-8", "replace")

    def _decode(self, tokens: Sequence[int], special: bool = False) -> bytes:
        out, length, err = ffi.new("char **"), ffi.new("size_t *"), new_error()
        ids, n, _ = self._ids(tokens)
        check(lib.qkv_detokenize(self._pointer, out, length, ids, n, special, err), err)
        try:
            return bytes(ffi.buffer(out[0], length[0]))
        finally:
            lib.qkv_text_free(out[0])

    def token_text(self, token: int) -> str:
        """What one token stands for, for the axis of a figure; bytes that are not text become escapes.

        >>> import qkv
        >>> qkv.open().token_text(2290)
        ' river'
        """
        out, length, err = ffi.new("char **"), ffi.new("size_t *"), new_error()
        check(lib.qkv_token_text(self._pointer, out, length, selections.number(token, "a token"), err), err)
        try:
            return bytes(ffi.buffer(out[0], length[0])).decode("utf-8", "backslashreplace")
        finally:
            lib.qkv_text_free(out[0])

    def find_token(self, text: str) -> int:
        """The token whose text this is, with spaces before a word.

        >>> import qkv
        >>> qkv.open().find_token(" river")
        2290
        """
        out, err, data = ffi.new("int32_t *"), new_error(), text.encode()
        check(lib.qkv_find_token(self._pointer, out, data, len(data), err), err)
        return int(out[0])

    def find_answer(self, text: str) -> list[int]:
        """The tokens of a text that follows a prompt, one or more.

        A text that is not a token, but is one with a space before it, gets that space, with a warning.

        >>> import qkv
        >>> qkv.open().find_answer(" wide blue sea")
        [1819, 2350, 2161]
        """
        out, n, err, data = ffi.new("int32_t **"), ffi.new("size_t *"), new_error(), text.encode()
        spaced = ffi.new("int *")
        check(lib.qkv_find_answer(self._pointer, out, n, spaced, data, len(data), err), err)
        tokens = [int(t) for t in ffi.unpack(out[0], n[0])]
        lib.qkv_tokens_free(out[0])
        if spaced[0]:
            warnings.warn(f"{text!r} is not a token of the model: {' ' + text!r} is taken", stacklevel=2)
        return tokens

    def find_answer_pair(self, a: str, b: str) -> tuple[list[int], list[int]]:
        """The tokens of two answers that are compared.

        Where one of them is a token only with a space before it, both get one, with a warning.

        >>> import qkv
        >>> qkv.open().find_answer_pair(" sea", " land")
        ([2161], [977])
        """
        out, n, spaced, err = ffi.new("int32_t *[2]"), ffi.new("size_t[2]"), ffi.new("int[2]"), new_error()
        data = [ffi.new("char[]", text.encode()) for text in (a, b)]
        texts, lengths = ffi.new("char *[2]", data), ffi.new("size_t[2]", [len(d) - 1 for d in data])
        check(lib.qkv_find_answer_pair(self._pointer, out, n, spaced, texts, lengths, err), err)
        first, second = ([int(t) for t in ffi.unpack(out[i], n[i])] for i in range(2))
        lib.qkv_tokens_free(out[0])
        lib.qkv_tokens_free(out[1])
        if spaced[0] or spaced[1]:
            taken = tuple(" " * spaced[i] + text for i, text in enumerate((a, b)))
            warnings.warn(f"{(a, b)!r} is taken as {taken!r}: spaces belong to tokens", stacklevel=2)
        return first, second

    def chat(
        self,
        messages: Union[str, Sequence[Mapping[str, str]]],
        *,
        template: Optional[str] = None,
        reply: bool = True,
        date: Optional[str] = None,
    ) -> "np.ndarray[Any, Any]":
        """A conversation as the model's chat template writes it, as token ids: give them wherever a prompt is taken.

        `messages` are mappings with `role` and `content`, or one text: the user's.

        >>> import qkv
        >>> m = qkv.open()
        >>> template = "{% for m in messages %}{{ m.role }}: {{ m.content }}{% endfor %}"
        >>> ids = m.chat("What is a mill?", template=template)
        >>> m.detokenize(ids)
        'user: What is a mill?'
        """
        import numpy as np

        if isinstance(messages, str):
            messages = [{"role": "user", "content": messages}]
        strings, err = Strings(), new_error()
        array = ffi.new("qkv_chat_message[]", len(messages))
        for i, message in enumerate(messages):
            array[i].role = strings.one(message["role"])
            array[i].text = strings.one(message["content"])
        options = new_struct("chat_options")
        options.messages, options.n_messages, options.no_reply = array, len(messages), not reply
        if template is not None:
            options.template_text = strings.one(template)
        if date is not None:
            options.date = strings.one(date)
        out = ffi.new("qkv_chat **")
        check(lib.qkv_chat_render(out, self._pointer, options, err), err)
        chat = ffi.gc(out[0], lib.qkv_chat_free)
        ids, n = ffi.new("int32_t **"), ffi.new("size_t *")
        check(lib.qkv_chat_tokenize(chat, self._pointer, ids, n, err), err)
        kept = ffi.gc(ids[0], lib.qkv_tokens_free)
        return np.frombuffer(ffi.buffer(kept, n[0] * 4), dtype=np.int32).copy()

    # ---- running ----

    def run(
        self,
        prompt: Prompt,
        edits: Edits = None,
        capture: Captures = "pattern",
        *,
        sources: Optional[Mapping[str, Prompt]] = None,
        set_prompts: Optional[Iterable[Prompt]] = None,
        vectors: Optional[Mapping[str, Any]] = None,
        special: bool = True,
        parse_special: bool = False,
        progress: Progress = False,
    ) -> "Result":
        """Runs the prompt unedited and once for every variant, and keeps what `capture` names.

        `edits` are variants: texts of the notation, `Edit`s, or lists of those, which are then made at once.
        `sources` are other prompts that edits patch from, by name; `set_prompts` those that "mean:set" and
        "patch:resample" are about; `vectors` are arrays that "add:@NAME", "remove:@NAME" and "set:@NAME" name.

        >>> import qkv
        >>> m = qkv.open()
        >>> text = "The river runs past the mill."
        >>> r = m.run(text, edits=["q@3.h1=scale:1e-3"], capture=["pattern@3", "logits[-1]"])
        >>> r
        <qkv.Result: 2 variants of 9 tokens, capture pattern@3, logits[-1]>
        >>> r[1]["pattern", 3].shape                  # heads, queries, keys
        (4, 9, 9)
        >>> r[1].changed
        {'q@3.h1=scale:1e-3': 288}
        """
        from .progress import shower
        from .results import Result, RunStore

        others = Others(sources, set_prompts, vectors)
        plan = Plan(self, prompt, Variants(edits), _captures(capture, self), others, special, parse_special)
        out, err, session = ffi.new("qkv_result **"), new_error(), self._session()
        with session.showing(shower(progress)) as shown:
            status = lib.qkv_session_run(session.pointer, out, plan.pointer, err)
            pointer = ffi.gc(out[0], lib.qkv_result_free)
            shown.check(status, err, plan.variants.registered)
        result = Result(RunStore(self, pointer, plan))
        notice_idle(variant.changed for variant in result)
        return result

    def explain(
        self,
        prompt: Prompt,
        edits: Edits = None,
        capture: Captures = "pattern",
        *,
        sources: Optional[Mapping[str, Prompt]] = None,
        set_prompts: Optional[Iterable[Prompt]] = None,
        vectors: Optional[Mapping[str, Any]] = None,
        special: bool = True,
        parse_special: bool = False,
    ) -> str:
        """What such a run would compute, share and cost. Computes nothing.

        >>> import qkv
        >>> print(qkv.open().explain("The river runs.", edits="v@5=zero", capture="pattern@5"))
        baseline: from the tokens; keeps pattern@5; ...
        total: 1 pass, ...
        """
        others = Others(sources, set_prompts, vectors)
        plan = Plan(self, prompt, Variants(edits), _captures(capture, self), others, special, parse_special)
        out, err = ffi.new("char **"), new_error()
        check(lib.qkv_session_explain(self._session().pointer, out, plan.pointer, err), err)
        try:
            return text_of(out[0])
        finally:
            lib.qkv_text_free(out[0])

    def measure(
        self,
        prompts: Prompts = None,
        edits: Edits = None,
        metrics: Union[None, str, Sequence[str]] = None,
        *,
        layers: Any = None,
        heads: Any = None,
        sources: Optional[Mapping[str, Prompt]] = None,
        set_prompts: Optional[Iterable[Prompt]] = None,
        vectors: Optional[Mapping[str, Any]] = None,
        special: bool = True,
        parse_special: bool = False,
        progress: Progress = False,
    ) -> "Rows":
        """Measures the unedited model and every variant on every prompt: a structured array, one value a row.

        Without `metrics`, all that need nothing but patterns; "all": every one there is. Without prompts, the
        library's neutral texts.

        >>> import qkv
        >>> m = qkv.open()
        >>> rows = m.measure("The river runs past the mill.", edits="q@3=zero", metrics=["sink", "tv"], layers=3)
        >>> rows.dtype.names
        ('prompt', 'variant', 'layer', 'head', 'metric', 'value')
        >>> rows[(rows["metric"] == "tv") & (rows["variant"] == 1)]["value"].shape
        (4,)
        """
        from .tables import measure

        others = Others(sources, set_prompts, vectors)
        return measure(self, prompts, edits, metrics, layers, heads, others, special, parse_special, progress)

    def next(
        self,
        prompt: Prompt,
        edits: Edits = None,
        top: int = 10,
        *,
        of: Union[int, str, Sequence[Union[int, str]]] = (),
        diff: Union[tuple[Union[int, str], Union[int, str]], Sequence[tuple[Union[int, str], Union[int, str]]]] = (),
        answer: Union[str, Sequence[Union[str, Sequence[int]]]] = (),
        at: int = -1,
        every: bool = False,
        sources: Optional[Mapping[str, Prompt]] = None,
        set_prompts: Optional[Iterable[Prompt]] = None,
        vectors: Optional[Mapping[str, Any]] = None,
        special: bool = True,
        parse_special: bool = False,
        progress: Progress = False,
    ) -> "Predictions":
        """The most likely next tokens of the unedited model and of every variant.

        `of` are tokens, or their texts, to look at whatever their rank, `diff` a pair of them whose logits are
        subtracted, or several pairs; `at` is the token after which to look. `answer` is one text or several that follow
        the prompt, of one token or more: `answers()` gives their log-probability. With `every`, the loss of each token of
        the prompt instead.

        >>> import qkv
        >>> n = qkv.open().next("The river runs to the", edits="z@3.h1=zero", top=3)
        >>> n[0]["text"].tolist()
        [' river', ' north', ' south']
        >>> bool(n.kl[1] > 0)
        True
        """
        from .predictions import predict

        others = Others(sources, set_prompts, vectors)
        return predict(self, prompt, edits, top, of, diff, answer, at, every, others, special, parse_special, progress)

    def generate(
        self,
        prompt: Prompt,
        edits: Edits = None,
        n: int = 64,
        *,
        temperature: Optional[float] = None,
        top_k: int = 0,
        top_p: float = 0,
        min_p: float = 0,
        seed: int = 0,
        stop: Union[str, Sequence[str]] = (),
        edit_tokens: str = "all",
        recompute: bool = False,
        sources: Optional[Mapping[str, Prompt]] = None,
        set_prompts: Optional[Iterable[Prompt]] = None,
        vectors: Optional[Mapping[str, Any]] = None,
        special: bool = True,
        parse_special: bool = False,
    ) -> "Generation":
        """New text, token by token, of the unedited model and of every variant: iterate over the steps.

        The most likely token each time, unless `temperature` or another option of drawing is given. Edits act on
        "all" tokens, the "prompt"'s or "new" ones.

        >>> import qkv
        >>> g = qkv.open().generate("The river runs to the sea.", edits=["z@3.h1=zero"], n=3)
        >>> [step.text[0] for step in g]
        [' And', ' the', ' LORD']
        >>> g.texts[0]
        ' And the LORD'
        """
        from .generation import Generation

        return Generation(
            self,
            prompt,
            Variants(edits),
            n,
            dict(temperature=temperature, top_k=top_k, top_p=top_p, min_p=min_p, seed=seed),
            stop,
            edit_tokens,
            recompute,
            Others(sources, set_prompts, vectors),
            special,
            parse_special,
        )

    def sweep(
        self,
        prompts: Prompts,
        *,
        layers: Any = None,
        heads: Any = None,
        targets: Any = None,
        ops: Any = None,
        epsilon: Any = None,
        metrics: Any = None,
        at: Optional[str] = None,
        length: Optional[int] = None,
        parse_special: bool = False,
        to: Union[None, str, "os.PathLike[str]"] = None,
        processes: int = 1,
        progress: Progress = False,
    ) -> "Sweep":
        """Every combination of prompts, layers, heads, targets and operations, measured, into an SQLite file.

        The keywords are the keys of docs/sweeps.md; a file that is there already is resumed. Without `to`, the file
        is a temporary one. `epsilon=...` stands for "logspace:1e-4,1,5". With `processes` other than 1 (0: one for
        every core) this process is forked: no other thread may compute meanwhile.

        >>> import qkv
        >>> s = qkv.open().sweep(["The river runs past the mill."], layers="3", targets="q", epsilon=[0.1, 1],
        ...                      metrics="sink,tv")
        >>> s
        <qkv.Sweep: 8 of 8 cells, metrics sink, tv>
        >>> s.rows("tv")["value"].shape
        (8,)
        """
        from .sweeps import run_sweep

        spec = dict(
            layers=layers,
            heads=heads,
            targets=targets,
            ops=ops,
            epsilon=epsilon,
            metrics=metrics,
            at=at,
            length=length,
        )
        return run_sweep(self, prompts, spec, parse_special, to, processes, progress)

    def study(
        self,
        kind: str,
        /,
        *prompts: Any,
        other: Optional["Model"] = None,
        special: bool = True,
        parse_special: bool = False,
        progress: Progress = False,
        **fields: Any,
    ) -> "Study":
        """A study of any kind that `qkv.studies()` lists: "lens", "patch", "compare", "weights", "roles", ...

        Prompts are given one by one, as a list, or by their names (`clean`, `corrupt`); `other` is the second model of
        a comparison. Keywords are the options of the command of the same name, with `_` for `-`. Most kinds have a
        method of their own: `m.lens`, `m.patch`, ...

        >>> import qkv
        >>> m = qkv.open()
        >>> m.study("roles", top=3).tables["heads"].shape
        (24,)
        >>> m.study("weights", circuit="ov", layers=[0, 1])
        <qkv.Study weights: tables top, heads, singular, eigen; pictures ...>
        """
        from .study import make_study

        return make_study(self, kind, prompts, other, fields, special, parse_special, progress)

    def choose_head(
        self,
        prompt: Prompt,
        *,
        layer: Optional[int] = None,
        head: Optional[int] = None,
        special: bool = True,
        parse_special: bool = False,
    ) -> tuple[int, int]:
        """The head whose queries give the first token most of their attention: (layer, head).

        >>> import qkv
        >>> qkv.open().choose_head("The river runs past the old mill.")
        (5, 0)
        """
        choice, err = ffi.new("qkv_head_choice *"), new_error()
        choice.size = ffi.sizeof("qkv_head_choice")
        ids, n, _ = self._ids(prompt, special, parse_special)
        wanted = [
            -1 if v is None else selections.counted(what, v, n)
            for what, v, n in (("layer", layer, self.info.n_layer), ("head", head, self.info.n_head))
        ]
        check(lib.qkv_choose_head(self._session().pointer, ids, n, wanted[0], wanted[1], choice, err), err)
        return int(choice.layer), int(choice.head)

    # ---- figures ----

    def modify(
        self,
        prompt: Optional[Prompt] = None,
        *,
        layer: Optional[int] = None,
        head: Optional[int] = None,
        eps: Union[None, str, Sequence[Any]] = None,
        all_heads: bool = False,
        progress: Progress = False,
        **options: Any,
    ) -> "Figure":
        """The figure of one head whose query, key or value is multiplied by ever smaller factors.

        Shows itself in a notebook; `.save("a.pdf")`, `.data`, `.report()`. Without a prompt, a neutral one; without
        layer and head, the one that attends most to the first token. Options are those of `qkv.figure_options()`.

        >>> import qkv
        >>> f = qkv.open().modify(layer=3, head=1)
        >>> f
        <qkv.Figure modify: 3 x 3 panels, layer 3, head 1>
        >>> f.data.shape
        (3, 3, 15, 15)
        """
        from .figures import make_figure

        return make_figure(
            self, "modify", prompt, dict(options, layer=layer, head=head, eps=eps, all_heads=all_heads), progress
        )

    def mean(
        self,
        prompts: Prompts = None,
        *,
        layer: Optional[int] = None,
        head: Optional[int] = None,
        all_heads: bool = False,
        progress: Progress = False,
        **options: Any,
    ) -> "Figure":
        """The figure of one head whose query, key or value is replaced by its mean, a row for every prompt.

        >>> import qkv
        >>> qkv.open().mean(layer=3, head=1)
        <qkv.Figure mean: 3 x 3 panels, layer 3, head 1>
        """
        from .figures import make_figure

        return make_figure(
            self, "mean", prompts, dict(options, layer=layer, head=head, all_heads=all_heads), progress
        )

    def grid(
        self,
        prompts: Prompts = None,
        *,
        rows: Any = None,
        cols: Any = None,
        layer: Optional[int] = None,
        head: Optional[int] = None,
        sources: Optional[Mapping[str, Prompt]] = None,
        set_prompts: Optional[Iterable[Prompt]] = None,
        progress: Progress = False,
        **options: Any,
    ) -> "Figure":
        """A figure of rows and columns of your own edits: mappings of labels to edits, or lists of edits.

        >>> import qkv
        >>> qkv.open().grid("The river runs.", cols={"plain": "", "no queries": "q@{layer}=zero"}, layer=3, head=1)
        <qkv.Figure grid: 1 x 2 panels, layer 3, head 1>
        """
        from .figures import make_figure

        return make_figure(
            self,
            "grid",
            prompts,
            dict(options, rows=rows, cols=cols, layer=layer, head=head, sources=sources, set_prompts=set_prompts),
            progress,
        )

    def heads(
        self,
        prompt: Optional[Prompt] = None,
        *,
        layers: Any = None,
        edits: Edits = None,
        progress: Progress = False,
        **options: Any,
    ) -> "Figure":
        """A small map of every head, with `edits` of one variant.

        >>> import qkv
        >>> qkv.open().heads("The river runs.", layers="2-3")
        <qkv.Figure heads: 2 x 4 panels>
        """
        from .figures import make_figure

        return make_figure(self, "heads", prompt, dict(options, layers=layers, variant=edits), progress)

    def pattern(
        self,
        prompts: Prompts = None,
        *,
        layer: Optional[int] = None,
        head: Any = None,
        edits: Any = None,
        pair: Optional[str] = None,
        progress: Progress = False,
        **options: Any,
    ) -> "Figure":
        """The map of one head, or of several heads of a layer: `head=[1, 3]` or `head="0-3"`.

        With `edits` the map under these edits; `diff=True` draws its change, `baseline=True` both. `pair` is the second
        text of a pair, for encoders such as BERT.

        >>> import qkv
        >>> qkv.open().pattern("The river runs.", layer=2, head=3)
        <qkv.Figure pattern: 1 x 1 panels, layer 2, head 3>
        >>> qkv.open().pattern("The river runs.", layer=2, head=[1, 3]).data.shape
        (1, 2, 6, 6)
        """
        from .figures import make_figure

        return make_figure(
            self, "pattern", prompts, dict(options, layer=layer, variant=edits, pair=pair, head=head), progress
        )

    def rows(
        self,
        prompts: Prompts = None,
        *,
        layer: Optional[int] = None,
        head: Optional[int] = None,
        query: int = -1,
        edits: Edits = None,
        progress: Progress = False,
        **options: Any,
    ) -> "Figure":
        """The weights of one query in every layer, or with `layer` in each of its heads; `edits` are one variant.

        >>> import qkv
        >>> qkv.open().rows("The river runs.", query=2).data.shape
        (1, 1, 6, 6)
        """
        from .figures import make_figure

        return make_figure(
            self, "rows", prompts, dict(options, layer=layer, head=head, query=query, variant=edits), progress
        )

    def explore(
        self, text: Optional[str] = None, *, height: int = 800, port: int = 0, host: str = "localhost"
    ) -> "Explorer":
        """The live page of the explorer, in a frame of the notebook; it ends with the object, or with `.stop()`.

        `text` is the prompt that it begins with. The page is served on this machine alone (docs/explorer.md); `host` is
        what the notebook's own address says, "localhost" or "127.0.0.1".

        >>> import qkv
        >>> page = qkv.open().explore("The river runs past the mill.")
        >>> page
        <qkv.Explorer: http://localhost:.../>
        >>> page.stop()
        """
        from .explorer import Explorer

        return Explorer(self, text, height, port, host)

    # ---- inside ----

    @property
    def weights(self) -> "Weights":
        """The weights as arrays, made when they are asked for.

        >>> import qkv
        >>> m = qkv.open()
        >>> m.weights["q", 3].shape                   # a row for every output
        (128, 128)
        >>> m.weights["token_embd"].shape
        (4096, 128)
        """
        from .weights import Weights

        return Weights(self)

    @property
    def hooks(self) -> dict[str, str]:
        """The hooks of TransformerLens that this model has, and what they are here.

        >>> import qkv
        >>> qkv.open().hooks["blocks.3.attn.hook_q"]
        'q@3'
        """
        return {
            hook.replace(".L.", f".{i}.", 1): site.replace("@L", f"@{i}")
            for i in range(self.info.n_layer)
            for hook, site in hooks().items()
        }


def _default_model() -> str:
    beside = Path(__file__).with_name("default.gguf")
    if not beside.exists():
        raise wrong("no model was given, and the default one is not installed")
    return str(beside)


def open(
    model: Union[None, str, "os.PathLike[str]"] = None, *, threads: int = 0, memory: int = 0  # noqa: A001
) -> Model:
    """Opens a GGUF file, a Hugging Face directory, or a model by name, such as "tinyllama" or "org/name:Q4_K_M".

    Without a name: what the environment variable QKV_MODEL says, or a small model that comes with the package.
    `threads` and `memory` (bytes for maps, batches and what is kept of the unedited run) are those of each session;
    0 are all cores, and 256 MiB.

    >>> import qkv
    >>> qkv.open().info.architecture
    'llama'
    """
    named = os.fspath(model) if model is not None else os.environ.get("QKV_MODEL") or None
    if named is None:
        return Model(_default_model(), threads, memory)
    out, err = ffi.new("qkv_model_place **"), new_error()
    check(lib.qkv_model_find(out, encoded(os.fsencode(named)), err), err)
    place = ffi.gc(out[0], lib.qkv_model_place_free)
    path = os.fsdecode(ffi.string(lib.qkv_model_place_get_info(place).path))
    return Model(path, threads, memory, os.fsdecode(named))
