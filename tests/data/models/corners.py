"""A graph network, and small models each full of one thing that is easy to get wrong."""

import math
from typing import List, Optional

import torch
import torch.nn.functional as F
from torch import nn

from common import Model, integers, normal


# ---- Graph network ------------------------------------------------------------------------------

class Gcn(nn.Module):
    """Sums over neighbors, each edge weighted by the degrees of its ends."""

    def __init__(self, wide, out):
        super().__init__()
        self.linear, self.bias = nn.Linear(wide, out, bias=False), nn.Parameter(torch.zeros(out))

    def forward(self, x, edges):
        start, end = edges[0], edges[1]
        n = x.shape[0]
        degree = torch.zeros(n).scatter_add_(0, end, torch.ones(end.shape[0]))
        scale = degree.pow(-0.5)
        scale = scale.masked_fill(scale == float("inf"), 0.0)
        x = self.linear(x)
        messages = x.index_select(0, start) * (scale[start] * scale[end]).unsqueeze(-1)
        return torch.zeros_like(x).index_add_(0, end, messages) + self.bias


class Gat(nn.Module):
    """Attention over neighbors: a softmax over the edges that end in the same node."""

    def __init__(self, wide, out):
        super().__init__()
        self.linear = nn.Linear(wide, 2 * out, bias=False)
        self.start, self.end = nn.Parameter(torch.randn(2, out)), nn.Parameter(torch.randn(2, out))

    def forward(self, x, edges):
        start, end = edges.unbind(0)
        n = x.shape[0]
        x = self.linear(x).view(n, 2, -1)
        score = (x * self.start).sum(-1)[start] + (x * self.end).sum(-1)[end]
        score = F.leaky_relu(score, 0.2)
        where = end[:, None].expand_as(score)
        most = torch.zeros(n, 2).scatter_reduce(0, where, score.detach(), "amax",
                                                include_self=False)
        score = (score - most[end]).exp()
        total = torch.zeros(n, 2).scatter_add(0, where, score) + 1e-16
        messages = x[start] * (score / total[end]).unsqueeze(-1)
        spread = where.unsqueeze(-1).expand_as(messages)
        return torch.zeros_like(x).scatter_add_(0, spread, messages).mean(dim=1)


class Graph(Model):
    """Fixed edges in a buffer: index_add, scatter_add, scatter_reduce; a mask of training nodes."""
    lr = 0.1

    def __init__(self, nodes=12):
        super().__init__()
        edges = torch.randint(0, nodes, (2, 30))
        loops = torch.arange(nodes).repeat(2, 1)
        self.register_buffer("edges", torch.cat([edges, loops], dim=1))
        self.gcn, self.gat, self.out = Gcn(6, 8), Gat(8, 8), Gcn(8, 4)
        self.pool = nn.Linear(8, 1)

    def forward(self, x, labels, training):
        x = F.relu(self.gcn(x, self.edges))
        x = F.elu(self.gat(x, self.edges))
        share = torch.zeros(3, 8).index_reduce_(0, torch.arange(12) // 4, x, "mean",
                                                include_self=False)
        each = F.cross_entropy(self.out(x, self.edges), labels, reduction="none")
        loss = (each * training).sum() / training.sum()
        return loss + self.pool(share).pow(2).mean()

    def batch(self, generator):
        training = integers(generator, 2, 12) == 0
        training[0] = True
        return normal(generator, 12, 6), integers(generator, 4, 12), training


# ---- Arguments ----------------------------------------------------------------------------------

