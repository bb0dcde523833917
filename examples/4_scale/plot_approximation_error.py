"""
The error of an approximation
=============================

:class:`treegram.ODDCLApprox` replaces the node kernel by inner products of explicit vectors. How good is that? The
figure shows the error of the Gram matrix against the number of components, for each way to make the vectors.

The exact kernel is often as fast up to a few thousand graphs.
"""

import matplotlib.pyplot as plt
import numpy as np

import treegram as tg

graphs, _, _ = tg.make_motifs(120, n_attributes=3, shift=1.0, random_state=0)
exact = tg.ODDCL(depth=2).fit_transform(graphs)


def error(kernel):
    return np.linalg.norm(kernel.fit_transform(graphs) - exact) / np.linalg.norm(exact)


methods = {
    "rff": "rff: random frequencies",
    "nystroem": "nystroem: pivots among the nodes",
}
components = [16, 32, 64, 128, 256]

fig, ax = plt.subplots(figsize=(8, 5), layout="constrained")
for method, name in methods.items():
    errors = np.array(
        [
            [
                error(
                    tg.ODDCLApprox(
                        depth=2, method=method, n_components=n, random_state=seed
                    )
                )
                for n in components
            ]
            for seed in range(3)
        ]
    )
    (line,) = ax.plot(components, np.median(errors, axis=0), marker="o", label=name)
    ax.fill_between(
        components,
        *np.quantile(errors, [0, 1], axis=0),
        color=line.get_color(),
        alpha=0.15,
        linewidth=0,
    )
ax.set(
    xscale="log",
    yscale="log",
    xlabel="components",
    ylabel="relative error of the Gram matrix",
)
ax.set_xticks(components, components)
ax.minorticks_off()
ax.set_title(
    "120 graphs, three attributes for each node; median and range of three seeds"
)
ax.legend(frameon=False)
plt.show()
