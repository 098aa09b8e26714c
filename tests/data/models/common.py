"""What every model of this directory is: `forward` takes one microbatch, returns its mean loss."""

import torch
from torch import nn


class Model(nn.Module):
    lr = 0.1
    script = False  # TorchScript by torch.jit.script instead of a trace
    untraceable = None  # why there is no TorchScript file
    unexportable = None  # why there is no exported one
    refused = None  # what a runtime must name when it refuses the model

    def batch(self, generator):
        """The arguments of one microbatch: a tuple of tensors, the same shapes every time."""
        raise NotImplementedError

    def export_arguments(self, arguments):
        """How torch.export is given them: (positional, named)."""
        return tuple(arguments), {}


def normal(generator, *shape):
    return torch.randn(shape, generator=generator)


def integers(generator, high, *shape, low=0):
    return torch.randint(low, high, shape, generator=generator)


def picture(generator, batch, size, channels=3):
    """Bytes, as a decoder of pictures gives them; `centred` makes them numbers around 0."""
    return torch.randint(0, 256, (batch, channels, size, size), generator=generator,
                         dtype=torch.uint8)


def centred(bytes_):
    return bytes_.float() / 127.5 - 1