class Lists(Model):
    """Operators that take or give lists of tensors, and lists with gaps (x[:, index])."""
    lr = 0.02

    def __init__(self):
        super().__init__()
        self.a, self.b, self.c = nn.Linear(6, 8), nn.Linear(6, 8), nn.Linear(8, 6)
        self.register_buffer("order", torch.tensor([3, 0, 2, 1]))

    def forward(self, x):
        parts = torch.stack([self.a(x), self.b(x), self.a(x) * 0.5], dim=0)
        first, second, third = parts.unbind(0)
        wide = torch.cat((first, second, third, first), dim=-1)
        pieces = list(wide.split([8, 8, 4, 12], dim=-1)) + list(wide.chunk(4, dim=-1))
        pieces += torch.tensor_split(wide, 4, dim=1) + torch.broadcast_tensors(first[:1], third)
        total = sum(p.sum(-1, keepdim=True) * (i + 1) for i, p in enumerate(pieces))
        both = torch.vstack([first, second])
        x = torch.hstack([total[:, 0:1].expand(-1, 8)[:, :4], both[:4, :4]])
        rows, columns = torch.meshgrid(torch.arange(2), torch.arange(3), indexing="ij")
        y = x[:, self.order] + x[self.order][:, :4] + x[..., None, :4][:, 0]
        y = y + x.view(4, 2, 4)[:, :, self.order].sum(1)
        picked = x[rows, columns] * torch.block_diag(*x[:2, :6].split(3, dim=1))[:2, :3]
        y = self.c(torch.cat([y, x[:, 4:]], dim=1).tanh())
        pair = torch.cartesian_prod(x[0, :2], x[1, :2]).sum() + torch.dstack((x, x)).mean()
        return y.pow(2).mean() + 0.01 * picked.sum().tanh() + 0.01 * pair.tanh()

    def batch(self, generator):
        return (normal(generator, 4, 6) * 0.5,)


class Optional_(Model):
    """Optional tensors given and left out: norms without weights, a clamp between tensors."""
    lr = 0.05
    script = True

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv1d(4, 6, 3, bias=False)
        self.batch_norm = nn.BatchNorm1d(6, affine=False, track_running_stats=False)
        self.instance = nn.InstanceNorm1d(6, affine=True)
        self.group = nn.GroupNorm(2, 6, affine=False)
        self.layer = nn.LayerNorm(6, elementwise_affine=False)
        self.half_layer = nn.LayerNorm(6, bias=False)
        self.linear = nn.Linear(6, 3, bias=False)
        self.register_buffer("class_weights", torch.tensor([1.0, 2.0, 0.5]))
        self.nothing: Optional[torch.Tensor] = None

    def added(self, x, other: Optional[torch.Tensor]):
        if other is None:
            return x
        return x + other

    def forward(self, x, labels):
        y = self.conv(x)
        y = self.added(self.batch_norm(y), None) + self.added(self.group(y), self.instance(y))
        y = self.added(y, self.nothing)
        parts: List[torch.Tensor] = []
        for i in range(2):
            parts.append(self.layer(y.transpose(1, 2)) * float(i + 1))
        parts.append(self.half_layer(y.transpose(1, 2)))
        y = torch.stack(parts).sum(0).mean(1)
        low = torch.full_like(y, -1.5)
        y = torch.clamp(y, min=low) + torch.clamp(y, None, 1.0) + F.hardtanh(y)
        y = self.linear(y)
        return (F.cross_entropy(y, labels, weight=self.class_weights) + F.cross_entropy(y, labels)
                + F.nll_loss(F.log_softmax(y, -1), labels, ignore_index=0))

    def batch(self, generator):
        labels = integers(generator, 3, 3)
        labels[0] = 1
        return normal(generator, 3, 4, 8), labels


class Named(Model):
    """Exported with named arguments, a dictionary, and plain values that became constants."""

    def __init__(self):
        super().__init__()
        self.table, self.linear = nn.Embedding(9, 6), nn.Linear(6, 6)

    def forward(self, inputs, labels=None, last=None, scale=1.0, nothing=None, reduction="mean"):
        if isinstance(inputs, torch.Tensor):  # a trace takes three tensors
            inputs, labels = {"numbers": inputs, "words": labels}, last
            scale, reduction = 2.0, "sum"
        x = self.linear(inputs["numbers"]) + self.table(inputs["words"])
        if nothing is not None:
            x = x + nothing
        return F.cross_entropy(x * scale, labels, reduction=reduction) / 4

    def batch(self, generator):
        numbers = normal(generator, 4, 6)
        words, labels = integers(generator, 6, 2, 4)
        return numbers, words, labels

    def export_arguments(self, arguments):
        numbers, words, labels = arguments
        return (({"numbers": numbers, "words": words},),
                {"labels": labels, "scale": 2.0, "nothing": None, "reduction": "sum"})


