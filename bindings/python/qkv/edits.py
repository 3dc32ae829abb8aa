"""Edits as objects that print as the notation: the same as writing the text.

    >>> import qkv
    >>> print(qkv.scale("q", layer=8, head=11, by=1e-3))
    q@8.h11=scale:0.001
    >>> print(qkv.zero("z", layer=5) + qkv.add("v", layer=[2, 3], kv_head=0, tokens=slice(1, None), by=0.5))
    z@5=zero + v@2,3.g0[1:]=add:0.5
"""
from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, Optional, Sequence, Union

from . import selections
from ._core import Called, check, encoded, ffi, lib, new_error, new_struct, note_exception, wrong
from .hooks import translated
from .selections import Mask, Numbers, Selected

if TYPE_CHECKING:
    from .model import Model

__all__ = [
    "Edit",
    "scale",
    "set",
    "zero",
    "add",
    "mean",
    "noise",
    "clamp",
    "patch",
    "resample",
    "freeze",
    "mask",
    "keep",
    "quant",
    "custom",
]

def _float(value: Any, what: str) -> str:
    if isinstance(value, str):
        return value
    return repr(selections.real(value, what))


def _vector(name: Any) -> str:
    """`@NAME` of the notation: one of a run's `vectors`, or FILE#TENSOR."""
    if not isinstance(name, str) or not name.strip("@"):
        raise TypeError(f"a vector is named by a text, 'happy' or 'dir.safetensors#happy', not {name!r}")
    return "@" + name.lstrip("@")


def place(site: str, layer: Numbers, head: Numbers, kv_head: Numbers, tokens: Any, channels: Any = None) -> Selected:
    """Where an edit is: `q@8.h11[1:]`."""
    from .names import SHAPES, WITHOUT_LAYER

    text = translated(site)
    shape = SHAPES.get(text.split("@")[0], "T,D")
    parts = [Selected(text)]
    if "@" not in text and text not in WITHOUT_LAYER:
        chosen = selections.numbers(layer, "layer", "L")
        parts.append(Selected("@" + chosen.text, chosen.masks))
    elif layer is not None:
        raise wrong(f"'{site}' says its layer itself, or has none: leave out layer")
    if head is not None and kv_head is not None:
        raise wrong("give head (query heads) or kv_head (key/value heads), not both")
    for given, name, letter in ((head, "head", "h"), (kv_head, "kv_head", "g")):
        if given is not None:
            chosen = selections.numbers(given, name, letter.upper())
            parts.append(Selected(f".{letter}{chosen.text}", chosen.masks))
    parts.append(selections.tokens(tokens, shape == "H,T,T"))
    parts.append(selections.channels(channels, shape[-1]))
    return Selected("".join(p.text for p in parts), tuple(m for p in parts for m in p.masks))


class Edit:
    """One edit, or several that are made at once.

    >>> import qkv
    >>> e = qkv.Edit("q@3.h1=zero") + "v@2=scale:0.5"
    >>> e, str(e)
    (Edit('q@3.h1=zero + v@2=scale:0.5'), 'q@3.h1=zero + v@2=scale:0.5')
    """

    def __init__(self, text: str, function: Optional["Function"] = None, masks: tuple[Mask, ...] = ()) -> None:
        self._parts: tuple[tuple[str, Optional[Function]], ...] = ((str(text), function),)
        self._masks = masks

    @property
    def text(self) -> str:
        """As the notation has it."""
        return " + ".join(text for text, _ in self._parts)

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"Edit({self.text!r})"

    def __add__(self, other: Union["Edit", str]) -> "Edit":
        if isinstance(other, str):
            other = Edit(other)
        if not isinstance(other, Edit):
            return NotImplemented
        both = Edit("")
        both._parts, both._masks = self._parts + other._parts, self._masks + other._masks
        return both

    def __radd__(self, other: str) -> "Edit":
        return Edit(other) + self if isinstance(other, str) else NotImplemented

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Edit) and self._parts == other._parts

    def __hash__(self) -> int:
        return hash(self.text)


