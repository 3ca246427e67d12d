"""Test what CI does not install, each in an environment of its own: `make frameworks`, or `python tools/frameworks.py [NAME …]`.

Google ADK, Strands and CrewAI want other versions of what the other extras use, and hundreds of megabytes. `typescript` checks the types of the examples for the
Vercel AI SDK and Mastra, and runs the first. The newest versions that pyproject.toml allows are installed.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from typescript_client import INSTALL, build, npm

ROOT = Path(__file__).resolve().parents[1]
TESTS = ("pytest>=8.3,<10", "hypothesis>=6.100")
PYTHON = {
    "google-adk": (("google-adk",), (), "google_adk", "Google ADK"),
    "strands": (("strands", "mcp"), (), "strands", "Strands Agents"),
    "crewai": (("mcp",), ("crewai>=1.15,<2",), "crewai", "CrewAI"),
}
"""By name: extras of the package, other packages, the test of the adapter, and the section of docs/frameworks.md."""


def python(name: str) -> None:
    """Run the test of an adapter, and the section of the page, in the environment `build/frameworks/NAME`."""
    extras, packages, test, section = PYTHON[name]
    place = ROOT / "build" / "frameworks" / name
    own = place / ("Scripts" if sys.platform == "win32" else "bin") / "python"
    if not own.exists():
        subprocess.run([sys.executable, "-m", "venv", place], check=True)
    pip = [own, "-m", "pip", "-qq", "--disable-pip-version-check", "install", "--upgrade"]
    subprocess.run([*pip, "--editable", f"{ROOT}[server,{','.join(extras)}]", *packages, *TESTS], check=True)
    page = f"tests/adapters/test_frameworks_page.py::test_a_section_typed_runs_and_prints_what_it_shows[{section}]"
    subprocess.run([own, "-m", "pytest", f"tests/adapters/test_{test}.py", page], cwd=ROOT, check=True)


def typescript() -> None:
    """Check the types of the examples of the TypeScript client, and run the one for the Vercel AI SDK against a server."""
    with tempfile.TemporaryDirectory(prefix="graphstore-typescript-") as made:
        packed = build(Path(made) / "client")
        examples = packed.parent / "examples"
        npm(examples, *INSTALL)
        npm(examples, *INSTALL, "--no-save", str(packed), "typescript@5.9.3")
        npm(examples, "exec", "--", "tsc")
        store = Path(made) / "memory.gs"
        command = [sys.executable, "-m", "graphstore", "serve", store, "--port", "0", "--no-ticks"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
            try:
                assert server.stdout is not None
                url = server.stdout.readline().split()[3]
                token = (store / "token").read_text().strip()
                subprocess.run(["node", "dist/try-vercel-ai.js", url, token], cwd=examples, check=True)
            finally:
                server.terminate()


if __name__ == "__main__":
    for name in sys.argv[1:] or [*PYTHON, "typescript"]:
        print(f"== {name}", flush=True)
        typescript() if name == "typescript" else python(name)
