import random
import re

import pytest

from gsd_fsm.evidence import test_counts
from gsd_fsm.evidence.test_counts import Counted, count_tests, doubts
from tests.support.regex_steps import Counted as CountedPattern
from tests.support.regex_steps import grows_too_fast, texts_of

# Closing lines as the runners print them: pytest 8, Python 3.11 and 3.12, jest 30, vitest 4,
# mocha 11, node 20, cargo 1.95, nextest 0.9, go 1.22.
OUTPUTS = (
    # pytest
    ("= 1 failed, 2 passed, 1 skipped, 1 xfailed, 1 xpassed, 1 warning, 1 error in 0.43s =", (6, 1)),
    ("1 failed, 2 passed, 1 skipped, 1 xfailed, 1 xpassed, 1 warning, 1 error in 0.44s", (6, 1)),
    ("======================= 1 passed, 6 deselected in 0.43s ========================", (1, 0)),
    ("collected 7 items / 7 deselected / 0 selected\n\n==== 7 deselected in 0.43s ====", (0, 0)),
    ("s                                         [100%]\n1 skipped, 6 deselected in 0.44s", (0, 1)),
    ("!!!! stopping after 1 failures !!!!\n=== 1 failed, 1 passed in 0.45s ===", (2, 0)),
    ("2 workers [3 items]\n...\n============ 3 passed in 61.20s (0:01:01) ============", (3, 0)),
    ("============================ no tests ran in 0.42s =============================", (0, 0)),
    ("no tests ran in 0.43s", (0, 0)),
    ("========================== 7 tests collected in 0.46s ==========================", (0, 0)),
    ("no tests collected (7 deselected) in 0.40s", (0, 0)),
    ("3/7 tests collected (4 deselected) in 0.40s", (0, 0)),
    ("!!!! Interrupted: 1 error during collection !!!!\n1 error in 0.49s", (1, 0)),
    ("3 passed, 5 subtests passed in 0.02s", (3, 0)),
    ("== 2 passed, 3 rerun in 0.30s ==", (2, 0)), ("2 passed, 2 errors in 0.40s", (4, 0)),
    (".F.                                                                   [100%]", None),  # -qq
    # unittest
    ("Ran 3 tests in 0.001s\n\nOK", (3, 0)),
    ("Ran 1 test in 0.000s\n\nOK (skipped=1)\n", (0, 1)),
    (("Ran 6 tests in 0.001s\n\nFAILED (failures=1, errors=1, skipped=1, expected failures=1, "
     "unexpected successes=1)"), (5, 1)),
    ("Ran 0 tests in 0.000s\n\nOK", (0, 0)), ("Ran 0 tests in 0.000s\n\nNO TESTS RAN", (0, 0)),
    ("Ran 0 tests in 0.000s\n\nNO TESTS RAN (skipped=2)", (0, 2)),
    # jest
    (("Test Suites: 1 failed, 1 total\n"
     "Tests:       1 failed, 1 skipped, 1 todo, 1 passed, 4 total\nSnapshots:   0 total"), (2, 2)),
    ("Test Suites: 1 skipped, 0 of 1 total\nTests:       4 skipped, 4 total", (0, 4)),
    ("Test Suites: 1 failed, 1 total\nTests:       0 total\nSnapshots:   0 total", (0, 0)),
    ("No tests found, exiting with code 1\nRun with `--passWithNoTests` to exit", (0, 0)),
    # vitest
    ((" Test Files  1 failed (1)\n      Tests  1 failed | 1 passed | 1 skipped | 1 todo (4)\n"
     "   Start at  00:33:12\n   Duration  160ms (transform 16ms, setup 0ms)"), (2, 2)),
    (" Test Files  1 passed (1)\n      Tests  2 passed (2)\n   Start at  00:33:12", (2, 0)),
    (" Test Files  1 failed (1)\n      Tests  no tests\n   Start at  00:33:12", (0, 0)),
    (" Test Files  1 passed (1)\n      Tests  1 passed | 1 expected fail (2)", (2, 0)),
    ("No test files found, exiting with code 1\n\nfilter: zz", (0, 0)),
    # mocha
    ("  ✔ a\n  1) b\n  - c\n\n  1 passing (2ms)\n  1 pending\n  1 failing\n\n  1) b:", (2, 1)),
    ("\n\n  3 passing (1s)\n", (3, 0)), ("\n\n  0 passing (0ms)\n\n", (0, 0)),
    ("\n\n  0 passing (2ms)\n  2 pending", (0, 2)),
    # node
    (("1..4\n# tests 4\n# suites 0\n# pass 1\n# fail 1\n# cancelled 0\n# skipped 1\n# todo 1\n"
     "# duration_ms 68.152423"), (2, 2)),
    ("ℹ tests 4\nℹ suites 0\nℹ pass 3\nℹ fail 0\nℹ cancelled 0\nℹ skipped 1\nℹ todo 0\n", (3, 1)),
    ("1..0\n# tests 0\n# suites 0\n# pass 0\n# fail 0\n# cancelled 0\n# skipped 0\n", (0, 0)),
    # cargo
    (("test result: FAILED. 1 passed; 1 failed; 1 ignored; 0 measured; 0 filtered out; finished in "
     "0.06s\n\n   Doc-tests c\n\nrunning 1 test\n\n"
     "test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out"), (3, 1)),
    (("running 0 tests\n\n"
     "test result: ok. 0 passed; 0 failed; 0 ignored; 0 measured; 3 filtered out"), (0, 0)),
    (("     Summary [   0.355s] 5 tests run: 3 passed (1 slow, 1 flaky), 1 failed, 1 timed out, "
     "2 skipped"), (5, 2)),
    ("     Summary [   0.013s] 2/5 tests run: 1 passed, 1 failed, 0 skipped", (2, 0)),
    ("     Summary [   0.1s] 9 tests run: 1 passed, 8 exec failed, 0 skipped", (9, 0)),
    ("     Summary [   0.011s] 0 tests run: 0 passed, 1 skipped\nerror: no tests to run", (0, 1)),
    # go
    (("=== RUN   TestA\n--- PASS: TestA (0.00s)\n=== RUN   TestB\n    a_test.go:5: later\n"
     "--- SKIP: TestB (0.00s)\n=== RUN   TestC\n=== RUN   TestC/sub\n--- FAIL: TestC (0.00s)\n"
     "    --- FAIL: TestC/sub (0.00s)\nFAIL\nFAIL\tx/a\t0.002s\n?   \tx/b\t[no test files]"), (3, 1)),
    ("ok  \tx/a\t0.002s\n?   \tx/b\t[no test files]", None), ("ok  \tx/a\t(cached)", None),
    ("--- FAIL: TestC (0.00s)\nFAIL\nFAIL\tx/a\t0.002s", None), ("FAIL\tx [build failed]", None),
    ("?   \tx/b\t[no test files]\nok  \tx/c\t0.001s [no tests to run]", (0, 0)),
    # several runners, and none
    ("== 2 passed in 0.43s ==\nRan 3 tests in 0.001s\n\nOK (skipped=1)", (4, 1)),
    ("=== 2 passed in 0.43s ===\n== 1 passed, 1 skipped in 0.43s ==", (3, 1)),
    ("=== 2 passed in 0.43s ===\nok  \tx/a\t0.002s", None),
    ("", None), ("All checks passed!", None), ("Found 3 errors in 2 files", None),
    ("3 files changed in 2.10s", None), ("Compiled 12 modules in 1.20s", None),
    ("ok, 3 passed", None), ("Success: no issues found in 260 source files", None),
)  # fmt: skip