# ---- Kinds of number ----------------------------------------------------------------------------

class Complex(Model):
    """Complex numbers: rotary positions as a product, Fourier transforms, a spectral filter."""

    def __init__(self):
        super().__init__()
        self.q, self.k, self.out = nn.Linear(8, 8), nn.Linear(8, 8), nn.Linear(8, 8)
        angle = torch.outer(torch.arange(6).float(), 1.0 / 10 ** (torch.arange(4) / 4))
        self.register_buffer("turn", torch.polar(torch.ones_like(angle), angle), persistent=False)
        self.filter = nn.Parameter(torch.randn(4, 8, 2) * 0.3)

    def turned(self, x):
        x = torch.view_as_complex(x.float().reshape(*x.shape[:-1], -1, 2))
        return torch.view_as_real(x * self.turn).flatten(2)

    def forward(self, x):
        q, k = self.turned(self.q(x)), self.turned(self.k(x))
        x = x + F.softmax(q @ k.transpose(1, 2), dim=-1) @ x
        spectrum = torch.fft.rfft(x, dim=1, norm="ortho")
        spectrum = spectrum * torch.view_as_complex(self.filter)
        x = x + torch.fft.irfft(spectrum, n=6, dim=1, norm="ortho")
        mixed = torch.fft.fft(torch.fft.fft(x, dim=-1), dim=-2).real * 0.1
        size = torch.abs(torch.complex(mixed, x) * (1 + 2j)) + spectrum.angle().mean() * 0
        return (self.out(mixed) - x).pow(2).mean() + 0.1 * size.mean()

    def batch(self, generator):
        return (normal(generator, 2, 6, 8),)


class Dtypes(Model):
    """Arguments and weights of many types; whole numbers computed with; promotion."""
    lr = 0.05

    def __init__(self):
        super().__init__()
        self.table, self.linear = nn.Embedding(8, 6), nn.Linear(6, 6)
        self.fine = nn.Parameter(torch.randn(6, dtype=torch.float64) * 0.3)
        self.register_buffer("steps", torch.tensor([1, 2, 3, 4, 5, 6], dtype=torch.int32))

    def forward(self, flags, bytes_, small, words, fine, factor):
        x = self.table(words.to(torch.int32)) + bytes_.unsqueeze(-1) / 255
        x = x * flags[..., None] + torch.where(flags[..., None], x, -x)
        x = self.linear(x) * factor + small[..., None].to(torch.float16).float() // 2
        y = x.double() * self.fine + fine[..., None] + self.steps
        many = torch.cumsum(words, 1) % 5 + (words >> 1) + (words & 3) - bytes_.long() // 64
        y = y * (many.clamp(0, 3) * 0.5).unsqueeze(-1) + F.one_hot(words % 6, 6)
        y = y + torch.bitwise_not(flags).sum(1, keepdim=True)[..., None] + (words > 3).any()
        return y.to(torch.float32).tanh().pow(2).mean() + (y * y).mean().float() * 0.01

    def batch(self, generator):
        return (integers(generator, 2, 2, 4) == 1, integers(generator, 256, 2, 4).to(torch.uint8),
                integers(generator, 9, 2, 4, low=-8).to(torch.int8), integers(generator, 8, 2, 4),
                normal(generator, 2, 4).double(), torch.tensor(0.5).bfloat16().float())


# ---- Views and writes ---------------------------------------------------------------------------

