"""A wheel for this platform that carries compiled kernels, from a wheel without them.

    python packaging/wheel_with_kernels.py dist/reserve_c4b-0.1.0-py3-none-any.whl [--study]

Kernels are compiled from the wheel's own files for processors of the level in ``BASELINES``, which takes
about a minute. ``--study`` adds what studies need. The new wheel lies beside the old one. Where it does
not fit (an older processor, another version of the compiler), kernels are compiled at first use as ever.
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import json
import os
import platform
import subprocess
import sys
import sysconfig
import tempfile
import zipfile
from pathlib import Path

BASELINES = {
    "x86_64": (
        "x86-64-v3",
        "+avx,+avx2,+bmi,+bmi2,+cmov,+cx16,+cx8,+f16c,+fma,+fxsr,+lzcnt,+mmx,+movbe,+popcnt,+sahf,"
        "+sse,+sse2,+sse3,+sse4.1,+sse4.2,+ssse3,+xsave",
    ),
}
"""By machine: the processor that kernels are compiled for, and all that it must have."""
POLICIES = "import c4b; c4b.warm_up()"
STUDIES = "from c4b.study.engine.run import warm_up; warm_up()"
"""What compiles the kernels of policies and of studies."""
TARGET = """
import json
from numba.core.registry import cpu_target
from c4b._compilation import compile_cache
print(json.dumps(compile_cache.target_of(cpu_target.target_context.codegen())))
"""


def compiled(package: Path, cache: Path, work: str) -> dict[str, str]:
    """Run ``work`` on an unpacked wheel, which compiles into ``cache``; returns what it compiled for."""
    processor, features = BASELINES[platform.machine()]
    environment = os.environ | {
        "PYTHONPATH": str(package),
        "NUMBA_CACHE_DIR": str(cache),
        "NUMBA_CPU_NAME": processor,
        "NUMBA_CPU_FEATURES": features,
        "NUMBA_DISABLE_INTEL_SVML": "1",
        "C4B_QUIET": "1",
    }
    command = [sys.executable, "-c", f"{work}\n{TARGET}"]
    found = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE, text=True)
    target: dict[str, str] = json.loads(found.stdout)
    return target


def carrying(pure: Path, work: str) -> Path:
    """Write the wheel that carries the kernels which ``work`` compiles; returns its path."""
    if platform.machine() not in BASELINES:
        raise SystemExit(f"no baseline for {platform.machine()}; there are {', '.join(BASELINES)}")
    python = f"cp{sys.version_info.major}{sys.version_info.minor}"
    tag = f"{python}-{python}-{sysconfig.get_platform().replace('-', '_').replace('.', '_')}"
    made = pure.with_name(pure.name.replace("py3-none-any", tag))
    with tempfile.TemporaryDirectory() as folder:
        package, cache = Path(folder) / "site", Path(folder) / "cache"
        with zipfile.ZipFile(pure) as source:
            source.extractall(package)
            files = {name: source.read(name) for name in source.namelist() if not name.endswith("/")}
        target = compiled(package, cache, work)
        for path in sorted(cache.rglob("*.nb[ci]")):
            files[f"c4b/_compiled/{path.relative_to(cache).as_posix()}"] = path.read_bytes()
    files["c4b/_compiled/target.json"] = (json.dumps(target, indent=1) + "\n").encode()
    about = {name.rsplit("/", 1)[1]: name for name in files if ".dist-info/" in name}
    described = files[about["WHEEL"]].decode().replace("py3-none-any", tag)
    files[about["WHEEL"]] = described.replace("Root-Is-Purelib: true", "Root-Is-Purelib: false").encode()
    record = about["RECORD"]
    del files[record]
    rows = [f"{name},sha256={digest(content)},{len(content)}" for name, content in files.items()]
    files[record] = "\n".join([*rows, f"{record},,", ""]).encode()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as wheel:
        for name, content in files.items():
            wheel.writestr(name, content)
    return made


def digest(content: bytes) -> str:
    """As ``RECORD`` has it."""
    return base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("wheel", type=Path, help="a wheel without kernels")
    parser.add_argument("--study", action="store_true", help="also the kernels of studies")
    options = parser.parse_args()
    print(carrying(options.wheel, f"{POLICIES}; {STUDIES}" if options.study else POLICIES))


if __name__ == "__main__":
    main()