def _edit(op: str, site: str, layer: Numbers, head: Numbers, kv_head: Numbers, tokens: Any, channels: Any) -> Edit:
    where = place(site, layer, head, kv_head, tokens, channels)
    return Edit(f"{where.text}={op}", masks=where.masks)


def scale(
    site: str,
    *,
    by: Any,
    layer: Numbers = None,
    head: Numbers = None,
    kv_head: Numbers = None,
    tokens: Any = None,
    channels: Any = None,
) -> Edit:
    """Multiplies by a factor. Without `layer`, in all of them; `head` counts query heads, `kv_head` key/value heads.

    >>> import qkv
    >>> print(qkv.scale("q", layer=8, head=11, by=1e-3))
    q@8.h11=scale:0.001
    """
    return _edit(f"scale:{_float(by, 'by')}", site, layer, head, kv_head, tokens, channels)


def set(
    site: str,
    *,
    to: Any = None,
    vector: Optional[str] = None,
    layer: Numbers = None,
    head: Numbers = None,
    kv_head: Numbers = None,
    tokens: Any = None,
    channels: Any = None,
) -> Edit:
    """Replaces by a value, or by a vector: one of the run's `vectors` by its name, or FILE#TENSOR.

    >>> import qkv
    >>> print(qkv.set("pattern", layer=5, head=2, tokens=(slice(None), 0), to=0))
    pattern@5.h2[:,0]=set:0.0
    >>> print(qkv.set("resid_post", layer=2, tokens=-1, vector="happy"))
    resid_post@2[-1]=set:@happy
    """
    if vector is not None and to is not None:
        raise TypeError("give to (a number) or vector (a name), not both")
    value = _float(to, "to") if vector is None else _vector(vector)
    return _edit(f"set:{value}", site, layer, head, kv_head, tokens, channels)


def zero(
    site: str,
    *,
    layer: Numbers = None,
    head: Numbers = None,
    kv_head: Numbers = None,
    tokens: Any = None,
    channels: Any = None,
) -> Edit:
    """Replaces by 0.

    >>> import qkv
    >>> print(qkv.zero("z", layer=range(2, 4), head=1))
    z@2,3.h1=zero
    >>> print(qkv.zero("resid_post", layer=1, tokens=0, channels=[7, slice(16, 32)]))
    resid_post@1[0]{7,16:32}=zero
    """
    return _edit("zero", site, layer, head, kv_head, tokens, channels)


def add(
    site: str,
    *,
    by: Any = None,
    vector: Optional[str] = None,
    layer: Numbers = None,
    head: Numbers = None,
    kv_head: Numbers = None,
    tokens: Any = None,
    channels: Any = None,
) -> Edit:
    """Adds a value; or a vector (one of the run's `vectors` by its name, or FILE#TENSOR), `by` times.

    >>> import qkv
    >>> print(qkv.add("scores", layer=1, head=0, tokens=(slice(3, None), 0), by=-2))
    scores@1.h0[3:,0]=add:-2.0
    >>> print(qkv.add("resid_post", layer=2, vector="happy", by=4))
    resid_post@2=add:@happy,by=4.0
    """
    value = "" if by is None and vector is not None else _float(by, "by")
    if vector is not None:
        value = _vector(vector) + (value and f",by={value}")
    return _edit(f"add:{value}", site, layer, head, kv_head, tokens, channels)


def remove(
    site: str,
    *,
    vector: str,
    layer: Numbers = None,
    head: Numbers = None,
    kv_head: Numbers = None,
    tokens: Any = None,
) -> Edit:
    """Takes out what points in a vector's direction: one of the run's `vectors` by its name, or FILE#TENSOR.

    >>> import qkv
    >>> print(qkv.remove("resid_post", layer=2, vector="happy"))
    resid_post@2=remove:@happy
    """
    return _edit(f"remove:{_vector(vector)}", site, layer, head, kv_head, tokens, None)


