"Each proof check of attention, the interaction loss and the Transformer-VAE goes red when its formula is broken."

import torch
from mutations import Chapter, proof_tests

from disentangle_repro.core.errors import by_protocol

cross_attention = Chapter("asymmetry/05_cross_attention")
transformer_vae = Chapter("asymmetry/06_transformer_vae")
attention = Chapter("nets/00_attention")


class DeafAttention(attention.MultiHeadAttention):
    def keys_and_values(self, asked):
        return super().keys_and_values(0 * asked)


def shared_among_the_asking(queries, keys, scale=None):
    scale = queries.shape[-1] ** -0.5 if scale is None else scale
    return (scale * queries @ keys.mT).softmax(dim=-2)


class KeysAsValues(attention.MultiHeadAttention):
    def keys_and_values(self, asked):
        return super().keys_and_values(asked)[::-1]


HEADS, LAYER = "appendix F, attention with heads", "section 5, one layer"
APPENDIX_F, TRANSFORMER = "appendix F, attention", "section 5, Transformer"

BROKEN_ATTENTION = [
    (HEADS, "", "MultiHeadAttention", KeysAsValues),
    (LAYER, "", "MultiHeadAttention", KeysAsValues),
    (APPENDIX_F, "", "MultiHeadAttention", DeafAttention),
    (TRANSFORMER, "", "MultiHeadAttention", DeafAttention),
]

test_a_broken_attention_is_seen, test_no_attention_check_is_left_unbroken = proof_tests(attention, BROKEN_ATTENTION)


def leaking(queries, keys, scale=None):
    return 0.9 * WEIGHTS(queries, keys, scale) + 0.1 / len(keys)


def without_the_others(weights):
    return weights.diag_embed()


def without_weights(slots, *layer):
    return RESPONSE(slots, *layer)


def each_pair_twice(weights):
    return 2 * PAIRS(weights)


def for_whole_rows_only(weights):
    return (1 - weights.square().sum(-1)) / 2


def each_head_alone(told, protocol="paper"):
    return torch.stack([PAIRS(layer).mean() for layer in told]).mean()


def always_averaged(told, protocol="paper"):
    return LOSS(told, "code")


class LastLayerOnly(attention.Transformer):
    def weighed(self, tokens, asked):
        told, weights = super().weighed(tokens, asked)
        return told, weights[-1:]


WEIGHTS, RESPONSE = attention.attention_weights, cross_attention.response
PAIRS, LOSS = cross_attention.pair_products, cross_attention.interaction_loss
HEADS, LAYERS = "appendix F.1, heads and layers", "appendix F.2, heads and layers"

BROKEN_LOSS = [
    ("equation 5.2", "", "attention_weights", shared_among_the_asking),
    ("equation F.6", "", "softmax_derivative", without_the_others),
    ("equation F.8", "", "slot_derivative", without_weights),
    ("equation F.8, limit", "", "attention_weights", leaking),
    (HEADS, "", "Transformer", LastLayerOnly),
    ("equation F.9", "sum of products", "pair_products", each_pair_twice),
    ("equation F.9", "zero exactly", "pair_products", for_whole_rows_only),
    ("equation F.9", "even row", "pair_products", each_pair_twice),
    (LAYERS, "all agree", "interaction_loss", each_head_alone),
    (LAYERS, "squared", "interaction_loss", always_averaged),
    ("appendix F.2, compositional contrast", "", "pair_products", each_pair_twice),
]

test_a_broken_loss_is_seen, test_no_loss_check_is_left_unbroken = proof_tests(cross_attention, BROKEN_LOSS)


class Deaf(transformer_vae.TransformerDecoder):
    def forward(self, slots):
        return super().forward(0 * slots)


class SortedQueries(transformer_vae.LearnedQueries):
    def forward(self, batch, generator=None):
        return super().forward(batch, generator).sort(dim=1).values


class AlwaysWarm(transformer_vae.TransformerVAE):
    def anneal(self, done):
        pass


SWAPPED = by_protocol(transformer_vae.DEVIATIONS["code"], transformer_vae.DEVIATIONS["paper"])
KL = "section 5, KL term"

BROKEN_MODEL = [
    ("section 5, encoder", "", "LearnedQueries", SortedQueries),
    (KL, "", "DEVIATIONS", SWAPPED),
    ("section 5, decoder", "", "TransformerDecoder", Deaf),
    ("equation 5.3", "", "TransformerVAE", AlwaysWarm),
]

test_a_broken_model_is_seen, test_no_model_check_is_left_unbroken = proof_tests(transformer_vae, BROKEN_MODEL)
