"How many lines and public names the package has, by kind: python tests/helpers/lines.py"

import ast
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "disentangle_repro"
PAPERS = ("qlae", "tripod", "factorqvae", "asymmetry", "psa")
SHARED = ("data", "nets", "scores", "baselines", "train", "metrics", "torchmetrics", "models", "saved_models")


def kind(path: Path) -> str:
    "Of a module: papers, shared, proofs (of either), or machinery, which is what is left."
    room = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
    if path.name == "proofs.py" and room != "core":
        return "proofs"
    return "papers" if room in PAPERS else "shared" if room in SHARED else "machinery"


def public_names(path: Path) -> int:
    "The length of `__all__`."
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "__all__":
            return len(node.value.elts)
    return 0


def lines(path: Path) -> int:
    return len(path.read_text(encoding="utf-8").splitlines())


if __name__ == "__main__":
    modules = [path for path in PACKAGE.rglob("*.py") if path.name != "_modidx.py"]  # nbdev's index of the rest
    counted, named = Counter(), Counter()
    for path in modules:
        counted[kind(path)] += lines(path)
        named[kind(path)] += public_names(path)
    for name in ("tests", "benchmarks"):
        counted[name] = sum(lines(path) for path in (ROOT / name).rglob("*.py"))
    print(f"{'':12}{'lines':>8}{'names':>8}")
    for name in ("papers", "shared", "machinery", "proofs", "tests", "benchmarks"):
        print(f"{name:12}{counted[name]:8,}{named[name]:8,}")
