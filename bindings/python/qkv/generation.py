"""Text that is continued token by token, with and without edits at once."""
from __future__ import annotations

import codecs
import threading
from typing import TYPE_CHECKING, Any, Iterator, Mapping, Optional, Sequence, Union

import numpy as np

from . import selections
from ._core import Strings, check, encoded, ffi, lib, new_error, new_struct, text_of, wrong
from .edits import Variants
from .notices import notice_idle
from .predictions import set_others

if TYPE_CHECKING:
    from .model import Captures, Model, Others
    from .results import Result

__all__ = ["Generation", "Step"]

_EDIT_TOKENS = ("all", "prompt", "new")


class Step:
    """One more token of every variant; None for a variant whose text has ended.

    >>> import qkv
    >>> step = next(qkv.open().generate("The river runs to the sea.", edits=["z@3.h1=zero"], n=4))
    >>> step.index, step.text, step.logits(1).shape
    (0, [' And', ' And'], (4096,))
    """

    __slots__ = ("index", "tokens", "text", "log_probability", "_generation")

    def __init__(self, generation: "Generation", index: int, n: int) -> None:
        self._generation, self.index = generation, index
        self.tokens: list[Optional[int]] = [None] * n
        self.text: list[Optional[str]] = [None] * n
        self.log_probability: list[Optional[float]] = [None] * n

    def logits(self, variant: int = 0) -> Any:
        """The logits that the token was chosen from, a copy; until the next step."""
        return self._generation._logits(variant, self.index)

    def __repr__(self) -> str:
        return f"<qkv.Step {self.index}: {self.text}>"


class _Branch:
    """The text of one variant."""

    def __init__(self, last: int) -> None:
        self.last, self.going = last, True
        self.tokens: list[int] = []
        self.log_probabilities: list[float] = []
        self.data = b""
        self.finish = "length"
        self.decoder = codecs.getincrementaldecoder("utf-8")("replace")


