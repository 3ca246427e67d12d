"""Changes of the code that no test would notice: mutants of modules, each against the tests that execute its line.

    python tools/mutants.py graphstore/values/period.py        every mutant of a module
    python tools/mutants.py --sample 100 --seed 7 MODULE …     some of them
    python tools/mutants.py --measure                          the branches covered, and the map of tests and lines made anew

The tests are collected once, and those that are new are measured: which lines each executes. Each mutant is a fork of that process in which the code of one function is replaced, and it runs the tests of the map
until one fails or takes far too long. A mutant outside functions gets a process of its own. What may live is listed, with the reason, in
`tests/mutants.toml`; any other that lives makes the exit code 1.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import copy
import difflib
import gc
import importlib.machinery
import inspect
import marshal
import os
import pickle
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import pytest
from hypothesis import settings
from hypothesis.internal.conjecture.engine import ConjectureRunner

ROOT = Path(__file__).resolve().parents[1]
KEPT = Path(os.environ.get("MUTANTS", ROOT / ".mutants"))
MEASURED = [
    *(f"graphstore/{part}/*" for part in ("ledger", "read", "graph", "search", "view", "write")),
    "graphstore/values/period.py",
]
TESTS = [
    f"tests/{name}"
    for name in (
        "ledger",
        "read",
        "graph",
        "search",
        "view",
        "write",
        "values",
        "store",
        "stories",
        "change",
        "topics",
        "memory",
    )
]
AT_RANDOM = ("test_model.py", "test_branch_model.py", "test_properties.py")
"""Of the tests left out of `make test`, those that run in this process: random histories. What lives meets them last."""
PLAIN = ["-p", "no:cacheprovider", "-p", "no:xdist"]
COMPARED = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
COMPUTED = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Add, ast.FloorDiv: ast.Mult, ast.Div: ast.Mult,
    ast.LShift: ast.RShift, ast.RShift: ast.LShift, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd,
}  # fmt: skip
SILENT = (ast.JoinedStr, ast.Raise, ast.Assert, ast.Import, ast.ImportFrom, ast.AnnAssign)
"""What is not looked into: texts for people, types. Nor are decorators: sizes of caches."""


@dataclass
class Mutant:
    """One change: the `part` of a node becomes `new`."""

    path: str
    function: str  # "" outside functions
    lines: range  # of the statement, for the tests that execute it
    part: tuple[ast.AST, str, int | None]
    new: Any
    words: str
    verdict: str = ""
    tests: list[str] = field(default_factory=list)

    @property
    def name(self) -> str:
        return f"{self.function or 'module'}: {self.words}"

    def code(self, tree: ast.Module) -> CodeType:
        """The module compiled with this change in it."""
        node, name, at = self.part
        old = getattr(node, name)
        if at is None:
            setattr(node, name, self.new)
        else:
            setattr(node, name, [*old[:at], self.new, *old[at + 1 :]])
        try:
            return compile(ast.fix_missing_locations(tree), str(ROOT / self.path), "exec")
        finally:
            setattr(node, name, old)


def changes(node: ast.AST) -> Iterator[tuple[str, int | None, Any]]:
    """(field, place in it, what it becomes) for each change of the node itself."""
    match node:
        case ast.Compare(ops=ops):
            yield from (("ops", at, COMPARED[type(op)]()) for at, op in enumerate(ops))
        case ast.BoolOp(op=op):
            yield "op", None, ast.Or() if isinstance(op, ast.And) else ast.And()
        case ast.BinOp(op=op) | ast.AugAssign(op=op) if type(op) in COMPUTED:
            yield "op", None, COMPUTED[type(op)]()
        case ast.Constant(value=bool() as value):
            yield "value", None, not value
        case ast.Constant(value=int() as value):
            yield "value", None, value + 1
        case ast.If(test=test) | ast.While(test=test) | ast.IfExp(test=test) if not isinstance(
            test, ast.Compare | ast.BoolOp
        ):
            yield (
                "test",
                None,
                test.operand if isinstance(test, ast.UnaryOp) else ast.UnaryOp(ast.Not(), test),
            )
        case ast.comprehension(ifs=ifs):
            for at, test in enumerate(ifs):
                if not isinstance(test, ast.Compare):
                    yield "ifs", at, ast.UnaryOp(ast.Not(), test)
        case ast.Return(value=value) if value is not None and not isinstance(value, ast.Constant):
            yield "value", None, ast.Constant(None)


def left_out(statement: ast.stmt) -> bool:
    """Whether a statement can be replaced by `pass`: a call, an error raised, something set in an object."""
    match statement:
        case ast.Expr(value=ast.Call()) | ast.Raise() | ast.Delete() | ast.Continue() | ast.Break():
            return True
        case ast.AugAssign():
            return True
        case ast.Assign(targets=[ast.Attribute() | ast.Subscript()]):
            return True
    return False


def said(node: ast.AST) -> str:
    """A node in a line, the bodies of statements left out."""
    if hasattr(node, "body") and isinstance(node.body, list):
        node = copy.copy(node)
        node.body, node.orelse = [ast.Pass()], []
    text = ast.unparse(node) if not isinstance(node, ast.comprehension) else ast.unparse(node).strip()
    return " ".join(text.split()).removesuffix(" pass")


def mutants(path: str, tree: ast.Module) -> list[Mutant]:
    """All mutants of a module, in its order."""
    found: list[Mutant] = []

    def add(function: str, lines: range, part: tuple[ast.AST, str, int | None], new: Any, words: str) -> None:
        found.append(Mutant(path, function, lines, part, new, words))

    def walk(node: ast.AST, function: str, inside: bool, lines: range, around: ast.AST | None = None) -> None:
        if isinstance(node, ast.stmt):
            heads = [child for child in ast.iter_child_nodes(node) if isinstance(child, ast.expr)]
            last = max((part.end_lineno or 0 for part in heads), default=node.lineno)
            lines = range(node.lineno, (last if hasattr(node, "body") else node.end_lineno or 0) + 1)
        if isinstance(node, SILENT) or (isinstance(node, ast.If) and said(node.test) == "TYPE_CHECKING"):
            return
        for name, at, new in changes(node):
            shown = around if around and isinstance(node, ast.Constant) else node
            before, old = said(shown), getattr(node, name)
            setattr(node, name, new if at is None else [*old[:at], new, *old[at + 1 :]])
            words = f"{before} → {said(shown)}"
            setattr(node, name, old)
            add(function if inside else "", lines, (node, name, at), new, words)
        if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef):
            below = f"{function}.{node.name}".strip(".")
            for default in (
                [*node.args.defaults, *node.args.kw_defaults] if not isinstance(node, ast.ClassDef) else []
            ):
                if default is not None:
                    walk(default, below, False, lines)
            within = inside or not isinstance(node, ast.ClassDef)
            visit(node.body, "body", node, below, within, lines)
            return
        for name, value in ast.iter_fields(node):
            if name in ("annotation", "returns"):
                continue
            if isinstance(value, list) and value and isinstance(value[0], ast.stmt):
                visit(value, name, node, function, inside, lines)
            elif isinstance(value, list):
                for child in value:
                    if isinstance(child, ast.AST):
                        walk(child, function, inside, lines, node)
            elif (
                isinstance(value, ast.AST) and said(node) != "-1"
            ):  # any negative number says that there is none
                walk(value, function, inside, lines, node)

    def visit(body: list[Any], name: str, node: ast.AST, function: str, inside: bool, lines: range) -> None:
        for at, statement in enumerate(body):
            if inside and left_out(statement):
                rows = range(statement.lineno, (statement.end_lineno or 0) + 1)
                add(
                    function,
                    rows,
                    (node, name, at),
                    ast.copy_location(ast.Pass(), statement),
                    f"{said(statement)} → pass",
                )
            walk(statement, function, inside, lines)

    visit(tree.body, "body", tree, "", False, range(0))
    return found


def functions_in(code: CodeType) -> Iterator[CodeType]:
    """The code of every function and class within a module's, at any depth."""
    for const in code.co_consts:
        if isinstance(const, CodeType):
            yield const
            yield from functions_in(const)


