"""The TypeScript client: built and packed as for others, its types strict, used by a program against a real server."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

import graphstore
from tests.support.served import serve_in_process
from tools import typescript_client as client

pytestmark = [pytest.mark.rest, pytest.mark.in_process("has a server of its own")]

PROGRAM = """
import { Graphstore, GraphstoreError, type Answer, type Arguments, type Schemas } from "graphstore-client";

declare const process: { argv: string[]; exit(code: number): never };
const [, , url = "", token = "", reading = ""] = process.argv;
const store = new Graphstore(url + "/", async () => token);

function equal(found: unknown, wanted: unknown): void {
  if (JSON.stringify(found) !== JSON.stringify(wanted)) throw new Error(`${JSON.stringify(found)} is not ${JSON.stringify(wanted)}`);
}

async function refused(asked: Promise<unknown>): Promise<[string, number]> {
  const error = await asked.then(() => undefined, (error: unknown) => error);
  if (!(error instanceof GraphstoreError)) throw new Error(String(error));
  return [error.name, error.status];
}

async function main(): Promise<void> {
  const lunch: Arguments<"add_node"> = { kind: "fact", id: "lunch", content: { says: "at noon" }, valid_from: "2026-01-01" };
  const made: Schemas["Node"] = await store.call("add_node", lunch, { author: "ana" });
  equal([made.id, made.author, made.content["says"]], ["lunch", "ana", "at noon"]);
  await store.call("add_node", { kind: "fact", id: "later", content: { says: "at one, \\u00fc & 50%" }, valid_from: "2026-03-01" });
  const links: Answer<"supersede"> = await store.call("supersede", { old: "lunch", by: "later", reason: "the kitchen moved" });
  equal(links.map((link) => [link.source, link.target]), [["later", "lunch"]]);

  equal((await store.call("nodes", {})).map((node) => node.id), ["later"]);
  equal((await store.call("nodes", {}, { valid: "2026-02-01" })).map((node) => node.id), ["lunch"]);
  equal((await store.call("nodes", {}, { tx: "2020-01-01" })).length, 0);
  const found = await store.call("what_superseded", { id: "lunch" });
  equal("current" in found ? found.current.map((node) => node.id) : found.link, ["later"]);
  equal((await store.call("recall/recall", { text: "one" })).hits.length, 1);

  equal(await refused(store.call("node", { id: "nothing" })), ["NotFoundError", 404]);
  equal(await refused(store.call("add_node", lunch)), ["ConflictError", 409]);
  equal(await refused(store.call("nodes", {}, { valid: "someday" })), ["InvalidError", 422]);
  equal(await refused(new Graphstore(url, "wrong").call("nodes", {})), ["Unauthorized", 401]);
  equal(await refused(new Graphstore(url, reading).call("add_node", lunch)), ["Forbidden", 403]);
  equal((await new Graphstore(url, reading).call("nodes", {})).length, 1);

  // @ts-expect-error: no such call
  const wrongName = () => store.call("nodess", {});
  // @ts-expect-error: a path of no call
  const wrongPath = () => store.call("transaction/{transaction}/commit", {});
  // @ts-expect-error: no such argument
  const wrongArgument = () => store.call("node", { name: "lunch" });
  // @ts-expect-error: a needed argument is missing
  const missing = () => store.call("supersede", { old: "lunch" });
  // @ts-expect-error: a write has no coordinate
  const wrongPlace = () => store.call("add_node", lunch, { valid: "2026-01-01" });
  console.log("good", [wrongName, wrongPath, wrongArgument, missing, wrongPlace].length);
}

main().catch((error) => { console.error(error); process.exit(1); });
"""
COMPILER = {
    "compilerOptions": {
        "strict": True, "exactOptionalPropertyTypes": True, "target": "es2022", "lib": ["es2022", "dom"], "types": [], "module": "nodenext",
    },
    "files": ["try.ts"],
}  # fmt: skip


@pytest.fixture(scope="module")
def packed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package of the client, in the folder in which it was built."""
    if shutil.which("npm") is None:
        pytest.skip("npm is not installed")
    return client.build(tmp_path_factory.mktemp("client"))


def test_a_program_reads_writes_and_is_refused_with_types(packed: Path, tmp_path: Path) -> None:
    (tmp_path / "package.json").write_text('{"type": "module"}')
    (tmp_path / "tsconfig.json").write_text(json.dumps(COMPILER))
    (tmp_path / "try.ts").write_text(PROGRAM)
    client.npm(tmp_path, *client.INSTALL, str(packed))
    compiler = packed.parent / "node_modules" / "typescript" / "bin" / "tsc"
    compiled = subprocess.run(["node", str(compiler)], cwd=tmp_path, capture_output=True, text=True)
    assert compiled.returncode == 0, compiled.stdout

    with serve_in_process(tmp_path / "memory.gs", "--no-ticks") as (_, url):
        tokens = [(tmp_path / "memory.gs" / name).read_text().strip() for name in ("token", "token-read")]
        run = ["node", "try.js", url, *tokens]
        done = subprocess.run(run, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout) == (0, "good 5\n"), done.stderr


def test_the_package_has_what_it_needs_and_its_types_are_strict(packed: Path) -> None:
    described = json.loads((packed.parent / "package.json").read_text())
    listed = json.loads(client.npm(packed.parent, "pack", "--dry-run", "--json"))[0]["files"]

    assert described["version"] == graphstore.__version__ and "dependencies" not in described
    assert {each["path"] for each in listed} == {
        "README.md", "package.json", "dist/index.js", "dist/index.d.ts", "dist/api.js", "dist/api.d.ts",
    }  # fmt: skip
    for name in ("index", "api"):
        types = (packed.parent / "dist" / f"{name}.d.ts").read_text()
        code = re.sub(r"/\*.*?\*/|//[^\n]*|\"[^\"\n]*\"", "", types, flags=re.DOTALL)
        assert not re.search(r"\bany\b", code), name
