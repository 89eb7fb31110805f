"""The table as a Mermaid diagram."""

from __future__ import annotations

from gsd_fsm.core.table import ACTIVE, BACK, FINAL, ROWS, SAME

_HEAD = """stateDiagram-v2
    direction LR
    [*] --> active: start
    state active {
        [*] --> running"""


def mermaid() -> str:
    """The diagram of all changes of status; facts, which change none, are left out."""
    inner: dict[tuple[str, str], list[str]] = {}
    outer: dict[tuple[str, str], list[str]] = {}
    for trigger, sources, dest, condition in ROWS:
        if dest == SAME or sources == ("idle",):
            continue
        label = (
            trigger
            if condition in ("", "recovers", "recovers_with_gaps")
            else f"{trigger} ({condition})"
        )
        for source in ("active",) if set(ACTIVE) <= set(sources) else sources:
            target = "active" if dest == BACK else dest
            table = inner if source in (*ACTIVE, "active") and target in ACTIVE else outer
            if source == "active" and table is inner:
                for each in ACTIVE:
                    if each != target:
                        _add(inner, each, target, label)
            else:
                _add(outer if table is outer else inner, source, target, label)
        if set(ACTIVE) < set(sources):
            for source in sources:
                if source not in ACTIVE:
                    _add(outer, source, "active" if dest == BACK else dest, label)
    lines = [_HEAD]
    lines += [f"        {a} --> {b}: {_join(names)}" for (a, b), names in inner.items()]
    lines.append("    }")
    lines += [f"    {a} --> {b}: {_join(names)}" for (a, b), names in outer.items()]
    lines += [f"    {status} --> [*]" for status in FINAL]
    return "\n".join(lines)


def _add(edges: dict[tuple[str, str], list[str]], source: str, dest: str, label: str) -> None:
    labels = edges.setdefault((source, dest), [])
    if label not in labels:
        labels.append(label)


def _join(names: list[str]) -> str:
    return ", ".join(names)