def mean(
    site: str,
    *,
    over: str,
    per: Optional[str] = None,
    layer: Numbers = None,
    head: Numbers = None,
    kv_head: Numbers = None,
    tokens: Any = None,
    channels: Any = None,
) -> Edit:
    """Replaces by the mean over "head", "others", "token" or "dim"; or over "set", the tokens of the `set_prompts` of a
    run: all of them, or with per="position" those at the same position.

    >>> import qkv
    >>> print(qkv.mean("k", layer=3, over="head"))
    k@3=mean:head
    >>> print(qkv.mean("z", layer=3, head=1, over="set", per="position"))
    z@3.h1=mean:set,per=position
    """
    return _edit(f"mean:{over}" if per is None else f"mean:{over},per={per}", site, layer, head, kv_head, tokens, channels)


def noise(
    site: str,
    *,
    sd: Any,
    seed: int = 0,
    layer: Numbers = None,
    head: Numbers = None,
    kv_head: Numbers = None,
    tokens: Any = None,
    channels: Any = None,
) -> Edit:
    """Adds seeded normal noise.

    >>> import qkv
    >>> print(qkv.noise("q", layer=3, sd=0.1, seed=7))
    q@3=noise:0.1,seed=7
    """
    return _edit(f"noise:{_float(sd, 'sd')},seed={selections.number(seed, 'seed')}", site, layer, head, kv_head, tokens, channels)


def clamp(
    site: str,
    *,
    low: Any,
    high: Any,
    layer: Numbers = None,
    head: Numbers = None,
    kv_head: Numbers = None,
    tokens: Any = None,
    channels: Any = None,
) -> Edit:
    """Keeps between two bounds.

    >>> import qkv
    >>> print(qkv.clamp("resid_post", layer=0, low=-5, high=5))
    resid_post@0=clamp:-5.0,5.0
    """
    return _edit(f"clamp:{_float(low, 'low')},{_float(high, 'high')}", site, layer, head, kv_head, tokens, channels)


def _named(**arguments: Any) -> str:
    return ",".join(f"{name}={value}" for name, value in arguments.items() if value is not None)


def mask(
    site: str = "scores",
    *,
    sink: Optional[int] = None,
    recent: Optional[int] = None,
    band: Optional[int] = None,
    positions: Optional[str] = None,
    layer: Numbers = None,
    head: Numbers = None,
    tokens: Any = None,
) -> Edit:
    """Hides keys before the softmax: all selected cells, or all but the first `sink` keys and the `recent` most
    recent ones, or those less than `band` away. With positions="cache", positions are counted within what is left.

    >>> import qkv
    >>> print(qkv.mask(sink=4, recent=256), qkv.mask(layer=3, head=1, tokens=(slice(1, None), 0)))
    scores@*=mask:sink=4,recent=256 scores@3.h1[1:,0]=mask
    """
    left = _named(sink=sink, recent=recent, band=band, positions=positions)
    return _edit("mask:" + left if left else "mask", site, layer, head, None, tokens, None)


def keep(
    site: str = "scores",
    *,
    by: str,
    budget: int,
    recent: Optional[int] = None,
    window: Optional[int] = None,
    kernel: Optional[int] = None,
    pool: Optional[str] = None,
    prompt: Optional[int] = None,
    rule: Optional[str] = None,
    layer: Numbers = None,
    head: Numbers = None,
    tokens: Any = None,
) -> Edit:
    """Hides keys that a small cache would have dropped, by "h2o" (budget, recent, prompt, rule) or "snapkv" (budget,
    window, kernel, pool, prompt).

    >>> import qkv
    >>> print(qkv.keep(by="h2o", budget=64, recent=32))
    scores@*=keep:h2o,budget=64,recent=32
    """
    arguments = _named(
        budget=budget, recent=recent, window=window, kernel=kernel, pool=pool, prompt=prompt, rule=rule
    )
    return _edit(f"keep:{by},{arguments}", site, layer, head, None, tokens, None)


