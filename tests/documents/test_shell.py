"""Shell commands whose exit code says nothing, and commands that only look like it."""

from __future__ import annotations

import subprocess

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gsd_fsm.documents.shell import LONGEST, masking_part
from tests.support.events import write

MASKED = {
    "pytest -q | tee log": "| tee log",
    "pytest 2>&1 | tee -a log 2>/dev/null": "| tee -a log 2>/dev/null",
    "pytest |& head -50": "| head -50",
    "make test | grep -v warn | tail -n 5": "| tail -n 5",
    "git diff --check | wc -l": "| wc -l",
    "npm test | sed 's/x/y/' | sort": "| sort",
    "npm test | awk '{print $1}'": "| awk '{print $1}'",
    "pytest || true": "|| true",
    "pytest||:": "|| :",
    "pytest || echo 'it failed'": "|| echo 'it failed'",
    "pytest && echo ok || true": "|| true",
    "make && make test || echo bad": "|| echo bad",
    "a || b || true": "|| true",
    "(pytest || true)": "|| true",
    "cd x && { pytest || /bin/true; }": "|| /bin/true",
    "pytest || { echo bad; }": "|| { echo bad; }",
    "pytest; true": "; true",
    "pytest ; echo done > log": "; echo done > log",
    "cd x\npytest\necho exit code $?\n": "; echo exit code $?",
    "pytest; echo a; echo b": "; echo a",
    "pytest > log; cat log": "; cat log",
    "pytest; rm -rf tmp": "; rm -rf tmp",
    "pytest; code=$?": "; code=$?",
    "mkdir -p x; cd x; pytest; cd ..": "; cd ..",
    "pytest; exit 0": "; exit 0",
    "pytest; echo done; exit $?": "; echo done",
    "pytest &": "&",
    "pytest & wait": "&",
    "set -e; pytest || true": "|| true",
    "set -e; pytest | tee log": "| tee log",
    "set -o pipefail; set +o pipefail; pytest | tee log": "| tee log",
    "(set -o pipefail); pytest | tee log": "| tee log",
    "set -o pipefail; pytest | tee log || true": "|| true",
    "bash -c 'pytest || true'": "|| true",
    'CI=1 /bin/sh -c "cd x; pytest | tee log"': "| tee log",
    "env CI=1 bash -lc 'pytest; echo done'": "; echo done",
    "for x in a b; do test $x; done | tee log": "| tee log",
    "if x; then echo fi; fi; echo done": "; echo done",
    "f() { pytest; }\nf || true": "|| true",
    "pytest <<EOF | cat\n|| false\nEOF": "| cat",
    "out=$(pytest) || true": "|| true",
    "! pytest || true": "|| true",
    "pytest || \\\n  true": "|| true",
    f"pytest || echo {'x' * 99}": f"|| echo {'x' * 52}",
}
DECIDES = [
    "pytest -q",
    "",
    "true",
    "echo hello",
    "cat a b | sort | uniq",
    "mkdir -p x && cd x; echo y",
    "test -d x || mkdir x",
    "python3 hello.py | grep -q hello",
    "grep '|| true' file",
    "set -e; bash -c 'test -f a && test -f b'; true",
    'grep "; echo | tee" file',
    r"grep \|\| true file",
    "grep $'|| true' file",
    "echo `pytest || true` | grep ok",
    'test "$(pytest | tee log)" = "$(cat \'a b\')"',
    "test -z ${x:-|| true}",
    "pytest # || true",
    "cat <<'EOF' | python3\nx || true\nEOF",
    "cat <<-EOF | python3\n\tx; true\n\tEOF\n",
    "diff <(sort a || true) b",
    "pytest && echo ok",
    "echo begin; pytest",
    "pip install x || true; pytest",
    "rm x || true && pytest",
    "pytest || exit 1",
    "pytest || { echo bad; exit 1; }",
    "pytest || (echo bad && false)",
    "pytest; exit",
    "pytest; code=$?; cat log; exit $code",
    'pytest | tee log; exit "${PIPESTATUS[0]}"',
    "pytest | tee log; test ${PIPESTATUS[0]} -eq 0",
    "set -o pipefail; pytest | tee log",
    "set -euo pipefail\npytest | tee log\necho ok",
    "set -e; pytest; echo ok",
    "bash -o pipefail -c 'pytest | tee log'",
    "bash -eo pipefail -c 'pytest | tee log; echo ok'",
    "sh -ec 'pytest; echo ok'",
    "sh check.sh",
    "! grep -rq TODO src",
    "pytest & wait $!",
    "out=$(pytest)",
    "npm test | awk '/fail/ {exit 1}'",
    "npm test | sed '/fail/q1'",
    "pytest; rm tmp",
    "if pytest; then echo ok; else exit 1; fi",
    "for x in a; do echo done; pytest $x; done",
    "case $x in a) pytest;; *) false;; esac",
    "[[ -f a || true ]]",
    "while [[ -f a ]]; do if x; then break; fi; done; pytest",
    "x=(a b); pytest",
    "find . \\( -name a -o -name b \\) | xargs grep x",
    "pytest &> log",
    "pytest >log 2>&1",
    # unreadable
    "pytest || true '",
    'pytest || true "$(',
    "(pytest || true",
    "pytest || true )",
    "{ pytest || true",
    "if pytest || true",
    "|| true",
    "(" * 5_000 + "pytest || true" + ")" * 5_000,
    "pytest || true " + "x" * LONGEST,
]


