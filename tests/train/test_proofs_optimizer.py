"The check of qlae's Algorithm 2 goes red when one of its updates is broken."

from mutations import Chapter, proof_tests

from disentangle_repro.baselines.autoencoder import Autoencoder

optimizer = Chapter("train/01_optimizer")


class OfTheFirstImages(Autoencoder):
    def loss(self, images, generator=None):
        return super().loss(images[:3], generator)


BROKEN = [
    ("Algorithm 2", "", "decays", lambda name, decay_biases: True),
    ("Algorithm 2", "", "AdamW", lambda groups, **options: ADAMW(groups, **options | {"betas": (0.0, 0.99)})),
    ("Algorithm 2", "", "Autoencoder", OfTheFirstImages),
]
ADAMW = optimizer.AdamW

test_a_broken_update_is_seen, test_no_check_is_left_unbroken = proof_tests(optimizer, BROKEN)