def quant(
    site: str,
    *,
    bits: int,
    axis: str,
    group: Optional[int] = None,
    keep: Optional[int] = None,
    per: Optional[str] = None,
    prompt: Optional[int] = None,
    layer: Numbers = None,
    head: Numbers = None,
    kv_head: Numbers = None,
    tokens: Any = None,
    channels: Any = None,
) -> Edit:
    """Rounds to 2**bits levels, in groups of tokens (axis "channel") or of channels (axis "token"); the last `keep`
    tokens stay. With per="query", of k_rot and v, every query sees what a cache has quantised by then.

    >>> import qkv
    >>> print(qkv.quant("k_rot", bits=2, axis="channel", group=32, keep=128))
    k_rot@*=quant:bits=2,axis=channel,group=32,keep=128
    """
    arguments = _named(bits=bits, axis=axis, group=group, keep=keep, per=per, prompt=prompt)
    return _edit(f"quant:{arguments}", site, layer, head, kv_head, tokens, channels)


def patch(
    site: str,
    *,
    source: str,
    layer: Numbers = None,
    head: Numbers = None,
    kv_head: Numbers = None,
    tokens: Any = None,
    channels: Any = None,
    source_tokens: Any = None,
) -> Edit:
    """Takes the values of another prompt, which `sources` of a run names. With `source_tokens`, as many as `tokens`,
    the two prompts need not be equally long.

    >>> import qkv
    >>> print(qkv.patch("resid_pre", layer=2, tokens=-1, source="clean"))
    resid_pre@2[-1]=patch:clean
    >>> print(qkv.patch("resid_pre", layer=2, tokens=slice(2, 5), source="clean", source_tokens=slice(4, 7)))
    resid_pre@2[2:5<-4:7]=patch:clean
    """
    if source_tokens is not None:
        if tokens is None:
            raise wrong("source_tokens go with tokens: which of the prompt takes which of the source")
        own, others = (
            selections.tokens(selections.ordered(given, what), False)
            for given, what in ((tokens, "tokens"), (source_tokens, "source_tokens"))
        )
        if own.masks or others.masks:
            raise TypeError("tokens and source_tokens stand in an order, which a mask does not have: give numbers")
        tokens = f"{own.text[1:-1]}<-{others.text[1:-1]}"
    return _edit(f"patch:{source}", site, layer, head, kv_head, tokens, channels)


def resample(
    site: str,
    *,
    seed: int = 0,
    layer: Numbers = None,
    head: Numbers = None,
    kv_head: Numbers = None,
    tokens: Any = None,
    channels: Any = None,
) -> Edit:
    """Takes the values of another prompt, drawn with the seed from the `set_prompts` of a run.

    >>> import qkv
    >>> print(qkv.resample("z", layer=3, head=1, seed=7))
    z@3.h1=patch:resample,seed=7
    """
    return _edit(f"patch:resample,seed={selections.number(seed, 'seed')}", site, layer, head, kv_head, tokens, channels)


def freeze(
    site: str,
    *,
    layer: Numbers = None,
    head: Numbers = None,
    kv_head: Numbers = None,
    tokens: Any = None,
    channels: Any = None,
) -> Edit:
    """Keeps the values of the unedited run, whatever other edits of the variant do before.

    >>> import qkv
    >>> print(qkv.zero("z", layer=1, head=0) + qkv.freeze("mlp_out", layer="*"))
    z@1.h0=zero + freeze:mlp_out@*
    """
    where = place(site, layer, head, kv_head, tokens, channels)
    return Edit(f"freeze:{where.text}", masks=where.masks)


# ---- functions ----


class Where:
    """What a function is given besides the values: which layer, heads, tokens and keys or channels they belong to."""

    __slots__ = ("site", "layer", "heads", "tokens", "keys", "channels", "edit")

    def __init__(self, call: Any) -> None:
        from .names import sites

        self.site: str = sites()[call.site].name
        self.layer: Optional[int] = None if call.layer < 0 else call.layer
        self.heads = [call.heads[i] for i in range(call.n_heads)]
        self.tokens = [call.tokens[i] for i in range(call.n_tokens)]
        self.keys = [call.keys[i] for i in range(call.n_keys)]
        self.channels = [call.channels[i] for i in range(call.n_channels)]
        self.edit: str = ffi.string(call.edit).decode()

    def __repr__(self) -> str:
        return f"<qkv.Where: {self.edit}, layer {self.layer}, {len(self.tokens)} tokens>"


