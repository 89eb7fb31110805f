"""Hold what the checks of a loop depend on: protected files, and how they were found changed."""

from __future__ import annotations

from gsd_fsm.core.loop.records import Record
from gsd_fsm.core.loop.schema import (
    AMOUNT,
    COUNT,
    DIGESTS,
    TEXT_OR_NULL,
    TEXTS,
    is_id,
    record,
    records,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Mapping

    from gsd_fsm.core.loop.payloads import (
        AlteredSpec,
        CleanData,
        FrozenData,
        PlanData,
        ProtectedSpec,
        WatchedData,
    )
    from gsd_fsm.core.loop.schema import Kind
    from gsd_fsm.core.loop.state import Loop

# Files that checks depend on. `parts`: the values in it that matter; without them, all of it does.
# `checks`: the checks that depend on it; without them, every check does.
PROTECTED = records(
    "protected",
    {"path": str, "digest": str, "parts": TEXTS, "checks": TEXTS, "executable": bool},
    ("path", "digest"),
)
# Protected files that were found changed; `upstream`: the new content is that of the upstream branch.
ALTERED = records(
    "altered",
    {"path": str, "digest": TEXT_OR_NULL, "checks": TEXTS, "upstream": bool},
    ("path", "digest"),
)
PROGRAMS = records("programs", {"name": str, "path": str, "digest": str}, ("name", "path"))
# What `start` froze of the checks. `watched` and `values` are digests: of the list of watched files,
# and of the variables that strict_env restores. `commands` are those of the settings, by check.
FROZEN = record(
    "frozen",
    {
        "protected": PROTECTED, "watched": str, "environment": DIGESTS, "programs": PROGRAMS,
        "commands": DIGESTS, "may_change": TEXTS, "values": str,
    },
)  # fmt: skip
# The change of a protected file that a human has accepted.
ACCEPTED = records(
    "accepted", {"path": str, "before": TEXT_OR_NULL, "after": TEXT_OR_NULL}, ("path",)
)
# The tests that a check ran and skipped.
TESTS = record("tests", {"ran": COUNT, "skipped": COUNT})
# Watched files that differ from those at `start`; `more` are not listed.
# `lost`: the list that `start` kept of them is missing.
WATCHED = record(
    "watched", {"changed": TEXTS, "deleted": TEXTS, "new": TEXTS, "more": COUNT, "lost": bool}
)
# Files that a check names and that are not part of the tree: `digest` is null for a missing one, and
# absent if the file changed while the checks ran.
OUTSIDE = records("outside", {"path": str, "digest": TEXT_OR_NULL}, ("path",))
# What evidence records about the things that a check depends on. `variables` are those that differ from
# `start`, `rewritten` files that were written or moved while the checks ran and are as before,
# `doubts` what makes the result of the tests doubtful.
EVIDENCE_FIELDS: dict[str, Kind] = {
    "altered": ALTERED, "accepted": bool, "watched": WATCHED, "variables": TEXTS,
    "outside": OUTSIDE, "rewritten": TEXTS,
    "programs": PROGRAMS, "tests": TESTS, "doubts": TEXTS, "clean": bool,
}  # fmt: skip


class Protected(Record):
    """A file that checks depend on; `digest` is that of the content that counts, `original` that at start."""

    def __init__(self, spec: ProtectedSpec | None = None) -> None:
        given: ProtectedSpec = spec or {"path": "", "digest": ""}
        self.path = given["path"]
        self.original = given["digest"]
        self.digest: str | None = given["digest"]
        self.parts = given.get("parts", [])
        self.checks = given.get("checks", [])
        self.executable = given.get("executable", False)

    @property
    def shown(self) -> str:
        """Return its path, with the values that matter if they are not all of it."""
        return "%s [%s]" % (self.path, ", ".join(self.parts)) if self.parts else self.path


class Altered(Record):
    """A protected file whose content does not count; `digest` is None if it is missing."""

    def __init__(self, spec: AlteredSpec | None = None) -> None:
        given: AlteredSpec = spec or {"path": "", "digest": None}
        self.path = given["path"]
        self.digest = given["digest"]
        self.checks = given.get("checks", [])
        self.upstream = given.get("upstream", False)


class Protection(Record):
    """What `start` froze of the checks, and what the latest comparison found.

    `named` are the altered files that a block has named, `warned` whether a block has said that
    nothing else is left. `accepted` are the files and commands whose change a human accepted.
    `most_tests` is the largest number of tests that each check ran, `doubts` what makes the last
    result of a check doubtful, and `drift` which watched files differ from those at `start`.
    """

    def __init__(self) -> None:
        self.files: list[Protected] = []
        self.altered: list[Altered] = []
        self.named: list[str] = []
        self.warned = False
        self.accepted: list[str] = []
        self.most_tests: dict[str, int] = {}
        self.doubts: dict[str, list[str]] = {}
        self.drift: WatchedData = {}
        self.watched = ""
        self.environment: dict[str, str | None] = {}
        self.programs: list[dict[str, Any]] = []
        self.commands: dict[str, str | None] = {}
        self.may_change: list[str] = []
        self.values = ""
        # The checks that passed in the clean room, and the content that they were run on.
        self.clean_tree = ""
        self.clean_checks: list[str] = []

    def freeze(self, data: FrozenData) -> None:
        """Take over what `start` froze."""
        self.protect(data.get("protected", []))
        self.watched = data.get("watched", "")
        self.environment = data.get("environment", {})
        self.programs = list(data.get("programs", []))  # type: ignore[arg-type]
        self.commands = data.get("commands", {})
        self.may_change = data.get("may_change", [])
        self.values = data.get("values", "")

    def protect(self, specs: list[ProtectedSpec]) -> None:
        self.files += [Protected(spec) for spec in specs]

    def update(self, data: PlanData) -> None:
        """Take over protected files, and which of them were altered, accepted or restored."""
        if data.get("anew"):
            self.files = []
        self.protect(data.get("protected", []))
        self.watched = data.get("watched", self.watched)
        if "altered" in data:
            self.altered = [Altered(spec) for spec in data["altered"]]
        settled = set(data.get("restored", ()))
        for change in data.get("accepted", ()):
            settled.add(change["path"])
            self._name_accepted(change["path"])
            for file in self.files:
                if file.path == change["path"]:
                    file.digest = change.get("after")
        self.altered = [it for it in self.altered if it.path not in settled]
        left = [it.path for it in self.altered]
        self.named = [path for path in self.named if path in left]
        self.warned = self.warned and bool(left)
        if "command" in data:
            self.commands = {**self.commands, data.get("check", ""): data["command"]}
            self._name_accepted("the command of %s" % data.get("check", ""))
        if "clean" in data:
            self._record_clean(data["clean"])

    def _name_accepted(self, what: str) -> None:
        if what not in self.accepted:
            self.accepted.append(what)

    def _record_clean(self, result: CleanData) -> None:
        if result["tree"] != self.clean_tree:
            self.clean_tree, self.clean_checks = result["tree"], []
        if result["exit_code"] == 0:
            self.clean_checks.append(result["check"])

    def record_block(self, data: Mapping[str, Any]) -> None:
        """Remember which altered files a block has named, and whether nothing else was left."""
        self.named += data.get("altered", ())
        self.warned = self.warned or data.get("code") == "altered"

    def record_run(self, check: str, evidence: Mapping[str, Any]) -> None:
        """Remember what evidence says about tests and watched files."""
        self.drift = evidence.get("watched", {})
        self.doubts.pop(check, None)
        if evidence.get("doubts"):
            self.doubts[check] = evidence["doubts"]
        ran = evidence.get("tests", {}).get("ran", 0) if evidence.get("exit_code") == 0 else 0
        if ran > self.most_tests.get(check, 0):
            self.most_tests[check] = ran


# The result of one check in the clean room, by the tree that it was run on.
CLEAN = record(
    "clean",
    {
        "tree": str, "check": str, "command": str, "exit_code": COUNT, "tail": str, "digest": str,
        "seconds": AMOUNT, "timed_out": bool,
    },
    ("tree", "check", "exit_code"),
)  # fmt: skip
PROTECTION_FIELDS: dict[str, Kind] = {
    "protected": PROTECTED, "altered": ALTERED, "accepted": ACCEPTED, "restored": TEXTS,
    "check": str, "command": str, "clean": CLEAN, "watched": str, "anew": bool,
}  # fmt: skip


def altered_checks(loop: Loop) -> set[str]:
    """Return the checks that depend on an altered file; "" stands for every check."""
    return {name for file in loop.protection.altered for name in file.checks or ("",)}


def unnamed_files(loop: Loop) -> list[Altered]:
    """Return the altered files that no block has named yet."""
    return [file for file in loop.protection.altered if file.path not in loop.protection.named]


def shown_name(file: Altered) -> str:
    """Return the name by which `accept` and `restore` find an altered file, as a shell word."""
    name = file.checks[0] if file.checks else file.path
    return name if is_id(name.replace(":", "_")) else "'%s'" % name.replace("'", "'\\''")


def protection_text(data: Any) -> str:
    """Return the timeline text of an event about protected files."""
    if "accepted" in data or "command" in data:
        named = [it["path"] for it in data.get("accepted", ())] or [data.get("command", "")]
        return "accepted for %s: %s" % (data.get("check", ""), ", ".join(named))
    if "restored" in data:
        return "restored for %s: %s" % (data.get("check", ""), ", ".join(data["restored"]))
    if "altered" in data:
        named = [it["path"] for it in data["altered"]]
        return "altered: %s" % ", ".join(named) if named else "no protected file is altered"
    if "clean" in data:
        clean = data["clean"]
        return "clean room: %s, exit code %d" % (clean["check"], clean["exit_code"])
    count = len(data.get("protected", ()))
    return "protects %d more file%s" % (count, "" if count == 1 else "s")
