"What has to be installed beside torch where the project's first hour on a GPU is spent, from installed metadata."

from importlib.metadata import requires
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
TESTS = ("pytest", "beartype")  # of GPU tests
OTHER = {"torch": "is there", "aiohttp": "papermill asks for it under 3.12 and imports it nowhere"}
LINUX = {"python_version": "3.12", "python_full_version": "3.12.0", "sys_platform": "linux", "extra": "",
         "platform_system": "Linux", "implementation_name": "cpython", "platform_python_implementation": "CPython",
         "os_name": "posix", "platform_machine": "x86_64"}  # fmt: skip


def needed(settings: str) -> set[str]:
    "The distributions that the requirements of tables and of GPU tests bring along, under Linux and Python 3.12."
    lists = ("requirements = ", "tables_requirements = ")
    lines = [line for line in settings.splitlines() if line.startswith(lists)]
    todo, found = [Requirement(one) for line in lines for one in line.partition("= ")[2].split()], {}
    todo += map(Requirement, TESTS)
    while todo:
        wanted = todo.pop()
        name = canonicalize_name(wanted.name)
        if name in OTHER or wanted.extras <= found.get(name, frozenset()) and name in found:
            continue
        found[name] = found.get(name, frozenset()) | wanted.extras
        for text in requires(name) or ():
            one = Requirement(text)
            contexts = [LINUX | {"extra": extra} for extra in ("", *found[name])]
            if one.marker is None or any(one.marker.evaluate(context) for context in contexts):
                todo.append(one)
    return {*found}


if __name__ == "__main__":
    print(*sorted(needed((ROOT / "settings.ini").read_text(encoding="utf-8"))), sep="\n")