class Views(Model):
    """Writes into views of tensors that are used later; as_strided, expand, unfold."""
    lr = 0.05

    def __init__(self):
        super().__init__()
        self.a, self.b, self.c = nn.Linear(6, 6), nn.Linear(6, 6), nn.Linear(6, 6)

    def forward(self, x):
        y = self.a(x)
        z = y.clone()
        z[:, 0] += 1
        z.view(-1)[::2].mul_(0.5)
        z.t()[1:3].add_(x.t()[1:3])
        z.narrow(1, 2, 2).copy_(torch.sin(z.narrow(1, 4, 2).clone()))
        z[1:, ::2] = x[:-1, ::2]
        z[..., -1].zero_()
        z.diagonal().fill_(0.25)
        whole = z.sigmoid_()
        band = torch.as_strided(whole, (3, 4), (6, 1), 2) + torch.as_strided(y, (3, 4), (1, 6), 0)
        h = self.b(whole)
        rows = h.unfold(1, 3, 1).mean(-1)
        wide = h[:, :1].expand(-1, 6).contiguous()
        wide.add_(h).mul_(0.5)
        left, right = wide[:, :3], wide[:, 3:]
        left.sub_(right.detach())
        right += left
        flat = torch.flip(wide, [1]).unflatten(1, (2, 3)).movedim(1, 2).squeeze(-1)
        flat = flat.permute(0, 2, 1).reshape(4, 6).unsqueeze_(0)[0]
        return (self.c(flat).pow(2).mean() + 0.1 * band.tanh().mean() + rows.mean().abs()
                + 0.1 * wide.select(0, 2).norm())

    def batch(self, generator):
        return (normal(generator, 4, 6),)


class IndexPut(Model):
    """Writing where an index or a mask says, adding up where it repeats."""
    lr = 0.05

    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(5, 5), nn.Linear(5, 5)
        self.memory = nn.Parameter(torch.randn(7, 5))
        self.register_buffer("fixed", torch.tensor([True, False, True, True, False]))

    def forward(self, x, where):
        y = self.a(x)
        table = self.memory.clone()
        table[where] = y
        table.index_put_((where,), y * 0.5, accumulate=True)
        table[:, self.fixed] = 0.25
        table[torch.arange(3), torch.tensor([0, 2, 4])] = 0.5
        table = table.index_fill(0, torch.tensor([6]), 0.1).scatter(
            1, where[:2, None].expand(2, 3) % 5, table[3:5, :3])
        table = table.masked_scatter(torch.eye(7, 5, dtype=torch.bool), y)
        table.index_copy_(0, torch.tensor([1]), y[:1])
        z = self.b(table.gather(0, where[:, None].expand(4, 5)) + table.take_along_dim(
            where.view(4, 1), dim=0)[:4])
        return z.pow(2).mean() + torch.take(table, where * 3).tanh().mean()

    def batch(self, generator):
        return (normal(generator, 4, 5),
                torch.randperm(7, generator=generator)[:4])


class Masks(Model):
    """Masks from constants, from arguments and from numbers; softmax over what is left."""

    def __init__(self):
        super().__init__()
        self.qkv, self.out = nn.Linear(8, 24), nn.Linear(8, 5)
        band = torch.ones(6, 6, dtype=torch.bool).tril().triu(-3)
        self.register_buffer("band", band, persistent=False)

    def forward(self, x, there):
        q, k, v = self.qkv(x).chunk(3, dim=-1)
        scores = q @ k.mT / math.sqrt(8)
        scores = scores.masked_fill(~self.band, -math.inf)
        scores = scores.masked_fill(torch.ones(6, 6).triu(1).bool(), float("-inf"))
        scores.masked_fill_(torch.logical_not(there)[:, None, :], torch.finfo(x.dtype).min)
        scores = scores + torch.zeros(6, 6).masked_fill_(torch.eye(6, dtype=torch.bool), 0.5)
        h = self.out(torch.softmax(scores, -1) @ v)
        h = torch.where(there[..., None] & (h > -2), h, 0.0)
        h = h.masked_fill(h.isnan(), 0).nan_to_num()
        return (torch.logsumexp(h, -1).mean()
                + (h * there[..., None]).pow(2).sum() / there.sum())

    def batch(self, generator):
        there = torch.arange(6) < integers(generator, 7, 2, 1, low=2)
        return normal(generator, 2, 6, 8), there


# ---- Operators ----------------------------------------------------------------------------------

