"Reads settings.ini, the one place where the package's name, version and requirements stand."
from configparser import ConfigParser
from pathlib import Path

from setuptools import find_packages, setup

settings = ConfigParser(delimiters=["="], interpolation=None)
settings.read("settings.ini", encoding="utf-8")
about = settings["DEFAULT"]

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
    python_requires=">=" + about["min_python"],
    install_requires=about["requirements"].split(),
    entry_points={"console_scripts": about["console_scripts"].split()},
    extras_require={
        **(extras := {name: about[f"{name}_requirements"].split() for name in ("torchmetrics", "dask", "report")}),
        "docs": about["docs_requirements"].split(),
        "lightning": about["lightning_requirements"].split(),
        "dev": sum(extras.values(), about["dev_requirements"].split()),
    },
)
