"""`init`, `uninstall`, `doctor`: the hook in the settings of Claude Code."""

from __future__ import annotations

import difflib
import shlex
import sys
from pathlib import Path

import click

from gsd_fsm.cli.call import MANY, Call, command_options
from gsd_fsm.cli.output import counted, say
from gsd_fsm.core.codec import dumps
from gsd_fsm.core.errors import CheckFailed, GsdError, UsageError
from gsd_fsm.core.journal.journal import Journal
from gsd_fsm.core.project import find_gsd
from gsd_fsm.core.text.redact import redact
from gsd_fsm.core.text.sanitize import display
from gsd_fsm.documents.files import Change, write_change
from gsd_fsm.documents.json_text import root
from gsd_fsm.install import installer, plugin
from gsd_fsm.install.environment import REACH, Row, out_of_reach
from gsd_fsm.install.hook_entries import DEFAULT_CAP, EVENTS, cap_in, items_of, ours
from gsd_fsm.install.interpreter import Interpreter, choose, fleeting
from gsd_fsm.install.status_line import has_foreign_status_line, our_status_line

DECLINED = 130
PERMISSION = "Bash(gsd-fsm:*)"
SCOPE = click.Choice(installer.SCOPES)
_STATES = {"ok": ("✓", "green"), "note": ("!", "yellow"), "failed": ("✗", "red")}
LONGEST_LINE = 200
_COLOURS = {"+": "green", "-": "red", "@": "cyan"}


@click.command()
@click.option("--scope", type=SCOPE, help="Which settings file; without it: local, at home: user.")
@click.option("--plugin", "directory", metavar="DIR", help="Write a plugin directory instead.")
@click.option(
    "--raise-cap",
    "cap",
    type=click.IntRange(DEFAULT_CAP + 1, MANY),
    metavar="N",
    help="Let the client honour N blocks in a row without a tool call, not 8.",
)
@click.option("--status-line", "line", is_flag=True, help="Show the loop below the prompt, too.")
@click.option("--python", metavar="PATH", help="The interpreter that runs the hook.")
@click.option("--yes", is_flag=True, help="Do not ask before writing.")
@command_options
def init(
    call: Call,
    *,
    scope: str | None,
    directory: str | None,
    cap: int | None,
    line: bool,
    python: str | None,
    yes: bool,
) -> None:
    """Install the hook for Claude Code: show what changes, ask, write.

    user: every project of yours (~/.claude/settings.json). project: everybody who works here
    (.claude/settings.json). local: this project, you alone (.claude/settings.local.json). The
    client reads the files of the directory it is started in: start it at the project's top.
    """
    if directory is not None:
        if scope or line or cap is not None:
            wrong = "--scope" if scope else "--status-line" if line else "--raise-cap"
            raise UsageError(f"{wrong} has no effect in a plugin", "gsd-fsm init --scope user …")
        _write_plugin(call, Path(call.context.directory, directory), choose(python), yes)
        return
    meant = scope or installer.default_scope(call.context.directory)
    found = choose(python)
    hook = installer.hook_change()
    raised = None if cap is None else str(cap)
    places = installer.survey(call.context.directory) if line else []
    taken = next((place.path for place in places if has_foreign_status_line(place.document)), None)
    settings, record = installer.plan_install(
        meant, call.context.directory, found, raised, line=line and taken is None
    )
    changed = _ask(call, [settings, hook], yes, end=summary(settings))
    installer.install(hook, settings, record)
    notes = _notes(call.context.directory, meant, settings.path, found.path)
    if taken is not None:
        notes.append(
            f"{taken} has a status line already, which stays: it may run {call.command} statusline"
        )
    facts = {
        "scope": meant,
        "settings": str(settings.path),
        "hook": str(hook.path),
        "python": found.path,
        "changed": changed,
        "notes": notes,
    }
    state = "Installed" if changed else "Nothing to change: installed already"
    lines = [
        f"{state} for {counted(len(EVENTS), 'event')} ({meant}): {settings.path}",
        f"The hook is run by {found.path}, Python {found.version}. Try it: {call.command} doctor",
        *(f"! {note}" for note in notes),
    ]
    if changed:
        lines.append("Sessions that are open now do not see it: restart them, or type /clear.")
    if not _permits(call.context.directory):
        lines.append(
            f"The client asks before each gsd-fsm command unless permissions.allow has {PERMISSION}. "
            "That is your choice: it also lets an agent start checks, which run any command."
        )
    if cap is None and record.cap is None:
        lines.append(
            f"A loop with an idle limit above {DEFAULT_CAP} also needs: {call.command} init --raise-cap N"
        )
    call.answer(facts, "\n".join(lines))