class Einsum(Model):
    """einsum and the other products."""
    lr = 0.02

    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.randn(4, 6) * 0.4)
        self.core = nn.Parameter(torch.randn(6, 3, 5))
        self.bilinear = nn.Bilinear(4, 5, 3)
        self.bias = nn.Parameter(torch.zeros(2, 3, 3))

    def forward(self, x):
        y = torch.einsum("bti,ij->btj", x, self.w)
        z = torch.einsum("...j,jkl,btk->btl", y, self.core, y[..., :3])
        same = torch.einsum("bii->b", x @ x.mT) + torch.einsum("bti,bti->b", y, y)
        outer = torch.einsum("bi,bj->bij", y[:, 0], z[:, 1])
        h = torch.baddbmm(self.bias, x, x.mT, beta=0.5, alpha=0.2)
        h = h + self.bilinear(x, z.tanh()) + torch.tensordot(y, self.core, dims=1).mean(-1)
        far = torch.cdist(y, y[:, :1] + 2.0)
        gram = torch.linalg.multi_dot([self.w, self.w.T, self.w]).trace()
        kron = torch.kron(h[0], h[1]).mean() + torch.outer(h[0, 0], h[1, 1]).sum()
        triple = torch.cross(h[0], h[1], dim=-1).norm() + torch.addcmul(h, h, h, value=0.1).mean()
        return (h.pow(2).mean() + 0.1 * same.mean() + 0.1 * outer.tanh().mean() + 0.1 * far.mean()
                + 0.01 * gram + 0.01 * kron + 0.01 * triple)

    def batch(self, generator):
        return (normal(generator, 2, 3, 4) * 0.5,)


class Pools(Model):
    """Operators with several results, pools with indices, ways to pad and to sample."""
    lr = 0.002

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Conv2d(1, 4, 3, padding=1), nn.Conv2d(4, 4, 3)
        self.prelu, self.last = nn.PReLU(4), nn.Linear(16, 4)

    def forward(self, x, labels):
        x = self.prelu(self.first(x))
        small, where = F.max_pool2d(x, 2, return_indices=True)
        x = x + F.max_unpool2d(small, where, 2)
        edge = (1, 1, 1, 1)
        y = F.pad(small, edge, mode="reflect") + F.pad(small, edge, mode="replicate")
        y = F.pixel_shuffle(self.second(y), 2)
        y = F.avg_pool2d(x, 2, ceil_mode=True) + F.adaptive_max_pool2d(y, 4)
        grid = F.affine_grid(torch.tensor([[[0.9, 0.1, 0.0], [-0.1, 0.9, 0.1]]]).expand(2, -1, -1),
                             (2, 4, 4, 4), align_corners=False)
        y = F.grid_sample(y, grid, align_corners=False) + F.local_response_norm(y, 2)
        y = F.fold(F.unfold(y, 2), (4, 4), 2)
        y = F.lp_pool2d(y.abs() + 0.1, 2, 2).flatten(1)
        best, at = torch.topk(y, 3, dim=1)
        ordered, _ = torch.sort(y, dim=1, descending=True)
        deviation, mean = torch.std_mean(y, dim=1)
        most, _ = torch.max(y, dim=1)
        middle, _ = torch.median(y, dim=1)
        low, high = torch.amin(y, dim=1), torch.amax(y, dim=1)
        extra = (best.mean() + ordered[:, :2].sum() + deviation.mean() + mean.mean() + most.mean()
                 + middle.mean() + (high - low).mean() + torch.var(y, 1).mean()
                 + y.cumsum(1).mean() + torch.cummax(y, 1)[0].mean() + y.gather(1, at).mean())
        return F.cross_entropy(self.last(y), labels) + 0.01 * extra

    def batch(self, generator):
        return normal(generator, 2, 1, 8, 8), integers(generator, 4, 2)