def _takes_where(fn: Callable[..., Any]) -> bool:
    """Does it take a second argument without a default? Then it gets a `Where`."""
    import inspect

    try:
        parameters = list(inspect.signature(fn).parameters.values())
    except (TypeError, ValueError):
        return False
    plain = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) and p.default is p.empty]
    return len(plain) >= 2


def _address(fn: Any) -> Optional[int]:
    """Where a C function is: of a cffi or ctypes pointer; None: it is Python's."""
    if isinstance(fn, ffi.CData):
        return int(ffi.cast("uintptr_t", fn))
    if type(fn).__module__ in ("_ctypes", "ctypes") or any(c.__name__ == "_CFuncPtr" for c in type(fn).__mro__):
        import ctypes

        return ctypes.cast(fn, ctypes.c_void_p).value
    return None


class Function:
    """A function of `qkv.custom`."""

    def __init__(self, name: str, fn: Any, by_token: bool) -> None:
        self.name, self.fn, self.by_token = name, fn, by_token
        self.address = _address(fn)
        if self.address is None and not callable(fn):
            raise TypeError(f"fn must be a function, not {fn!r}")
        self.takes_where = self.address is None and _takes_where(fn)

    def is_same(self, other: "Function") -> bool:
        return (self.name, self.by_token) == (other.name, other.by_token) and self.fn is other.fn

    def apply(self, call: Any) -> None:
        import numpy as np

        shape = tuple(call.shape[i] for i in range(call.n_dims))
        values = np.frombuffer(ffi.buffer(call.values, call.n_values * 4), dtype=np.float32).reshape(shape)
        given = values.copy()  # somebody may keep it, and `values` is gone when C returns
        result = self.fn(given, Where(call)) if self.takes_where else self.fn(given)
        if result is None:
            raise TypeError(
                f"the function '{self.name}' returned None; it must return the tensor, also where it has "
                "changed it in place"
            )
        made = np.asarray(result)
        if made.shape != shape:
            raise ValueError(
                f"the function '{self.name}' returned an array of shape {made.shape}; it must have that "
                f"of what it was given, {shape}"
            )
        if made.dtype.kind not in "fiub":
            raise TypeError(f"the function '{self.name}' returned an array of {made.dtype}; it must hold real numbers")
        with np.errstate(over="ignore"):
            values[...] = made


def custom(
    site: str,
    *,
    fn: Any,
    layer: Numbers = None,
    head: Numbers = None,
    kv_head: Numbers = None,
    tokens: Any = None,
    channels: Any = None,
    name: Optional[str] = None,
    by_token: bool = False,
) -> Edit:
    """An edit of your own: `fn` gets what is selected, as an array, and returns it changed.

    The array is shaped as a capture of the same place: (tokens, width), (tokens, heads, channels) or (heads, queries,
    keys). A function of two arguments also gets a `Where`. `name` is what results and files call it. With `by_token`
    you promise that what becomes of a token depends on no other token; then it works in `generate`, which hands it
    new tokens only. `fn` may be a C function too, a pointer of cffi or ctypes: see qkv/custom.h.

    >>> import qkv
    >>> m = qkv.open()
    >>> def halve(x):
    ...     return x / 2
    >>> r = m.run("The river runs.", edits=[qkv.custom("resid_post", layer=3, fn=halve)], capture="logits[-1]")
    >>> list(r[1].changed)
    ['resid_post@3=custom:halve']
    """
    called = name if name is not None else getattr(fn, "__name__", "") or "function"
    if name is None:
        called = "".join(c if c.isalnum() or c in "_.-" else "_" for c in called).strip("_") or "function"
    function = Function(called, fn, by_token)
    where = place(site, layer, head, kv_head, tokens, channels)
    return Edit(f"{where.text}=custom:{called}", function, where.masks)


