"Each proof check of the slot networks, slot attention and MONet goes red when the formula it stands for is broken."

import torch
from mutations import Chapter, proof_tests
from torch.nn import functional as F

monet = Chapter("baselines/07_monet")
slot_attention = Chapter("baselines/06_slot_attention")
slots = Chapter("nets/03_slots")


class Leaking(slots.SpatialBroadcastDecoder):
    def components(self, slots):
        parts, alpha = super().components(slots)
        return parts + parts.mean(1, keepdim=True), alpha


class LeakingAlpha(slots.SpatialBroadcastDecoder):
    def components(self, slots):
        parts, alpha = super().components(slots)
        return parts, alpha - alpha.mean(1, keepdim=True)


def even_masks(parts, alpha):
    masks = torch.full_like(alpha, 1 / alpha.shape[1])
    return slots.SlotImages((masks[:, :, None] * parts).sum(1), parts, masks)


def no_competition(parts, alpha):
    masks = alpha.sigmoid()
    return slots.SlotImages((masks[:, :, None] * parts).sum(1), parts, masks)


def first_on_top(parts, alpha):
    return COMPOSED(parts, alpha - torch.arange(alpha.shape[1])[:, None, None])


def without_both(f, slots, moved):
    return f(moved) - f(slots)


class Ordered(slots.ConvolutionalDecoder):
    def forward(self, slots):
        return super().forward(slots * torch.arange(1, slots.shape[1] + 1)[:, None])


class Deaf(slots.TransformerDecoder):
    def forward(self, slots):
        return super().forward(0 * slots)


COMPOSED = slots.composed

BROKEN_NETS = [
    ("additive decoder", "a part and its alpha", "SpatialBroadcastDecoder", Leaking),
    ("additive decoder", "a part and its alpha", "SpatialBroadcastDecoder", LeakingAlpha),
    ("additive decoder", "a part and its alpha", "composed", no_competition),
    ("additive decoder", "a part and its alpha", "mixed_difference", without_both),
    ("additive decoder", "not additive", "composed", even_masks),
    ("additive decoder", "not additive", "composed", no_competition),
    ("additive decoder", "permuting", "composed", first_on_top),
    ("additive decoder", "permuting", "ConvolutionalDecoder", Ordered),
    ("additive decoder", "permuting", "TransformerDecoder", Deaf),
]

test_a_broken_network_is_seen, test_no_network_check_is_left_unbroken = proof_tests(slots, BROKEN_NETS)


def shared_among_positions(keys, queries):
    return (keys @ queries.mT / keys.shape[-1] ** 0.5).softmax(dim=1)


def earlier_slots_first(keys, queries):
    logits = keys @ queries.mT / keys.shape[-1] ** 0.5
    return (logits - 0.1 * torch.arange(logits.shape[2])).softmax(dim=-1)


def weighted_sum(weights, values, epsilon=1e-8):
    return weights.mT @ values


def earlier_positions_louder(weights, values, epsilon=1e-8):
    return WEIGHTED_MEAN(weights / torch.arange(1, weights.shape[1] + 1)[:, None], values, epsilon)


def deaf_mean(weights, values, epsilon=1e-8):
    return WEIGHTED_MEAN(weights, 0 * values, epsilon)


def nothing_for_the_start(continuous, quantized):
    return quantized.detach()


class AlwaysUnrolled(slot_attention.SlotAttention):
    def __init__(self, *sizes, implicit, **settings):
        super().__init__(*sizes, **settings)


def always_implicit(strength, implicit, iterations=60):
    return CONTRACTING(strength, True, iterations)


def growing(strength, implicit, iterations=60):
    return CONTRACTING(1 / strength, implicit, iterations)


def as_if_slots_did_not_matter(module, features, slots):
    by_slots, by_features = ROUND_JACOBIANS(module, features, slots)
    return 0 * by_slots, by_features


WEIGHTED_MEAN = slot_attention.weighted_mean
CONTRACTING = slot_attention.contracting
ROUND_JACOBIANS = slot_attention.round_jacobians
LOCATELLO, CHANG = "slot attention, Locatello et al. ", "slot attention, Chang et al. 2022"

BROKEN_ATTENTION = [
    (LOCATELLO + "equations 1 and 2", "", "responsibilities", shared_among_positions),
    (LOCATELLO + "equations 1 and 2", "", "weighted_mean", weighted_sum),
    (LOCATELLO + "equations 1 and 2", "", "weighted_mean", deaf_mean),
    (LOCATELLO + "proposition 1", "", "responsibilities", earlier_slots_first),
    (LOCATELLO + "proposition 1", "", "weighted_mean", earlier_positions_louder),
    (LOCATELLO + "proposition 1", "", "weighted_mean", deaf_mean),
    (CHANG, "from the last slots", "straight_through", nothing_for_the_start),
    (CHANG, "from the last slots", "SlotAttention", AlwaysUnrolled),
    (CHANG, "first term", "contracting", always_implicit),
    (CHANG, "first term", "contracting", growing),
    (CHANG, "first term", "round_jacobians", as_if_slots_did_not_matter),
]

test_a_broken_round_is_seen, test_no_round_check_is_left_unbroken = proof_tests(slot_attention, BROKEN_ATTENTION)


def nothing_taken_away(log_scope, logit):
    return log_scope + F.logsigmoid(logit), log_scope


def shares_of_the_whole(log_scope, logit):
    return F.logsigmoid(logit), log_scope + F.logsigmoid(-logit)


def not_as_logarithms(log_scope, logit):
    return log_scope + logit.sigmoid().log(), log_scope + (1 - logit.sigmoid()).log()


def the_last_is_asked_too(attention, images, n_slots):
    return CUT_OUT(attention, images, n_slots + 1)[:, :n_slots]


def mixture_of_colours(images, parts, log_masks, scales):
    of_slot = monet.log_density(images[:, None], parts, scales[:, None, None, None])
    return (log_masks[:, :, None] + of_slot).logsumexp(1).sum((1, 2, 3))


def no_masks(images, parts, log_masks, scales):
    return MIXTURE(images, parts, 0 * log_masks, scales)


def turned_round(log_masks, log_decoded):
    return DIVERGENCE(log_decoded, log_masks)


CUT_OUT, MIXTURE, DIVERGENCE = monet.cut_out, monet.mixture_log_likelihood, monet.mask_divergence

BROKEN_MONET = [
    ("MONet, Burgess et al. section 2", "", "split_scope", nothing_taken_away),
    ("MONet, Burgess et al. section 2", "", "split_scope", shares_of_the_whole),
    ("MONet, Burgess et al. section 2", "", "split_scope", not_as_logarithms),
    ("MONet, Burgess et al. section 2", "", "cut_out", the_last_is_asked_too),
    ("MONet, Burgess et al. loss", "likelihood", "mixture_log_likelihood", mixture_of_colours),
    ("MONet, Burgess et al. loss", "likelihood", "mixture_log_likelihood", no_masks),
    ("MONet, Burgess et al. loss", "divergence", "mask_divergence", turned_round),
]

test_a_broken_monet_is_seen, test_no_monet_check_is_left_unbroken = proof_tests(monet, BROKEN_MONET)
