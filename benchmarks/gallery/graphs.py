"""What build_gcn uses of DGL: a graph of the size of Cora's with random edges and features, and GraphConv in torch."""

import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np

NODES, EDGES, FEATURES, HIDDEN, CLASSES = 2708, 10556, 1433, 16, 7


class Graph:
    """A graph whose edges go both ways, every node with an edge to itself, as a matrix in CSR."""

    def __init__(self) -> None:
        import scipy.sparse
        import torch

        rng = np.random.default_rng(8)
        ends = rng.integers(0, NODES, (2, EDGES // 2))
        own = np.arange(NODES)
        rows, columns = np.concatenate([ends[0], ends[1], own]), np.concatenate([ends[1], ends[0], own])
        matrix = scipy.sparse.coo_array((np.ones(len(rows), "float32"), (rows, columns)), (NODES, NODES)).tocsr()
        matrix.data[:] = 1
        self.matrix = matrix
        self.degrees = np.diff(matrix.indptr)
        words = torch.from_numpy((rng.random((NODES, FEATURES)) < 0.0127).astype("float32"))
        self.ndata = {
            "feat": words / words.sum(1, keepdim=True).clamp(min=1),
            "label": torch.from_numpy(rng.integers(0, CLASSES, NODES)),
            "test_mask": torch.from_numpy(rng.random(NODES) < 0.37),
        }

    def in_degrees(self, node: int) -> int:
        """How many edges end at a node."""
        return int(self.degrees[node])

    def number_of_nodes(self) -> int:
        """How many nodes there are."""
        return NODES


def install() -> None:
    """Makes `import dgl` find this."""
    import torch

    class GraphConv(torch.nn.Module):
        def __init__(self, before: int, after: int, activation: Any = None) -> None:
            super().__init__()
            self.weight = torch.nn.Parameter(torch.empty(before, after))
            self.bias = torch.nn.Parameter(torch.empty(after))
            self.activation = activation

        def forward(self, graph: Graph, features: torch.Tensor) -> torch.Tensor:
            norm = torch.from_numpy(graph.degrees.astype("float32") ** -0.5)[:, None]
            csr = graph.matrix
            matrix = torch.sparse_csr_tensor(*(torch.from_numpy(p) for p in (csr.indptr, csr.indices, csr.data)))
            result = (matrix @ ((features * norm) @ self.weight)) * norm + self.bias
            return self.activation(result) if self.activation else result

    dgl = ModuleType("dgl")
    dgl.__version__ = "1.0"
    names = ("data", "nn", "nn.pytorch")
    modules = {name: ModuleType(f"dgl.{name}") for name in names}
    dataset = type("Cora", (list,), {"num_classes": CLASSES})
    modules["data"].CoraGraphDataset = lambda: dataset([Graph()])
    modules["data"].load_data = None
    modules["nn.pytorch"].GraphConv = GraphConv
    dgl.data, dgl.nn = modules["data"], modules["nn"]
    modules["nn"].pytorch = modules["nn.pytorch"]
    dgl.to_networkx = lambda graph: graph
    sys.modules |= {"dgl": dgl} | {f"dgl.{name}": module for name, module in modules.items()}
    sys.modules["networkx"] = SimpleNamespace(to_scipy_sparse_array=lambda graph: graph.matrix)
