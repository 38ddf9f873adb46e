"""From what a file says (:mod:`jittok.spec`) to the arrays that kernels read (:mod:`jittok.tables`)."""
