"""The front matter of a Markdown text: YAML between two lines `---` at its beginning."""

from __future__ import annotations

from typing import Any

# Both bound the work that a hostile text can make for the parser.
MOST_CHARACTERS = 16 * 1024
MOST_DEPTH = 20


class FrontMatterError(Exception):
    def __init__(self, line: int, what: str) -> None:
        super().__init__(what)
        self.line = line
        self.what = what


def front_matter(lines: list[str]) -> tuple[dict[str, Any], int]:
    """Its members, each scalar as the text that stands there, and the first line after it.

    FrontMatterError with a line for what is no front matter though it begins like one.
    """
    if lines[0].rstrip() != "---":
        return {}, 0
    end = next((at for at in range(1, len(lines)) if lines[at].rstrip() in ("---", "...")), None)
    if end is None:
        raise FrontMatterError(1, "the front matter has no end: a second line '---'")
    text = "\n".join(lines[1:end])
    if len(text) > MOST_CHARACTERS:
        raise FrontMatterError(1, "the front matter is larger than 16 KiB")
    found = _load(text)
    if found is None or found == "":
        return {}, end + 1
    if not isinstance(found, dict):
        raise FrontMatterError(1, "the front matter is no list of keys and values")
    return {str(name): value for name, value in found.items()}, end + 1


def _load(text: str) -> Any:
    import yaml

    try:
        depth = 0
        for event in yaml.parse(text, Loader=yaml.BaseLoader):
            depth += isinstance(event, yaml.CollectionStartEvent)
            depth -= isinstance(event, yaml.CollectionEndEvent)
            if isinstance(event, yaml.AliasEvent) or depth > MOST_DEPTH:
                line = event.start_mark.line + 2 if event.start_mark else 1
                raise FrontMatterError(line, "the front matter is too deep, or has an alias")
        # Texts only: YAML would read phase 010 as 8, and a title of `No` as false.
        return yaml.BaseLoader(text).get_single_data()
    except (yaml.YAMLError, ValueError) as error:
        mark = getattr(error, "problem_mark", None)
        why = getattr(error, "problem", None) or getattr(error, "reason", None)
        what = "the front matter is not valid YAML" + (f": {why}" if why else "")
        raise FrontMatterError(mark.line + 2 if mark else 1, what) from error
