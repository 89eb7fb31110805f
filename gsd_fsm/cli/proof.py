"""gsd-fsm proof: show what was asked of a loop, what proved it, and what was only claimed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import click

from gsd_fsm.cli.call import Call, command_options
from gsd_fsm.cli.display.page import Fields, Line, Moment, Part, Piece, Styled, Words, status_word
from gsd_fsm.cli.display.progress import progress
from gsd_fsm.cli.help import candidates
from gsd_fsm.cli.output import flat, say
from gsd_fsm.core.errors import UsageError
from gsd_fsm.core.loop.schema import is_id
from gsd_fsm.core.text.questions import plural, watched_words
from gsd_fsm.core.text.sanitize import display
from gsd_fsm.engine.history import event_count
from gsd_fsm.engine.proof import proof as read_proof

Facts = dict[str, Any]
_MOST = 20  # rows of a list
_LONGEST = 200


@click.command()
@click.argument("loop_name", metavar="[LOOP]", required=False, shell_complete=candidates.live_loops)
@click.option("--markdown", is_flag=True, help="Print Markdown, for a pull request.")
@command_options
def proof(call: Call, *, loop_name: str | None, markdown: bool) -> None:
    """Show what proved the loop, and what was only claimed.

    LOOP is a loop that is live or has ended (default: this session's, the only live one, or the
    last one that ended). For each check: command, exit code, digest of the output, content of the
    work tree, time, and who ran it. Also what was altered and who accepted it, and messages that
    could not be verified.
    """
    if loop_name is not None:
        if not is_id(loop_name):
            raise UsageError(f"not a loop id: {loop_name}", "Run: gsd-fsm history")
        call.context.loop_id = loop_name
    with progress("Reading the journal", event_count(call.context)) as advance:
        facts = read_proof(call.context, advance)
    if markdown and not call.json:
        say("\n".join(_markdown(facts)))
    else:
        call.show(facts, _page(facts))


# the page


def _page(facts: Facts) -> Iterator[Part]:
    ended = facts["ended"]
    status: list[Piece] = [f"{facts['kind']} · ", status_word(facts["status"])]
    if ended:
        status += [" ", Moment(ended["ts"])]
    rows: list[tuple[str, list[Words]]] = [("loop", [[f"{facts['loop']} · ", *status]])]
    rows += [(label, list(lines)) for label, lines in _sections(facts)]
    yield Fields([row for row in rows if row[1]])
    if not facts["proven"]:
        yield Line([Styled("No check has proven anything.", "bad")])


def _sections(facts: Facts) -> Iterator[tuple[str, list[Words]]]:
    """Yield the label and the lines of each section."""
    asked = facts["asked"]
    yield "asked", [flat(text) for text in _asked(asked)]
    yield "proven", _listed([_check_words(it) for it in facts["proven"]], "✓ ")
    yield "unproven", _listed([_check_words(it) for it in facts["unproven"]], "✗ ")
    yield "claimed", _listed([f"{it['what']} ({_by(it)})" for it in facts["claimed"]])
    yield "missing", _listed(facts["missing"])
    yield "altered", _listed([_altered_words(it) for it in facts["altered"]], "✗ ")
    yield "changes", _listed([_change_words(it) for it in facts["changes"]])
    yield "variables", [_variable_words(facts["variables"])] if facts["variables"] else []
    yield "programs", _listed([_program_words(it) for it in facts["programs"]])
    yield "watched", [flat(watched_words(facts["watched"]))] if facts["watched"] else []
    yield "protected", [flat(", ".join(facts["protected"]))] if facts["protected"] else []
    yield "may change", [flat(", ".join(facts["may_change"]))] if facts["may_change"] else []
    yield "clean room", _listed([_clean_words(it) for it in facts["clean"]])
    yield "messages", _listed([_prompt_words(it) for it in facts["prompts"]])
    yield "content", [f"tree {facts['tree']}"] if facts["tree"] else []
    yield "head", [facts["head"]]


def _asked(asked: Facts) -> Iterator[str]:
    if asked["goal"]:
        yield asked["goal"]
    if asked["plan"]:
        yield f"plan {asked['plan']}"
    for criterion in asked["criteria"]:
        check = f" [{criterion['check']}]" if criterion["check"] else " (no check)"
        yield f"- {criterion['name']}{check}"
    for task in asked["tasks"][:_MOST]:
        how = f", {task['proof']}" if task["proof"] else ""
        yield f"- {task['id']} {task['title']} ({task['status']}{how})"
    if len(asked["tasks"]) > _MOST:
        yield f"and {len(asked['tasks']) - _MOST} more tasks"
    for text in asked["must_not"]:
        yield f"- must not: {text}"


def _listed(lines: list[str], mark: str = "") -> list[Words]:
    shown: list[Words] = [mark + _cut(line) for line in lines[:_MOST]]
    return [*shown, f"and {len(lines) - _MOST} more"] if len(lines) > _MOST else shown


def _cut(text: str) -> str:
    words = flat(text)
    return words if len(words) <= 2 * _LONGEST else words[: 2 * _LONGEST] + "…"


def _check_words(check: Facts) -> str:
    """Return what is known about the last run of a check."""
    words = [f"{check['check']}: {check.get('command', '')}", f"exit code {check['exit_code']}"]
    words += [f"output {check['digest']}"] if "digest" in check else []
    words += (
        [f"tree {check['tree']}" if check.get("tree") else "no tree"] if "tree" in check else []
    )
    tests = check.get("tests")
    if tests:
        skipped = f", {tests['skipped']} skipped" if tests.get("skipped") else ""
        words.append(f"{plural(tests['ran'], 'test')}{skipped}")
    words += [_by(check)]
    for name in ("flaky", "clean"):
        words += [name] if check.get(name) else []
    if check.get("accepted"):
        words.append(f"altered files accepted {_by(check['accepted'])}")
    elif check.get("altered"):
        words.append("altered: " + ", ".join(it["path"] for it in check["altered"]))
    if check.get("doubts"):
        words.append("doubtful: " + "; ".join(check["doubts"]))
    if check.get("rewritten"):
        words.append("written or moved while it ran: " + ", ".join(check["rewritten"]))
    if check.get("outside"):
        words.append("not part of the tree: " + ", ".join(map(_outside_words, check["outside"])))
    if check.get("variables"):
        words.append(_variable_words(check["variables"]))
    programs = [_program_words(it) for it in check.get("programs", ())]
    return ", ".join([*words, *(["ran " + ", ".join(programs)] if programs else [])])


def _outside_words(file: Facts) -> str:
    state = (file["digest"] or "missing") if "digest" in file else "changed while it ran"
    return f"{file['path']} ({state})"


def _variable_words(names: list[str]) -> str:
    return "variables that differ from the start: " + ", ".join(names)


def _program_words(program: Facts) -> str:
    words = f"{program['path']} {program.get('digest', '')}".strip()
    if "was" not in program:
        return words
    was = program["was"]
    return (
        f"{words} (was {was['path']} {was.get('digest', '')} at the start)"
        if was
        else (f"{words} (unknown at the start)")
    )


def _by(about: Facts) -> str:
    session = f" in session {about['session']}" if about.get("session") else ""
    return f"by {about['by']}{session}, event {about['seq']}, {about['ts']}"


def _altered_words(file: Facts) -> str:
    checks = ", ".join(file["checks"]) or "every check"
    return f"{file['path']} ({file['digest'] or 'missing'}), {checks}"


def _change_words(change: Facts) -> str:
    what = change["what"]
    if what == "accepted":
        named = ", ".join(
            f"{it['path']} {it.get('before') or 'missing'} → {it.get('after') or 'missing'}"
            for it in change["accepted"]
        )
    elif what == "altered":
        named = ", ".join(f"{it['path']} {it['digest'] or 'missing'}" for it in change["altered"])
        if not named:
            return f"nothing altered any more ({_by(change)})"
    else:
        named = ", ".join(change[what]) if what == "restored" else change[what]
    check = f" for {change['check']}" if "check" in change else ""
    return f"{what}{check}: {named} ({_by(change)})"


def _clean_words(result: Facts) -> str:
    state = "passed" if result["exit_code"] == 0 else f"exit code {result['exit_code']}"
    return f"{result['check']} {state}, tree {result['tree']} ({_by(result)})"


def _prompt_words(prompt: Facts) -> str:
    state = "not verified" if prompt["unverified"] else "verified in the transcript"
    return f"{prompt['type']} relies on a message of the user, {state} ({_by(prompt)})"


# Markdown


def _markdown(facts: Facts) -> Iterator[str]:
    """Yield the lines of a report in which no foreign text is markup."""
    yield f"## Proof of loop {facts['loop']} ({facts['kind']}, {facts['status']})"
    for label, lines in _sections(facts):
        if lines:
            yield ""
            yield f"**{label.capitalize()}**"
            yield ""
            yield from (f"- {_as_text(str(line).removeprefix('- '))}" for line in lines)


def _as_text(line: str) -> str:
    text = display(line).replace("\\", "\\\\")
    for sign in "`*_[]<>|#~&":
        text = text.replace(sign, f"\\{sign}")
    return text.replace("@", "@\u200b")
