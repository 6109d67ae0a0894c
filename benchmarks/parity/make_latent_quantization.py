"""Makes latent_quantization.json by running https://github.com/kylehkhsu/latent_quantization; no test runs this.

Python 3.11, with versions from the time of the repository:

    python -m venv scratch
    scratch/bin/pip install jax==0.4.25 jaxlib==0.4.25 equinox==0.11.3 optax==0.2.1 scikit-learn==1.2.2 "numpy<2" \
        "scipy<1.13" einops pandas omegaconf matplotlib seaborn h5py
    git clone https://github.com/kylehkhsu/latent_quantization CLONE
    PYTHONPATH=PROJECT/tests/parity scratch/bin/python PROJECT/benchmarks/parity/make_latent_quantization.py CLONE

Packages that only logging, debugging and reading data need are left out, and replaced by empty modules. Networks are an
eighth as wide as the released ones, which are arguments there; everything runs in float64.
"""

import subprocess
import sys
from functools import partial
from types import ModuleType
from unittest.mock import MagicMock

import numpy as np
from parity_numbers import HERE, images, read, representations, summary, weight, write

clone = sys.argv[1]
sys.path.insert(0, clone)
for unneeded in ("ipdb", "wandb", "hydra", "disentangle.datasets"):
    sys.modules[unneeded] = MagicMock(spec=ModuleType(unneeded))

import disentangle as theirs  # noqa: E402
import equinox as eqx  # noqa: E402
import jax  # noqa: E402
import jax.experimental  # noqa: E402
import jax.numpy as jnp  # noqa: E402
from disentangle.metrics import infomec as standalone  # noqa: E402
from omegaconf import OmegaConf  # noqa: E402

jax.config.update("jax_enable_x64", True)

BATCH, N_LATENTS, N_VALUES, DIM, N_VECTORS = 6, 4, 5, 3, 11
WIDTHS, HIDDEN = [4, 8, 16, 32], 32
KERNELS, STRIDES, PADDINGS = [3, 3, 4] * 4, [1, 1, 2] * 4, [1] * 12
OPTIMIZER = {"learning_rate": 1e-3, "clip": 1e-3, "beta1": 0.0, "beta2": 0.9}
DECAY, STEPS, CRITIC_STEPS, DATASET_SIZE = 0.3, 3, 2, 1000
blocks, key = theirs.blocks, jax.random.PRNGKey


def networks():
    "Encoder and decoder, as the released configuration has them but narrower."
    dense = partial(blocks.DenseBlocks, widths=[HIDDEN, HIDDEN], activation="relu", norm="none")
    layers = {"kernel_sizes": KERNELS, "strides": STRIDES, "paddings": PADDINGS, "activation": "leaky_relu"}
    down, up = ([width for width in widths for _ in range(3)] for widths in (WIDTHS, WIDTHS[::-1]))
    conv = partial(blocks.Conv2DBlocks, widths=down, norm="instance_norm", **layers)
    style = partial(blocks.StyleConvTranspose2DBlocks, widths=up, norm="none", **layers)
    last = partial(blocks.Conv2DBlock, kernel_size=3, stride=1, padding=1, norm="none", activation="none")
    return {
        "encoder_partial": partial(theirs.encoders.ImageEncoder, conv_partial=conv, dense_partial=dense),
        "decoder_partial": partial(
            theirs.decoders.StyleImageDecoder,
            dense_partial=dense,
            style_conv_transpose_partial=style,
            conv_partial=last,
            input_channels=WIDTHS[-1],
        ),
    }


def same(array):
    return array


def flipped(array):
    "A kernel of a transposed convolution in the other framework's layout, in both directions."
    return array.swapaxes(0, 1)[:, :, ::-1, ::-1]


def single(array):
    "With a leading dimension of one."
    return array[None]


def image_encoder(encoder):
    "Our name of each parameter: where it is in theirs, and how it is laid out."
    for number, block in enumerate(encoder.conv.layers):
        place = f"encoder.blocks.{number // 3}.{number % 3}"
        yield f"{place}.convolution.weight", block.layers[0].weight, same
        yield f"{place}.norm.weight", block.layers[1].weight, same
        yield f"{place}.norm.bias", block.layers[1].bias, same
    linears = [block.layers[0] for block in encoder.dense.layers] + [encoder.head]
    for number, linear in zip((0, 2, 4), linears, strict=True):
        yield f"encoder.head.{number}.weight", linear.weight, same
        yield f"encoder.head.{number}.bias", linear.bias, same


