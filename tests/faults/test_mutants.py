"""The tests' own teeth: each of these small mistakes in the engine is noticed by a named test."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[2]

# The mistake | its file below gsd_fsm | the test below tests that must fail; then the change.
TABLE = r"""
* an append is not synced | core/journal.py | faults/test_failing_calls.py::test_every_event_is_synced_before_it_is_acknowledged
-            sync(fd)
         except BaseException:
* an append is synced twice | core/journal.py | faults/test_failing_calls.py::test_every_event_is_synced_before_it_is_acknowledged
-            sync(fd)
+            sync(fd) or sync(fd)
         except BaseException:
* a sync does nothing | core/disk.py | faults/test_power_loss.py::test_power_cuts_during_appends_lose_nothing_and_are_never_called_corrupt
-    system.fsync(fd)
+    system.fstat(fd)
* a failed sync is tried again | core/disk.py | faults/test_failing_calls.py::test_a_failed_sync_is_never_tried_again_and_the_event_is_taken_back
-    system.fsync(fd)
+    try:
+        system.fsync(fd)
+    except OSError:
+        system.fsync(fd)
* the directory of a new journal is not synced | core/journal.py | faults/test_power_loss.py::test_power_cuts_while_a_journal_is_made_leave_one_that_can_be_completed
-        sync_directory(directory)
     except OSError as error:
* the directory that holds a new .gsd is not synced | core/places.py | faults/test_power_loss.py::test_the_directory_that_holds_a_new_gsd_is_synced_too
-            _sync_parent(path)
+            pass
* two events share one write | core/journal.py | faults/test_failing_calls.py::test_every_event_is_synced_before_it_is_acknowledged
         start = self.at.offset
+        lines = [b"".join(lines)]
* an event is written before the fold has accepted it | core/journal.py | cli/test_flow.py::test_final_is_final
             try:
-                self.world.apply(event)
-                line, last = encode_event(event, last)
+                line, last = encode_event(event, last)
+                system.write(fd, line)
+                self.world.apply(event)
+                system.ftruncate(fd, self.at.offset)
             except ValueError as error:
* of two events the first is written before the fold has accepted the second | core/journal.py | faults/test_teeth.py::test_of_two_events_none_is_written_if_the_second_is_refused
             events.append({**event, "sum": last})
+            system.write(fd, line)
+        system.ftruncate(fd, self.at.offset)
         start = self.at.offset
* a short write is not taken back | core/journal.py | faults/test_full_disk.py::test_a_write_cut_short_at_any_byte_leaves_the_file_as_it_was
-            system.ftruncate(fd, start)
             raise
* a short write is not noticed | core/journal.py | faults/test_full_disk.py::test_a_write_cut_short_at_any_byte_leaves_the_file_as_it_was
-            if written != len(data):
+            if not written:
* of two events only the second is taken back | core/journal.py | faults/test_failing_calls.py::test_any_call_may_fail_with_any_error
-            self._write(fd, line, start)
+            self._write(fd, line, self.at.offset)
* a torn tail is not mended before the next append | core/journal.py | faults/test_truncation.py::test_after_a_truncation_the_torn_bytes_are_kept_told_and_followed_by_the_next_event
-        self._mend(directory, fd)
         before = self.world.seq
* a torn tail is cut without being kept | core/journal.py | faults/test_truncation.py::test_after_a_truncation_the_torn_bytes_are_kept_told_and_followed_by_the_next_event
-            aside = set_aside(directory, fd, self.at.offset, end, self.now())
+            aside = "nowhere-%d" % end
* the cut of a torn tail is not synced | core/journal.py | faults/test_power_loss.py::test_a_second_power_cut_while_a_torn_tail_is_mended_loses_nothing
-            sync(fd)  # else a power cut may mix sectors of the tail and of the next line
* what is set aside is not synced | core/aside.py | faults/test_power_loss.py::test_power_cuts_during_a_repair_keep_the_old_file_and_the_good_lines
-            sync(copy)
* a last line without its newline is not completed | core/journal.py | faults/test_truncation.py::test_every_truncation_of_fifty_events_recovers_the_whole_lines_before_it
-        if self.at.unended is not None:
+        if not self.at.offset:
* the directory is not synced before a torn tail is cut | core/aside.py | faults/test_teeth.py::test_no_power_cut_loses_both_a_torn_tail_and_what_was_set_aside
-        sync_directory(directory)
         return name
