"""What everything here stands on: the compiled module, errors, callbacks from C, sessions.

C works without the interpreter's lock. While a session computes, C calls `qkvpy_step` in the calling thread some 50
times a second; an exception there (Ctrl-C raises KeyboardInterrupt in the main thread) stops the work, and is raised
again when C has returned.
"""
from __future__ import annotations

import re
import threading
from typing import Any, Callable, Iterable, Optional, Sequence, Union

from ._load import ffi, lib

__all__ = ["ffi", "lib", "Error", "MissingError"]

# A text, or token ids: a list, a tuple or an array of whole numbers.
Prompt = Union[str, Sequence[int], Any]
Show = Callable[[str, float, float], Any]


def text_of(pointer: Any) -> str:
    """A C string; bytes that are not UTF-8 become escapes."""
    return "" if pointer == ffi.NULL else str(ffi.string(pointer).decode("utf-8", "backslashreplace"))


def names_of(function: Callable[[int], Any]) -> list[str]:
    """What a function of C lists: names from 0 on, up to NULL."""
    found: list[str] = []
    while True:
        name = function(len(found))
        if name == ffi.NULL:
            return found
        found.append(text_of(name))


class Error(Exception):
    """What went wrong, in one line, as the library says it.

    >>> import qkv
    >>> m = qkv.open()
    >>> try:
    ...     m.run("The river runs.", edits="q@99=zero")
    ... except qkv.Error as error:
    ...     print(error.code, error.status)
    ...     print(error)
    -7 plan cannot be run
    edit 'q@99=zero': layer 99 is out of range; the model has layers 0 to 5
    """

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        #: The library's number for it, a negative one; ``qkv.codes()`` lists them by name.
        self.code = code

    @property
    def status(self) -> str:
        """The kind of error, in words."""
        return text_of(lib.qkv_status_text(self.code))

    def __str__(self) -> str:
        return str(self.args[0])

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.code, self.args[0])


class MissingError(Error, KeyError):
    """Something that was not captured, or is not there; also a KeyError.

    >>> import qkv
    >>> try:
    ...     qkv.open().run("The river runs.", capture="q@2")[0]["q", 3]
    ... except KeyError as error:
    ...     print(error)
    q@3 was not captured; there is q@2
    """

    def __init__(self, message: str) -> None:
        super().__init__(lib.QKV_ERR_ARGUMENT, message)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.args[0],)


def wrong(message: str) -> Error:
    return Error(lib.QKV_ERR_ARGUMENT, message)


# ---- calling C ----


def encoded(text: Union[str, bytes]) -> bytes:
    """A text or path for C, where a zero byte ends it."""
    data = text if isinstance(text, bytes) else text.encode("utf-8", "surrogateescape")
    if b"\0" in data:
        raise wrong("a text with a zero byte in it cannot be given here")
    return data


class _Pending(threading.local):
    """The exception of a callback, until C has returned; and whether C is waiting for one in this thread."""

    exception: Optional[BaseException] = None
    called: bool = False


_pending = _Pending()


class Called:
    """While this is entered, C waits in this thread for a callback, and nothing can be computed here."""

    __slots__ = ("before",)

    def __enter__(self) -> None:
        self.before, _pending.called = _pending.called, True

    def __exit__(self, *problem: Any) -> None:
        _pending.called = self.before


def refuse_inside() -> None:
    """A session at work cannot be used, nor can another one in its thread."""
    if _pending.called:
        raise wrong("nothing can be run inside a function that a run calls: do it before, or in another thread")


def new_error() -> Any:
    return ffi.new("qkv_error *")


def with_names(message: str) -> str:
    """The library writes names of options between backquotes; they are the keywords of Python."""
    return re.sub(r"`([a-z][a-z0-9_]*)`", r"'\1'", message)