class Registered:
    """A function in a plan, as C calls it; keeps what it raised."""

    def __init__(self, function: Function, name: str) -> None:
        self.function, self.name = function, name
        self.exception: Optional[BaseException] = None
        self.handle = ffi.new_handle(self)
        self.text = ffi.new("char[]", encoded(name))

    def fill(self, struct: Any) -> Any:
        struct.name = self.text
        struct.by_token = self.function.by_token
        if self.function.address is not None:
            struct.apply = ffi.cast("int (*)(void *, const qkv_custom_call *, qkv_error *)", self.function.address)
        else:
            struct.apply = lib.qkvpy_custom
            struct.user = self.handle
        return struct

    def reraise(self) -> None:
        if self.exception is not None:
            exception, self.exception = self.exception, None
            raise exception


# Ctrl-C may come before the first line of the function.
@ffi.def_extern(error=-1, onerror=note_exception)
def qkvpy_custom(user: Any, call: Any, err: Any) -> int:
    registered = ffi.from_handle(user)
    try:
        with Called():
            registered.function.apply(call)
        return 0
    except BaseException as exception:  # raised again when C has returned
        registered.exception = exception
        return int(lib.QKV_ERR_CANCELLED)


# ---- what is given as edits ----

Edits = Union[None, str, Edit, Sequence[Any]]


class Variants:
    """Edits as they were given: a text for each variant, and the functions that they name."""

    def __init__(self, edits: Edits, with_unedited: bool = False) -> None:
        """With `with_unedited`, an empty text is a variant without edits. Else the first one may be empty, as in
        `Result.edits`: it stands for the unedited run, which there is anyway."""
        self.texts: list[str] = []
        self.registered: list[Registered] = []
        self.masks: list[Mask] = []
        if edits is None or edits is Ellipsis:
            return
        if isinstance(edits, (str, Edit)):
            edits = [edits]
        if isinstance(edits, (dict, bytes)) or not hasattr(edits, "__iter__"):
            raise TypeError(f"edits are a list of texts such as 'q@3.h1=zero' or of Edits, not {edits!r}")
        for variant in selections.ordered(edits, "edits"):
            if variant is not Ellipsis:  # "..." stands for edits to be filled in
                self.texts.append(self._text(variant))
        if not with_unedited and self.texts and not self.texts[0].strip():
            del self.texts[0]

    def _text(self, variant: Any) -> str:
        if isinstance(variant, str):
            return variant
        if isinstance(variant, Edit):
            return self._with_functions(variant)
        if isinstance(variant, (list, tuple)):
            return " + ".join(self._text(part) for part in variant)
        raise TypeError(f"an edit is a text such as 'q@3.h1=zero' or an Edit, not {variant!r}")

    def _with_functions(self, edit: Edit) -> str:
        """Its text, with the names that its functions have here."""
        parts = []
        self.masks += edit._masks
        for text, function in edit._parts:
            if function is not None:
                text = text[: -len(function.name)] + self._register(function).name
            parts.append(text)
        return " + ".join(parts)

    def _register(self, function: Function) -> Registered:
        """Once; a function whose name another one has already gets another name."""
        for known in self.registered:
            if known.function.is_same(function):
                return known
        names, name, n = [r.name for r in self.registered], function.name, 2
        while name in names:
            name, n = f"{function.name}_{n}", n + 1
        self.registered.append(Registered(function, name))
        return self.registered[-1]

    def check_masks(self, model: "Model", n_tokens: int) -> None:
        """Masks must be as long as what they select from."""
        for mask in self.masks:
            mask.check(model, n_tokens)

    def structs(self) -> Any:
        """The functions as an array for C."""
        if not self.registered:
            return ffi.NULL
        array = ffi.new("qkv_custom_edit[]", len(self.registered))
        for i, registered in enumerate(self.registered):
            lib.qkvpy_init_custom_edit(array + i)
            registered.fill(array[i])
        return array

    def add_to(self, plan: Any) -> None:
        err = new_error()
        for registered in self.registered:
            check(lib.qkv_plan_add_custom(plan, registered.fill(new_struct("custom_edit")), err), err)
        for text in self.texts:
            check(lib.qkv_plan_add_variant(plan, encoded(text), ffi.NULL, err), err)
