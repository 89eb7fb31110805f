"""Declare event types, and check events against their declarations.

Each event type is declared once, beside the code that applies it (`events/`): what it carries,
requires and changes. `fold.py` lists them all and derives the transition table. Timeline texts, the
JSON Schema, payload types and reference tables are derived outside of core, so that the hook does
not pay for them.
"""

from __future__ import annotations

from gsd_fsm.core.clock import to_ms
from gsd_fsm.core.codec import MAX_INT, check_value, digest_of
from gsd_fsm.core.errors import Newer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Iterable, Literal, Mapping, Optional, Union

    from gsd_fsm.core.loop.fold import Loops
    from gsd_fsm.core.loop.payloads import Event
    from gsd_fsm.core.loop.state import Loop, Status

    # Each function names the payload type of its own event; here, where all events pass, it is
    # Any. The payload was validated before any of the functions is called.
    Apply = Callable[[Loop, Event[Any]], None]
    When = Callable[[Loop, Event[Any]], bool]
    Rule = Callable[[Loop, Event[Any], Loops], None]
    IsNewer = Callable[[Optional[Loop], Mapping[str, Any]], bool]
    Kind = Union[type[Union[str, bool]], "Field"]
    Fields = Mapping[str, Kind]
    Target = Union[Status, Literal["same", "back"]]

# Version 2: loops with frozen rules, and lines that the software of version 1 cannot fold.
VERSIONS = (1, 2)
BY = ("agent", "human", "hook", "cli")
MEMBERS = frozenset(
    ("v", "seq", "ts", "loop", "type", "by", "session", "client", "optional", "data", "sum")
)
# Events about the journal itself, outside of every loop.
OF_THE_JOURNAL = ("journal", "repair")
SAME: Literal["same"] = "same"  # keep the status
BACK: Literal["back"] = "back"  # return to the status from before the wait or the pause

_ID_FIRST = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789")
_ID_REST = _ID_FIRST | frozenset("._-")
_known_ids: dict[Any, None] = {}


# names


def is_id(text: Any) -> bool:
    """Return whether this is 1 to 64 of A-Z a-z 0-9 . _ - and cannot be mistaken for a path."""
    if type(text) is not str:
        return False
    if text in _known_ids:
        return True
    fits = (
        0 < len(text) <= 64
        and text[0] in _ID_FIRST
        and _ID_REST.issuperset(text)
        and ".." not in text
    )
    if fits:
        if len(_known_ids) > 4096:
            _known_ids.clear()
        _known_ids[text] = None
    return fits


def is_session(text: Any) -> bool:
    """Return whether this can name a session or client: short printable ASCII without blanks."""
    return (
        type(text) is str
        and 0 < len(text) <= 200
        and text.isascii()
        and text.isprintable()
        and " " not in text
    )


def session_name(text: str) -> str:
    """Return the text as the name of a session, by its digest if it cannot be one; "" for none."""
    text = text.strip()
    return text if not text or is_session(text) else "x-" + digest_of(text)


def duplicates(names: Iterable[str]) -> list[str]:
    """Return the names that occur more than once, sorted."""
    seen: set[str] = set()
    return sorted({name for name in names if name in seen or seen.add(name)})  # type: ignore[func-returns-value]


# members of a payload


class Field:
    """The values that a payload member may have, where plain `str` or `bool` is not enough.

    `words` are the values of an enumeration, `members` those of an object or of the objects in a
    list, with the `required` ones named.
    """

    __slots__ = ("accepts", "kind", "members", "required", "words")

    def __init__(
        self,
        kind: str,
        accepts: Callable[[Any], bool],
        words: tuple[str, ...] = (),
        members: Fields | None = None,
        required: tuple[str, ...] = (),
    ) -> None:
        self.kind = kind
        self.accepts = accepts
        self.words = words
        self.members = members
        self.required = required


def _is_count(value: Any) -> bool:
    return type(value) is int and 0 <= value <= MAX_INT


def _is_time(value: Any) -> bool:
    try:
        return type(value) is str and to_ms(value) >= 0
    except (ValueError, IndexError):
        return False


