import re

from hypothesis import given
from hypothesis import strategies as st

from gsd_fsm.evidence.fingerprint import likeness

SAME = (
    ("===== 3 passed in 0.53s =====", "==== 3 passed in 112.01s ===="),
    ("=== 3 failed in 61.20s (0:01:01) ===", "=== 3 failed in 75.31s (0:01:15) ==="),
    ("✓ adds (12ms)", "✓ adds (7ms)"), ("Done in 1m 3s.", "Done in 59s."),
    ("Time:        2.113 s, estimated 3 s", "Time:        1.9 s, estimated 2 s"),
    ("ok  \tpkg/x\t0.012s", "ok  \tpkg/x\t1.4s"), ("# duration_ms 12.5", "# duration_ms 8.125"),
    ('{"ok":1,"elapsed":0.51}', '{"ok":1,"elapsed":1.7}'),
    ("2026-01-02T03:04:05Z start", "2025-12-31T23:59:59.123Z start"),
    ("2026-01-02 03:04:05,678 INFO up", "2026-01-03 13:14:15,001 INFO up"),
    ("built 2026-01-02", "built 2026-11-30"),
    ("backup 20260102T030405Z", "backup 20261130T131415Z"),
    ("Fri Jan  2 03:04:05 2026 up", "Sat Jan 13 23:04:05 2026 up"),
    ("Date: Fri, 02 Jan 2026 03:04:05 GMT", "Date: Sat, 03 Jan 2026 13:14:15 GMT"),
    ("[03:04:05] build", "[23:59:59] build"), ("at 10:11:12 PM", "at 1:02:03 AM"),
    ("<Foo object at 0x7f3a5c2b1d90>", "<Foo object at 0x7fffdeadbeef>"),
    ("pid 4242 died", "pid 17 died"), ("(node:4242) Warning: x", "(node:17) Warning: x"),
    ("==4242== Invalid read", "==17== Invalid read"),
    ("http://localhost:54321/x", "http://localhost:8080/x"),
    ("bind 127.0.0.1:40001", "bind 127.0.0.1:55555"),
    ("listening on [::1]:40001", "listening on [::1]:55555"),
    ("open /srv/tmpab12cd8_/x.txt", "open /srv/tmpzyxwvuts/x.txt"),
    ("open /tmp/tmpab12cd/x.txt", "open /tmp/tmpzz98yx/x.txt"),
    ("/tmp/pytest-of-me/pytest-12/test_a0/f", "/tmp/pytest-of-you/pytest-3/test_a0/f"),
    ("/var/folders/x1/abc123/T/build", "/var/folders/y2/def456/T/build"),
    ("/tmp/npm-4242-a1b2c3/x", "/tmp/npm-17-d4e5f6/x"),
    ("id 123e4567-e89b-12d3-a456-426614174000", "id 00000000-0000-4000-8000-00000000abcd"),
    ("\x1b[31mFAILED\x1b[0m x", "FAILED x"), ("\x1b]0;title\x07ready", "ready"),
    ("10%\r50%\r100%\ndone", "33%\r100%\ndone"), ("a\r\nb\r\n", "a\nb\n"),
    ("\x1b[2K\x1b[1Gworking\x1b[2K\x1b[1Gdone", "done"),
    ("100%|███| 10/10 [00:03<00:00,  3.20it/s]", "100%|███| 10/10 [00:13<00:00,  9.75it/s]"),
)  # fmt: skip
DIFFERENT = (
    ("3 passed in 0.53s", "4 passed in 0.53s"),
    ("1 failed, 3 passed in 0.53s", "2 failed, 3 passed in 0.53s"),
    ("a.py:10: error", "a.py:11: error"), ("a.py:10:5: E501", "a.py:10:6: E501"),
    ("a.c:10:15:30", "a.c:10:15:31"), ("line 10, in f", "line 12, in f"),
    ("TypeError: x", "ValueError: x"), ("expected 5, got 6", "expected 5, got 7"),
    ("http://example.org:8080/", "http://example.org:9090/"),
    ("/tmp/build/a.txt", "/tmp/build/b.txt"), ("/srv/tmpl/a", "/srv/tmpl/b"),
    ("v1.2.3", "v1.2.4"), ("exit code 1", "exit code 2"), ("0x1f", "0x2f"),
    ("commit 1a2b3c4", "commit 5d6e7f8"), ("test_5s failed", "test_6s failed"), ("a b", "a  b"),
    ("a\nb", "a b"), ("b\na", "a\nb"), ("100 MB", "200 MB"), ("", "x"), ("50%\r60%", "50%\r100%"),
    ("process failed", "process passed"), ("3 m", "4 m"), ("\ud800 broken", "broken"),
)  # fmt: skip


def test_likeness_ignores_volatile_parts():
    assert [pair for pair in SAME if len({*map(likeness, pair)}) != 1] == []


def test_likeness_changes_with_other_differences():
    assert [pair for pair in DIFFERENT if len({*map(likeness, pair)}) != 2] == []


@given(st.text())
def test_likeness_is_16_hex_digits_and_stable(text):
    assert re.fullmatch(r"[0-9a-f]{16}", likeness(text))
    assert likeness(text) == likeness(text)


@given(st.text(alphabet="abc xyz\n", min_size=1), st.integers(0, 9999), st.integers(0, 9999))
def test_likeness_ignores_any_duration(report, first, second):
    assert likeness(f"{report} in 0.{first}s") == likeness(f"{report} in 0.{second}s")


@given(st.integers(0, 9999), st.integers(0, 9999))
def test_likeness_changes_with_any_count(first, second):
    same = likeness(f"{first} failed in 1.5s") == likeness(f"{second} failed in 2.5s")
    assert same == (first == second)
