"Each proof check of DIP-VAE goes red when the formula it stands for is broken."


from mutations import Chapter, proof_tests

chapter = Chapter("baselines/09_dip_vae")


latent_covariance, moment_penalties = chapter.latent_covariance, chapter.moment_penalties


def of_means_only(mean, scale=None):
    return latent_covariance(mean)


def one_triangle(covariance):
    return moment_penalties(covariance) | {"off_diagonal": covariance.triu(1).square().sum()}


COVARIANCE, FLOOR = "DIP-VAE, Kumar et al. equation 5", "DIP-VAE, floor of a batch"
LOSS = "DIP-VAE, Kumar et al. equations 6 and 7"
BROKEN = [
    (COVARIANCE, "", "latent_covariance", of_means_only),
    (FLOOR, "", "moment_penalties", one_triangle),
    (LOSS, "", "latent_covariance", of_means_only),
]

test_a_broken_formula_is_seen, test_no_check_is_left_unbroken = proof_tests(chapter, BROKEN)
