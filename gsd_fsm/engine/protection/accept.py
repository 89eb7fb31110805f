"""Accept the changes of protected files, or put the files back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from gsd_fsm.core.command_line import command_line
from gsd_fsm.core.errors import Refused, UsageError
from gsd_fsm.core.loop.protection import Altered, shown_name
from gsd_fsm.core.loop.records import Criterion
from gsd_fsm.core.loop.state import FINAL, Loop
from gsd_fsm.engine.content import content_of
from gsd_fsm.engine.context import Context, LoopTransaction, Receipt, one_of
from gsd_fsm.engine.protection.compare import HOOKS, Comparison, Finding, record_finding
from gsd_fsm.engine.protection.freeze import Command, frozen_text
from gsd_fsm.engine.protection.protect import CLEAN_SETUP, TDD, joining
from gsd_fsm.engine.protection.put_back import put_back
from gsd_fsm.protection.originals import Originals, content_at
from gsd_fsm.protection.values import difference
from gsd_fsm.subagents.context import test_command
from gsd_fsm.verify.ci import ci_checks

if TYPE_CHECKING:
    from gsd_fsm.git.tree import Content


class Accepted(NamedTuple):
    """The changes that now count, and the criteria that are met by them."""

    receipt: Receipt
    files: list[str]
    command: str
    met: list[str]


class Restored(NamedTuple):
    """The files that were put back, and the files in which their contents were saved."""

    receipt: Receipt
    files: list[str]
    saved: list[str]


def accept(context: Context, name: str) -> Accepted:
    """Record that a human accepts the altered files of a check, or its changed command.

    Evidence that was taken with these files counts from now on. Raise Refused for an agent, and if
    nothing is altered.
    """
    loop = _live(context)
    if context.author.by == "agent":
        raise Refused(
            f"agents cannot accept a change of a check of loop {loop.id}",
            f"Ask the user to run this in another terminal: {command_line('accept', loop.id, name)}",
        )
    finding = find_now(context, loop)
    files = _files_of(context, loop, finding, name)
    command = _new_command(context, loop, name)
    if not files and not command:
        raise Refused(f"no file that {name} depends on has changed", _remedy(loop, finding))
    originals = Originals(context.gsd, loop.id)
    contents = (content_at(context.project / it["path"]) for it in files)
    originals.save(content for content in contents if content is not None)
    before = {file.path: file.digest for file in loop.protection.files}
    changes = [
        {"path": it["path"], "before": before.get(it["path"]), "after": it["digest"]}
        for it in files
    ]
    # New hooks are protected from now on.
    joined = [{**it, "parts": [*HOOKS]} for it in files if it["path"] not in before]
    facts = {"command": frozen_text(command), "protected": joined, "accepted": changes}
    data = {"check": name, **{key: value for key, value in facts.items() if value}}
    is_check = bool(command) and name != CLEAN_SETUP
    depends = joining(context, loop, {name: Command(command)}) if is_check else []
    with context.writing(loop) as tx:
        record_finding(tx, finding)
        tx.append("plan", data)
        for more in depends:
            tx.append("plan", more, by="cli")
        met = _meet(tx)
    return Accepted(tx.receipt, [it["path"] for it in files], command, met)


def restore(context: Context, name: str) -> Restored:
    """Put the altered files of a check back, as they were frozen or accepted.

    What they contain now is saved in `.gsd/replaced`. Raise Refused if nothing is altered, or if a content
    was not kept.
    """
    loop = _live(context)
    finding = find_now(context, loop)
    files = _files_of(context, loop, finding, name)
    if not files:
        raise Refused(f"no file that {name} depends on has changed", _remedy(loop, finding))
    originals = Originals(context.gsd, loop.id)
    wanted: dict[str, bytes | None] = {}
    known = {file.path: file for file in loop.protection.files}
    for it in files:
        kept = known[it["path"]].digest if it["path"] in known else None
        wanted[it["path"]] = originals.read(kept)
        if kept and wanted[it["path"]] is None:
            raise Refused(
                f"the original of {it['path']} was not kept",
                f"Run: git checkout -- {it['path']}. Or ask the user to accept it: "
                f"{command_line('accept', loop.id, name)}",
            )
    with context.writing(loop) as tx:
        record_finding(tx, finding)
        tx.append("plan", {"check": name, "restored": list(wanted)})
    saved = [
        put_back(
            context.project,
            path,
            content,
            executable=known[path].executable if path in known else False,
        )
        for path, content in wanted.items()
    ]
    return Restored(tx.receipt, list(wanted), [path for path in saved if path])


def find_now(context: Context, loop: Loop, content: Content | None = None) -> Finding:
    """Return what differs now; `content` is that of the work tree, if it is known."""
    comparison = Comparison(context, loop)
    if content is None and comparison.is_needed:
        content = content_of(context, loop)
    return comparison.find(content)


def shown_difference(context: Context, loop: Loop, path: str) -> str:
    """Return how an altered file differs from the content that counts."""
    known = {file.path: file.digest for file in loop.protection.files}
    before = Originals(context.gsd, loop.id).read(known.get(path))
    return difference(path, before, content_at(context.project / path))


def _live(context: Context) -> Loop:
    loop = context.loop_or_last(context.read())
    if loop.status in FINAL:
        raise Refused(f"loop {loop.id} is {loop.status}", f"Run: {command_line('proof', loop.id)}")
    return loop


def _files_of(context: Context, loop: Loop, finding: Finding, name: str) -> list[dict[str, Any]]:
    """Return the altered files of this check, or the one of this path."""
    by_path = [it for it in finding.altered if it["path"] == name]
    return by_path or finding.of_check(_known(context, loop, name))


def _known(context: Context, loop: Loop, name: str) -> str:
    """Return the name of this check, also by the number of its criterion; raise UsageError."""
    checks = [it.name for it in loop.criteria.values() if it.check is not None]
    names = {check for file in loop.protection.files for check in file.checks}
    names.update(checks, loop.protection.commands, _commands_now(context, loop))
    if name in names:
        return name
    criteria = list(loop.criteria)
    if name.isdecimal() and 1 <= int(name) <= len(criteria):
        return criteria[int(name) - 1]
    raise UsageError(f"loop {loop.id} has no check {name!r}", one_of(sorted(names)))


def _remedy(loop: Loop, finding: Finding) -> str:
    """Return the hint for a check without an altered file: the one that has, or `check`."""
    if finding.altered:
        return f"Altered: {shown_name(Altered(finding.altered[0]))}"  # type: ignore[arg-type]
    return f"Run: {command_line('check', loop.id)}"


def _commands_now(context: Context, loop: Loop) -> dict[str, str]:
    """Return the commands of the settings that such a loop would freeze now."""
    settings = context.settings()
    found = ci_checks(settings) if loop.kind == "verify" else {}
    if TDD in loop.protection.commands:
        found[TDD] = test_command(context.project, settings)
    if loop.rules is not None and loop.rules.clean and settings[CLEAN_SETUP]:
        found[CLEAN_SETUP] = settings[CLEAN_SETUP]
    return found


def _new_command(context: Context, loop: Loop, name: str) -> str:
    """Return the command that the settings have now for this check, "" if it is the frozen one."""
    now = _commands_now(context, loop).get(name, "")
    return now if now and frozen_text(now) != loop.protection.commands.get(name) else ""


def _meet(tx: LoopTransaction) -> list[str]:
    """Meet the criteria whose checks passed with the files that are accepted now."""
    accepted = {file.path: file.digest for file in tx.loop.protection.files}
    met = []
    for criterion in tx.loop.criteria.values():
        if _passed_with(criterion, accepted):
            facts = {name: it for name, it in (criterion.evidence or {}).items() if name != "seq"}
            evidence = {**facts, "accepted": True}
            tx.append("criterion", {"criterion": criterion.name, "met": True, "evidence": evidence})
            met.append(criterion.name)
    return met


def _passed_with(criterion: Criterion, accepted: dict[str, str | None]) -> bool:
    """Return whether the check passed, and every file that was altered then is accepted as it was."""
    proof = criterion.evidence or {}
    altered = proof.get("altered", ())
    if criterion.met or not altered or proof["exit_code"] or criterion.stale:
        return False
    return all(accepted.get(it["path"], "") == it["digest"] for it in altered)