def style_decoder(decoder):
    yield "decoder.start", decoder.input_map, single
    for number, block in zip((0, 2), decoder.dense.layers, strict=True):
        yield f"decoder.style.{number}.weight", block.layers[0].weight, same
        yield f"decoder.style.{number}.bias", block.layers[0].bias, same
    for number, block in enumerate(decoder.style_conv_transpose.blocks):
        place = f"decoder.layers.{number}"
        yield f"{place}.convolution.weight", block.forward_block.layers[0].weight, flipped
        yield f"{place}.norm.style.weight", block.conditioning.layers[0].weight, same
        yield f"{place}.norm.style.bias", block.conditioning.layers[0].bias, same
    yield "decoder.last.weight", decoder.conv.layers[0].weight, same


def codebooks(latent):
    if isinstance(latent, theirs.latents.QuantizedLatent):
        yield "latent.codebooks", tuple(latent._values_per_latent), jnp.stack
    elif isinstance(latent, theirs.latents.GlobalQuantizedLatent):
        yield "latent.codebooks", latent.values, single
    elif isinstance(latent, theirs.latents.VectorQuantizedLatent):
        yield "latent.codebooks", latent.embeddings, same


def parameters(model):
    "All of a model's."
    if isinstance(model, theirs.models.InfoGAN):
        yield from image_encoder(model.encoder.base)
        yield "critic.3.weight", model.encoder.critic.weight, same
        yield "critic.3.bias", model.encoder.critic.bias, same
        yield from style_decoder(model.generator)
    else:
        yield from image_encoder(model.encoder)
        yield from style_decoder(model.decoder)
    yield from codebooks(model.latent)


def given_weights(model):
    "The model with our weights in float64."

    def leaves(tree):
        return [leaf for _, place, _ in parameters(tree) for leaf in jax.tree_util.tree_leaves(place)]

    values = []
    for name, place, layout in parameters(model):
        value = jnp.asarray(weight(name, layout(place).shape))
        if layout is flipped:
            values.append(flipped(value))
        else:
            values += list(value) if layout is jnp.stack else [value[0] if layout is single else value]
    model = eqx.tree_at(leaves, model, values)
    trained = jax.tree_util.tree_leaves(eqx.filter(model, eqx.is_inexact_array))
    assert len(trained) == len(values), "a parameter without a name"
    assert all(leaf.dtype == jnp.float64 for leaf in trained)
    return model


def made(kind, latent, lambdas, x, **rest):
    "A model with our weights; released constructors mix types unless they make float32."
    with jax.experimental.disable_x64():
        x = jnp.asarray(np.asarray(x[0], np.float32))
        lambdas = OmegaConf.create(lambdas)  # as hydra gives it: one leaf of the tree
        model = kind(latent_partial=latent, lambdas=lambdas, x=x, key=key(0), **networks(), **rest)
    return given_weights(model)


def named(model):
    "Arrays in our layout, by our names; those without a gradient are left out."
    arrays = {}
    for name, place, layout in parameters(model):
        if all(leaf is not None for leaf in jax.tree_util.tree_leaves(place, is_leaf=lambda x: x is None)):
            arrays[name] = np.asarray(layout(place))
    return arrays


def summaries(arrays):
    return {name: summary(array) for name, array in arrays.items()}


def changed(after, before):
    return summaries({name: after[name] - before[name] for name in after})


def batch(number):
    "As the released readers give them: float32, and then our float64."
    bytes_ = images(BATCH, number).transpose(0, 3, 1, 2)
    return {"x": jnp.asarray((bytes_.astype(np.float32) / np.float32(255)).astype(np.float64))}


def configuration(lambdas):
    return OmegaConf.create({"optim": OPTIMIZER, "model_partial": {"lambdas": lambdas}})


def autoencoder_case(kind, latent, lambdas, **rest):
    "Outputs, terms, gradient and some steps of an autoencoder."
    x = batch(0)["x"]
    lambdas = {"binary_cross_entropy": 1.0, **lambdas}
    model = made(kind, latent, lambdas, x, **rest)
    start, noise, draws = named(model), isinstance(model, theirs.models.VAE), []
    optimizer, state = model.construct_optimizer(configuration({**lambdas, "l2": DECAY}))
    case = {"shapes": {name: list(array.shape) for name, array in start.items()}}
    for number in range(STEPS):
        step_key, data = key(100 + number), batch(number)
        if noise:
            keys = jax.random.split(jax.random.split(step_key, 2)[0], BATCH)
            draws.append(jax.vmap(lambda k: jax.random.normal(k, (N_LATENTS,)))(keys).tolist())
        loss = eqx.filter_value_and_grad(model.batched_loss, has_aux=True)
        (value, aux), gradient = loss(model, data, jnp.array(number), key=step_key)
        if number == 0:
            outputs = {name: summary(array) for name, array in aux["outs"].items() if name != "features"}
            terms = {name: float(jnp.mean(term)) for name, term in aux["metrics"].items() if "params_" not in name}
            case |= {"outputs": outputs, "terms": terms, "loss": float(value)}
            case["gradient"] = summaries(named(gradient))
        updates, state = optimizer.update([gradient], state, [model])
        model = eqx.apply_updates([model], updates)[0]
        if number == 0:
            case["one_step"] = changed(named(model), start)
    return case | {"steps": changed(named(model), start), "draws": draws}


