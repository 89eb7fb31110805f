"""In which order tasks can be done, and which of them can never begin."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

MOST_CIRCLES = 20


def in_order(depends: Mapping[str, Sequence[str]]) -> tuple[list[str], list[list[str]]]:
    """The tasks, each after all it depends on; and circles, each task before what it depends on.

    In a circle there is no such order; the first of them are named. Each circle begins with that
    one of its tasks that comes first.
    """
    place = {name: number for number, name in enumerate(depends)}
    done: dict[str, None] = {}
    circles: list[list[str]] = []
    for root in depends:
        if root in done:
            continue
        path: dict[str, Iterator[str]] = {root: iter(depends[root])}
        while path:
            name = next(reversed(path))
            for other in path[name]:
                if other in path:
                    if len(circles) < MOST_CIRCLES:
                        circles.append(_circle(list(path), other, place))
                elif other in depends and other not in done:
                    path[other] = iter(depends[other])
                    break
            else:
                del path[name]
                done[name] = None
    return list(done), circles


def _circle(path: list[str], start: str, place: dict[str, int]) -> list[str]:
    circle = path[path.index(start) :]
    first = circle.index(min(circle, key=place.__getitem__))
    return circle[first:] + circle[:first]
