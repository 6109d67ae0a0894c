"Each proof check of DIP-VAE goes red when the formula it stands for is broken."

from functools import partial

from mutations import Chapter, proof_tests

chapter = Chapter("baselines/09_dip_vae")


latent_covariance, moment_penalties = chapter.latent_covariance, chapter.moment_penalties
dip_vae_i, dip_vae_ii = chapter.dip_vae_i, chapter.dip_vae_ii


def of_means_only(mean, scale=None):
    return latent_covariance(mean)


def of_scales(mean, scale=None):
    return latent_covariance(mean, None if scale is None else scale.sqrt())


def not_centred(mean, scale=None):
    return latent_covariance(mean, scale) + mean.mean(0).outer(mean.mean(0))


def unbiased(mean, scale=None):
    noise = 0 if scale is None else scale.square().mean(0).diag()
    return latent_covariance(mean) * len(mean) / (len(mean) - 1) + noise


def one_triangle(covariance):
    return moment_penalties(covariance) | {"off_diagonal": covariance.triu(1).square().sum()}


def all_entries(covariance):
    return moment_penalties(covariance) | {"off_diagonal": covariance.square().sum()}


def towards_zero(covariance):
    return moment_penalties(covariance) | {"diagonal": covariance.diagonal().square().sum()}


def weights_exchanged(n_latents, *, off_diagonal, diagonal, **nets):
    return dip_vae_i(n_latents, off_diagonal=diagonal, diagonal=off_diagonal, **nets)


COVARIANCE, FLOOR = "DIP-VAE, Kumar et al. equation 5", "DIP-VAE, floor of a batch"
LOSS = "DIP-VAE, Kumar et al. equations 6 and 7"
BROKEN = [
    (COVARIANCE, "", "latent_covariance", of_means_only),
    (COVARIANCE, "", "latent_covariance", of_scales),
    (COVARIANCE, "", "latent_covariance", not_centred),
    (COVARIANCE, "", "latent_covariance", unbiased),
    (FLOOR, "", "latent_covariance", unbiased),
    (FLOOR, "", "moment_penalties", one_triangle),
    (LOSS, "", "latent_covariance", of_means_only),
    (LOSS, "", "latent_covariance", not_centred),
    (LOSS, "", "moment_penalties", one_triangle),
    (LOSS, "", "moment_penalties", all_entries),
    (LOSS, "", "moment_penalties", towards_zero),
    (LOSS, "", "dip_vae_i", weights_exchanged),
    (LOSS, "", "dip_vae_i", dip_vae_ii),
    (LOSS, "", "dip_vae_ii", partial(dip_vae_ii, deviation="log_variance")),
    (LOSS, "", "pixel_values", lambda **nets: 64 * 64),
]

test_a_broken_formula_is_seen, test_no_check_is_left_unbroken = proof_tests(chapter, BROKEN)