def key(code: CodeType) -> tuple[str, str, int]:
    return code.co_filename, code.co_qualname, code.co_firstlineno


class Run:
    """Collected tests, and processes that run some of them: a plugin of pytest."""

    def __init__(self, chosen: argparse.Namespace) -> None:
        self.chosen = chosen
        self.coverage = recording() if chosen.measure else None
        self.failed: set[str] = set()
        self.took: dict[str, float] = {}
        self.killers: dict[str, int] = {}
        self.tests_of: dict[int, set[str]] = {}
        self.alive = 0
        memory = Path("/dev/shm")
        self.folder = Path(tempfile.mkdtemp(prefix="mutants-", dir=memory if memory.is_dir() else None))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.took[report.nodeid] = self.took.get(report.nodeid, 0.0) + report.duration
        if report.failed:
            self.failed.add(report.nodeid)

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items[:] = [
            item for item in items if not item.get_closest_marker("rest") or item.path.name in AT_RANDOM
        ]

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        self.session = session
        self.items = {item.nodeid: item for item in session.items}
        kept = KEPT / "map"
        self.map: dict[str, Any] = {"took": {}, "sources": {}, "files": {}}
        if kept.exists() and not self.chosen.measure:
            self.map = pickle.loads(kept.read_bytes())
        unknown = [test for test, item in self.items.items() if self.map["sources"].get(test) != source(item)]
        if unknown:
            self.measure(unknown)
            kept.write_bytes(pickle.dumps(self.map))
        self.took = dict(self.map["took"])
        gc.freeze()  # so that a fork does not copy what it only counts
        ConjectureRunner.shrink_interesting_examples = lambda _: None  # no failure is made small
        settings.register_profile("mutants", settings.default, database=None, derandomize=True)
        settings.load_profile("mutants")
        may_live = tomllib.loads((ROOT / "tests/mutants.toml").read_text())
        for path in self.chosen.modules:
            self.module(path, may_live.get(path, {}))
        shutil.rmtree(self.folder, ignore_errors=True)
        return True

    def forked(self, tests: list[str], number: int, before: Any = None, to_the_end: bool = False) -> int:
        """A child that runs the tests and writes what failed into the file `number`. Gives its process id."""
        child = os.fork()
        if child:
            return child
        os.setsid()
        nowhere = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(nowhere, stream)
        place = self.folder / f"{number}.d"
        place.mkdir()
        self.session.config._tmp_path_factory._basetemp = place  # type: ignore[attr-defined]
        answer = ""
        try:
            if before is not None:
                before()
            items = [self.items[test] for test in tests]
            for item, after in zip(items, [*items[1:], None], strict=False):
                if self.coverage:
                    self.coverage.switch_context(item.nodeid)
                item.config.hook.pytest_runtest_protocol(item=item, nextitem=after)
                if self.failed and not to_the_end:
                    break
            answer = "\n".join(sorted(self.failed))
        except BaseException as error:
            answer = repr(error)
        finally:
            (self.folder / f"{number}.txt").write_text(answer)
            with contextlib.suppress(BaseException):
                signal.alarm(10)
                self.session._setupstate.teardown_exact(None)
            if self.coverage:
                signal.alarm(0)
                self.coverage.stop()
                self.coverage.save()
                (self.folder / f"{number}.took").write_bytes(pickle.dumps((self.took, self.failed)))
            os._exit(0)

    def measure(self, tests: list[str]) -> None:
        """Run tests under coverage, in as many processes as were asked for, and put into the map which lines they execute."""

        def begin() -> None:
            self.coverage = self.coverage or recording()

        print(f"measuring {len(tests)} tests")
        files: dict[str, list[str]] = {}
        for test in tests:
            files.setdefault(test.split("::")[0], []).append(test)
        order, many = sorted(files.values(), key=len, reverse=True), self.chosen.workers
        parts = [[test for part in order[n::many] for test in part] for n in range(many)]
        for child in [self.forked(part, n, begin, to_the_end=True) for n, part in enumerate(parts)]:
            os.waitpid(child, 0)
        failed: set[str] = set()
        for part in self.folder.glob("*.took"):
            took, bad = pickle.loads(part.read_bytes())
            self.map["took"].update(took)
            failed |= bad
        if self.coverage:
            self.coverage.stop()
            self.coverage.save()
        whole = self.coverage or recording(start=False)
        whole.combine()
        if self.chosen.measure:
            whole.report()
        data = whole.get_data()
        good = {*self.map["took"]} - failed
        was = self.map["files"]
        self.map["files"] = {}
        for path in {*was, *(str(Path(file).relative_to(ROOT)) for file in data.measured_files())}:
            if (ROOT / path).exists():
                now = (ROOT / path).read_text().split("\n")
                lines = moved(*was[path], now) if path in was else {}
                for line, contexts in data.contexts_by_lineno(str(ROOT / path)).items():
                    lines.setdefault(line, set()).update(
                        sys.intern(name) for name in contexts if name in good
                    )
                self.map["files"][path] = now, lines
        self.map["sources"].update({test: source(self.items[test]) for test in tests})
        for test in sorted(failed):
            print(f"  fails unchanged: {test}")
        for left in self.folder.iterdir():
            shutil.rmtree(left) if left.is_dir() else left.unlink()

    def module(self, path: str, may_live: dict[str, str]) -> None:
        """Make the mutants of a module, run them, and print those that live."""
        text = (ROOT / path).read_text()
        tree = ast.parse(text)
        known = self.map["files"].get(path)
        self.tests_of = moved(*known, text.split("\n")) if known else {}
        self.functions: dict[tuple[str, str, int], list[FunctionType]] = {}
        for found in gc.get_objects() if not gc.unfreeze() else ():
            if isinstance(found, FunctionType):
                self.functions.setdefault(key(found.__code__), []).append(found)
        gc.freeze()
        made = [one for one in mutants(path, tree) if (self.chosen.only or "") in one.name]
        if self.chosen.sample and self.chosen.sample < len(made):
            made = random.Random(self.chosen.seed).sample(made, self.chosen.sample)
            made.sort(key=lambda one: one.lines.start)
        self.killers = {}
        for seconds, last in ((self.chosen.seconds / 8, False), (self.chosen.seconds, True)):
            self.round([one for one in made if not one.verdict], tree, seconds, last)
        self.check(made)
        if self.chosen.verbose:
            print("\n".join(f"  {one.verdict or '-':60} {one.lines.start} {one.name}" for one in made))
        living = [one for one in made if not one.verdict]
        unlisted = [one for one in living if one.name not in may_live]
        for one in unlisted:
            print(f"  {path}:{one.lines.start} {one.name}   ({len(one.tests)} tests)")
        self.alive += len(unlisted)
        print(
            f"{path}: {len(made)} made, {len(made) - len(living)} noticed "
            f"({sum(one.verdict == 'time' for one in made)} by their time), "
            f"{len(living) - len(unlisted)} listed, {len(unlisted)} alive",
            flush=True,
        )

    def round(self, made: list[Mutant], tree: ast.Module, seconds: float, last: bool) -> None:
        """Run each of the mutants against so many seconds of tests, without those that it was run against before; at last against random histories too."""
        running: dict[int, tuple[Mutant, int, float]] = {}
        for number, mutant in enumerate(made):
            while len(running) >= self.chosen.workers:
                self.reap(running)
            lines = (
                mutant.lines if mutant.function else self.tests_of
            )  # what runs at import concerns every test
            covering = {test for line in lines for test in self.tests_of.get(line, ())} & self.items.keys()
            spent, tests = 0.0, []
            for test in sorted(
                covering.difference(mutant.tests),
                key=lambda test: (-self.killers.get(test, 0), self.took[test]),
            ):
                spent += self.took[test]
                if spent > seconds:
                    break
                tests.append(test)
            random_ones = [test for test in covering if last and self.items[test].get_closest_marker("rest")]
            tests += [test for test in random_ones if test not in tests]
            spent += sum(self.took[test] for test in random_ones)
            mutant.tests += tests
            code = mutant.code(tree)
            if mutant.function:
                child = self.forked(tests, number, lambda code=code: self.replace(code))
            else:
                spent += 20  # to import everything anew
                child = self.alone(tests, number, mutant.path, code)
            running[child] = mutant, number, time.monotonic() + 20 + 5 * spent
        while running:
            self.reap(running)

    def replace(self, code: CodeType) -> None:
        """Let every living function of the module run its changed code."""
        for new in functions_in(code):
            for function in self.functions.get(key(new), ()):
                if function.__code__ != new:
                    function.__code__ = new

    def alone(self, tests: list[str], number: int, path: str, code: CodeType) -> int:
        """A process of its own, in which the module is imported changed."""
        (self.folder / f"{number}.code").write_bytes(marshal.dumps(code))
        (self.folder / f"{number}.tests").write_text("\n".join(tests[:200]))
        order = [sys.executable, __file__, "--alone", str(self.folder / f"{number}"), path]
        nowhere = subprocess.DEVNULL
        return subprocess.Popen(order, stdout=nowhere, stderr=nowhere, start_new_session=True, cwd=ROOT).pid

    def reap(self, running: dict[int, tuple[Mutant, int, float]]) -> None:
        """Wait for a child, or for the time of one to be over."""
        child, _ = os.waitpid(-1, os.WNOHANG)
        if not child:
            over = [pid for pid, (*_, until) in running.items() if time.monotonic() > until]
            if not over:
                time.sleep(0.01)
                return
            child = over[0]
            os.killpg(child, signal.SIGKILL)
            os.waitpid(child, 0)
            running[child][0].verdict = "time"
        if child not in running:
            return
        mutant, number, _ = running.pop(child)
        answer = self.folder / f"{number}.txt"
        failed = answer.read_text().split("\n") if answer.exists() else ["ended"]
        mutant.verdict = mutant.verdict or failed[0]
        for test in failed:
            self.killers[test] = self.killers.get(test, 0) + 1
        for left in self.folder.glob(f"{number}.*"):
            shutil.rmtree(left, ignore_errors=True) if left.is_dir() else left.unlink()

    def check(self, made: list[Mutant]) -> None:
        """What noticed must pass where nothing is changed."""
        tests = [test for test in self.killers if test in self.items]
        os.waitpid(self.forked(tests, -1, to_the_end=True), 0)
        for bad in filter(None, (self.folder / "-1.txt").read_text().split("\n")):
            print(f"  {bad} fails unchanged too: what it noticed counts as alive")
            for one in made:
                one.verdict = "" if one.verdict == bad else one.verdict
        shutil.rmtree(self.folder / "-1.d", ignore_errors=True)