class Losses(Model):
    """Most loss functions, and the bag of embeddings, which has four results."""

    def __init__(self):
        super().__init__()
        self.bag, self.linear = nn.EmbeddingBag(10, 6, mode="mean"), nn.Linear(6, 6)

    def forward(self, words, offsets, target, labels):
        x = self.linear(self.bag(words, offsets))
        sign = torch.where(labels > 2, 1.0, -1.0)
        share = F.softmax(target, -1)
        losses = [F.mse_loss(x, target), F.huber_loss(x, target, delta=0.5),
                  F.smooth_l1_loss(x, target), F.cross_entropy(x, share),
                  F.kl_div(F.log_softmax(x, -1), share, reduction="batchmean"),
                  F.cosine_embedding_loss(x, target, sign), F.soft_margin_loss(x[:, 0], sign),
                  F.triplet_margin_loss(x, target, target.flip(0)),
                  F.margin_ranking_loss(x[:, 1], x[:, 2], sign, margin=0.1),
                  F.poisson_nll_loss(x, target.abs()), F.multi_margin_loss(x, labels),
                  F.pairwise_distance(x, target).mean(), F.hinge_embedding_loss(x[:, 0], sign),
                  F.multilabel_soft_margin_loss(x, (target > 0).float()),
                  F.binary_cross_entropy(x.sigmoid(), share),
                  F.cosine_similarity(x, target).mean()]
        return torch.stack(losses).mean()

    def batch(self, generator):
        offsets = torch.tensor([0, 2, 2 + int(integers(generator, 3, 1))])
        return (integers(generator, 10, 9), offsets, normal(generator, 3, 6),
                integers(generator, 6, 3))


class Ctc(Model):
    """The CTC loss, with lengths as tensors."""
    unexportable = "DynamicOutputShapeException: aten._ctc_loss.Tensor"

    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(4, 6), nn.Linear(6, 5)

    def forward(self, x, labels, lengths):
        odds = F.log_softmax(self.b(torch.tanh(self.a(x))), dim=-1).transpose(0, 1)
        times = torch.full((x.shape[0],), x.shape[1], dtype=torch.long)
        return F.ctc_loss(odds, labels, times, lengths, zero_infinity=True)

    def batch(self, generator):
        return (normal(generator, 2, 8, 4), integers(generator, 5, 2, 3, low=1),
                integers(generator, 4, 2, low=1))


class Sdpa(Model):
    """scaled_dot_product_attention with masks of both kinds, causal, scaled, grouped."""

    def __init__(self):
        super().__init__()
        self.q, self.k, self.v = nn.Linear(8, 8), nn.Linear(8, 4), nn.Linear(8, 4)
        self.out = nn.Linear(8, 8)
        self.bias = nn.Parameter(torch.randn(1, 2, 5, 5) * 0.1)

    def forward(self, x, there):
        q = self.q(x).unflatten(-1, (2, 4)).transpose(1, 2)
        k = self.k(x).unflatten(-1, (1, 4)).transpose(1, 2)
        v = self.v(x).unflatten(-1, (1, 4)).transpose(1, 2)
        wide_k, wide_v = k.expand(-1, 2, -1, -1), v.repeat_interleave(2, dim=1)
        mask = there[:, None, None, :] & torch.ones(5, 5, dtype=torch.bool).tril()
        attention = F.scaled_dot_product_attention
        h = (attention(q, wide_k, wide_v, attn_mask=mask)
             + attention(q, wide_k, wide_v, attn_mask=self.bias)
             + attention(q, wide_k, wide_v, is_causal=True, scale=0.3)
             + attention(q, k, v, enable_gqa=True)
             + attention(q, wide_k, wide_v, attn_mask=torch.zeros(5, 5), dropout_p=0.0))
        return (self.out(h.transpose(1, 2).flatten(2)) - x).pow(2).mean()

    def batch(self, generator):
        there = torch.arange(5) < integers(generator, 6, 2, 1, low=2)
        return normal(generator, 2, 5, 8), there


# ---- Parameters and buffers ---------------------------------------------------------------------

