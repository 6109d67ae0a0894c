"""Every proof check of the chapter on mutual information goes red when the formula it checks is broken."""

import numpy as np
from mutations import Chapter, proof_tests

chapter = Chapter("scores/02_mutual_information")


def miller_madow(sources, latents):
    """A bias correction, where the plain estimate is meant."""
    s, z = chapter.indicators(np.asarray(sources))[0], chapter.indicators(np.asarray(latents))[0]
    cells, n = (s.T @ z).nnz, len(sources)
    return chapter_discrete(sources, latents) - (cells - s.shape[1] - z.shape[1] + 1) / (2 * n)


def of_intervals(sources, latents, width=2.0, **_):
    """Information with latents cut at fixed places, which depends on their scale."""
    return chapter_discrete(sources, np.floor(np.asarray(latents) / width))


chapter_discrete, chapter_entropy = chapter.discrete_mutual_information, chapter.source_entropy
chapter_counts = chapter.ball_counts

MUTATIONS = [
    ("equation 6", "divergence of the joint table", "discrete_mutual_information", miller_madow),
    ("section 4.1", "meets known mutual informations", "ball_counts", lambda *given: chapter_counts(*given) + 1),
    ("equation 7", "lies in [0, 1]", "source_entropy", lambda sources: chapter_entropy(sources) / np.log(4)),
    ("equation 7", "discrete latents ignores strictly monotone", "discrete_mutual_information", of_intervals),
    ("equation 7", "KSG's NMI ignores affine", "ksg_mutual_information", of_intervals),
]

test_a_broken_formula_is_seen, test_no_check_is_left_unbroken = proof_tests(chapter, MUTATIONS)
