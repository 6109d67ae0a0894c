"Each proof check of the aggregate posterior goes red when the formula it stands for is broken."

import torch
from mutations import Chapter, proof_tests

chapter = Chapter("psa/03_aggregate_posterior")


ORIGINAL_PRODUCT, ORIGINAL_MEAN = chapter.product_of_normals, chapter.log_dirichlet_mean
ORIGINAL_AGGREGATE, ORIGINAL_DRAW, ORIGINAL_WITH = chapter.aggregate_posterior, chapter.draw, chapter.with_posterior
ORIGINAL_JOINT = chapter.log_joint
Mixture, Product = chapter.DiagonalMixture, chapter.Product


def images_and_slots_confused(weights, means, variances):
    whole = ORIGINAL_AGGREGATE(weights, means, variances)
    return Mixture(whole.weights.view_as(weights).T.flatten(), whole.means, whole.variances)


def equally_weighted(weights, means, variances):
    return ORIGINAL_AGGREGATE(torch.full_like(weights, 1 / weights.shape[1]), means, variances)


def first_image_only(weights, means, variances):
    return Mixture(weights[0], means[0], variances[0])


def half_of_each_variance(weights, means, variances):
    return ORIGINAL_AGGREGATE(weights, means, variances / 2)


def no_normalising_constant(features, mixture):
    return ORIGINAL_JOINT(features, mixture) + mixture.variance.log().sum(2)[:, :, None] / 2


def variance_for_scale(mean, scale, generator=None):
    return ORIGINAL_DRAW(mean, scale.square(), generator)


def shifted_draw(mean, scale, generator=None):
    return ORIGINAL_DRAW(mean, scale, generator) + 0.05


def mean_of_means(mean_a, variance_a, mean_b, variance_b):
    return ORIGINAL_PRODUCT(mean_a, variance_a, mean_b, variance_b)._replace(mean=(mean_a + mean_b) / 2)


def sum_of_variances(mean_a, variance_a, mean_b, variance_b):
    return ORIGINAL_PRODUCT(mean_a, variance_a, mean_b, variance_b)._replace(variance=variance_a + variance_b)


def one_variance_in_the_integral(mean_a, variance_a, mean_b, variance_b):
    _, _, log_integral = ORIGINAL_PRODUCT(mean_a, variance_a, mean_b, 0 * variance_b)
    return ORIGINAL_PRODUCT(mean_a, variance_a, mean_b, variance_b)._replace(log_integral=log_integral)


def counts_without_prior(log_counts, alpha=1.0):
    return log_counts.clamp_min(-700).log_softmax(-1)


def prior_of_two(log_counts, alpha=1.0):
    return ORIGINAL_MEAN(log_counts, 2.0)


def not_normalised(log_counts, alpha=1.0):
    return ORIGINAL_MEAN(log_counts, alpha) + 1e-9


def product_always(mixture, mean, variance, weights="dirichlet"):
    return ORIGINAL_WITH(mixture, mean, variance, "product")


def dirichlet_always(mixture, mean, variance, weights="dirichlet"):
    return ORIGINAL_WITH(mixture, mean, variance, "dirichlet")


BROKEN = [
    ("Lemma 1", "mean of the images' densities", "aggregate_posterior", images_and_slots_confused),
    ("Lemma 1", "mean of the images' densities", "aggregate_posterior", equally_weighted),
    ("Lemma 1", "mean of the images' densities", "log_joint", no_normalising_constant),
    ("Lemma 1", "no prior is closer", "aggregate_posterior", first_image_only),
    ("Lemma 1", "no prior is closer", "aggregate_posterior", equally_weighted),
    ("Lemma 1, sampling", "", "draw", variance_for_scale),
    ("Lemma 1, sampling", "", "draw", shifted_draw),
    ("Lemma 1, equations 29 and 31", "", "product_of_normals", mean_of_means),
    ("Lemma 1, equations 29 and 31", "", "product_of_normals", sum_of_variances),
    ("Lemma 1, equations 29 and 31", "", "product_of_normals", one_variance_in_the_integral),
    ("Lemma 1, equation 33", "for counts", "log_dirichlet_mean", counts_without_prior),
    ("Lemma 1, equation 33", "for counts", "log_dirichlet_mean", prior_of_two),
    ("Lemma 1, equation 33", "unit of z", "with_posterior", product_always),
    ("Lemma 1, equation 33", "unit of z", "with_posterior", dirichlet_always),
    ("Lemma 1, equation 33", "unit of z", "log_dirichlet_mean", counts_without_prior),
    ("Lemma 1, equation 28", "", "with_posterior", dirichlet_always),
    ("Lemma 1, equation 28", "", "product_of_normals", one_variance_in_the_integral),
    ("Lemma 1, equation 28", "", "product_of_normals", mean_of_means),
    ("Corollary 4", "", "log_dirichlet_mean", not_normalised),
    ("Corollary 4", "", "log_joint", no_normalising_constant),
]

test_a_broken_formula_is_seen, test_no_check_is_left_unbroken = proof_tests(chapter, BROKEN)