class Generation:
    """New text of the unedited model (0) and of every variant: an iterator over steps.

    >>> import qkv
    >>> g = qkv.open().generate("The river runs to the sea.", edits=["z@3.h1=zero"], n=4)
    >>> for step in g:
    ...     print(step.index, step.text[0])
    0  And
    1  the
    2  LORD
    3  said
    >>> g
    <qkv.Generation: 2 variants, 4 of at most 4 tokens>
    >>> g.run(capture="pattern@4")[1]["pattern", 4].shape        # prompt and new text in one pass
    (4, 12, 12)
    """

    def __init__(
        self,
        model: "Model",
        prompt: Any,
        variants: Variants,
        n: int,
        drawing: Mapping[str, Any],
        stop: Union[str, Sequence[str]],
        edit_tokens: str,
        recompute: bool,
        others: "Others",
        special: bool,
        parse_special: bool,
    ) -> None:
        if edit_tokens not in _EDIT_TOKENS:
            raise wrong(f"edit_tokens is one of {', '.join(_EDIT_TOKENS)}, not {edit_tokens!r}")
        self._model, self._variants, self._strings = model, variants, Strings()
        self._lock = threading.RLock()
        self._stops = [s.encode() for s in ([stop] if isinstance(stop, str) else stop)]
        self._max_new = selections.number(n, "n")
        self._sampler = self._drawing(drawing)
        options, err, out = new_struct("generator_options"), new_error(), ffi.new("qkv_generator **")
        ids, n_tokens, text = model._ids(prompt, special, parse_special)
        keep = self._strings
        variants.check_masks(model, n_tokens)
        if self._max_new < 0:
            raise wrong(f"n must be 0 or above, not {n}")
        options.max_new = self._max_new
        options.variants, options.n_variants = keep.array(variants.texts), len(variants.texts)
        options.customs, options.n_customs = keep.keep(variants.structs()), len(variants.registered)
        set_others(options, model, variants, others, special, parse_special, keep)
        options.edit_tokens = _EDIT_TOKENS.index(edit_tokens)
        options.recompute = recompute
        check(lib.qkv_generator_new(out, model._pointer, ids, n_tokens, options, err), err)
        self._pointer = ffi.gc(out[0], lib.qkv_generator_free)
        #: The edits of every variant, "" first.
        self.edits: list[str] = ["", *variants.texts]
        self.prompt: Optional[str] = None if text is None else text.decode("utf-8", "surrogateescape")
        self._branches = [_Branch(ids[n_tokens - 1]) for _ in self.edits]
        self._steps, self._fed = 0, False

    def _drawing(self, given: Mapping[str, Any]) -> Any:
        """Greedy, unless something about drawing is said."""
        sampler, err = new_struct("sampler_options"), new_error()
        temperature = given["temperature"]
        if temperature is None:
            temperature = 1.0 if given["top_k"] or given["top_p"] or given["min_p"] else 0.0
        sampler.temperature = selections.real(temperature, "temperature")
        for name in ("top_p", "min_p"):
            setattr(sampler, name, selections.real(given[name], name))
        for name in ("top_k", "seed"):
            setattr(sampler, name, selections.number(given[name], name))
        check(lib.qkv_sampler_check(sampler, err), err)
        return sampler

    # ---- steps ----

    def __iter__(self) -> Iterator[Step]:
        return self

    def __next__(self) -> Step:
        with self._lock:
            if not any(s.going for s in self._branches) or self._steps >= self._max_new:
                raise StopIteration
            if not self._fed:
                self._feed(ffi.NULL)
                self._fed = True
            else:
                self._feed(ffi.new("int32_t[]", [s.last if s.going else lib.QKV_NO_NEXT for s in self._branches]))
            step = Step(self, self._steps, len(self._branches))
            for v, branch in enumerate(self._branches):
                if branch.going:
                    self._draw(step, v, branch)
            self._steps += 1
            return step

    def _feed(self, tokens: Any) -> None:
        err, session = new_error(), self._model._session()
        with session.showing(None):
            status = lib.qkv_session_feed(session.pointer, self._pointer, tokens, err)
        check(status, err, self._variants.registered)

    def _draw(self, step: Step, variant: int, branch: _Branch) -> None:
        n_vocab, err, token = self._model.info.n_vocab, new_error(), ffi.new("int32_t *")
        logits = lib.qkv_generator_logits(self._pointer, variant)
        check(lib.qkv_sample(self._sampler, logits, n_vocab, step.index, token, err), err)
        step.tokens[variant] = int(token[0])
        step.log_probability[variant] = float(lib.qkv_log_probability(logits, n_vocab, token[0]))
        step.text[variant] = self._add(branch, int(token[0]), step.log_probability[variant] or 0.0)

    def _add(self, branch: _Branch, token: int, log_probability: float) -> str:
        """The token before decides whether a space belongs to the text."""
        if self._model.info.tokenizer == "none":
            new = f"{token} ".encode()
        else:
            new = self._model._decode([branch.last, token])[len(self._model._decode([branch.last])) :]
        branch.tokens.append(token)
        branch.log_probabilities.append(log_probability)
        branch.last = token
        before = len(branch.data)
        branch.data += new
        if lib.qkv_is_end_token(self._model._pointer, token):
            branch.going, branch.finish = False, "end"
        elif len(branch.tokens) == self._max_new:
            branch.going = False
        ends = [at for at in (branch.data.find(stop) for stop in self._stops) if at >= 0]
        if ends:
            branch.data, branch.going, branch.finish = branch.data[: min(ends)], False, "stop"
        return branch.decoder.decode(branch.data[before:], final=not branch.going)

    def _logits(self, variant: int, index: int) -> Any:
        with self._lock:
            if index != self._steps - 1:
                raise wrong("the logits of a step are there until the next step")
            logits = lib.qkv_generator_logits(self._pointer, range(len(self._branches))[variant])
            if logits == ffi.NULL:
                raise wrong(f"variant {variant} has ended")
            return np.frombuffer(ffi.buffer(logits, self._model.info.n_vocab * 4), dtype=np.float32).copy()

    # ---- what has come of it ----

    @property
    def texts(self) -> list[str]:
        """The new text of every variant, so far."""
        return [s.data.decode("utf-8", "replace") for s in self._branches]

    @property
    def tokens(self) -> list[list[int]]:
        """The new tokens of every variant, so far."""
        return [list(s.tokens) for s in self._branches]

    @property
    def log_probabilities(self) -> list[list[float]]:
        """Of each new token, as the model gives them."""
        return [list(s.log_probabilities) for s in self._branches]

    @property
    def finish(self) -> list[Optional[str]]:
        """Why each text has ended: "end" (a token that ends texts), "stop", "length"; None: it has not ended."""
        done = self._steps >= self._max_new
        return [None if s.going and not done else s.finish for s in self._branches]

    @property
    def changed(self) -> list[dict[str, int]]:
        """How many values each edit of each variant has changed so far."""
        found: list[dict[str, int]] = []
        for v in range(len(self._branches)):
            counts: dict[str, int] = {}
            while True:
                text = lib.qkv_generator_edit_text(self._pointer, v, len(counts))
                if text == ffi.NULL:
                    break
                counts[text_of(text)] = int(lib.qkv_generator_edit_changed(self._pointer, v, len(counts)))
            found.append(counts)
        return found

    def explain(self) -> str:
        """What is kept, and what variants share.

        >>> import qkv
        >>> print(qkv.open().generate("The river", edits="z@3=zero", n=2).explain())
        3 tokens of the prompt, up to 2 new ones, 1 variant
        baseline: ...
        """
        out, err = ffi.new("char **"), new_error()
        check(lib.qkv_generator_explain(self._pointer, out, err), err)
        try:
            return text_of(out[0])
        finally:
            lib.qkv_text_free(out[0])

    def run(self, capture: "Captures" = "pattern", variant: Optional[int] = None) -> "Result":
        """Captures of prompt and new text in one pass: variant 1 of the result has the edits.

        Which text: that of `variant`, by default the last one. The last token of it was drawn and not computed with:
        it is not part of the pass, and `logits[-1]` are those that it was drawn from.

        >>> import qkv
        >>> g = qkv.open().generate("The river runs to the sea.", n=3)
        >>> tokens = [step.tokens[0] for step in g]
        >>> r = g.run("logits[-1]")
        >>> r.tokens[-2:].tolist() == tokens[:2], int(r[0]["logits"][0].argmax()) == tokens[2]
        (True, True)
        """
        from .model import _captures
        from .results import Result, RunStore

        number = range(len(self._branches))[-1 if variant is None else selections.number(variant, "variant")]
        out, err = ffi.new("qkv_plan **"), new_error()
        with self._lock:
            check(lib.qkv_generator_plan(self._pointer, out, number, err), err)
        plan = _PlanOfText(ffi.gc(out[0], lib.qkv_plan_free), self._variants)
        for text in _captures(capture, self._model):
            check(lib.qkv_plan_add_capture(plan.pointer, encoded(text), err), err)
        result, session = ffi.new("qkv_result **"), self._model._session()
        status = lib.qkv_session_run(session.pointer, result, plan.pointer, err)
        check(status, err, self._variants.registered)
        made = Result(RunStore(self._model, ffi.gc(result[0], lib.qkv_result_free), plan))  # type: ignore[arg-type]
        notice_idle(variant.changed for variant in made)
        return made

    def __len__(self) -> int:
        return self._steps

    def __repr__(self) -> str:
        return f"<qkv.Generation: {len(self._branches)} variants, {self._steps} of at most {self._max_new} tokens>"

    def __str__(self) -> str:
        """The texts; until they have ended, also that this is not all of them."""
        lines = [f"{edits or 'unedited'}: {text}" for edits, text in zip(self.edits, self.texts)]
        if None in self.finish:
            lines.append(f"({self._steps} of at most {self._max_new} tokens so far; iterate to continue)")
        return "\n".join(lines)


class _PlanOfText:
    """What a result keeps of such a plan."""

    def __init__(self, pointer: Any, variants: Variants) -> None:
        self.pointer, self.variants = pointer, variants