class Buffers(Model):
    """Buffers that change in each microbatch, in order: norms, counters, averages, a codebook."""
    lr = 0.02

    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.BatchNorm1d(6), nn.BatchNorm2d(2)
        self.norm3 = nn.BatchNorm3d(2, momentum=0.3, affine=False)
        self.a, self.b = nn.Linear(6, 8), nn.Linear(8, 6)
        self.register_buffer("calls", torch.zeros((), dtype=torch.long))
        self.register_buffer("average", torch.zeros(6))
        self.register_buffer("unsaved", torch.ones(6), persistent=False)
        self.register_buffer("codebook", torch.randn(4, 8))

    def forward(self, x):
        self.calls += 1
        x = self.norm1(x)
        y = self.norm2(self.a(x).view(4, 2, 2, 2))
        y = y + self.norm3(self.a(x).view(4, 2, 1, 2, 2))[:, :, 0]
        y = y.flatten(1)
        code = F.one_hot(torch.cdist(y.detach(), self.codebook).argmin(1), 4).float()
        nearest = code @ self.codebook
        seen = code.t() @ y.detach() / code.sum(0).clamp(min=1)[:, None]
        self.codebook.lerp_(torch.where(code.sum(0)[:, None] > 0, seen, self.codebook), 0.1)
        self.average.mul_(0.9).add_(x.detach().mean(0), alpha=0.1)
        self.unsaved.copy_(self.unsaved * 0.5 + self.average.detach())
        commit = F.mse_loss(y, nearest)
        y = y + (nearest - y).detach()
        out = self.b(y) - self.average * self.calls - self.unsaved
        return out.pow(2).mean() + 0.1 * commit

    def batch(self, generator):
        return (normal(generator, 4, 6) + 1,)


class WeightNorm(Model):
    """Weight norm, old and new, and a weight kept orthogonal: weights computed from parameters."""

    def __init__(self):
        super().__init__()
        new = nn.utils.parametrizations
        self.a = new.weight_norm(nn.Linear(6, 8))
        self.b = new.orthogonal(nn.Linear(8, 8), orthogonal_map="cayley")
        self.c = nn.utils.weight_norm(nn.Conv1d(8, 3, 1), dim=None)

    def forward(self, x, labels):
        x = torch.tanh(self.b(F.relu(self.a(x))))
        return F.cross_entropy(self.c(x[..., None]).squeeze(-1), labels)

    def batch(self, generator):
        return normal(generator, 4, 6), integers(generator, 3, 4)


class SpectralNorm(Model):
    """Spectral norm, whose vectors are buffers that change; a trace of it cannot be trained."""
    untraceable = "a trace forgets torch.no_grad; with gradients its power iteration cannot run"

    def __init__(self):
        super().__init__()
        self.a = nn.utils.parametrizations.spectral_norm(nn.Linear(6, 8))
        self.b = nn.utils.parametrizations.spectral_norm(nn.Linear(8, 3))

    def forward(self, x, labels):
        return F.cross_entropy(self.b(F.relu(self.a(x))), labels)

    def batch(self, generator):
        return normal(generator, 4, 6), integers(generator, 3, 4)


class ChannelsLast(Model):
    """Weights and pictures with the channel last in memory."""
    lr = 0.05

    def __init__(self):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(3, 6, 3, padding=1), nn.BatchNorm2d(6)
        self.conv2, self.bn2 = nn.Conv2d(6, 8, 3, 2, 1), nn.BatchNorm2d(8)
        self.linear = nn.Linear(8 * 16, 4)
        self.to(memory_format=torch.channels_last)

    def forward(self, x, labels):
        x = x.contiguous(memory_format=torch.channels_last)
        x = F.relu(self.bn1(self.conv1(x)), inplace=True)
        y = F.relu(self.bn2(self.conv2(F.max_pool2d(x, 3, 1, 1))))
        z = y.clone(memory_format=torch.preserve_format)
        z.add_(torch.empty_like(y).fill_(0.1))
        z = z.to(memory_format=torch.contiguous_format)
        return F.cross_entropy(self.linear(z.flatten(1)), labels)

    def batch(self, generator):
        return normal(generator, 2, 3, 8, 8), integers(generator, 4, 2)


class Shared(Model):
    """One block used three times; tied tables; a frozen weight; weights without a gradient."""
    lr = 0.02

    def __init__(self):
        super().__init__()
        self.embed, self.block = nn.Embedding(12, 8), nn.Sequential(nn.Linear(8, 8), nn.Tanh())
        self.other = nn.Linear(8, 8, bias=False)
        self.other.weight = self.block[0].weight
        self.frozen = nn.Linear(8, 8)
        self.frozen.requires_grad_(False)
        self.unused = nn.Linear(3, 3)
        self.stopped = nn.Linear(8, 8)
        self.bias = nn.Parameter(torch.zeros(12))

    def forward(self, words):
        x = self.embed(words)
        for _ in range(3):
            x = x + self.block(x)
        x = self.frozen(x) + self.other(x) + self.stopped(x.detach()).detach()
        logits = F.linear(x, self.embed.weight, self.bias)
        return F.cross_entropy(logits[:, :-1].flatten(0, 1), words[:, 1:].flatten())

    def batch(self, generator):
        return (integers(generator, 12, 2, 6),)


