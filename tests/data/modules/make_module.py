"""Writes module.pt: a small module as PyTorch saves it for LibTorch.

    python3 -m venv /tmp/venv
    /tmp/venv/bin/pip install torch==2.11.0
    /tmp/venv/bin/python make_module.py            # writes module.pt beside this script
    /tmp/venv/bin/python make_module.py FILE       # prints what PyTorch reads in FILE

Every tensor is filled with k, k + 1/8, k + 2/8 ... where k is its place in named_parameters, or ten
times its place in named_buffers, both from 1. The names are those of Net in
tests/integration/state_files_test.cc.
"""

import pathlib
import sys

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(6, 4)
        self.out = self.embed.weight
        self.blocks = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.BatchNorm1d(4))
        self.plain = nn.Linear(4, 4, bias=False)
        self.norm = nn.BatchNorm1d(4, affine=False)

    def forward(self, tokens):
        x = self.norm(self.plain(self.blocks(self.embed(tokens))))
        return x @ self.out.t()


def fill(tensor, first):
    numbers = torch.arange(tensor.numel(), dtype=torch.float64) / 8 + first
    tensor.data.copy_(numbers.view(tensor.shape).to(tensor.dtype))


def main():
    if len(sys.argv) > 1:
        for name, tensor in torch.jit.load(sys.argv[1]).state_dict().items():
            print(name, tensor.dtype, list(tensor.shape), tensor.flatten()[:3].tolist())
        return
    net = Net()
    for place, (_, tensor) in enumerate(net.named_parameters(), 1):
        fill(tensor, place)
    for place, (_, tensor) in enumerate(net.named_buffers(), 1):
        fill(tensor, 10 * place)
    torch.jit.script(net).save(str(pathlib.Path(__file__).with_name("module.pt")))


main()