def check(status: int, err: Any, customs: Iterable[Any] = ()) -> None:
    """Raises what C, or a callback on the way, has to say."""
    for custom in customs:
        custom.reraise()
    if _pending.exception is not None:
        exception, _pending.exception = _pending.exception, None
        raise exception
    if status != 0:
        raise Error(status, with_names(text_of(err.message)))


def new_struct(name: str) -> Any:
    """A struct of C as its initialiser makes it."""
    struct = ffi.new(f"qkv_{name} *")
    getattr(lib, f"qkvpy_init_{name}")(struct)
    return struct


def take_bytes(pointer: Any, length: Any) -> bytes:
    """What C has written for the caller, who frees it."""
    try:
        return bytes(ffi.buffer(pointer[0], length[0]))
    finally:
        lib.qkv_bytes_free(pointer[0])


class Strings:
    """C strings, kept alive as long as this is."""

    def __init__(self) -> None:
        self.kept: list[Any] = []

    def one(self, text: Union[str, bytes]) -> Any:
        made = ffi.new("char[]", encoded(text))
        self.kept.append(made)
        return made

    def array(self, texts: Sequence[str]) -> Any:
        made = ffi.new("char *[]", [self.one(text) for text in texts])
        self.kept.append(made)
        return made

    def keep(self, thing: Any) -> Any:
        self.kept.append(thing)
        return thing


def note_exception(kind: Any, exception: BaseException, traceback: Any) -> None:
    """What a callback raised; `check` raises it again when C has returned."""
    _pending.exception = exception


@ffi.def_extern(error=1, onerror=note_exception)
def qkvpy_step(user: Any, what: Any, done: float, total: float) -> int:
    ffi.from_handle(user).tell(text_of(what), done, total)
    return 0


@ffi.def_extern(error=1, onerror=note_exception)
def qkvpy_swept(user: Any, done: int, wanted: int) -> int:
    ffi.from_handle(user).tell("cells", done, wanted)
    return 0


class Watch:
    """What a callback of C is given as its `user`: who is told how far the work has come."""

    def __init__(self) -> None:
        self.show: Optional[Show] = None
        self.last: Optional[tuple[str, float, float]] = None
        self.handle = ffi.new_handle(self)
        self.progress = new_struct("progress")
        self.progress.step = lib.qkvpy_step
        self.progress.user = self.handle

    def tell(self, what: str, done: float, total: float) -> None:
        if self.show is not None:
            self.last = what, done, total
            with Called():
                self.show(what, done, total)

    def finish(self) -> None:
        """C tells how far it has come now and then, and not that it is done."""
        if self.last is not None and self.last[1] < self.last[2]:
            self.tell(self.last[0], self.last[2], self.last[2])


class Session:
    """A session of C with its watch: one for each thread and model, made on demand."""

    def __init__(self, model: Any, threads: int, memory: int) -> None:
        out, err, options = ffi.new("qkv_session **"), new_error(), new_struct("session_options")
        options.n_threads = threads
        options.memory_budget = memory
        check(lib.qkv_session_new(out, model, options, err), err)
        self.pointer = ffi.gc(out[0], lib.qkv_session_free)
        self.watch = Watch()
        check(lib.qkv_session_set_progress(self.pointer, self.watch.progress, err), err)

    def showing(self, show: Optional[Show]) -> "Showing":
        return Showing(self.watch, show)


class Showing:
    """While this is entered, the watch tells somebody."""

    __slots__ = ("watch", "show", "before")

    def __init__(self, watch: Watch, show: Optional[Show]) -> None:
        self.watch, self.show = watch, show

    def __enter__(self) -> "Showing":
        self.before = self.watch.show, self.watch.last
        self.watch.show, self.watch.last = self.show, None
        return self

    def check(self, status: int, err: Any, customs: Iterable[Any] = ()) -> None:
        """Raises what C has to say; else the work is done, and that is told."""
        check(status, err, customs)
        self.watch.finish()

    def __exit__(self, *problem: Any) -> None:
        self.watch.show, self.watch.last = self.before
        close = getattr(self.show, "close", None)
        if close is not None:
            close()
