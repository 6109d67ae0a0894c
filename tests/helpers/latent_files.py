"Sources and latents in files of every kind."

from pathlib import Path

import h5py
import numpy as np
import pandas as pd


def write_files(sources: np.ndarray, latents: np.ndarray) -> None:
    "Together and apart, in the current folder."
    np.savez("both.npz", latents=latents, sources=sources)
    np.save("latents.npy", latents)
    np.save("sources.npy", sources)
    Path("text.npz").write_text("latents, sources")
    np.savetxt("latents.csv", latents, delimiter=",", fmt="%.18g")
    pd.DataFrame(sources, columns=["shape", "hue"]).to_csv("sources.csv", index=False)
    named = {f"latent_{j}": z for j, z in enumerate(latents.T)} | {f"source_{i}": s for i, s in enumerate(sources.T)}
    pd.DataFrame(named).to_csv("both.csv", index=False)
    pd.DataFrame(named).rename(columns=str.upper).to_csv("semicolons.csv", index=False, sep=";")
    pd.DataFrame(named).to_csv("both.tsv", index=False, sep="\t")
    with h5py.File("both.h5", "w") as file:
        file["latents"], file["sources"] = latents, sources
