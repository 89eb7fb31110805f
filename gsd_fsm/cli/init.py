"""`init`, `uninstall`: install the hook for Claude Code, remove it."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import NamedTuple

import click

from gsd_fsm.cli.call import Call, Number, project_options
from gsd_fsm.cli.display.changes import has_diff, short_path, shown, summarised
from gsd_fsm.cli.display.page import Command, Line
from gsd_fsm.cli.display.show import show
from gsd_fsm.cli.output import say
from gsd_fsm.config.program import keep_program
from gsd_fsm.core.command_line import command_line
from gsd_fsm.core.errors import GsdError, UsageError
from gsd_fsm.core.text.questions import plural
from gsd_fsm.documents.files import Change, write_change
from gsd_fsm.engine.context import Context
from gsd_fsm.install import installer, permissions, plugin
from gsd_fsm.install.checks.client import path_fix, path_problem
from gsd_fsm.install.git_exclude import Exclusion, generated_views, is_shared, plan_exclusion
from gsd_fsm.install.hook_entries import DEFAULT_CAP, SWITCH, ours
from gsd_fsm.install.interpreter import choose, risk
from gsd_fsm.install.record import Record
from gsd_fsm.install.status_line import has_foreign_status_line

DECLINED = 130
SCOPE = click.Choice(installer.SCOPES)
# More would not fit on a screen.
_MOST_NOTES = 2
_OFFER = "Let agents run the gsd-fsm commands that loops name without asking you?"
diff_option = click.option("--diff", is_flag=True, help="Show every changed line.")


@click.command()
@click.option(
    "--scope", type=SCOPE, help="Settings to change (default: local; outside of a project: user)."
)
@click.option(
    "--plugin", "directory", metavar="DIR", help="Write a plugin directory; change no settings."
)
@click.option(
    "--raise-cap",
    "cap",
    type=Number(),
    metavar="N",
    help=f"Let the client accept N blocks in a row without a tool call (0: unlimited; default of the client: {DEFAULT_CAP}).",
)
@click.option("--status-line", "line", is_flag=True, help="Also show the loop below the prompt.")
@click.option(
    "--allow",
    is_flag=True,
    help="Also let agents run the commands that loops name without asking; remove a rule for all commands.",
)
@click.option(
    "--enable-hooks",
    "enable",
    is_flag=True,
    help=f"Also remove {SWITCH} from all settings that apply here.",
)
@click.option(
    "--python",
    metavar="PATH",
    help="Run the hook with this interpreter (default: one outside of virtual environments).",
)
@diff_option
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@project_options
def init(
    call: Call,
    *,
    scope: str | None,
    directory: str | None,
    cap: int | None,
    line: bool,
    allow: bool,
    enable: bool,
    python: str | None,
    diff: bool,
    yes: bool,
) -> None:
    """Install the hook for Claude Code, or write a plugin.

    The change is summarised and confirmed before it is written. The scopes are user (all your
    projects, ~/.claude/settings.json), project (everyone who works on this project,
    .claude/settings.json) and local (only you, .claude/settings.local.json). The client reads the
    last two only in the directory where it is started: start it in the project root, where they are
    written, or use the scope user to start it in a directory below. In a git repository,
    .git/info/exclude lists settings.local.json and the generated views.
    """
    start = str(call.context.directory)
    if cap is not None and 0 < cap <= DEFAULT_CAP:
        raise UsageError(
            f"--raise-cap {cap} does not raise the client's default of {DEFAULT_CAP}",
            f"Pass {DEFAULT_CAP + 1} or more, or 0 for no cap.",
        )
    if directory is not None:
        given = {
            "--scope": scope,
            "--status-line": line,
            "--allow": allow,
            "--enable-hooks": enable,
            "--raise-cap": cap is not None,
        }
        wrong = next((name for name, value in given.items() if value), "")
        if wrong:
            raise UsageError(f"{wrong} has no effect on a plugin", f"Omit {wrong}.")
        _write_plugin(call, Path(start, directory), python, diff=diff, yes=yes)
        return
    scope = scope or installer.default_scope(start)
    found = choose(python, start)
    lines = [place for place in installer.survey(start) if has_foreign_status_line(place.document)]

    def plan(*, allow: bool) -> Plan:
        settings, record = installer.plan_install(
            scope,
            start,
            found,
            None if cap is None else str(cap),
            line=line and not lines,
            allow=allow,
            enable=enable,
        )
        hook = installer.hook_change()
        others = installer.plan_elsewhere(start, settings.path, allow=allow, enable=enable)
        return Plan(settings, record, hook, others, _plan_exclusion(start, scope, settings.path))

    asks = not yes and not allow and _is_at_terminal(call) and not _permits(start)
    allow = allow or (asks and _agrees(_OFFER))
    chosen = plan(allow=allow)
    _confirm(call, chosen.changes, start, diff=diff, yes=yes)
    settings, *others, hook = chosen.changes
    changed = installer.install(hook, settings, chosen.remembered, others)
    exclusion = chosen.exclusion
    places = installer.survey(start)
    notes = _notes(start, places, scope, settings.path, found.path)
    if exclusion.problem:
        notes.append(f"git may commit machine-specific files: {exclusion.problem}")
    if allow and scope == "project":
        notes.append(
            "the client ignores these rules in directories whose trust dialog you have not accepted; "
            "rules of the scopes local and user need no trust"
        )
    if line and lines:
        notes.append(
            f"{lines[0].path} already has a status line; to show the loop there, "
            f"have it run: {command_line('statusline')}"
        )
    facts = {
        "scope": scope,
        "settings": str(settings.path),
        "hook": str(hook.path),
        "python": found.path,
        "changed": changed,
        "notes": notes,
    }
    state = "Installed" if changed else "Already installed"
    words = [
        f"{state} (scope {scope}): {short_path(settings.path, start)}",
        f"It runs with {found.path}, Python {found.version}.",
        *(f"! {note}" for note in notes[:_MOST_NOTES]),
    ]
    if len(notes) > _MOST_NOTES:
        more = plural(len(notes) - _MOST_NOTES, "more note")
        words.append(f"! {more}. Run: {command_line(f'init --scope {scope} --json')}")
    if changed:
        words.append("Sessions that are open now do not load it: restart them, or type /clear.")
        words.append(f"To test it, run: {command_line('doctor')}")
    if not asks and not _permits(start):
        words.append(
            "The client asks before each gsd-fsm command. To allow those that loops name, run: "
            f"{command_line('init --allow')}"
        )
    call.show(facts, map(_line, words))


class Plan(NamedTuple):
    """The changes of an installation; `others` are those of other settings of this client."""

    settings: Change
    record: Record
    hook: Change
    others: list[Change]
    exclusion: Exclusion

    @property
    def changes(self) -> list[Change]:
        excluding = [] if self.exclusion.change is None else [self.exclusion.change]
        return [self.settings, *self.others, *excluding, self.hook]

    @property
    def remembered(self) -> Record:
        """Return what `uninstall` needs, with the text added for git."""
        change = self.exclusion.change
        added = () if change is None else ((str(change.path), self.exclusion.text),)
        return self.record._replace(excluded=(*self.record.excluded, *added))


def _permits(start: str) -> bool:
    return permissions.permits(place.document for place in installer.survey(start))


def _plan_exclusion(start: str, scope: str, settings: Path) -> Exclusion:
    """Return the change that makes git ignore local settings and generated views."""
    if installer.default_scope(start) == "user":
        return Exclusion()
    root = installer.project_root(start)
    return plan_exclusion(root, [*([settings] if scope == "local" else []), *generated_views(root)])


def _write_plugin(call: Call, directory: Path, given: str | None, *, diff: bool, yes: bool) -> None:
    python = choose(given, call.context.directory)
    is_portable = given is None and plugin.is_portable_at(directory)
    changes = plugin.plan(directory, None if is_portable else python.path)
    end = [f"Writes {plural(len(changes), 'file')} in {directory}"] if changes else []
    _confirm(call, changes, str(directory), diff=diff, yes=yes, summary=end)
    for change in changes:
        write_change(change)
    installer.warm(python.path, directory / "hooks")
    keep_program()
    state = "Wrote plugin" if changes else "Plugin is up to date"
    use = f"claude --plugin-dir {shlex.quote(str(directory))}"
    facts = {"plugin": str(directory), "python": python.path, "changed": bool(changes)}
    call.show(facts, map(_line, (f"{state}: {directory}", f"To use it, run: {use}")))


def _notes(
    start: str, places: list[installer.Place], scope: str, path: Path, python: str
) -> list[str]:
    """Return problems that do not prevent the installation."""
    notes = [place.problem for place in places if place.problem]
    notes += [
        f"{short_path(place.path, start)} sets {SWITCH}: the client runs no hooks. To remove it, run: "
        f"{command_line('init --enable-hooks')}"
        for place in places
        if place.document.get(SWITCH)
    ]
    others = [place.scope for place in places if place.scope != scope and ours(place.document)]
    others += ["plugin"] if plugin.enabled([place.document for place in places]) else []
    if others:
        notes.append(f"also installed: {', '.join(others)} (each stop is still counted once)")
    if scope != "user" and installer.is_below_root(start):
        notes.append(
            f"a client started here does not load these settings: start it in {path.parents[1]}, or "
            f"run: {command_line('init --scope user')}"
        )
    if scope != "user" and is_shared(path):
        notes.append(f"{path} contains paths specific to this machine: do not commit it")
    notes += [
        f"{short_path(place.path, start)} allows {permissions.EVERYTHING}: agents can run any command. "
        f"To fix it, run: {command_line('init --allow')}"
        for place in places
        if permissions.EVERYTHING in permissions.allowed_in(place.document)
    ]
    if danger := risk(python):
        notes.append(f"{python} {danger}: choose another with --python PATH")
    if problem := path_problem(start):
        notes.append(f"{problem}. To fix it, run: {path_fix(start)}")
    return notes


@click.command()
@click.option(
    "--scope", type=SCOPE, help="Settings to change (default: the settings that contain the hook)."
)
@click.option(
    "--all", "everywhere", is_flag=True, help="Change every settings file on this machine."
)
@diff_option
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@project_options
def uninstall(call: Call, *, scope: str | None, everywhere: bool, diff: bool, yes: bool) -> None:
    """Remove the hook from the settings; journals stay.

    Only parts that `init` added are removed; the rest of the file keeps every byte.
    """
    start = str(call.context.directory)
    if scope and everywhere:
        raise UsageError("--scope and --all exclude each other", "Omit one of them.")
    for place in installer.survey(start):
        if place.problem and scope in (None, place.scope):
            raise UsageError(place.problem, "Fix the file and retry. Nothing was changed.")
    installed = installer.settings_with_us(start)
    here = {name: path for path, name in installed.items() if name in installer.SCOPES}
    if scope is None and not everywhere and len(here) > 1:
        raise UsageError(
            f"the hook is installed in several scopes: {', '.join(here)}",
            "Name one with --scope, or run: gsd-fsm uninstall --all",
        )
    chosen = list(installed) if everywhere else [p for n, p in here.items() if scope in (None, n)]
    changes = [installer.plan_removal(path) for path in chosen]
    freed = [change for path in chosen for change in installer.plan_inclusions(path)]
    _confirm(call, [*changes, *freed], start, diff=diff, yes=yes)
    for change in changes:
        installer.remove(change)
    left = installer.settings_with_us(start)
    if not left:
        installer.remove_hook()
    words = [f"Removed from {path}" for path in chosen] or ["The hook is not installed."]
    words += [f"Still installed ({name}): {path}" for path, name in left.items()]
    unheld = _unheld(call.context) if chosen else []
    words += [
        f"Loop {loop} is running without a hook. To pause it, run: {command_line('pause')}"
        for loop in unheld
    ]
    facts = {
        "removed": [str(path) for path in chosen],
        "left": [str(path) for path in left],
        "unheld": unheld,
    }
    call.show(facts, map(_line, words))


def _unheld(context: Context) -> list[str]:
    """Return the loops that are running here without a hook."""
    documents = [place.document for place in installer.survey(context.directory)]
    if plugin.enabled(documents) or any(map(ours, documents)):
        return []
    try:
        live = context.journal.read_cached().live()
    except GsdError:
        return []
    return [loop.id for loop in live if loop.status == "running"]


def _is_at_terminal(call: Call) -> bool:
    return not call.json and sys.stdin is not None and sys.stdin.isatty()


def _confirm(
    call: Call,
    changes: list[Change],
    start: str,
    *,
    diff: bool,
    yes: bool,
    summary: list[str] | None = None,
) -> None:
    """Show the changes, in short or in full, and ask; exit if the answer is no."""
    due = [change for change in changes if change.before != change.after]
    if not call.json:
        for line in (line for change in due if diff for line in shown(change)):
            say(line)
        told = (summarised(it, start) for it in due if has_diff(it) or not diff)
        show([Line(it) for it in (told if summary is None else summary)])
    if not due or yes:
        return
    if not _is_at_terminal(call):
        raise UsageError("confirmation required, but there is no terminal", "Add --yes.")
    if not _agrees("Write this?" if diff else "Write this? (--diff shows it)"):
        say("Nothing was changed.", err=True)
        raise click.exceptions.Exit(DECLINED)


def _line(text: str) -> Line:
    """Return a line; a command at its end can be copied."""
    words, run, command = text.rpartition("un: ")
    return Line([words + run, Command(command)] if run else text)


def _agrees(question: str) -> bool:
    try:
        return click.confirm(question, err=True)
    except click.Abort:
        say("\nNothing was changed.", err=True)
        raise click.exceptions.Exit(DECLINED) from None
