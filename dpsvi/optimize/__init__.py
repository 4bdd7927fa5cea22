"""Stochastic gradient descent for any objective, on the engines of variational inference.

::

    objective   what is minimised: any Python callable, or a compiled local step over items
    dpsgd       DPSGD, the optimiser: hyper-parameters, `minimize`, the result
    logistic    multinomial and one-vs-rest logistic regression on sparse features
    network     a network with one hidden layer
    classifier  what the estimators of the two share
"""