class NoGrad(Model):
    """A block without gradients: a subgraph of an exported program. A trace would forget it."""
    script = True

    def __init__(self):
        super().__init__()
        self.a, self.b, self.teacher = nn.Linear(6, 8), nn.Linear(8, 4), nn.Linear(8, 4)

    def forward(self, x):
        y = torch.tanh(self.a(x))
        with torch.no_grad():
            target = F.softmax(self.teacher(y) / 0.5, dim=-1)
            size = target.norm()
        odds = F.log_softmax(self.b(y), dim=-1)
        return -(target * odds).sum(-1).mean() + 0.1 * y.pow(2).mean() * size

    def batch(self, generator):
        return (normal(generator, 4, 6),)


class NoGradEmpty(Model):
    """Two blocks without gradients, the second without a result."""

    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(6, 8), nn.Linear(8, 4)
        self.register_buffer("largest", torch.zeros(8))

    def forward(self, x):
        y = torch.tanh(self.a(x))
        with torch.no_grad():
            center = y.detach().mean(0)
        y = y - center
        with torch.no_grad():
            self.largest.copy_(torch.maximum(self.largest, y.detach().amax(0)))
        return self.b(y - 0.1 * self.largest).pow(2).mean()

    def batch(self, generator):
        return (normal(generator, 4, 6),)


class Dropout(Model):
    """Dropout that draws, in a form whose result does not depend on what was drawn.

    Where d is dropout of ones at one half, d is 0 or 2 and d * (2 - d) is 0, and so is the
    gradient of its square. An unused draw moves the generator.
    """

    def __init__(self):
        super().__init__()
        self.a, self.b, self.off = nn.Linear(6, 8), nn.Linear(8, 4), nn.Dropout(0.0)
        self.drop, self.drop2d = nn.Dropout(0.5), nn.Dropout2d(0.5)

    def forward(self, x, labels):
        torch.rand(3)
        y = self.off(torch.relu(self.a(x)))
        ones = y / y.detach().clamp(min=1e-6) + (y.detach() == 0)
        d, e = self.drop(ones), self.drop2d(ones[:, :, None, None])[..., 0, 0]
        nothing = (d * (2 - d)).pow(2) + (e * (2 - e)).pow(2)
        y = y + nothing + F.dropout(y, 1.0, True)
        kept = F.dropout(torch.ones(64), 0.5) > 0
        return F.cross_entropy(self.b(y), labels) + 0 * kept.sum()

    def batch(self, generator):
        return normal(generator, 4, 6), integers(generator, 4, 4)


class DataSized(Model):
    """A size that depends on data: to be refused by name."""
    refused = "a size that depends on data (index with a mask)"

    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(6, 6), nn.Linear(6, 1)

    def forward(self, x, chosen):
        return self.b(self.a(x)[chosen]).pow(2).mean()

    def batch(self, generator):
        chosen = integers(generator, 2, 6) == 1
        chosen[0] = True
        return normal(generator, 6, 6), chosen


MODELS = {"graph": Graph, "lists": Lists, "optional": Optional_, "named": Named,
          "complex": Complex, "dtypes": Dtypes, "views": Views, "index_put": IndexPut,
          "masks": Masks, "einsum": Einsum, "pools": Pools, "losses": Losses, "ctc": Ctc,
          "sdpa": Sdpa, "buffers": Buffers, "weight_norm": WeightNorm,
          "spectral_norm": SpectralNorm, "channels_last": ChannelsLast, "shared": Shared,
          "no_grad": NoGrad, "no_grad_empty": NoGradEmpty, "dropout": Dropout,
          "data_sized": DataSized}
