"""How long the metrics take, beside scikit-learn pair by pair. Run by `make bench`."""

import time

import numpy as np
from sklearn.feature_selection import mutual_info_classif
from sklearn.metrics import mutual_info_score

from disentangle_repro.metrics import mig, modularity_score
from disentangle_repro.scores.infomec import explicitness, infomec
from disentangle_repro.scores.mutual_information import nmi_matrix

VALUES = [3, 8, 5, 4, 4, 4, 6, 4, 4]  # isaac3d's nine sources
SAMPLES, LATENTS = 10_000, 18


def seconds(function, repetitions=5):
    """The shortest of several runs: what the machine can do when left alone."""
    times = []
    for _ in range(repetitions):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return min(times)


def pair_by_pair(sources, latents):
    "Bins of numpy and scikit-learn's mutual information, one pair at a time."
    binned = [np.digitize(z, np.histogram(z, 20)[1][:-1]) for z in latents.T]
    return [[mutual_info_score(s, z) for z in binned] for s in sources.T]


def main():
    rng = np.random.default_rng(0)
    sources = rng.integers(VALUES, size=(SAMPLES, len(VALUES)))
    mixing = rng.normal(size=(len(VALUES), LATENTS))
    continuous = (sources / VALUES) @ mixing + 0.2 * rng.normal(size=(SAMPLES, LATENTS))
    low, high = continuous.min(axis=0), continuous.max(axis=0)
    discrete = np.round((continuous - low) / (high - low) * 9)

    print(f"{SAMPLES} samples, {len(VALUES)} sources, {LATENTS} latents; seconds, shortest of several runs")
    print(f"{'':34}{'ours':>9}{'sklearn':>10}{'ratio':>8}")
    pairs = [
        ("NMI, discrete", True, 3, lambda: [[mutual_info_score(s, z) for z in discrete.T] for s in sources.T]),
        *(
            (f"NMI, continuous, k = {k}", False, k,
             lambda k=k: [mutual_info_classif(continuous, s, n_neighbors=k, random_state=0) for s in sources.T])
            for k in (3, 10)
        ),
    ]
    for name, is_discrete, k, theirs in pairs:
        latents = discrete if is_discrete else continuous
        ours = seconds(lambda d=is_discrete, k=k, z=latents: nmi_matrix(sources, z, discrete=d, neighbors=k), 10)
        theirs = seconds(theirs, 3)
        print(f"{name:34}{ours:9.4f}{theirs:10.3f}{theirs / ours:7.0f}x")
    theirs = seconds(lambda: pair_by_pair(sources, continuous), 3)
    for name, score in (("MIG, 20 bins", mig), ("modularity, 20 bins", modularity_score)):
        ours = seconds(lambda s=score: s(sources, continuous), 10)
        print(f"{name:34}{ours:9.4f}{theirs:10.3f}{theirs / ours:7.0f}x")
    for name, score in (("InfoE", explicitness), ("all of InfoMEC", infomec)):
        for kind, latents in (("discrete", discrete), ("continuous", continuous)):
            for protocol in ("paper", "code"):
                options = {"discrete": kind == "discrete", "protocol": protocol}
                ours = seconds(lambda s=score, z=latents, o=options: s(sources, z, **o), 3)
                print(f"{f'{name}, {kind}, {protocol}':34}{ours:9.3f}")


if __name__ == "__main__":
    main()
