"""Runs the tests under every setting in which they must pass, and writes the table in ``CONTRIBUTING.md``.

    .venv/bin/python tools/settings_table.py              # those that have no result in out/settings.json yet
    .venv/bin/python tools/settings_table.py NAME…        # these, again
    .venv/bin/python tools/settings_table.py --list

A setting takes as long as ``make test``, 20 runs and other versions longer. Interrupted, it goes on where it stopped.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import date
from importlib.metadata import version
from pathlib import Path
from xml.etree import ElementTree

import torch

ROOT = Path(__file__).parent.parent
KEPT = ROOT / "out" / "settings.json"
PAGE = ROOT / "CONTRIBUTING.md"
BEGIN, END = "<!-- made by tools/settings_table.py -->\n", "<!-- end of the table -->\n"

DISTRIBUTED = ("tests/matching/test_distributed.py", "tests/language/huggingface/test_together.py")


@dataclass(frozen=True)
class Setting:
    """One row of the table.

    Attributes:
        shown: how the table names it.
        environment: variables that are set.
        options: of pytest, besides those of the target.
        target: what ``make`` is asked for; None for pytest with ``options`` alone.
        times: how often in a row.
        busy: whether another process keeps a core busy.
    """

    shown: str
    environment: dict[str, str] = field(default_factory=dict)
    options: tuple[str, ...] = ()
    target: str | None = "test"
    times: int = 1
    busy: bool = False


def processor(blas: str, aten: str) -> Setting:
    """Returns a setting in which numpy and scipy compute as on one kind of processor, and torch as on another."""
    variables = {"OPENBLAS_CORETYPE": blas, "ATEN_CPU_CAPABILITY": aten}
    return Setting(" ".join(f"`{name}={value}`" for name, value in variables.items()), variables)


SETTINGS = {
    "plain": Setting("as it is"),
    "haswell": processor("Haswell", "avx2"),
    "zen": processor("Zen", "avx2"),
    "skylakex": processor("SkylakeX", "avx512"),
    "prescott": processor("Prescott", "default"),
    "threads": Setting("four threads: `IMM_TEST_THREADS=4`", {"IMM_TEST_THREADS": "4"}),
    "order": Setting("random order: `--random-order-seed 1`", options=("--random-order", "--random-order-seed", "1")),
    "busy": Setting(
        "another random order each time, the other core busy",
        options=("--random-order", "--random-order-seed", str(time.time_ns() % 10**6)),
        busy=True,
    ),
    "distributed": Setting(
        "tests of several processes, 20 times in a row", options=("-m", "", *DISTRIBUTED), target=None, times=20
    ),
    "lowest": Setting("`make test-lowest`", target="test-lowest"),
    "newest": Setting("`make test-newest`", target="test-newest"),
}


@contextmanager
def busy_core(wanted: bool) -> Iterator[None]:
    """Keeps one core busy meanwhile, if that is wanted."""
    process = subprocess.Popen([sys.executable, "-c", "while True: pass"]) if wanted else None
    try:
        yield
    finally:
        if process is not None:
            process.kill()
            process.wait()


def measure(setting: Setting) -> dict[str, float]:
    """Runs the tests and counts what came of them; a run without a report is one failure."""
    found: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder, busy_core(setting.busy):
        report = Path(folder) / "report.xml"
        for _ in range(setting.times):
            report.unlink(missing_ok=True)
            # The options go through the environment, so that `make` runs what it always runs.
            options = " ".join(f"'{option}'" for option in (*setting.options, f"--junitxml={report}"))
            command = ["make", setting.target] if setting.target else [sys.executable, "-m", "pytest"]
            begin = time.perf_counter()
            subprocess.run(command, cwd=ROOT, env=os.environ | setting.environment | {"PYTEST_ADDOPTS": options})
            found["seconds"] += round(time.perf_counter() - begin)
            if not report.exists():
                found["failed"] += 1
                continue
            (suite,) = ElementTree.parse(report).getroot()
            tests, failed, errors, skipped = (
                int(suite.get(name, 0)) for name in ("tests", "failures", "errors", "skipped")
            )
            found.update({"passed": tests - failed - errors - skipped, "failed": failed + errors, "skipped": skipped})
    return dict(found)


def table(results: dict[str, dict[str, float]]) -> str:
    """Returns the table, and what machine and versions it was made with."""
    names = ("torch", "numpy", "scipy", "scikit-learn", "transformers", "pytest")
    lines = [
        f"{date.today()}, {_processor()}, {os.cpu_count()} cores, Python {platform.python_version()},",
        f"{', '.join(f'{name} {version(name)}' for name in names)}.",
        "Seconds are those of this machine, which had other work too.",
        "",
        "| setting | passed | failed | skipped | seconds |",
        "|---|---|---|---|---|",
    ]
    for name, setting in SETTINGS.items():
        if name in results:
            cells = (f"{results[name].get(column, 0):,}" for column in ("passed", "failed", "skipped", "seconds"))
            lines.append(f"| {setting.shown} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _processor() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else []
    model = next((line.partition(": ")[2] for line in lines if line.startswith("model name")), platform.machine())
    return f"{model} ({torch.backends.cpu.get_cpu_capability()})"


def write(results: dict[str, dict[str, float]]) -> None:
    """Puts the table between its two marks."""
    before, rest = PAGE.read_text().split(BEGIN)
    PAGE.write_text(before + BEGIN + table(results) + END + rest.split(END)[1])


def main() -> int:
    """Runs what is asked for; the exit code is 1 if any test failed under any setting."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", choices=[[], *SETTINGS], help="settings to run again")
    parser.add_argument("--list", action="store_true", help="print the names and what they stand for")
    given = parser.parse_args()
    if given.list:
        print("\n".join(f"{name:12} {setting.shown}" for name, setting in SETTINGS.items()))
        return 0
    results = json.loads(KEPT.read_text()) if KEPT.exists() else {}
    for name in given.names or [name for name in SETTINGS if name not in results]:
        setting = SETTINGS[name]
        if setting.environment.get("ATEN_CPU_CAPABILITY") == "avx512" and not torch.cpu._is_avx512_supported():
            print(f"{name}: this machine has no AVX-512", flush=True)
            continue
        print(f"{name}: {setting.shown}", flush=True)
        results[name] = measure(setting)
        print(f"{name}: {results[name]}", flush=True)
        KEPT.parent.mkdir(exist_ok=True)
        KEPT.write_text(json.dumps(results, indent=1))
        write(results)
    return int(any(result.get("failed") for result in results.values()))


if __name__ == "__main__":
    sys.exit(main())
