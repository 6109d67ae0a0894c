"Each proof check of the slot networks, slot attention and MONet goes red when the formula it stands for is broken."

import torch
from mutations import Chapter, proof_tests
from torch.nn import functional as F

monet = Chapter("baselines/07_monet")
slot_attention = Chapter("baselines/06_slot_attention")
slots = Chapter("nets/03_slots")


def even_masks(parts, alpha):
    masks = torch.full_like(alpha, 1 / alpha.shape[1])
    return slots.SlotImages((masks[:, :, None] * parts).sum(1), parts, masks)


def not_competing(parts, alpha):
    masks = alpha.sigmoid()
    return slots.SlotImages((masks[:, :, None] * parts).sum(1), parts, masks)


def first_on_top(parts, alpha):
    return COMPOSED(parts, alpha - torch.arange(alpha.shape[1])[:, None, None])


def without_both(f, slots, moved):
    return f(moved) - f(slots)


COMPOSED = slots.composed

BROKEN_NETS = [
    ("additive decoder", "a part and its alpha", "mixed_difference", without_both),
    ("additive decoder", "not additive", "composed", even_masks),
    ("additive decoder", "permuting", "composed", first_on_top),
    ("additive decoder", "permuting", "composed", not_competing),
    ("section 6, spatial broadcast", "", "sheet_slope", lambda mask, part, image, dx, da: mask * dx),
    ("section 6, spatial broadcast", "", "sheet_slope", lambda mask, part, image, dx, da: mask * (dx + da * part)),
    ("section 6, spatial broadcast", "", "sheet_slope", lambda mask, part, image, dx, da: dx + da * (part - image)),
]

test_a_broken_network_is_seen, test_no_network_check_is_left_unbroken = proof_tests(slots, BROKEN_NETS)


def shared_among_positions(keys, queries):
    return (keys @ queries.mT / keys.shape[-1] ** 0.5).softmax(dim=1)


def earlier_positions_louder(weights, values, epsilon=1e-8):
    return WEIGHTED_MEAN(weights / torch.arange(1, weights.shape[1] + 1)[:, None], values, epsilon)


def plain_mean(weights, values, epsilon=1e-8):
    return WEIGHTED_MEAN(torch.ones_like(weights), values, epsilon)


class AlwaysUnrolled(slot_attention.SlotAttention):
    def __init__(self, *sizes, implicit, **settings):
        super().__init__(*sizes, **settings)


class ValuesForKeys(slot_attention.SlotAttention):
    def iteration(self, slots, keys, values):
        return super().iteration(slots, keys, keys)


def always_implicit(strength, implicit, iterations=60):
    return CONTRACTING(strength, True, iterations)


WEIGHTED_MEAN = slot_attention.weighted_mean
CONTRACTING = slot_attention.contracting
LOCATELLO, CHANG = "slot attention, Locatello et al. ", "slot attention, Chang et al. 2022"

BROKEN_ATTENTION = [
    (LOCATELLO + "equations 1 and 2", "", "responsibilities", shared_among_positions),
    (LOCATELLO + "equations 1 and 2", "", "responsibilities", lambda keys, queries: (keys @ queries.mT).softmax(2)),
    (LOCATELLO + "equations 1 and 2", "", "weighted_mean", plain_mean),
    (LOCATELLO + "algorithm 1", "", "SlotAttention", ValuesForKeys),
    (LOCATELLO + "algorithm 1", "", "weighted_mean", lambda weights, values: weights.mT @ values),
    (LOCATELLO + "proposition 1", "", "weighted_mean", earlier_positions_louder),
    (CHANG, "from the last slots", "SlotAttention", AlwaysUnrolled),
    (CHANG, "first term", "contracting", always_implicit),
]

test_a_broken_round_is_seen, test_no_round_check_is_left_unbroken = proof_tests(slot_attention, BROKEN_ATTENTION)


def nothing_taken_away(log_scope, logit):
    return log_scope + F.logsigmoid(logit), log_scope


def no_masks(images, parts, log_masks, scales):
    return MIXTURE(images, parts, 0 * log_masks, scales)


def turned_round(log_masks, log_decoded):
    return DIVERGENCE(log_decoded, log_masks)


MIXTURE, DIVERGENCE = monet.mixture_log_likelihood, monet.mask_divergence

BROKEN_MONET = [
    ("MONet, Burgess et al. section 2", "", "split_scope", nothing_taken_away),
    ("MONet, Burgess et al. loss", "likelihood", "mixture_log_likelihood", no_masks),
    ("MONet, Burgess et al. loss", "divergence", "mask_divergence", turned_round),
]

test_a_broken_monet_is_seen, test_no_monet_check_is_left_unbroken = proof_tests(monet, BROKEN_MONET)
