"""The definitions of disentanglement_lib, one pair of variables at a time.

Written from a reading of `evaluation/metrics` in google-research/disentanglement_lib, with loops, numpy's histogram and
scikit-learn, and without anything of the package under test. Rows are samples.
"""

import warnings

import numpy as np
import scipy.stats
from sklearn.linear_model import Lasso, LogisticRegression
from sklearn.metrics import mutual_info_score, roc_auc_score
from sklearn.svm import LinearSVC


def in_bins(column, bins=20):
    "Left edges only are handed on, so that the maximum stays in the last bin (utils, histogram discretizer)."
    _, edges = np.histogram(column, bins)
    return np.digitize(column, edges[:-1])


def information(sources, latents, bins=20):
    "A row a latent, a column a source."
    table = np.zeros((latents.shape[1], sources.shape[1]))
    for j, latent in enumerate(latents.T):
        labels = in_bins(latent, bins)
        for i, source in enumerate(sources.T):
            table[j, i] = mutual_info_score(source, labels)
    return table


def mig(sources, latents, bins=20):
    found = []
    for i, column in enumerate(information(sources, latents, bins).T):
        *_, second, first = sorted(column)
        found.append((first - second) / mutual_info_score(sources[:, i], sources[:, i]))
    return np.mean(found)


def modularity(sources, latents, bins=20):
    found = []
    for row in information(sources, latents, bins):
        top = max(row**2)
        found.append(1 - (sum(row**2) - top) / (top * (len(row) - 1)) if top > 0 else 0)
    return np.mean(found)


def sap_continuous(sources, latents):
    "Squared covariance over both variances; a latent whose variance is at most 1e-12 has none."
    found = []
    for source in sources.T:
        of_latents = []
        for latent in latents.T:
            (variance, covariance), (_, of_source) = np.cov(latent, source)
            of_latents.append(covariance**2 / (variance * of_source) if variance > 1e-12 else 0)
        *_, second, first = sorted(of_latents)
        found.append(first - second)
    return np.mean(found)


def sap_discrete(sources, latents, sources_test, latents_test):
    found = []
    for i in range(sources.shape[1]):
        of_latents = []
        for j in range(latents.shape[1]):
            machine = LinearSVC(C=0.01, class_weight="balanced").fit(latents[:, [j]], sources[:, i])
            of_latents.append(machine.score(latents_test[:, [j]], sources_test[:, i]))
        *_, second, first = sorted(of_latents)
        found.append(first - second)
    return np.mean(found)


def explicitness(sources, latents, sources_test, latents_test):
    "Area under the curve of a logistic regression on standardised latents, over the values of each source."
    mean, spread = latents.mean(axis=0), latents.std(axis=0)
    found = []
    for i in range(sources.shape[1]):
        machine = LogisticRegression().fit((latents - mean) / spread, sources[:, i])
        probabilities = machine.predict_proba((latents_test - mean) / spread)
        one_hot = sources_test[:, [i]] == machine.classes_
        found.append(roc_auc_score(one_hot, probabilities))
    return np.mean(found)


def irs(sources, latents, quantile=0.99, bins=20):
    "Sources in bins, constant latents dropped, weights by the largest deviation from the mean."
    latents = latents[:, latents.var(axis=0) > 0]
    if not latents.any():
        return 0.0
    largest = np.abs(latents - latents.mean(axis=0)).max(axis=0)
    robust = np.zeros((latents.shape[1], sources.shape[1]))
    for i, source in enumerate(sources.T):
        labels = in_bins(source, bins)
        deviations = [
            np.percentile(np.abs(group - group.mean(axis=0)), 100 * quantile, axis=0)
            for group in (latents[labels == label] for label in np.unique(labels))
        ]
        robust[:, i] = 1 - np.mean(deviations, axis=0) / largest
    return np.average(robust.max(axis=1), weights=largest)


def beta_vae_feature(latents_a, latents_b):
    return np.abs(latents_a - latents_b).mean(axis=0)


def factor_vae_vote(latents, variances, threshold=0.05):
    "Number, among the latents that are not pruned, of that with the lowest share of its variance."
    active = np.sqrt(variances) >= threshold
    return np.argmin(latents.var(axis=0, ddof=1)[active] / variances[active])


def udr_pair(correlations):
    "The mean over columns and the mean over rows, of largest squared over sum, averaged."
    means = []
    for table in (correlations, correlations.T):
        with np.errstate(invalid="ignore"):
            means.append(np.mean(np.nan_to_num(table.max(axis=0) ** 2 / table.sum(axis=0))))
    return np.mean(means)


def udr(representations, kl, method="lasso", threshold=0.01):
    "Of each model, the median over the others of the scores of the maps that lead to it."
    kept = [np.asarray(k) > threshold for k in kl]
    scaled = [(z - z.mean(axis=0)) / z.std(axis=0) * k for z, k in zip(representations, kept, strict=True)]
    found = []
    for b, target in enumerate(scaled):
        scores = []
        for a, origin in enumerate(scaled):
            if a == b:
                continue
            if method == "lasso":
                table = np.abs(Lasso(alpha=0.1).fit(origin, target).coef_.T)
            else:
                with warnings.catch_warnings(action="ignore"):
                    table = np.abs([[scipy.stats.spearmanr(x, y)[0] for y in target.T] for x in origin.T])
            scores.append(udr_pair(table[kept[a]][:, kept[b]]))
        found.append(np.median(scores))
    return np.array(found)
