"Coverage of the 95% intervals of InfoM, MIG and D on simulated data: two hours. bench_coverage.py OF_INFO OF_D"

import sys
import warnings

import numpy as np
from tqdm import tqdm

from disentangle_repro.metrics import active_latents, dci, mig, modularity, nmi_matrix
from disentangle_repro.scores.inputs import InputWarning
from disentangle_repro.scores.intervals import half_widths

VALUES = np.array([10, 8, 4, 15])


def simulated(name: str, n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    "Four sources and five latents: noisy sources, or noisy rotations of pairs, in nine values; the last is noise."
    sources = rng.integers(VALUES, size=(n, 4))
    scaled, angle = 2 * sources / (VALUES - 1) - 1, 0.0 if name == "aligned" else np.pi / 7
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    noise = rng.normal(size=(n, 5))
    latents = noise * ([0.3] * 4 + [1] if name == "aligned" else [0.2] * 4 + [1])
    latents[:, :4] += np.hstack([scaled[:, :2] @ turn, scaled[:, 2:] @ turn])
    return sources, np.round(np.clip(2.5 * latents, -4, 4)) if name == "quantised" else latents


def info(discrete: bool):
    def scores(sources: np.ndarray, latents: np.ndarray) -> dict[str, float]:
        nmi = nmi_matrix(sources, latents, discrete=discrete)[:, active_latents(latents, discrete)]
        return {"InfoM": modularity(nmi), "MIG": mig(sources, latents)}

    return scores


def trees(sources: np.ndarray, latents: np.ndarray) -> dict[str, float]:
    return {"D": dci(sources, latents, n_trees=20, n_jobs=1).d}


if __name__ == "__main__":
    of_info, of_d = map(int, sys.argv[1:] or (200, 60))
    warnings.simplefilter("ignore", InputWarning)
    for name in ("aligned", "rotated", "quantised"):
        of_name = info(name == "quantised")
        for n, scores, repetitions in ((1_000, of_name, of_info), (10_000, of_name, of_info), (1_000, trees, of_d)):
            values, widths = [], []
            for seed in tqdm(range(repetitions), desc=f"{name}, {n:,}", leave=False):
                pair = simulated(name, n, np.random.default_rng([seed, n]))
                values.append(list(scores(*pair).values()))
                widths.append(half_widths(scores, *pair, seed=seed))
            means, found = np.mean(values, axis=0), np.array([list(width.values()) for width in widths])
            covered = np.mean(np.abs(np.array(values) - means) <= found, axis=0)
            for score, share, width in zip(widths[0], covered, found.mean(axis=0), strict=True):
                print(f"{name}, {score}, n = {n:,}: {share:.3f} of {repetitions}, ± {width:.4f} on average", flush=True)