def _write_plugin(call: Call, directory: Path, python: Interpreter, yes: bool) -> None:
    changes = plugin.plan(directory, python.path)
    changed = _ask(call, changes, yes, in_full=False)
    for change in changes:
        write_change(change)
    installer.warm(python.path, directory / "hooks")
    state = "Wrote" if changed else "Nothing to change in"
    use = f"claude --plugin-dir {shlex.quote(str(directory))}"
    words = f"{state} the plugin {directory}\nUse it: {use}"
    call.answer({"plugin": str(directory), "python": python.path, "changed": changed}, words)


def _permits(start: str) -> bool:
    """Whether some settings let the client run our commands unasked."""
    allowed = (
        dict(items_of(place.document, "permissions")).get("allow")
        for place in installer.survey(start)
    )
    return any(PERMISSION in each for each in allowed if isinstance(each, list))


def _notes(start: str, scope: str, path: Path, python: str) -> list[str]:
    """What the user should know besides."""
    places = installer.survey(start)
    notes = [place.problem for place in places if place.problem]
    notes += [
        f"disableAllHooks is set in {place.path}: the client runs no hook at all"
        for place in places
        if place.document.get("disableAllHooks")
    ]
    others = [place.scope for place in places if place.scope != scope and ours(place.document)]
    others += ["plugin"] if plugin.enabled([place.document for place in places]) else []
    if others:
        notes.append(f"also installed: {', '.join(others)}. Each stop is counted once all the same")
    if scope != "user" and installer.is_shared(path):
        notes.append(f"{path} holds paths of this machine: keep it out of commits")
    if danger := fleeting(python):
        notes.append(f"{python} {danger}: name one that stays with --python")
    if problem := out_of_reach():
        notes.append(f"{problem}: {REACH}")
    return notes


@click.command()
@click.option("--scope", type=SCOPE, help="Which settings file.")
@click.option("--all", "everywhere", is_flag=True, help="Every settings file on this machine.")
@click.option("--yes", is_flag=True, help="Do not ask before writing.")
@command_options
def uninstall(call: Call, *, scope: str | None, everywhere: bool, yes: bool) -> None:
    """Take the hook out of the settings again; journals stay.

    A file that nobody changed since `init` gets its old bytes back; else only what is ours goes.
    """
    if scope and everywhere:
        raise UsageError("--scope and --all exclude each other", "leave one of them out")
    for place in installer.survey(call.context.directory):
        if place.problem and scope in (None, place.scope):
            raise UsageError(place.problem, "mend that place; nothing was changed")
    installed = installer.settings_with_us(call.context.directory)
    here = {name: path for path, name in installed.items() if name in installer.SCOPES}
    if scope is None and not everywhere and len(here) > 1:
        raise UsageError(
            f"which one? the hook is installed for {', '.join(here)}",
            "gsd-fsm uninstall --scope …, or --all",
        )
    chosen = list(installed) if everywhere else [p for n, p in here.items() if scope in (None, n)]
    changes = [installer.plan_removal(path) for path in chosen]
    _ask(call, changes, yes)
    for change in changes:
        installer.remove(change)
    left = installer.settings_with_us(call.context.directory)
    if not left:
        installer.remove_hook()
    lines = [f"Taken out of {path}" for path in chosen] or ["The hook is not installed there."]
    lines += [f"Still installed ({name}): {path}" for path, name in left.items()]
    unheld = _unheld(call.context.directory) if chosen else []
    lines += [
        f"Loop {loop} is running and no longer held: {call.command} pause, or cancel"
        for loop in unheld
    ]
    facts = {
        "removed": [str(path) for path in chosen],
        "left": [str(path) for path in left],
        "unheld": unheld,
    }
    call.answer(facts, "\n".join(lines))


def _unheld(start: str) -> list[str]:
    """The loops that run here while no settings and no plugin start the hook here."""
    places = installer.survey(start)
    documents = [place.document for place in places]
    if plugin.enabled(documents) or any(map(ours, documents)):
        return []
    try:
        live = Journal(find_gsd(start)).read_cached().live()
    except GsdError:
        return []
    return [loop.id for loop in live if loop.status == "running"]


