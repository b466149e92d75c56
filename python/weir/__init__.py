"""weir: a workbench for transport control. Labs, runs on the simulator, and results as tables and plots.

>>> lab = weir.Lab.read("labs/quickstart.toml")
>>> result = weir.run(lab)
>>> frame = polars.DataFrame(result.flows)
"""

from ._weir import Comparison, Error, Lab, LabError, Result, Table, __version__, compare, open, run

__all__ = ["Comparison", "Error", "Lab", "LabError", "Result", "Table", "__version__", "compare", "open", "run"]
