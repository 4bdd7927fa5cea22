"""Local steps of LDA: one kernel a file, all with the signature of ``Model.local``.

``hyper`` holds :class:`dpsvi.kernels.fold.Options`.
"""