def _ask(
    call: Call, changes: list[Change], yes: bool, *, in_full: bool = True, end: str = ""
) -> bool:
    """Whether anything is to be changed; it is shown, and somebody has agreed."""
    due = [change for change in changes if change.before != change.after]
    if not call.json:
        for change in due:
            for line in shown(change, in_full=in_full):
                say(line)
        if end:
            say(end)
    if not due or yes:
        return bool(due)
    if call.json or sys.stdin is None or not sys.stdin.isatty():
        raise UsageError("this asks first, and nobody can answer", "add --yes")
    if not click.confirm("Write this?", err=True):
        say("Nothing was changed.", err=True)
        raise click.exceptions.Exit(DECLINED)
    return True


@click.command()
@click.option("--plugin", "directory", metavar="DIR", help="Examine this plugin directory too.")
@command_options
def doctor(call: Call, *, directory: str | None) -> None:
    """Run the installed hook with hostile inputs, and tell what is wrong and how to mend it.

    The commands are read back from the settings and run as they stand there, in a temporary home:
    no loop of yours is touched. Exit code 0 if all is well, 7 if not, 3 if nothing is installed.
    """
    from gsd_fsm.install.doctor import examine

    place = None if directory is None else Path(call.context.directory, directory)
    rows = examine(call.context.directory, place)
    failed = [row for row in rows if row.state == "failed"]
    lines: list[str] = []
    remedies: set[str] = set()
    where = ""
    for row in rows:
        if row.where != where:
            where = row.where
            lines.append(click.style(where, bold=True))
        mark, colour = _STATES[row.state]
        time = "" if row.ms is None else f"{row.ms} ms"
        lines.append(
            f"  {click.style(mark, fg=colour)} {row.name:<38}{time:>8}  {display(row.told)}".rstrip()
        )
        if row.state != "ok" and row.fix and row.fix not in remedies:
            remedies.add(row.fix)
            lines.append(f"      → {display(row.fix)}")
    lines.append(_verdict(rows))
    told = [{**row._asdict(), "fix": row.fix if row.state != "ok" else ""} for row in rows]
    facts = {"ok": not failed, "rows": told}
    say(dumps(facts) if call.json else "\n".join(lines))
    if failed:
        raise click.exceptions.Exit(CheckFailed.exit_code)


def _verdict(rows: list[Row]) -> str:
    """The end of the examination in one line."""
    failed = [row for row in rows if row.state == "failed"]
    off = [display(row.told) for row in rows if row.off]
    if any(not row.off for row in failed):
        return f"{counted(len(failed), 'check')} failed."
    return f"The hook works, but {'; '.join(off)}." if off else "All is well."


def shown(change: Change, *, in_full: bool) -> list[str]:
    """The lines that differ, or the name alone: of programs, and of what is to go."""
    by_lines = in_full and change.after is not None and change.path.suffix != ".py"
    return _diff(change) if by_lines else _name(change)


def summary(settings: Change) -> str:
    """The whole change of the settings in one line, as a long diff ends anywhere."""
    if settings.before == settings.after:
        return ""
    old, new = _document(settings.before), _document(settings.after)
    what = []
    if ours(old) != ours(new):
        command_options = "renews" if ours(old) else "adds"
        what.append(f"{command_options} one command for {counted(len(EVENTS), 'event')}")
    if cap_in(old) != cap_in(new):
        what.append(f"raises the client's cap to {cap_in(new)}")
    if our_status_line(old) != our_status_line(new):
        what.append(f"{'renews' if our_status_line(old) else 'adds'} the status line")
    at = "to" if what[0].startswith("adds") else "in"
    words = " and ".join(filter(None, [", ".join(what[:-1]), what[-1]]))
    return (
        f"{words[:1].upper()}{words[1:]} {at} {display(str(settings.path))}; nothing else changes."
    )


def _document(content: bytes | None) -> object:
    return {} if content is None else root(content.decode("utf-8-sig")).value


def _name(change: Change) -> list[str]:
    name = display(str(change.path))
    if change.after is None:
        return [f"removes {name}"]
    command_options = "writes" if change.before is None else "replaces"
    return [f"{command_options} {name} ({counted(len(change.after), 'byte')})"]


def _diff(change: Change) -> list[str]:
    """The change line by line, without secrets that stand nearby."""
    name = display(str(change.path))
    old, new = (
        (text or b"").decode("utf-8", "replace").splitlines()
        for text in (change.before, change.after)
    )
    return [
        click.style(display(redact(line))[:LONGEST_LINE], fg=_COLOURS.get(line[:1]))
        for line in difflib.unified_diff(old, new, name, name, lineterm="")
    ]
