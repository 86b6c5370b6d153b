# SPDX-FileCopyrightText: Copyright (c) 2026 The nemo-gym-polar authors
# SPDX-License-Identifier: Apache-2.0
"""A virtual environment with a plain install of our wheel beside NeMo Gym, made in seconds.

NeMo Gym looks for components beside its own package, so it must lie in the same site-packages as the wheel. Its
package is copied and its component directories are linked one by one; all other packages (1.4 GB) come by a `.pth`
from the environment that runs the tests.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import sysconfig
import venv
from importlib import metadata
from pathlib import Path

SITE = Path(sysconfig.get_paths()["purelib"])


def make(directory: Path, repo: Path) -> Path:
    """The new environment's root; its `bin` holds `python` and `gym`."""
    venv.create(directory, symlinks=True, with_pip=False)
    site = directory / SITE.relative_to(sys.prefix)
    _bring_nemo_gym(site)
    (site / "others.pth").write_text(f"{SITE}\n", encoding="utf-8")
    _install(_build(repo, directory / "wheel"), site)
    script = f"#!{directory}/bin/python\nimport sys\nfrom nemo_gym.cli.main import main\nsys.exit(main())\n"
    gym = directory / "bin" / "gym"
    gym.write_text(script, encoding="utf-8")
    gym.chmod(0o755)
    return directory


def _bring_nemo_gym(site: Path) -> None:
    files = metadata.files("nemo-gym")
    assert files is not None, "nemo-gym was installed without a RECORD"
    for name in sorted({file.parts[0] for file in files if file.parts[0] != ".."}):
        if name.startswith("nemo_gym"):
            shutil.copytree(SITE / name, site / name)
            continue
        (site / name).mkdir()
        for child in sorted({file.parts[1] for file in files if file.parts[0] == name}):
            (site / name / child).symlink_to(SITE / name / child)


def _build(repo: Path, target: Path) -> Path:
    build = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(target)]
    subprocess.run(build, cwd=repo, check=True, capture_output=True)
    return next(target.glob("*.whl"))


def _install(wheel: Path, site: Path) -> None:
    shutil.unpack_archive(wheel, site, "zip")
