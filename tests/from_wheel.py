"""What the README shows, run by an installed package, in a clean environment: `make wheel-test`.

Its Python must print what is shown below it, and its shell lines must end without an error. Nothing of
the source tree is imported, and no package beyond the extras that the README names is needed.
"""

import contextlib
import io
import os
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

import contrica

README = Path(__file__).parent.parent / "README.md"
NUMBER = r"-?\d+(?:\.\d+)?"


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README.read_text(encoding="utf-8"), re.S)


def main() -> None:
    where = Path(contrica.__file__)
    if "site-packages" not in where.parts:
        sys.exit(f"contrica comes from {where}, not from an installed wheel")
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        (example,) = blocks("python")
        (shown,) = blocks("text")
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(example, "README", "exec"), {})
        for line, expected in zip(
            printed.getvalue().splitlines(), shown.splitlines(), strict=False
        ):
            if re.sub(NUMBER, "#", line) != re.sub(NUMBER, "#", expected):
                sys.exit(f"README shows\n{expected}\nand the wheel prints\n{line}")
        (shell,) = [code for code in blocks("sh") if "contrica fit" in code]
        command = Path(sys.executable).with_name("contrica")
        for line in shell.strip().splitlines():
            subprocess.run([command, *shlex.split(line)[1:]], check=True, stdout=subprocess.DEVNULL)
    sys.stdout.write(
        f"contrica {contrica.__version__}: README's examples run from {where.parent}\n"
    )


if __name__ == "__main__":
    main()