def latent_keys(step_key):
    return jax.random.split(jax.random.split(step_key, 2)[0], BATCH)


def drawn_latents(model, step_key):
    "Uniform numbers, or places in the codebooks."

    def one(k):
        if isinstance(model.latent, theirs.latents.UniformLatent):
            return model.latent.sample(key=k)
        keys = jax.random.split(k, N_LATENTS)
        return jnp.stack([jax.random.choice(keys[j], jnp.arange(N_VALUES)) for j in range(N_LATENTS)])

    drawn, sampled = jax.vmap(one)(latent_keys(step_key)), jax.vmap(model.latent.sample)(key=latent_keys(step_key))
    if drawn.dtype != sampled.dtype:
        values = jnp.stack(model.latent._values_per_latent)
        assert jnp.array_equal(values[jnp.arange(N_LATENTS), drawn], sampled)
    return drawn.tolist()


def gan_case(kind, latent, lambdas):
    "The same of a generative model: two steps of encoder and critic, then one of the generator, as the script does."
    x = batch(0)["x"]
    lambdas = {"gradient": 10.0, "latent": 200.0, "value": 1.0, "l2": DECAY, **lambdas}
    model = made(kind, latent, lambdas, x)
    start, case = named(model), {"shapes": {name: list(array.shape) for name, array in named(model).items()}}
    optimizers, states = model.construct_optimizer(configuration(lambdas))
    outs = jax.vmap(model.encode)(x)
    case["outputs"] = {name: summary(outs[name]) for name in ("pre_z", "z_hat", "value")}
    case["draws"] = []
    for number in range(CRITIC_STEPS):
        step_key = key(200 + number)
        epsilon = jax.random.uniform(jax.random.split(step_key, 2)[1], (BATCH, 1, 1, 1))
        case["draws"] += [drawn_latents(model, step_key), epsilon.ravel().tolist()]
        loss = eqx.filter_value_and_grad(model.batched_encoder_loss, has_aux=True)
        (value, aux), gradient = loss(model, batch(number), key=step_key)
        if number == 0:
            terms = {name: float(jnp.mean(term)) for name, term in aux["metrics"].items()}
            case |= {"critic_terms": terms, "critic_loss": float(value)}
            arrays = named(gradient)
            arrays = {n: a for n, a in arrays.items() if n.startswith(("encoder", "critic"))}
            case["critic_gradient"] = summaries(arrays)
        encoder, step = [model.encoder], optimizers["encoder"].update
        updates, states["encoder"] = step([gradient.encoder], states["encoder"], encoder)
        model = eqx.tree_at(lambda m: m.encoder, model, eqx.apply_updates(encoder, updates)[0])
    between, step_key = named(model), key(300)
    case["critic_steps"] = changed(between, start)
    case["draws"].append(drawn_latents(model, step_key))
    loss = eqx.filter_value_and_grad(model.batched_generator_loss, has_aux=True)
    (value, aux), gradient = loss(model, batch(0), key=step_key)
    terms = {name: float(jnp.mean(term)) for name, term in aux["metrics"].items() if "_params_" not in name}
    case |= {"generator_terms": terms, "generator_loss": float(value)}
    case["outputs"]["x_fake"] = summary(aux["outs"]["x_fake"])
    arrays = named(gradient)
    case["generator_gradient"] = summaries({n: a for n, a in arrays.items() if n.startswith(("decoder", "latent"))})
    moved = model.optax(model.generator, model.latent)
    gradients = model.optax(gradient.generator, gradient.latent)
    updates, _ = optimizers["generator"].update(gradients, states["generator"], moved)
    generator, layer = model.unoptax(eqx.apply_updates(moved, updates))
    model = eqx.tree_at(lambda m: m.generator, eqx.tree_at(lambda m: m.latent, model, layer), generator)
    return case | {"generator_step": changed(named(model), between)}


