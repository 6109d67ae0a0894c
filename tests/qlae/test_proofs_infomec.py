"""Every proof check of the InfoMEC chapter goes red when the formula it checks is broken."""

import numpy as np
from mutations import Chapter, proof_tests
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss

chapter = Chapter("qlae/02_infomec")


def gap(nmi):
    """The gap between the two largest entries, instead of the ratio."""
    top = np.sort(nmi, axis=0)
    return float((top[-1] - top[-2]).mean())


def lead(nmi):
    """The lead of the largest entry over the second, as a share: 1 and 0 at the extremes, something else between."""
    top = np.sort(nmi, axis=0)
    return float(((top[-1] - top[-2]) / nmi.sum(axis=0)).mean())


def exchanged(infom, infoc, **others):
    return chapter_scores(infom=infoc, infoc=infom, **others)


def skip_zero_columns(nmi):
    return chapter_modularity(nmi[:, nmi.sum(axis=0) > 0])


def penalised(inputs, source, iterations):
    return log_loss(source, LogisticRegression(C=1.0).fit(inputs, source).predict_proba(inputs))


chapter_discrete, chapter_modularity = chapter.discrete_mutual_information, chapter.modularity
chapter_cross_entropy = chapter.cross_entropy
chapter_determination, chapter_scores = chapter.determination, chapter.InfoMEC


def of_bins(sources, latents, k, seed=0):
    """Information with as many bins as k asks for, which depends on k."""
    return chapter_discrete(sources, chapter.equal_width_bins(latents, 20 * k))


MUTATIONS = [
    ("equation 8", "one-hot columns", "modularity", gap),
    ("equation 9", "one-hot rows", "compactness", chapter_modularity),
    ("equation 9", "one-hot rows", "compactness", lambda nmi: lead(nmi.T)),
    ("equations 8 and 9", "between the extremes", "modularity", lead),
    ("section 4.1, pruning", "inactive latent", "InfoMEC", exchanged),
    ("section 4.1 (remark)", "scaled permutation", "modularity", skip_zero_columns),
    ("appendix B, figures 5 and 6", "hardly on k", "ksg_mutual_information", of_bins),
    ("equation 10", "", "relative_reduction", lambda marginal, conditional: (marginal - conditional) / np.log(4)),
    ("equation 10", "", "cross_entropy", penalised),
    ("equation 12", "", "marginal_entropy", lambda sources: np.log([len(np.unique(s)) for s in sources.T])),
    ("equation 11", "affine maps", "whiten", lambda latents: latents[:, :1]),
    ("equation 13", "R²", "relative_reduction", lambda marginal, conditional: marginal - conditional),
    ("equation 13", "one binary latent", "cross_entropy", lambda *given: chapter_cross_entropy(*given) / np.log(2)),
    ("equation 14", "linearly separated", "cross_entropy", penalised),
    ("section 5, indices", "explicit indices have InfoE 1", "cross_entropy", penalised),
    ("section 4.2", "mean of R²", "determination", lambda *given: chapter_determination(*given) ** 0.5),
]

test_a_broken_formula_is_seen, test_no_check_is_left_unbroken = proof_tests(chapter, MUTATIONS)
