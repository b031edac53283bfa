"""``pip install WHAT``, as pages say it, in an environment that has everything: fetches nothing, and fails where WHAT is not installed here."""

import sys
import tomllib
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement


def main(words):
    assert words[0] == "install", f"pages install, got pip {' '.join(words)}"
    for word in words[1:]:
        if not word.startswith("-"):
            for requirement in wanted(word):
                held(requirement)


def wanted(word):
    """Requirements of a word: a name, or the project of this directory with its extras."""
    if not word.startswith("."):
        return [word]
    project = tomllib.loads(Path("pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = [extra for extra in word.removeprefix(".").strip("[]").split(",") if extra]
    return [project["name"], *(requirement for extra in extras for requirement in project["optional-dependencies"][extra])]


def held(text):
    requirement = Requirement(text)
    version = metadata.version(requirement.name)  # an error where there is none
    assert version in requirement.specifier, f"{text} is required, {version} is installed"
    sys.stdout.write(f"{requirement.name} {version} is installed\n")


main(sys.argv[1:])
