"""Count the steps of a backtracking search, and generate texts that make it take many.

`re` reports no steps, and times are not repeatable. So this module runs the parsed form of a
pattern itself, and asserts that each attempt ends where the attempt of `re` ends.
"""

import functools
import re
from itertools import pairwise

try:
    from re import _compiler as compiler
    from re import _parser as parser
except ImportError:  # Python 3.10
    import sre_compile as compiler
    import sre_parse as parser

CHARACTER = ("LITERAL", "NOT_LITERAL", "IN", "ANY")
ASCII = [*map(chr, range(32, 127)), "\n", "\r", "\t", "\x1b"]
JUNK = ["a", "1", " ", "\n", "\\", '"', "'", "-", ":", "=", "+", ".", "!", "$(", "${", "{"]


@functools.cache
def any_of(characters):
    """Return a pattern that matches one of these characters."""
    return compiler.compile("[" + "".join(map(re.escape, characters)) + "]")


class Counted:
    """A pattern like one of `re.compile` that adds its steps to `Counted.steps`."""

    steps = 0

    def __init__(self, pattern, flags=0):
        self.real = compiler.compile(pattern, flags)
        self.tree = parser.parse(pattern, flags)
        self.testers = {}
        self.characters = [*ASCII, *sorted({*pattern}.difference(ASCII))]
        self.program = self.translated(self.tree, self.tree.state.flags)
        self.may_begin_with = functools.cache(self.may_begin_with)

    def finditer(self, text):
        at, found = 0, self.search(text)
        while found:
            yield found
            # `re` does not find an empty match twice
            at = found.end() + (found.start() == found.end())
            found = self.search(text, at) if at <= len(text) else None

    def all_in(self, text):
        return [*self.finditer(text)]

    def search(self, text, at=0):
        found = self.real.search(text, at)
        begin = found.start() if found else len(text)
        Counted.steps += begin - at
        for start in self.starts(text, at, begin):
            assert self.attempt(text, start) is None, (self.real, start)
        return self.match(text, begin) if found else None

    def match(self, text, at=0):
        found = self.real.match(text, at)
        assert self.attempt(text, at) == (found.end() if found else None), (self.real, at)
        return found

    def fullmatch(self, text):
        found = self.real.fullmatch(text)
        assert (self.attempt(text, 0, len(text)) is None) == (found is None), self.real
        return found

    def starts(self, text, at, end):
        """Yield each position before the end whose character may begin a match."""
        characters = "".join(sorted(filter(self.may_begin_with, {*text[at:end]})))
        if characters:
            for found in any_of(characters).finditer(text, at, end):
                yield found.start()

    def may_begin_with(self, character):
        """Say if a match may begin with this character; `re` skips the others as cheaply."""
        todo, seen = [0], set()
        while todo:
            line = todo.pop()
            if line == len(self.program):
                return True
            if line in seen:
                continue
            seen.add(line)
            name, *rest = self.program[line]
            if name in ("one", "run") and rest[0](character):
                return True
            if name == "go":
                todo += rest
            elif name != "one" and (name != "run" or rest[1] == 0):
                todo.append(line + 1)
        return False

    def attempt(self, text, at, required_end=None, program=None, groups=None):
        """Return the end of the match that begins here, or None if there is none."""
        program = self.program if program is None else program
        todo = [(0, at, at, groups or {})]
        size, steps = len(program), 0
        while todo:
            line, least, at, groups = todo.pop()
            if at > least:  # a run of characters can give back one more
                todo.append((line, least, at - 1, groups))
            while line < size:
                steps += 1
                operation = program[line]
                name = operation[0]
                line += 1
                if name == "one":
                    if not operation[1](text[at : at + 1]):
                        break
                    steps += 1
                    at += 1
                elif name == "run":
                    _, accepts, fewest, most, match = operation
                    end = match(text, at, at + most).end() if accepts(text[at : at + 1]) else at
                    steps += end - at
                    if end - at < fewest:
                        break
                    if end - at > fewest:
                        todo.append((line, at + fewest, end - 1, groups))
                    at = end
                elif name == "go":
                    _, line, *others = operation
                    todo += [(other, at, at, groups) for other in reversed(others)]
                elif name == "save":
                    groups = {**groups, operation[1]: at}
                elif name == "repeat":
                    again = text[groups[operation[1], 0] : groups[operation[1], 1]]
                    steps += len(again)
                    if not text.startswith(again, at):
                        break
                    at += len(again)
                elif name == "behind":
                    if operation[1](text, at) is None:
                        break
                else:
                    _, is_wanted, inner = operation
                    if (self.attempt(text, at, None, inner, groups) is not None) != is_wanted:
                        break
            else:
                if required_end in (None, at):
                    Counted.steps += steps
                    return at
        Counted.steps += steps
        return None

    def translated(self, nodes, flags):
        program = []
        self.translate(nodes, flags, program)
        return program

    def translate(self, nodes, flags, program):
        for node in nodes:
            name, value = str(node[0]), node[1]
            if name in CHARACTER:
                program.append(self.run_of(node, flags, 1, 1))
            elif name == "MAX_REPEAT":
                self.translate_repeat(*value, flags, program)
            elif name == "SUBPATTERN":
                group, added, removed, inner = value
                program.append(("save", (group, 0)))
                self.translate(inner, (flags | added) & ~removed, program)
                program.append(("save", (group, 1)))
            elif name == "BRANCH":
                self.translate_branches(value[1], flags, program)
            elif name == "GROUPREF":
                program.append(("repeat", value))
            elif name == "AT" or value[0] < 0:
                program.append(("behind", self.compiled(node, flags).match))
            else:
                assert name in ("ASSERT", "ASSERT_NOT"), name
                program.append(("ahead", name == "ASSERT", self.translated(value[1], flags)))

    def translate_repeat(self, fewest, most, inner, flags, program):
        endless = most == parser.MAXREPEAT
        if len(inner) == 1 and str(inner[0][0]) in CHARACTER:
            most = 1 << 40 if endless else most
            program.append(self.run_of(inner[0], flags, fewest, most))
            return
        for _ in range(fewest):
            self.translate(inner, flags, program)
        forks = []
        for _ in range(1 if endless else most - fewest):
            forks.append(len(program))
            program.append(None)
            self.translate(inner, flags, program)
        if endless:
            assert inner.getwidth()[0] > 0, "a round that consumes nothing would not end"
            program.append(("go", forks[0]))
        for fork in forks:
            program[fork] = ("go", fork + 1, len(program))

    def translate_branches(self, branches, flags, program):
        fork = len(program)
        program.append(None)
        starts, ends = [], []
        for branch in branches:
            starts.append(len(program))
            self.translate(branch, flags, program)
            ends.append(len(program))
            program.append(None)
        program[fork] = ("go", *starts)
        for end in ends:
            program[end] = ("go", len(program))

    def compiled(self, node, flags):
        return compiler.compile(parser.SubPattern(self.tree.state, [node]), flags)

    def run_of(self, node, flags, fewest, most):
        """Return the operation that reads so many characters that the node matches."""
        inner = parser.SubPattern(self.tree.state, [node])
        match = self.compiled((parser.MAX_REPEAT, (0, parser.MAXREPEAT, inner)), flags).match
        accepts = functools.cache(lambda one: match(one).end() > 0)
        return ("one", accepts) if fewest == most == 1 else ("run", accepts, fewest, most, match)

    def tester(self, node, flags):
        """Return a function that says if the node matches a character."""
        key = f"{node} {flags}"
        if key not in self.testers:
            pattern = self.compiled(node, flags)
            self.testers[key] = functools.cache(lambda one: pattern.match(one) is not None)
        return self.testers[key]

    def hard_shapes(self, dice):
        """Yield a beginning, a piece to repeat and an end, for each repetition without a limit.

        Steps pile up if an attempt reads such a repetition to its end and fails, and either goes
        back through it or begins anew inside it. A pattern without one takes at most a fixed number
        of steps at each character.
        """
        for before, repeated in self.endless([(it, self.tree.state.flags) for it in self.tree]):
            alphabet = {*self.alphabet([repeated])}
            drawn = [self.invented(before, dice) for _ in range(40)]
            # Prefer beginnings that the repetition itself accepts: attempts may begin inside it.
            drawn.sort(key=lambda text: sum(one not in alphabet for one in text))
            for begin in drawn[:2]:
                piece, junk = self.invented([repeated], dice), dice.choice(JUNK)
                yield "", begin + dice.choice([piece, "", junk]) or junk, junk
                yield begin, piece + dice.choice(["", "", junk]) or junk, dice.choice(JUNK)
            yield "", piece + "\n", ""
            yield begin, piece + "\n", junk

    def endless(self, nodes, before=()):
        """Yield each repetition without a limit, after the nodes that lead to it."""
        for node, flags in nodes:
            if str(node[0]) == "MAX_REPEAT" and node[1][1] == parser.MAXREPEAT:
                yield before, (node, flags)
            for part in parts_of(node, flags):
                yield from self.endless(part, before)
            before = (*before, (node, flags))

    def alphabet(self, nodes):
        for node, flags in nodes:
            if str(node[0]) in CHARACTER:
                yield from filter(self.tester(node, flags), self.characters)
            elif "ASSERT" not in str(node[0]):
                for part in parts_of(node, flags):
                    yield from self.alphabet(part)

    def invented(self, nodes, dice):
        """Return a text that these nodes match if their assertions allow it."""
        text = ""
        for node, flags in nodes:
            name, value, parts = str(node[0]), node[1], parts_of(node, flags)
            if name == "LITERAL":
                text += chr(value)
            elif name in CHARACTER:
                text += dice.choice([*filter(self.tester(node, flags), self.characters)])
            elif name == "MAX_REPEAT":
                rounds = dice.randint(value[0], min(value[1], value[0] + 1))
                text += self.invented(parts[0] * rounds, dice)
            elif name in ("SUBPATTERN", "BRANCH") or (name == "ASSERT" and value[0] < 0):
                text += self.invented(dice.choice(parts), dice)
        return text


def parts_of(node, flags):
    """Return the alternatives inside a node, each as a list of nodes and their flags."""
    name, value = str(node[0]), node[1]
    parts = []
    if name == "MAX_REPEAT":
        parts = [value[2]]
    elif name == "SUBPATTERN":
        parts, flags = [value[3]], (flags | value[1]) & ~value[2]
    elif name in ("BRANCH", "ASSERT", "ASSERT_NOT"):
        parts = value[1] if name == "BRANCH" else [value[1]]
    return [[(each, flags) for each in part] for part in parts]


def texts_of(shape):
    """Return three texts of a shape, each with twice the pieces of the one before it.

    The shortest is longer than the bounds of repetitions in the patterns (256 characters): with
    shorter texts, such a repetition looks as if it had no bound.
    """
    begin, piece, end = shape
    times = 300 // len(piece) + 1
    return [begin + piece * times * factor + end for factor in (1, 2, 4)]


def grows_too_fast(work, texts):
    """Say if the steps of the work grow faster than texts that double in size."""
    counts = []
    for text in texts:
        Counted.steps = 0
        work(text)
        counts.append(Counted.steps)
    before, last = (later - sooner for sooner, later in pairwise(counts))
    return last > 2.3 * before  # linear gives 2, quadratic 4
