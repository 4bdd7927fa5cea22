"""Local steps of the HDP: one kernel a file, all with the signature of ``Model.local``.

``hyper`` holds :class:`dpsvi.models.hdp.options.Options`.
"""
