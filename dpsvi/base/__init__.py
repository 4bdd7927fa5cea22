"""The contracts: what a model, an engine, a schedule, a strategy and an observer are.

Data flows one way::

    items --model.local--> statistics --learner--> parameters --observer--> reports

* A **model** is maths only.  It turns a batch of items into expected sufficient statistics
  given the current parameters.  It never sees a thread, a rank or a learning rate.
* The **engine** decides where local steps run and who adds their statistics to the parameters.
  It never sees a topic or a mixture component.
* The **schedule** gives the step size of every step; the **strategy** says how parameters of
  several workers become one.  Neither knows the other three.

All parameters live in one matrix of natural parameters ``lam = prior + scale * rows``
(shape ``(n_rows, n_columns)``).  A row is the unit of sparse update, of message and of checkpoint:
for LDA a row is a word and a column a topic; a mixture, whose every point touches everything, is
one row.  See :mod:`dpsvi.training.state` for why the matrix is kept in that scaled form.
"""

from dpsvi.base.engine import Engine, Event, Schedule
from dpsvi.base.model import Items, Model, Shared, ThreadMemory
from dpsvi.base.strategy import Parameters, Peers, Reading, Star, Strategy, Update

__all__ = [
    "Engine", "Event", "Items", "Model", "Parameters", "Peers", "Reading", "Schedule", "Shared",
    "Star", "Strategy", "ThreadMemory", "Update",
]  # fmt: skip