def _is_text_or_null(value: Any) -> bool:
    return value is None or type(value) is str


def _is_object(value: Any) -> bool:
    if type(value) is not dict:
        return False
    check_value(value)
    return True


def one_of(*words: str) -> Field:
    return Field("one of " + ", ".join(words), lambda it: type(it) is str and it in words, words)


def record(kind: str, members: Fields, required: tuple[str, ...] = ()) -> Field:
    """Return a field that holds one object with these members."""
    return Field(kind, lambda it: _fits(it, members, required), (), members, required)


def records(kind: str, members: Fields, required: tuple[str, ...] = ()) -> Field:
    """Return a field that holds a list of such objects."""

    def accepts(value: Any) -> bool:
        return type(value) is list and all(_fits(item, members, required) for item in value)

    return Field(kind, accepts, (), members, required)


def _fits(value: Any, members: Fields, required: tuple[str, ...]) -> bool:
    if type(value) is not dict or not all(name in value for name in required):
        return False
    for name, item in value.items():
        field = members.get(name)
        if field is None:
            check_value(item)  # a member of a later version
        elif type(item) is not field and not (type(field) is Field and field.accepts(item)):
            return False
    return True


ID = Field("id", is_id)
COUNT = Field("count", _is_count)
AMOUNT = Field("amount", lambda it: type(it) in (int, float) and 0 <= it <= MAX_INT)
TIME = Field("time", _is_time)
TEXT_OR_NULL = Field("text or null", _is_text_or_null)
TEXTS = Field("texts", lambda it: type(it) is list and all(type(text) is str for text in it))
IDS = Field("ids", lambda it: type(it) is list and all(map(is_id, it)))
COUNTS = Field("counts", lambda it: type(it) is list and all(map(_is_count, it)))
DIGESTS = Field("digests", lambda it: type(it) is dict and all(map(_is_text_or_null, it.values())))
OBJECT = Field("object", _is_object)
PHASE = Field("phase", lambda it: type(it) is str or _is_count(it))


# declarations


class Arrow:
    """One row of the transition table: in these statuses, `apply` the event and go to `dest`."""

    __slots__ = ("apply", "dest", "sources", "when")

    def __init__(
        self, sources: tuple[Status, ...], dest: Target, apply: Apply, when: When | None = None
    ) -> None:
        self.sources = sources
        self.dest = dest
        self.apply = apply
        self.when = when


class Trigger:
    """What an event type, or one action of it, requires and does.

    `rules` are checked when an event is appended, never when it is replayed: a rule added later
    cannot make an old journal unreadable. Of the arrows from one status the first whose `when`
    holds is taken. `verb` is the command; empty if only hook and engine append such events.
    """

    __slots__ = ("action", "arrows", "rules", "verb")

    def __init__(
        self,
        action: str = "",
        *,
        arrows: tuple[Arrow, ...],
        rules: tuple[Rule, ...] = (),
        verb: str = "",
    ) -> None:
        self.action = action
        self.arrows = arrows
        self.rules = rules
        self.verb = verb


class EventType:
    """The declaration of one event type.

    `text` is its line in the timeline: a template, in which {member} is replaced by its value and
    a [part] is left out if a member in it is absent, or a function of the payload. `is_newer` tells
    whether such an event of a loop needs version 2.
    """

    __slots__ = ("fields", "is_newer", "name", "required", "text", "triggers")

    def __init__(
        self,
        name: str,
        *triggers: Trigger,
        required: Fields | None = None,
        optional: Fields | None = None,
        text: str | Callable[[Any], str] = "",
        is_newer: IsNewer | None = None,
    ) -> None:
        self.name = name
        self.is_newer = is_newer
        self.triggers = triggers
        self.required = tuple(required or ())
        self.fields: dict[str, Kind] = {**(required or {}), **(optional or {})}
        self.text = text

    @property
    def has_actions(self) -> bool:
        """Return whether the `action` in the payload selects one of several triggers."""
        return len(self.triggers) > 1

    def trigger_name(self, trigger: Trigger) -> str:
        return "%s.%s" % (self.name, trigger.action) if trigger.action else self.name

    def version_of(self, loop: Loop | None, data: Mapping[str, Any]) -> int:
        """Return the version that an event of this loop with this payload needs."""
        return VERSIONS[self.is_newer is not None and self.is_newer(loop, data)]

    def check(self, data: dict[str, Any]) -> None:
        """Raise ValueError unless an event of this type may carry `data`."""
        for name in self.required:
            if name not in data:
                raise ValueError("%s without %s" % (self.name, name))
        for name, value in data.items():
            field = self.fields.get(name)
            if field is None:
                check_value(value)  # a member of a later version
            elif type(value) is not field and not (type(field) is Field and field.accepts(value)):
                wanted = field.kind if type(field) is Field else field.__name__  # type: ignore[union-attr]
                raise ValueError("%s.%s: expected %s, got %.40r" % (self.name, name, wanted, value))