def scores_of_training_script(sources, latents, continuous):
    "What the script that trains logs under the names of the tables."
    metrics, name = theirs.metrics, "continuous-discrete" if continuous else "discrete-discrete"
    np.random.seed(0)  # noqa: NPY002
    information, active = metrics.compute_pairwise_mutual_information(
        latents=latents, sources=sources, continuous_latents=continuous, estimator=name, normalization="sources"
    )
    return {
        "infom": float(metrics.compute_mutual_information_ratio(information, active, "modularity")),
        "infoc": float(metrics.compute_mutual_information_ratio(information, active, "compactness")),
        "infoe": float(metrics.explicitness_classification(latents, sources)),
        "infoe_regression": float(metrics.explicitness_regression(latents, sources.astype(np.float64))),
        "active": np.asarray(active).tolist(),
        "nmi": np.asarray(information).T.tolist(),
    }


def scores_of_standalone_file(sources, latents, discrete):
    np.random.seed(0)  # noqa: NPY002
    scores = standalone.compute_infomec(sources, latents, discrete)
    return {name: np.asarray(value).tolist() for name, value in scores.items()}


latents, models = theirs.latents, theirs.models
size = {"num_latents": N_LATENTS}
quantized = partial(latents.QuantizedLatent, num_values_per_latent=N_VALUES, optimize_values=True, **size)
shared = partial(latents.GlobalQuantizedLatent, num_values=N_VALUES, **size)
vectors = partial(latents.VectorQuantizedLatent, num_embeddings=N_VECTORS, embedding_size=DIM, **size)
gaussian = partial(latents.DiagonalGaussianLatent, **size)
still = {"anneal": False, "anneal_duration": 1}
parts = {"mutual_information": 1.0, "total_correlation": 3.0, "dimension_wise_kl": 1.0}
weights = {"quantization": 0.01, "commitment": 0.03}
plain, tc = partial(latents.ContinuousLatent, **size), {**still, "dataset_size": DATASET_SIZE}

CASES = {
    "ae": partial(autoencoder_case, models.AE, plain, {}),
    "beta_vae": partial(autoencoder_case, models.VAE, gaussian, {"kl": 3.0}, **still),
    "beta_tcvae": partial(autoencoder_case, models.TCVAE, gaussian, parts, **tc),
    "bioae": partial(autoencoder_case, models.BioAE, plain, {"nonnegative": 1.0, "activity": 0.1}),
    "vqvae": partial(autoencoder_case, models.VQVAE, vectors, {"quantization": 1.0, "commitment": 0.25}),
    "qlae": partial(autoencoder_case, models.QuantizedAE, quantized, weights),
    "qlae_global_codebook": partial(autoencoder_case, models.QuantizedAE, shared, weights),
    "infowgan_gp": partial(gan_case, models.InfoGAN, partial(latents.UniformLatent, **size), {}),
    "qlinfowgan_gp": partial(gan_case, models.QuantizedInfoGAN, quantized, weights),
}


def all_scores():
    sources, kinds = representations()
    scores = {}
    for name, z in kinds.items():
        discrete = name in ("quantized", "index")
        training = scores_of_training_script(sources, z, not discrete)
        alone = scores_of_standalone_file(sources, 1.0 * z, discrete)  # it takes no integers
        scores[name] = {"training": training, "standalone": alone}
    return scores


def psnr():
    logits, bytes_ = (images(4, 7) / 255.0 - 0.5) * 4, images(4, 8) / 255.0
    measure = jax.vmap(theirs.metrics.peak_signal_to_noise_ratio)
    return np.asarray(measure(jnp.asarray(logits), jnp.asarray(bytes_))).tolist()


content = read("latent_quantization") if (HERE / "latent_quantization.json").exists() else {"models": {}}
content |= {
    "repository": "https://github.com/kylehkhsu/latent_quantization",
    "commit": subprocess.check_output(["git", "-C", clone, "rev-parse", "HEAD"], text=True).strip(),
    "configuration": {
        "batch": BATCH,
        "n_latents": N_LATENTS,
        "n_values": N_VALUES,
        "dim": DIM,
        "n_vectors": N_VECTORS,
        "width": 0.125,
        "weight_decay": DECAY,
        "steps": STEPS,
        "critic_steps": CRITIC_STEPS,
        "dataset_size": DATASET_SIZE,
        "beta": 3.0,
        "activity": 0.1,
        "quantize": 0.01,
        "commit": 0.03,
        **OPTIMIZER,
    },
}
wanted = sys.argv[2:] or [*CASES, "metrics"]
for name in wanted:
    if name == "metrics":
        content |= {"metrics": all_scores(), "psnr": psnr()}
    else:
        content["models"][name] = CASES[name]()
    write("latent_quantization", content)
    jax.clear_caches()
