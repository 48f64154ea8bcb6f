"""Work on other processes and machines: see docs/cluster.md."""

from pdofm.cluster.client import Dask, connect
from pdofm.cluster.evaluation import evaluate
from pdofm.cluster.processes import Processes
from pdofm.numerics.executor import Executor, Pool, Serial, shares_for

__all__ = ["Dask", "Executor", "Pool", "Processes", "Serial", "connect", "evaluate", "shares_for"]