class StatusTable:
    """The transitions of a part of a loop: rows of trigger, statuses before, and status after.

    A rule refuses events that are not in the table when they are appended.
    """

    __slots__ = ("_sources", "rows")

    def __init__(self, *rows: tuple[str, tuple[str, ...], str]) -> None:
        self.rows = rows
        self._sources = {(trigger, dest): sources for trigger, sources, dest in rows}

    def allows(self, trigger: str, source: str, dest: str) -> bool:
        return source in self._sources.get((trigger, dest), ())

    def following(self, source: str, trigger: str) -> list[str]:
        """Return the statuses that the trigger leads to from this one."""
        return [dest for name, sources, dest in self.rows if name == trigger and source in sources]


# events


_minute = [""]


def check_time(ts: Any) -> None:
    """Raise ValueError unless this is a time as the journal writes it."""
    # Most lines share their minute with the line before: only a new one is parsed.
    if type(ts) is str and ts[:17] == _minute[0]:
        rest = ts[17:]
        digits = rest[:2] + rest[3:6]
        signs = rest[2:3] + rest[6:]
        if digits.isdecimal() and digits < "6" and signs == ".Z" and ts.isascii():
            return
    try:
        to_ms(ts)
    except (TypeError, ValueError):
        raise ValueError("'ts' is not a valid time") from None
    _minute[0] = ts[:17]


def check_event(event: Any, types: Mapping[str, EventType]) -> None:
    """Raise ValueError unless the fold can apply this event; Newer if it is of a later version."""
    if type(event) is not dict:
        raise ValueError("not a JSON object")
    # The version first: what a later one changed must not pass for damage.
    version = event.get("v", 1)
    if version not in VERSIONS or type(version) is not int:
        raise Newer("an event has version %.20r" % (version,))
    try:
        seq, loop, kind = event["seq"], event["loop"], event["type"]
        by, data = event["by"], event["data"]
        check_time(event["ts"])
    except KeyError as missing:
        raise ValueError("no member %s" % missing) from None
    if "v" not in event:
        raise ValueError("no member 'v'")
    if type(seq) is not int:
        raise ValueError("'seq' is not an integer")
    if type(by) is not str or by not in BY:
        raise ValueError("'by' is not one of %s" % ", ".join(BY))
    if type(data) is not dict:
        raise ValueError("'data' is not an object")
    declared = types.get(kind) if type(kind) is str else None
    if declared is None and (event.get("optional") is not True or not is_id(kind)):
        raise ValueError("unknown event type %.40r" % (kind,))
    if not is_id(loop) and (loop is not None or (declared and kind not in OF_THE_JOURNAL)):
        raise ValueError("'loop' is not a valid id")
    if len(event) > 7:
        _check_members(event)
    if declared is None:
        check_value(event)
    else:
        declared.check(data)


def _check_members(event: dict[str, Any]) -> None:
    unknown = [name for name in event if name not in MEMBERS]
    if unknown:
        raise ValueError("unknown member %.40r" % unknown[0])
    if not (is_session(event.get("session", "-")) and is_session(event.get("client", "-"))):
        raise ValueError("'session' or 'client' is not a valid name")
    if type(event.get("optional", False)) is not bool:
        raise ValueError("'optional' is not a boolean")