def test_count_tests_reads_the_closing_lines_of_each_runner():
    wrong = [
        (output, count_tests(output)) for output, want in OUTPUTS if count_tests(output) != want
    ]
    assert wrong == []


@pytest.mark.parametrize(("output", "expected"), [
    ("=== 2 passed in 0.43s ===", Counted(2, 0)),
    ("test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out", None),
    ("=== RUN   TestA\n--- PASS: TestA (0.00s)\nPASS\nok  \tx/a\t0.002s", None),
])  # fmt: skip
def test_count_tests_of_cut_output_trusts_only_one_closing_line(output, expected):
    assert count_tests(output, cut=True) == expected


@pytest.mark.parametrize(("now", "most", "expected"), [
    (None, None, []), (None, 0, []), (None, 12, ["the output counts no tests, but 12 ran before"]),
    (Counted(12, 0), 12, []), (Counted(13, 4), 12, []), (Counted(1, 9), None, []),
    (Counted(0, 0), None, ["no tests ran"]), (Counted(0, 0), 12, ["no tests ran"]),
    (Counted(0, 0), 0, ["no tests ran"]), (Counted(0, 1), 1, ["the only test was skipped"]),
    (Counted(0, 4), 12, ["all 4 tests were skipped"]),
    (Counted(3, 9), 12, ["fewer tests ran than before: 3, not 12"]),
])  # fmt: skip
def test_doubts_name_missing_skipped_and_fewer_tests(now, most, expected):
    assert doubts(now, most) == expected


PATTERNS = [
    *test_counts._SUMMARIES, *test_counts._TOTALS, test_counts._GO_PACKAGE, test_counts._GO_TEST,
    test_counts._GO_VERBOSE, test_counts._NUMBER_AND_WORD, test_counts._NOT_RUN,
]  # fmt: skip


def test_every_pattern_matches_an_example():
    examples = "\n\n".join(output for output, _ in OUTPUTS)
    assert [pattern.pattern for pattern in PATTERNS if not pattern.search(examples)] == []
    words = {*re.findall(r"\w+", examples)}
    assert {*test_counts.RAN, *test_counts.SKIPPED} - words == set()


@pytest.mark.parametrize("real", PATTERNS)
def test_pattern_takes_linear_steps_on_every_generated_shape(real):
    pattern = CountedPattern(real.pattern, real.flags)
    shapes = pattern.hard_shapes(random.Random(real.pattern))
    assert [shape for shape in shapes if grows_too_fast(pattern.all_in, texts_of(shape))] == []
