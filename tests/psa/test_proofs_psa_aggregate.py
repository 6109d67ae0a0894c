"Each proof check of the aggregate posterior goes red when the formula it stands for is broken."

from mutations import Chapter, proof_tests

chapter = Chapter("psa/03_aggregate_posterior")


ORIGINAL_PRODUCT, ORIGINAL_MEAN = chapter.product_of_normals, chapter.log_dirichlet_mean
ORIGINAL_DRAW = chapter.draw
ORIGINAL_JOINT = chapter.log_joint
Mixture = chapter.DiagonalMixture


def first_image_only(weights, means, variances):
    return Mixture(weights[0], means[0], variances[0])


def no_normalising_constant(features, mixture):
    return ORIGINAL_JOINT(features, mixture) + mixture.variance.log().sum(2)[:, :, None] / 2


def variance_for_scale(mean, scale, generator=None):
    return ORIGINAL_DRAW(mean, scale.square(), generator)


def variance_of_another_component(mean, scale, generator=None):
    return ORIGINAL_DRAW(mean, scale.roll(1, 0), generator)


def mean_of_means(mean_a, variance_a, mean_b, variance_b):
    return ORIGINAL_PRODUCT(mean_a, variance_a, mean_b, variance_b)._replace(mean=(mean_a + mean_b) / 2)


def counts_without_prior(log_counts, alpha=1.0):
    return log_counts.clamp_min(-700).log_softmax(-1)


def not_normalised(log_counts, alpha=1.0):
    return ORIGINAL_MEAN(log_counts, alpha) + 1e-9


BROKEN = [
    ("Lemma 1", "mean of the images' densities", "log_joint", no_normalising_constant),
    ("Lemma 1", "no prior is closer", "aggregate_posterior", first_image_only),
    ("Lemma 1, sampling", "", "draw", variance_for_scale),
    ("Lemma 1, sampling", "", "draw", variance_of_another_component),
    ("Lemma 1, equations 29 and 31", "", "product_of_normals", mean_of_means),
    ("Lemma 1, equation 33", "for counts", "log_dirichlet_mean", counts_without_prior),
    ("Lemma 1, equation 33", "unit of z", "log_dirichlet_mean", counts_without_prior),
    ("Lemma 1, equation 28", "", "product_of_normals", mean_of_means),
    ("Corollary 4", "", "log_dirichlet_mean", not_normalised),
]

test_a_broken_formula_is_seen, test_no_check_is_left_unbroken = proof_tests(chapter, BROKEN)
