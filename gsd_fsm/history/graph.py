"""Draw the transition table as a Mermaid diagram."""

from __future__ import annotations

from gsd_fsm.core.loop.fold import TRIGGERS
from gsd_fsm.core.loop.schema import BACK, SAME
from gsd_fsm.core.loop.state import ACTIVE, FINAL

Edges = dict[tuple[str, str], list[str]]


def mermaid() -> str:
    """Return the diagram of all status changes."""
    inner: Edges = {}
    outer: Edges = {}
    for trigger, declared in TRIGGERS.items():
        for arrow in declared.arrows:
            sources, dest = arrow.sources, arrow.dest
            if dest == SAME or sources == ("idle",):
                continue
            when = arrow.when.__name__ if arrow.when else ""
            plain = when in ("", "recovers", "recovers_with_gaps")
            label = trigger if plain else f"{trigger} ({when})"
            if dest in ACTIVE:
                _add(inner, [source for source in sources if source != dest], dest, label)
            else:
                _add(outer, _grouped(sources), "active" if dest == BACK else dest, label)
    return "\n".join(
        [
            "stateDiagram-v2",
            "    direction LR",
            "    [*] --> active: start",
            "    state active {",
            "        [*] --> running",
            *(f"        {a} --> {b}: {', '.join(labels)}" for (a, b), labels in inner.items()),
            "    }",
            *(f"    {a} --> {b}: {', '.join(labels)}" for (a, b), labels in outer.items()),
            *(f"    {status} --> [*]" for status in FINAL),
        ]
    )


def _grouped(sources: tuple[str, ...]) -> list[str]:
    """Return the statuses, with all four active ones replaced by `active`."""
    if not set(ACTIVE) <= set(sources):
        return list(sources)
    return ["active", *(source for source in sources if source not in ACTIVE)]


def _add(edges: Edges, sources: list[str], dest: str, label: str) -> None:
    for source in sources:
        edges.setdefault((source, dest), []).append(label)
