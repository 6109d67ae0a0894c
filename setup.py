"Reads settings.ini, the one place where the package's name, version and requirements stand."
from configparser import ConfigParser
from pathlib import Path

from setuptools import find_packages, setup
from setuptools.command.build_py import build_py

settings = ConfigParser(delimiters=["="], interpolation=None)
settings.read("settings.ini", encoding="utf-8")
about = settings["DEFAULT"]


class WithoutProofs(build_py):
    "Leaves out the rooms' modules of proof checks, which are run from a checkout, and nbdev's index."

    def find_package_modules(self, package, package_dir):
        found = super().find_package_modules(package, package_dir)
        left_out = ("_modidx",) if package.endswith(".core") else ("_modidx", "proofs")  # core.proofs is what runs them
        return [module for module in found if module[1] not in left_out]


setup(
    name=about["lib_name"],
    version=about["version"],
    description=about["description"],
    long_description=Path("README.md").read_text(encoding="utf-8"),
    long_description_content_type="text/markdown",
    author=about["author"],
    license="Apache-2.0",
    packages=find_packages(include=[about["lib_path"], about["lib_path"] + ".*"]),
    package_data={about["lib_name"]: ["py.typed", "templates/*.html", "templates/*/*.html", "static/*"]},
    cmdclass={"build_py": WithoutProofs},
    python_requires=">=" + about["min_python"],
    install_requires=about["requirements"].split(),
    entry_points={"console_scripts": about["console_scripts"].split()},
    extras_require={
        **(extras := {name: about[f"{name}_requirements"].split() for name in ("torchmetrics", "dask", "report")}),
        "docs": about["docs_requirements"].split(),
        "dev": sum(extras.values(), about["dev_requirements"].split()),
    },
)