* the zeros behind a last line without its newline are left | core/journal.py | faults/test_teeth.py::test_zeros_behind_a_whole_last_line_are_cut_before_it_is_completed
-            system.ftruncate(fd, self.at.unended)
* a writer goes on in a file that was replaced | core/journal.py | faults/test_teeth.py::test_a_writer_that_is_already_open_goes_on_in_the_file_that_took_the_place
-            if self._fd is None or self._file != (info.st_dev, info.st_ino):
+            if self._fd is None:
* an append under way is called torn | core/journal.py | faults/test_lock.py::test_a_half_written_line_beside_a_holder_is_under_way_and_is_left_alone
-            self.at.torn = 0  # an append under way is not torn
+            pass
* a writer trusts its memory of a file that was restored in place | core/journal.py | faults/test_damage.py::test_a_writer_that_is_already_open_sees_that_the_file_was_restored_from_a_copy
-        if not known or read_at(fd, self.at.offset - len(mark), len(mark)) != mark:
+        if not known:
* sums are compared without regard to case | core/scan.py | faults/test_damage.py::test_every_bit_flip_at_every_offset_of_twenty_events_is_reported_with_its_line
-                if line[-26:] != b',"sum":"' + digest + b'"}':
+                if line[-26:-18] + line[-18:].lower() != b',"sum":"' + digest + b'"}':
* sums are compared as numbers | core/scan.py | faults/test_damage.py::test_every_bit_flip_at_every_offset_of_twenty_events_is_reported_with_its_line
-                if line[-26:] != b',"sum":"' + digest + b'"}':
+                if int(line[-18:-2] or b"-1", 16) != int(digest, 16):
* the sum of a line without newline is compared without regard to case | core/scan.py | faults/test_teeth.py::test_a_last_line_without_newline_is_an_event_only_with_its_very_sum
-    return bool(line[-SUM_TAIL:] == b',"sum":"' + digest.encode("ascii") + b'"}')
+    return bool(line[-SUM_TAIL:].lower() == b',"sum":"' + digest.encode("ascii") + b'"}')
* any NUL in the last line makes it torn | core/scan.py | faults/test_damage.py::test_every_value_at_every_offset_of_the_last_line_is_reported
-        if len(part) > 1 and not part.strip(b"\0"):
+        if b"\0" in part:
* a lone NUL on the edge of a sector makes a line torn | core/scan.py | faults/test_damage.py::test_one_nul_byte_on_the_edge_of_a_sector_is_damage_and_not_torn
-        if len(part) > 1 and not part.strip(b"\0"):
+        if not part.strip(b"\0"):
* a line with a lost sector is torn although others follow it | core/scan.py | faults/test_teeth.py::test_a_lost_sector_in_any_line_but_the_last_is_damage
-        if offset + len(bad) == size and _lost_sector(bad, offset) and isinstance(error, BadFrame):
+        if _lost_sector(bad, offset) and isinstance(error, BadFrame):
* a damaged newline is torn | core/scan.py | faults/test_damage.py::test_every_value_at_every_offset_of_the_last_line_is_reported
-    if frame_ok(rest[:-1], end.sum):
+    if not rest:
* a whole line without its newline is torn | core/scan.py | faults/test_damage.py::test_an_editor_that_drops_the_last_newline_changes_nothing
-    if whole and frame_ok(whole, end.sum):
+    if not rest:
* everything from the damage on is torn | core/scan.py | faults/test_damage.py::test_nothing_is_folded_or_appended_past_damage
-        raise Corrupt(message, number + 1, offset) from error
+        end = Position(offset, number, previous.decode("ascii"))
+        end.torn = size - offset
+        return end
* damaged lines are folded like others | core/scan.py | faults/test_damage.py::test_nothing_is_folded_or_appended_past_damage
-                    raise BadFrame(_what_is_wrong(line))
+                    pass
* the numbers of events need not follow each other | core/fold.py | core/test_world.py::test_an_event_out_of_place_is_no_event
-        if event["seq"] != seq:
+        if event["seq"] < 0:
* the bulk reader believes in any number | bulk.py | faults/test_teeth.py::test_the_bulk_reader_refuses_in_a_known_line_what_the_fold_refuses
-        if known is not None and line.startswith(head):
+        if known is not None:
* the bulk reader believes in any time | bulk.py | faults/test_teeth.py::test_the_bulk_reader_refuses_in_a_known_line_what_the_fold_refuses
-                if ts[:20] != second or ts[20:] not in MILLIS:
+                if ts[:20] != second:
* resume does not replay the journal | cli/flow.py | faults/test_teeth.py::test_resume_sees_damage_that_a_snapshot_hides
-    replay_journal(call.journal())
* the lock is not taken | core/lock.py | faults/test_lock.py::test_a_lock_held_by_a_stopped_process_is_named_and_nothing_is_written
-            fcntl.flock(fd, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
+            fcntl.flock(fd, fcntl.LOCK_UN)
* writers share the lock | core/lock.py | faults/test_writers.py::test_eight_writers_with_readers_beside_them
-            fcntl.flock(fd, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
+            fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
* a replaced lock file is as good as the new one | core/lock.py | faults/test_teeth.py::test_who_waited_for_a_replaced_lock_file_waits_for_the_holder_of_the_new_one
-        return identity(self.directory, LOCK_NAME), path_id(self.path, self.directory)
+        return self._seen[0], path_id(self.path, self.directory)
* a replaced directory is as good as the new one | core/lock.py | faults/test_lock.py::test_a_directory_swapped_while_waiting_gets_the_event_and_the_old_one_does_not
-        return identity(self.directory, LOCK_NAME), path_id(self.path, self.directory)
+        return identity(self.directory, LOCK_NAME), self._seen[1]
* a forked child shares the lock of its parent | core/lock.py | faults/test_lock.py::test_a_forked_child_does_not_share_the_lock_of_its_parent
-            if self._lock is None or self._process != system.getpid():
+            if self._lock is None:
* a snapshot is believed whatever its digest | core/snapshot.py | faults/test_snapshot.py::test_a_snapshot_damaged_at_any_byte_changes_nothing
-    if text[:36] != '{"digest":"%s","body":' % digest_of(body):
+    if not text:
* a snapshot is believed whatever the journal's sum | core/snapshot.py | faults/test_snapshot.py::test_a_forged_snapshot_changes_nothing
-        if read_at(journal, offset - len(mark), len(mark)) != mark.encode("ascii"):
+        if not mark:
* a snapshot of another file is believed | core/snapshot.py | faults/test_snapshot.py::test_a_snapshot_forged_by_a_cloned_repository_cannot_hide_what_was_trusted
-        if found["line"] != found["world"]["seq"] or found["file"] != _number(journal):
+        if found["line"] != found["world"]["seq"]:
* a snapshot of another fold is believed | core/snapshot.py | faults/test_teeth.py::test_a_snapshot_of_another_fold_is_passed_over
-        if found["fold"] != FOLD_VERSION or not 0 < offset <= size:
+        if not 0 < offset <= size:
* links are followed | core/disk.py | faults/test_unsafe_files.py::test_what_is_not_a_plain_file_is_refused_and_nothing_is_written
-_NOFOLLOW = getattr(system, "O_NOFOLLOW", 0)
+_NOFOLLOW = 0
* files of other users are used | core/disk.py | faults/test_permissions.py::test_what_belongs_to_another_user_is_refused
-    return sys.platform == "win32" or uid == system.geteuid()
+    return sys.platform == "win32" or uid >= 0
* an unregistered journal is accepted | core/places.py | cli/test_trust.py::test_an_unregistered_journal_is_read_but_not_written_or_run
-    return bool(journal_id) and _exists(_entry(journal_id, real_path(gsd)))
+    return bool(journal_id)
* a registered journal is accepted at any place | core/places.py | cli/test_trust.py::test_a_copied_or_moved_project_is_not_trusted
-    return join(state_directory(), join("journals", "%s-%s" % (journal_id, digest_of(gsd))))
+    return join(state_directory(), join("journals", journal_id))
* a torn tail is mended before trust is asked for | core/journal.py | cli/test_trust.py::test_even_a_torn_tail_of_an_unregistered_journal_is_left_alone
+        self._mend(directory, fd)
         if allow is not None:
             allow(self.world)  # before the first byte is touched
-        self._mend(directory, fd)
* the name of a loop that ended long ago may be started again | core/fold.py | faults/test_teeth.py::test_the_name_of_an_ended_loop_is_never_given_again
-            if loop is not None or loop_id in self.ended:
+            if loop is not None:
* a final loop may be resumed | core/table.py | core/test_table.py::test_final_is_final_whatever_is_appended
     ("resume", ACTIVE, SAME, ""),
+    ("resume", FINAL, "running", ""),
* the pausing failure counts as a retry | core/work.py | core/test_retries.py::test_a_limit_of_n_gives_n_retries_and_the_next_failure_pauses
-        if not code:
+        if task:
* an agent needs no human prompt | core/flow.py | core/test_resume.py::test_an_agent_needs_a_human_prompt_first
-    if event["by"] == "agent" and not loop.prompted:
+    if not event["by"]:
* progress does not free a stuck loop | core/flow.py | cli/test_work.py::test_iterations_without_progress_are_stuck_and_progress_is_not
-    loop.stuck = 0 if loop.advanced else loop.stuck + 1
+    loop.stuck = loop.stuck + 1
* one iteration more than the limit is allowed | core/guards.py | core/test_guards.py::test_a_limit_of_n_iterations_gives_n
-    if most and loop.iteration >= most:
+    if most and loop.iteration > most:
* stale evidence completes a loop | core/proof.py | core/test_completion.py::test_evidence_of_other_content_is_stale_and_stale_is_not_met
-    wants += ["evidence is stale: %s" % name for name in stale(loop, tree)]
* a criterion with a check may be declared met | core/proof.py | core/test_completion.py::test_a_criterion_with_a_check_is_met_only_by_its_own_check
-    if evidence is None or evidence["command"] != criterion["check"] or evidence["exit_code"] != 0:
+    if evidence is not None and evidence["exit_code"] != 0:
* a verification outlives the next gap | core/work.py | core/test_completion.py::test_a_pass_does_not_outlive_the_next_gap
-    loop.verified = False
* texts are not redacted | texts.py | cli/test_work.py::test_secrets_never_reach_the_journal_from_any_text
-    text = redact(_ends(clean(text)))
+    text = _ends(clean(text))
* the output of checks is not redacted | checks.py | cli/test_check.py::test_secrets_and_escapes_in_the_output_never_reach_the_journal
-        text = redact(REDRAWN.sub("", plain).replace("\r", ""))
+        text = REDRAWN.sub("", plain).replace("\r", "")
* the output of checks is redacted after it was cut | checks.py | test_checks_output.py::test_no_part_of_a_secret_reaches_the_tail
-        text = redact(REDRAWN.sub("", plain).replace("\r", ""))
+        text = redact(REDRAWN.sub("", plain).replace("\r", "")[-TAIL_CHARACTERS:])
* control characters are shown as they are | core/sanitize.py | cli/test_hostile.py::test_nothing_in_a_journal_reaches_the_terminal_raw
-    return "\\u{%x}" % ord(character)
+    return character
* the goal is shown as it is | render.py | cli/test_hostile.py::test_nothing_in_a_journal_reaches_the_terminal_raw
-        ("goal", display(view["goal"] or "")),
+        ("goal", view["goal"] or ""),
"""


class Mutant(NamedTuple):
    name: str
    file: str
    test: str
    old: str
    new: str


def _mutant(entry: str) -> Mutant:
    title, *diff = entry.strip("\n").split("\n")
    name, file, test = title.split(" | ")
    old, new = ("".join(f"{line[1:]}\n" for line in diff if line[0] in " " + sign) for sign in "-+")
    return Mutant(name, f"gsd_fsm/{file}", f"tests/{test}", old, new)


MUTANTS = [_mutant(entry) for entry in ("\n" + TABLE).split("\n* ")[1:]]
NAMES = [mutant.name for mutant in MUTANTS]


def test_every_mutant_still_fits_its_source_in_one_place() -> None:
    assert len(set(NAMES)) == len(NAMES) >= 18
    for name, file, test, old, new in MUTANTS:
        source = "\n" + (ROOT / file).read_text("utf-8")
        assert source.count("\n" + old) == 1, name
        compile(source.replace("\n" + old, "\n" + new), file, "exec")
        assert old != new, name
        path, function = test.split("::")
        assert f"\ndef {function}(" in (ROOT / path).read_text("utf-8"), name


def _copy(place: Path) -> Path:
    """The project once more, to be changed."""
    for name in ("gsd_fsm", "tests"):
        shutil.copytree(ROOT / name, place / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", place)
    return place


def _python(place: Path, cwd: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run Python with the copied package before any that is installed."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=cwd,
        env={**kept, "PYTHONPATH": str(place), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )


def _pytest(place: Path, *tests: str) -> subprocess.CompletedProcess[str]:
    # From elsewhere, as the tests start their own children: only the path must lead to the copy.
    asked = _python(place, place / "tests", "-c", "import gsd_fsm; print(gsd_fsm.__file__)")
    assert asked.stdout.strip() == str(place / "gsd_fsm" / "__init__.py"), asked
    return _python(place, place, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *tests)


@pytest.mark.torture
def test_the_named_tests_pass_while_nothing_is_changed(tmp_path: Path) -> None:
    done = _pytest(_copy(tmp_path), *sorted({mutant.test for mutant in MUTANTS}))
    assert done.returncode == 0, done.stdout[-4000:]


@pytest.mark.torture
@pytest.mark.parametrize("name", NAMES)
def test_every_mutant_is_killed_by_its_test(tmp_path: Path, name: str) -> None:
    mutant = MUTANTS[NAMES.index(name)]
    place = _copy(tmp_path)
    source = "\n" + (place / mutant.file).read_text("utf-8")
    changed = source.replace("\n" + mutant.old, "\n" + mutant.new)
    (place / mutant.file).write_text(changed[1:], "utf-8")
    done = _pytest(place, mutant.test)
    # 1: a test failed. Anything else but 0 means that the mutant does not even run.
    assert done.returncode == 1, done.stdout[-4000:] + done.stderr[-1000:]
