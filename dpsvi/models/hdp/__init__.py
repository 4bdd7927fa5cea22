"""Local steps of the HDP: one kernel a file, all with the signature of ``Model.local``.

``hyper`` holds a mark for each column, 1 for a topic and 0 for padding, then the options of
`dpsvi.kernels.fold` and those of `sticks`.
"""
