"""Declare event types: what an event carries, requires and changes.

Each event type is declared once, beside the code that applies it (`events/`); `table.py` lists
them all and derives what the fold needs. Timeline texts, the JSON Schema, payload types and
reference tables are derived outside of core, so that the hook does not pay for them.
"""

from __future__ import annotations

from gsd_fsm.core.clock import to_ms
from gsd_fsm.core.codec import MAX_INT, check_value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Iterable, Literal, Mapping, Union

    from gsd_fsm.core.loop.fold import Loops
    from gsd_fsm.core.loop.payloads import Event
    from gsd_fsm.core.loop.state import Loop, Status

    # Each function names the payload type of its own event; here, where all events pass, it is
    # Any. The payload was validated before any of the functions is called.
    Apply = Callable[[Loop, Event[Any]], None]
    When = Callable[[Loop, Event[Any]], bool]
    Rule = Callable[[Loop, Event[Any], Loops], None]
    Kind = Union[type[Union[str, bool]], "Field"]
    Fields = Mapping[str, Kind]
    Target = Union[Status, Literal["same", "back"]]

SAME: Literal["same"] = "same"  # keep the status
BACK: Literal["back"] = "back"  # return to the status from before the wait or the pause

_ID_FIRST = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789")
_ID_REST = _ID_FIRST | frozenset("._-")
_known_ids: dict[str, None] = {}


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


def is_id(text: Any) -> bool:
    """Return whether this is 1 to 64 of A-Z a-z 0-9 . _ - and cannot be mistaken for a path."""
    if type(text) is not str:
        return False
    if text in _known_ids:
        return True
    if not (
        0 < len(text) <= 64
        and text[0] in _ID_FIRST
        and _ID_REST.issuperset(text)
        and ".." not in text
    ):
        return False
    if len(_known_ids) > 4096:
        _known_ids.clear()
    _known_ids[text] = None
    return True


def _is_count(value: Any) -> bool:
    return type(value) is int and 0 <= value <= MAX_INT


def _is_amount(value: Any) -> bool:
    return type(value) in (int, float) and 0 <= value <= MAX_INT


def _is_time(value: Any) -> bool:
    try:
        return type(value) is str and to_ms(value) >= 0
    except (ValueError, IndexError):
        return False


def _is_text_or_null(value: Any) -> bool:
    return value is None or type(value) is str


def _is_texts(value: Any) -> bool:
    return type(value) is list and all(type(item) is str for item in value)


def _is_ids(value: Any) -> bool:
    return type(value) is list and all(map(is_id, value))


def _is_counts(value: Any) -> bool:
    return type(value) is list and all(map(_is_count, value))


def _is_digests(value: Any) -> bool:
    return type(value) is dict and all(map(_is_text_or_null, value.values()))


def _is_object(value: Any) -> bool:
    if type(value) is not dict:
        return False
    check_value(value)
    return True


def _is_phase(value: Any) -> bool:
    return type(value) is str or _is_count(value)


def one_of(*words: str) -> Field:
    return Field("one of " + ", ".join(words), lambda it: type(it) is str and it in words, words)


def record(kind: str, members: Fields, required: tuple[str, ...] = ()) -> Field:
    """Return a field that holds one object with these members."""
    return Field(kind, lambda it: _fits(it, members, required), (), members, required)


def records(kind: str, members: Fields, required: tuple[str, ...] = ()) -> Field:
    """Return a field that holds a list of such objects."""
    return Field(
        kind,
        lambda it: type(it) is list and all(_fits(item, members, required) for item in it),
        (),
        members,
        required,
    )


def _fits(value: Any, members: Fields, required: tuple[str, ...]) -> bool:
    if type(value) is not dict or not all(name in value for name in required):
        return False
    for name, item in value.items():
        field = members.get(name)
        if field is None:
            check_value(item)
        elif not accepts(field, item):
            return False
    return True


def accepts(field: Kind, value: Any) -> bool:
    """Return whether a member of this kind may have this value."""
    return field.accepts(value) if type(field) is Field else type(value) is field


ID = Field("id", is_id)
COUNT = Field("count", _is_count)
AMOUNT = Field("amount", _is_amount)
TIME = Field("time", _is_time)
TEXTS = Field("texts", _is_texts)
IDS = Field("ids", _is_ids)
COUNTS = Field("counts", _is_counts)
DIGESTS = Field("digests", _is_digests)
OBJECT = Field("object", _is_object)
PHASE = Field("phase", _is_phase)
TEXT_OR_NULL = Field("text or null", _is_text_or_null)


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
    a [part] is left out if a member in it is absent, or a function of the payload.
    """

    __slots__ = ("fields", "name", "required", "text", "triggers")

    def __init__(
        self,
        name: str,
        *triggers: Trigger,
        required: Fields | None = None,
        optional: Fields | None = None,
        text: str | Callable[[Any], str] = "",
    ) -> None:
        self.name = name
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

    def following(self, source: str, *triggers: str) -> list[str]:
        """Return the statuses that these triggers lead to from this one."""
        return [
            dest
            for trigger, sources, dest in self.rows
            if trigger in triggers and source in sources
        ]


def check_fields(declared: EventType, data: dict[str, Any]) -> None:
    """Raise ValueError unless an event of this type may carry `data`."""
    for name in declared.required:
        if name not in data:
            raise ValueError("%s without %s" % (declared.name, name))
    fields = declared.fields
    for name, value in data.items():
        field = fields.get(name)
        if field is None:
            check_value(value)  # a member of a later version
        elif type(value) is not field and not (type(field) is Field and field.accepts(value)):
            raise _unacceptable(declared, name, field, value)


def _unacceptable(declared: EventType, name: str, field: Any, value: Any) -> ValueError:
    wanted = field.kind if isinstance(field, Field) else field.__name__
    return ValueError("%s.%s: expected %s, got %.40r" % (declared.name, name, wanted, value))


def duplicates(names: Iterable[str]) -> list[str]:
    """Return the names that occur more than once, sorted."""
    seen: set[str] = set()
    repeated = set()
    for name in names:
        if name in seen:
            repeated.add(name)
        seen.add(name)
    return sorted(repeated)