def recording(*, start: bool = True) -> Any:
    """Coverage of the modules that are mutated, a context for each test."""
    import coverage

    made = coverage.Coverage(
        data_file=str(KEPT / "coverage"), data_suffix=True, branch=True, include=MEASURED
    )
    if start:
        made.start()
    return made


def source(item: Any) -> int:
    """A number that changes with the text of a test."""
    return zlib.crc32(inspect.getsource(item.function).encode())


def moved(before: list[str], tests: dict[int, set[str]], now: list[str]) -> dict[int, set[str]]:
    """The tests that execute each line of a text as it is now; a line that is new has those of the lines around it."""
    lines: dict[int, set[str]] = {}
    for what, a, b, c, d in difflib.SequenceMatcher(None, before, now, autojunk=False).get_opcodes():
        for line in range(c, d):
            old = [a + line - c] if what == "equal" else range(max(0, a - 3), b + 3)
            found = set[str]().union(*(tests.get(at + 1, ()) for at in old))
            if found:
                lines[line + 1] = found
    return lines


def main(words: Iterable[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("modules", nargs="*", help="such as graphstore/values/period.py")
    parser.add_argument("--measure", action="store_true", help="make the map of tests and lines anew")
    parser.add_argument("--sample", type=int, help="so many mutants of each module")
    parser.add_argument("--seed", type=int, default=16)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=40, help="of tests, as measured, for one mutant")
    parser.add_argument("--verbose", action="store_true", help="which test noticed each")
    parser.add_argument("--only", help="mutants with this in their name")
    parser.add_argument("--tests", nargs="*", default=TESTS)
    parser.add_argument("--alone", type=Path, help=argparse.SUPPRESS)
    chosen = parser.parse_args(words)
    os.chdir(ROOT)
    sys.path.insert(0, str(ROOT))
    if chosen.alone:
        return alone(chosen.alone, chosen.modules[0])
    KEPT.mkdir(parents=True, exist_ok=True)
    for left in KEPT.glob("coverage*"):
        left.unlink()
    run = Run(chosen)
    pytest.main(["-s", "-q", "--no-summary", *PLAIN, *chosen.tests], plugins=[run])
    return 1 if run.alive else 0


def alone(place: Path, path: str) -> int:
    """Import a module as changed, and run the tests on it."""
    marshalled = place.with_name(f"{place.name}.code").read_bytes()
    usual = importlib.machinery.SourceFileLoader.get_code

    def changed(self: Any, name: str) -> CodeType | None:
        if self.path == str(ROOT / path):
            return marshal.loads(marshalled)
        return usual(self, name)

    importlib.machinery.SourceFileLoader.get_code = changed  # type: ignore[method-assign]
    tests = place.with_name(f"{place.name}.tests").read_text().split("\n")
    code = pytest.main(["-x", *PLAIN, f"--basetemp={place}.d", *tests])
    place.with_name(f"{place.name}.txt").write_text("" if code == 0 else "alone")
    return 0


if __name__ == "__main__":
    sys.exit(main())