@pytest.mark.parametrize(("command", "part"), MASKED.items())
def test_masking_part_is_named(command: str, part: str) -> None:
    assert masking_part(command) == part


@pytest.mark.parametrize("command", DECIDES)
def test_command_that_can_fail_or_cannot_be_read_has_no_masking_part(command: str) -> None:
    assert masking_part(command) is None


def joined(parts: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """Return commands made of these parts, each in every way that a shell knows."""
    pairs = st.tuples(parts, st.sampled_from(["; ", " && ", " || ", " | ", "\n", " & "]), parts)
    grouped = st.tuples(
        st.sampled_from(["( %s )", "{ %s; }", "bash -c '%s'"]), parts.filter(is_plain)
    )
    return pairs.map("".join) | grouped.map(lambda it: it[0] % it[1])


def is_plain(text: str) -> bool:
    return "'" not in text and not text.endswith("& ")


# `bad` records that it ran, and fails.
PARTS = ["bad", "bad >/dev/null", "true", "echo '|| x'", "cat"]
OPTIONS = ["", "set -e; ", "set -o pipefail; ", "set -eo pipefail\n"]


@given(st.sampled_from(OPTIONS), st.recursive(st.sampled_from(PARTS), joined, max_leaves=6))
def test_masking_part_agrees_with_a_real_shell(
    tmp_path_factory, options: str, command: str
) -> None:
    command = options + command
    folder = tmp_path_factory.mktemp("shell")
    program = write(folder / "bad", "#!/bin/sh\ntouch ran\nexit 1\n")
    program.chmod(0o755)
    path = f"{folder}:/usr/bin:/bin"
    done = subprocess.run(
        ["bash", "-c", command], cwd=folder, env={"PATH": path}, capture_output=True,
        stdin=subprocess.DEVNULL, check=False,
    )  # fmt: skip
    hidden = (folder / "ran").exists() and done.returncode == 0
    assert not done.stderr
    assert (masking_part(command) is not None) is hidden, command


SIGNS = ["a", "true", "echo", "|", "||", "&&", "&", ";", "\n", "(", ")", "{", "}", "'", '"', "`", "$(",
         "${", "<<E", ">", "<(", "\\", "#", "if", "fi", "case", "esac", "[[", "]]", "!", "set -e", " "]  # fmt: skip


@given(st.lists(st.sampled_from(SIGNS), max_size=30).map("".join) | st.text(max_size=50))
@example("a=(")
def test_any_text_is_read_without_an_error(text: str) -> None:
    assert masking_part(text) is None or text.strip()
