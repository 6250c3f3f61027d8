"""Small models of PyTorch, of which each shows something that a door has to keep."""

import torch


class Block(torch.nn.Module):
    """Convolution, batch norm and activation, all with random numbers of their own."""

    def __init__(self, channels: int, results: int) -> None:
        super().__init__()
        self.conv1 = torch.nn.Conv2d(channels, results, 3, padding=1)
        self.bn = torch.nn.BatchNorm2d(results)
        torch.nn.init.normal_(self.bn.weight)
        torch.nn.init.normal_(self.bn.running_mean)
        torch.nn.init.uniform_(self.bn.running_var, 0.5, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Of [n, c, h, w]."""
        return torch.nn.functional.gelu(self.bn(self.conv1(x)))


class Net(torch.nn.Module):
    """Nested modules; a dictionary of results."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = torch.nn.Sequential(Block(3, 8), torch.nn.Conv2d(8, 4, 1))
        self.head = torch.nn.Linear(4, 2)

    def forward(self, x: torch.Tensor, shift: torch.Tensor | None = None) -> dict[str, torch.Tensor]:
        """Of [n, 3, h, w]."""
        pooled = self.layers(x).mean((2, 3))
        return {"classes": self.head(pooled if shift is None else pooled + shift), "pooled": pooled}


class Words(torch.nn.Module):
    """Whole numbers in, bfloat16 or float16 within."""

    def __init__(self, dtype: torch.dtype) -> None:
        super().__init__()
        self.table = torch.nn.Embedding(50, 16, dtype=dtype)
        self.out = torch.nn.Linear(16, 5, dtype=dtype)

    def forward(self, tokens: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Of [n, t] numbers."""
        scores = self.out(torch.tanh(self.table(tokens)))
        return scores, scores.argmax(-1)


def net() -> tuple[Net, torch.Tensor]:
    """The same one each time, and an image for it."""
    torch.manual_seed(0)
    return Net().eval(), torch.randn(2, 3, 8, 8)


def relative_error(found: torch.Tensor, wanted: torch.Tensor) -> float:
    """In the norm of all elements."""
    return float((found.double() - wanted.double()).norm() / wanted.double().norm())
