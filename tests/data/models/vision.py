"""Models of pictures, written as the public ones are, very small."""

import math

import torch
import torch.nn.functional as F
from torch import nn

from common import Model, centred, integers, normal, picture


# ---- ResNet -------------------------------------------------------------------------------------

class Bottleneck(nn.Module):
    def __init__(self, wide, out, stride=1, dilation=1, norm=nn.BatchNorm2d):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(wide, 6, 1, bias=False), norm(6)
        self.conv2 = nn.Conv2d(6, 6, 3, stride, dilation, dilation, bias=False)
        self.bn2 = norm(6)
        self.conv3, self.bn3 = nn.Conv2d(6, out, 1, bias=False), norm(out)
        self.relu = nn.ReLU(inplace=True)
        self.downsample = None
        if stride != 1 or wide != out:
            self.downsample = nn.Sequential(nn.Conv2d(wide, out, 1, stride, bias=False), norm(out))

    def forward(self, x):
        same = x if self.downsample is None else self.downsample(x)
        y = self.relu(self.bn1(self.conv1(x)))
        y = self.relu(self.bn2(self.conv2(y)))
        y = self.bn3(self.conv3(y))
        y += same
        return self.relu(y)


class ResNet(Model):
    """Batch norm with running statistics, in-place activations and additions."""
    lr = 0.02

    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 8, 3, 2, 1, bias=False)
        self.bn1, self.relu = nn.BatchNorm2d(8), nn.ReLU(inplace=True)
        self.maxpool = nn.MaxPool2d(3, 2, 1)
        self.layer1 = nn.Sequential(Bottleneck(8, 12), Bottleneck(12, 12))
        self.layer2 = nn.Sequential(Bottleneck(12, 16, 2))
        self.avgpool, self.fc = nn.AdaptiveAvgPool2d((1, 1)), nn.Linear(16, 5)

    def forward(self, x, labels):
        x = self.maxpool(self.relu(self.bn1(self.conv1(centred(x)))))
        x = self.layer2(self.layer1(x))
        return F.cross_entropy(self.fc(torch.flatten(self.avgpool(x), 1)), labels)

    def batch(self, generator):
        return picture(generator, 4, 12), integers(generator, 5, 4)


# ---- ViT ----------------------------------------------------------------------------------------

class VitBlock(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.ln_1, self.ln_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.self_attention = nn.MultiheadAttention(width, 2, batch_first=True)
        self.mlp = nn.Sequential(nn.Linear(width, 32), nn.GELU(), nn.Dropout(0.0),
                                 nn.Linear(32, width), nn.Dropout(0.0))

    def forward(self, x):
        h = self.ln_1(x)
        h, _ = self.self_attention(h, h, h, need_weights=False)
        x = h + x
        return x + self.mlp(self.ln_2(x))


class Vit(Model):
    """Patches, a class token, multi-head attention as nn.MultiheadAttention does it."""
    lr = 0.1

    def __init__(self, width=16):
        super().__init__()
        self.conv_proj = nn.Conv2d(3, width, 4, 4)
        self.class_token = nn.Parameter(torch.zeros(1, 1, width))
        self.pos_embedding = nn.Parameter(torch.empty(1, 10, width).normal_(std=0.1))
        self.layers = nn.Sequential(VitBlock(width), VitBlock(width))
        self.ln, self.head = nn.LayerNorm(width), nn.Linear(width, 5)

    def forward(self, x, labels):
        x = self.conv_proj(centred(x))
        x = x.reshape(x.shape[0], x.shape[1], -1).permute(0, 2, 1)
        x = torch.cat([self.class_token.expand(x.shape[0], -1, -1), x], dim=1)
        x = self.ln(self.layers(x + self.pos_embedding))
        return F.cross_entropy(self.head(x[:, 0]), labels, label_smoothing=0.1)

    def batch(self, generator):
        return picture(generator, 2, 12), integers(generator, 5, 2)


# ---- Swin ---------------------------------------------------------------------------------------

def windows(x, size):
    """[batch, h, w, c] -> [batch * windows, size * size, c]"""
    b, h, w, c = x.shape
    x = x.view(b, h // size, size, w // size, size, c)
    return x.permute(0, 1, 3, 2, 4, 5).contiguous().view(-1, size * size, c)


def unwindowed(x, size, h, w):
    b = int(x.shape[0] / (h * w / size / size))
    x = x.view(b, h // size, w // size, size, size, -1)
    return x.permute(0, 1, 3, 2, 4, 5).contiguous().view(b, h, w, -1)


class SwinBlock(nn.Module):
    def __init__(self, width, size, shift, heads=2, window=2):
        super().__init__()
        self.size, self.shift, self.heads, self.window = size, shift, heads, window
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 24), nn.GELU(), nn.Linear(24, width))

        self.table = nn.Parameter(torch.randn((2 * window - 1) ** 2, heads) * 0.02)
        places = torch.stack(torch.meshgrid(torch.arange(window), torch.arange(window),
                                            indexing="ij")).flatten(1)
        apart = (places[:, :, None] - places[:, None, :]).permute(1, 2, 0) + window - 1
        self.register_buffer("index", apart[..., 0] * (2 * window - 1) + apart[..., 1])

        mask = None
        if shift:
            region = torch.zeros(1, size, size, 1)
            cuts = (slice(0, -window), slice(-window, -shift), slice(-shift, None))
            for n, (rows, columns) in enumerate((r, c) for r in cuts for c in cuts):
                region[:, rows, columns] = n
            region = windows(region, window).squeeze(-1)
            mask = region.unsqueeze(1) - region.unsqueeze(2)
            mask = mask.masked_fill(mask != 0, -100.0).masked_fill(mask == 0, 0.0)
        self.register_buffer("attn_mask", mask)

    def forward(self, x):
        b, _, _, c = x.shape
        h = self.norm1(x)
        if self.shift:
            h = torch.roll(h, shifts=(-self.shift, -self.shift), dims=(1, 2))
        h = windows(h, self.window)
        n, t, _ = h.shape
        q, k, v = self.qkv(h).reshape(n, t, 3, self.heads, -1).permute(2, 0, 3, 1, 4).unbind(0)
        scores = (q * (c // self.heads) ** -0.5) @ k.transpose(-2, -1)
        bias = self.table[self.index.view(-1)].view(t, t, -1).permute(2, 0, 1).contiguous()
        scores = scores + bias.unsqueeze(0)
        if self.attn_mask is not None:
            m = self.attn_mask.shape[0]
            scores = scores.view(n // m, m, self.heads, t, t)
            scores = scores + self.attn_mask.unsqueeze(1).unsqueeze(0)
            scores = scores.view(-1, self.heads, t, t)
        h = self.proj((scores.softmax(dim=-1) @ v).transpose(1, 2).reshape(n, t, c))
        h = unwindowed(h, self.window, self.size, self.size)
        if self.shift:
            h = torch.roll(h, shifts=(self.shift, self.shift), dims=(1, 2))
        x = x + h
        return x + self.mlp(self.norm2(x))


class Merging(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm, self.reduction = nn.LayerNorm(4 * width), nn.Linear(4 * width, width, bias=False)

    def forward(self, x):
        x = torch.cat([x[:, 0::2, 0::2, :], x[:, 1::2, 0::2, :], x[:, 0::2, 1::2, :],
                       x[:, 1::2, 1::2, :]], -1)
        return self.reduction(self.norm(x))


class Swin(Model):
    """Windows, shifted by roll and masked, relative position tables, patch merging."""
    lr = 0.1

    def __init__(self, width=12):
        super().__init__()
        self.patch, self.norm0 = nn.Conv2d(3, width, 2, 2), nn.LayerNorm(width)
        self.blocks = nn.Sequential(SwinBlock(width, 4, 0), SwinBlock(width, 4, 1),
                                    Merging(width))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, 5)

    def forward(self, x, labels):
        x = self.blocks(self.norm0(self.patch(centred(x)).permute(0, 2, 3, 1)))
        x = self.norm(x).permute(0, 3, 1, 2)
        x = torch.flatten(F.adaptive_avg_pool2d(x, 1), 1)
        return F.cross_entropy(self.head(x), labels)

    def batch(self, generator):
        return picture(generator, 2, 8), integers(generator, 5, 2)


# ---- ConvNeXt -----------------------------------------------------------------------------------

class LayerNorm2d(nn.LayerNorm):
    def forward(self, x):
        x = x.permute(0, 2, 3, 1)
        x = F.layer_norm(x, self.normalized_shape, self.weight, self.bias, self.eps)
        return x.permute(0, 3, 1, 2)


class ConvNextBlock(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.dwconv = nn.Conv2d(width, width, 7, padding=3, groups=width)
        self.norm = nn.LayerNorm(width, eps=1e-6)
        self.pwconv1, self.act = nn.Linear(width, 2 * width), nn.GELU()
        self.pwconv2 = nn.Linear(2 * width, width)
        self.gamma = nn.Parameter(0.1 * torch.ones(width))

    def forward(self, x):
        y = self.norm(self.dwconv(x).permute(0, 2, 3, 1))
        y = self.gamma * self.pwconv2(self.act(self.pwconv1(y)))
        return x + y.permute(0, 3, 1, 2)


class ConvNext(Model):
    """Wide depthwise convolutions, layer norm over permuted channels, layer scale."""
    lr = 0.1

    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 8, 2, 2), LayerNorm2d(8, eps=1e-6))
        self.stage1 = nn.Sequential(ConvNextBlock(8), ConvNextBlock(8))
        self.down = nn.Sequential(LayerNorm2d(8, eps=1e-6), nn.Conv2d(8, 12, 2, 2))
        self.stage2 = ConvNextBlock(12)
        self.norm, self.head = nn.LayerNorm(12, eps=1e-6), nn.Linear(12, 5)

    def forward(self, x, labels):
        x = self.stage2(self.down(self.stage1(self.stem(centred(x)))))
        return F.cross_entropy(self.head(self.norm(x.mean([-2, -1]))), labels)

    def batch(self, generator):
        return picture(generator, 2, 12), integers(generator, 5, 2)


# ---- MobileNet ----------------------------------------------------------------------------------

class Squeeze(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.pool, self.fc1 = nn.AdaptiveAvgPool2d(1), nn.Conv2d(width, 4, 1)
        self.fc2 = nn.Conv2d(4, width, 1)
        self.relu, self.gate = nn.ReLU(inplace=True), nn.Hardsigmoid(inplace=True)

    def forward(self, x):
        return x * self.gate(self.fc2(self.relu(self.fc1(self.pool(x)))))


class Inverted(nn.Module):
    def __init__(self, wide, out, stride, activation, squeeze):
        super().__init__()
        self.residual = stride == 1 and wide == out
        inner = 2 * wide
        layers = [nn.Conv2d(wide, inner, 1, bias=False), nn.BatchNorm2d(inner, momentum=0.01),
                  activation(inplace=True),
                  nn.Conv2d(inner, inner, 3, stride, 1, groups=inner, bias=False),
                  nn.BatchNorm2d(inner, momentum=0.01), activation(inplace=True)]
        if squeeze:
            layers.append(Squeeze(inner))
        layers += [nn.Conv2d(inner, out, 1, bias=False), nn.BatchNorm2d(out, momentum=0.01)]
        self.block = nn.Sequential(*layers)

    def forward(self, x):
        return x + self.block(x) if self.residual else self.block(x)


class MobileNet(Model):
    """Depthwise convolutions, squeeze and excitation, every activation in place."""
    lr = 0.02

    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(3, 6, 3, 2, 1, bias=False), nn.BatchNorm2d(6), nn.Hardswish(inplace=True),
            Inverted(6, 6, 1, nn.ReLU6, False), Inverted(6, 8, 2, nn.Hardswish, True))
        self.classifier = nn.Sequential(nn.Linear(8, 12), nn.Hardswish(inplace=True),
                                        nn.Dropout(p=0.0, inplace=True), nn.Linear(12, 5))

    def forward(self, x, labels):
        x = F.adaptive_avg_pool2d(self.features(centred(x)), 1)
        return F.cross_entropy(self.classifier(torch.flatten(x, 1)), labels)

    def batch(self, generator):
        return picture(generator, 4, 12), integers(generator, 5, 4)


# ---- U-Net and segmentation ---------------------------------------------------------------------

def double(wide, out):
    return nn.Sequential(nn.Conv2d(wide, out, 3, padding=1), nn.GroupNorm(2, out),
                         nn.LeakyReLU(0.1, inplace=True),
                         nn.Conv2d(out, out, 3, padding=1), nn.GroupNorm(2, out),
                         nn.LeakyReLU(0.1, inplace=True))


class UNet(Model):
    """Skip connections from every level, padded to size; binary masks."""
    lr = 0.1

    def __init__(self):
        super().__init__()
        self.down1, self.down2, self.middle = double(1, 4), double(4, 6), double(6, 8)
        self.up2, self.join2 = nn.ConvTranspose2d(8, 6, 2, 2), double(12, 6)
        self.up1, self.join1 = nn.ConvTranspose2d(6, 4, 2, 2), double(8, 4)
        self.out = nn.Conv2d(4, 1, 1)

    def forward(self, x, mask):
        a = self.down1(x)
        b = self.down2(F.max_pool2d(a, 2))
        y = self.up2(self.middle(F.max_pool2d(b, 2)))
        y = F.pad(y, [0, b.shape[3] - y.shape[3], 0, b.shape[2] - y.shape[2]])
        y = self.up1(self.join2(torch.cat([b, y], dim=1)))
        logits = self.out(self.join1(torch.cat([a, y], dim=1))).squeeze(1)
        odds, mask = torch.sigmoid(logits), mask.float()
        dice = 1 - (2 * (odds * mask).sum() + 1) / (odds.sum() + mask.sum() + 1)
        return F.binary_cross_entropy_with_logits(logits, mask) + dice

    def batch(self, generator):
        x = normal(generator, 2, 1, 12, 12)
        return x, F.avg_pool2d(x, 3, 1, 1)[:, 0] > 0


class Aspp(nn.Module):
    def __init__(self, wide, out):
        super().__init__()
        self.convs = nn.ModuleList(
            nn.Sequential(nn.Conv2d(wide, out, 3, padding=d, dilation=d, bias=False),
                          nn.BatchNorm2d(out), nn.ReLU()) for d in (1, 2))
        self.pool = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Conv2d(wide, out, 1), nn.ReLU())
        self.project = nn.Conv2d(3 * out, out, 1)

    def forward(self, x):
        found = [conv(x) for conv in self.convs]
        found.append(F.interpolate(self.pool(x), size=x.shape[-2:], mode="bilinear",
                                   align_corners=False))
        return self.project(torch.cat(found, dim=1))


class Segmentation(Model):
    """Interpolation, bilinear and nearest; a second head; a class for each pixel or none (255)."""
    lr = 0.02

    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 8, 3, 2, 1), nn.BatchNorm2d(8), nn.ReLU())
        self.deep = nn.Sequential(nn.Conv2d(8, 12, 3, 2, 1), nn.BatchNorm2d(12), nn.ReLU())
        self.aspp, self.low = Aspp(12, 6), nn.Conv2d(8, 4, 1)
        self.classifier, self.aux = nn.Conv2d(10, 4, 3, padding=1), nn.Conv2d(12, 4, 1)

    def forward(self, x, labels):
        size = x.shape[-2:]
        low = self.stem(centred(x))
        deep = self.deep(low)
        y = F.interpolate(self.aspp(deep), size=low.shape[-2:], mode="nearest")
        y = self.classifier(torch.cat([self.low(low), y], dim=1))
        result = {"out": F.interpolate(y, size=size, mode="bilinear", align_corners=False),
                  "aux": F.interpolate(self.aux(deep), size=size, mode="bicubic",
                                       align_corners=True)}
        losses = {k: F.cross_entropy(v, labels.long(), ignore_index=255) for k, v in result.items()}
        return losses["out"] + 0.5 * losses["aux"]

    def batch(self, generator):
        labels = integers(generator, 4, 2, 12, 12).to(torch.uint8)
        labels[:, 0] = 255
        return picture(generator, 2, 12), labels


# ---- CLIP ---------------------------------------------------------------------------------------

class ClipBlock(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.ln_1, self.ln_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.fc, self.out = nn.Linear(width, 24), nn.Linear(24, width)

    def forward(self, x, mask=None):
        b, t, c = x.shape
        q, k, v = (y.view(b, t, 2, -1).transpose(1, 2) for y in self.qkv(self.ln_1(x)).chunk(3, -1))
        h = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        x = x + self.proj(h.transpose(1, 2).reshape(b, t, c))
        h = self.fc(self.ln_2(x))
        return x + self.out(h * torch.sigmoid(1.702 * h))


class Clip(Model):
    """Two towers that meet in the loss only, a learned temperature."""
    lr = 0.05

    def __init__(self, width=12):
        super().__init__()
        self.patch = nn.Conv2d(3, width, 4, 4, bias=False)
        self.class_embedding = nn.Parameter(torch.randn(width) * 0.3)
        self.image_positions = nn.Parameter(torch.randn(5, width) * 0.3)
        self.image_blocks = nn.ModuleList([ClipBlock(width)])
        self.image_projection = nn.Parameter(torch.randn(width, 8) * 0.3)
        self.token_embedding = nn.Embedding(20, width)
        self.text_positions = nn.Parameter(torch.randn(6, width) * 0.3)
        self.text_blocks = nn.ModuleList([ClipBlock(width)])
        self.ln_final, self.text_projection = nn.LayerNorm(width), nn.Linear(width, 8, bias=False)
        self.logit_scale = nn.Parameter(torch.tensor(math.log(1 / 0.5)))

    def forward(self, image, text):
        x = self.patch(centred(image)).flatten(2).transpose(1, 2)
        token = self.class_embedding + torch.zeros(x.shape[0], 1, x.shape[-1])
        x = torch.cat([token, x], dim=1) + self.image_positions
        for block in self.image_blocks:
            x = block(x)
        seen = x[:, 0] @ self.image_projection

        t = text.shape[1]
        y = self.token_embedding(text) + self.text_positions
        causal = torch.empty(t, t).fill_(float("-inf")).triu_(1)
        for block in self.text_blocks:
            y = block(y, causal)
        y = self.ln_final(y)[torch.arange(text.shape[0]), text.argmax(dim=-1)]
        read = self.text_projection(y)

        seen = seen / seen.norm(dim=-1, keepdim=True)
        read = F.normalize(read, dim=-1)
        logits = self.logit_scale.exp() * seen @ read.t()
        which = torch.arange(logits.shape[0])
        return (F.cross_entropy(logits, which) + F.cross_entropy(logits.t(), which)) / 2

    def batch(self, generator):
        text = integers(generator, 19, 3, 6)
        text[torch.arange(3), integers(generator, 6, 3, low=2)] = 19  # the end of the text
        return picture(generator, 3, 8), text.int()


# ---- Diffusion ----------------------------------------------------------------------------------

class TimedBlock(nn.Module):
    def __init__(self, wide, out, time):
        super().__init__()
        self.norm1, self.conv1 = nn.GroupNorm(2, wide), nn.Conv2d(wide, out, 3, padding=1)
        self.time, self.norm2 = nn.Linear(time, 2 * out), nn.GroupNorm(2, out)
        self.conv2 = nn.Conv2d(out, out, 3, padding=1)
        self.skip = nn.Conv2d(wide, out, 1) if wide != out else nn.Identity()

    def forward(self, x, time):
        y = self.conv1(F.silu(self.norm1(x)))
        scale, shift = self.time(F.silu(time))[:, :, None, None].chunk(2, dim=1)
        y = self.norm2(y) * (1 + scale) + shift
        return self.conv2(F.silu(y)) + self.skip(x)


class Spatial(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm, self.qkv = nn.GroupNorm(2, width), nn.Conv1d(width, 3 * width, 1)
        self.proj = nn.Conv1d(width, width, 1)

    def forward(self, x):
        b, c, h, w = x.shape
        q, k, v = self.qkv(self.norm(x).reshape(b, c, h * w)).reshape(b, 3, c, h * w).unbind(1)
        weights = torch.softmax(torch.einsum("bct,bcs->bts", q, k) * c ** -0.5, dim=-1)
        return x + self.proj(torch.einsum("bts,bcs->bct", weights, v)).reshape(b, c, h, w)


class Diffusion(Model):
    """A U-Net told the time; noise and time steps are arguments, the schedule is a buffer."""
    lr = 0.02

    def __init__(self):
        super().__init__()
        self.register_buffer("kept", torch.cumprod(1 - torch.linspace(1e-3, 0.2, 20), 0))
        self.time = nn.Sequential(nn.Linear(8, 12), nn.SiLU(), nn.Linear(12, 12))
        self.first, self.block1 = nn.Conv2d(3, 8, 3, padding=1), TimedBlock(8, 8, 12)
        self.down, self.block2 = nn.Conv2d(8, 12, 3, 2, 1), TimedBlock(12, 12, 12)
        self.middle = Spatial(12)
        self.up, self.block3 = nn.Conv2d(12, 8, 3, padding=1), TimedBlock(16, 8, 12)
        self.last = nn.Sequential(nn.GroupNorm(2, 8), nn.SiLU(), nn.Conv2d(8, 3, 3, padding=1))

    def forward(self, x, noise, steps):
        kept = self.kept.gather(0, steps).reshape(-1, 1, 1, 1)
        noisy = kept.sqrt() * centred(x) + (1 - kept).sqrt() * noise
        frequency = torch.exp(-math.log(100) * torch.arange(4, dtype=torch.float32) / 4)
        angle = steps[:, None].float() * frequency[None]
        time = self.time(torch.cat([angle.cos(), angle.sin()], dim=-1))
        a = self.block1(self.first(noisy), time)
        b = self.middle(self.block2(self.down(a), time))
        y = self.up(F.interpolate(b, scale_factor=2.0, mode="nearest"))
        y = self.last(self.block3(torch.cat([y, a], dim=1), time))
        return F.mse_loss(y, noise)

    def batch(self, generator):
        return (picture(generator, 2, 6), normal(generator, 2, 3, 6, 6),
                integers(generator, 20, 2))


# ---- VAE ----------------------------------------------------------------------------------------

class Vae(Model):
    """Draws through an argument of noise, so that every run sees the same."""
    lr = 0.05

    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Conv2d(1, 6, 3, 2, 1), nn.ELU(inplace=True),
                                     nn.Conv2d(6, 8, 3, 2, 1), nn.ELU(inplace=True),
                                     nn.Flatten(), nn.Linear(32, 2 * 6))
        self.decoder = nn.Sequential(nn.Linear(6, 32), nn.Unflatten(1, (8, 2, 2)), nn.SELU(),
                                     nn.ConvTranspose2d(8, 6, 4, 2, 1), nn.Mish(inplace=True),
                                     nn.ConvTranspose2d(6, 1, 4, 2, 1), nn.Sigmoid())

    def forward(self, x, noise):
        x = x.float() / 255
        mean, log_variance = self.encoder(x).chunk(2, dim=1)
        log_variance = log_variance.clamp(-10, 10)
        back = self.decoder(mean + torch.exp(0.5 * log_variance) * noise)
        apart = -0.5 * torch.mean(1 + log_variance - mean.pow(2) - log_variance.exp())
        return F.binary_cross_entropy(back, x, reduction="mean") + 0.1 * apart

    def batch(self, generator):
        return picture(generator, 4, 8, 1), normal(generator, 4, 6)


# ---- DETR ---------------------------------------------------------------------------------------

class FrozenBatchNorm2d(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.register_buffer("weight", torch.rand(n) + 0.5)
        self.register_buffer("bias", torch.randn(n) * 0.1)
        self.register_buffer("running_mean", torch.randn(n) * 0.1)
        self.register_buffer("running_var", torch.rand(n) + 0.5)

    def forward(self, x):
        w, b = self.weight.reshape(1, -1, 1, 1), self.bias.reshape(1, -1, 1, 1)
        scale = w * (self.running_var.reshape(1, -1, 1, 1) + 1e-5).rsqrt()
        return x * scale + (b - self.running_mean.reshape(1, -1, 1, 1) * scale)


def sine_positions(padding, half):
    """[batch, h, w] of True where there is no picture -> [batch, 2 * half, h, w]"""
    inside = ~padding
    y, x = inside.cumsum(1, dtype=torch.float32), inside.cumsum(2, dtype=torch.float32)
    y = y / (y[:, -1:, :] + 1e-6) * 2 * math.pi
    x = x / (x[:, :, -1:] + 1e-6) * 2 * math.pi
    wave = torch.arange(half, dtype=torch.float32)
    wave = 100 ** (2 * torch.div(wave, 2, rounding_mode="floor") / half)
    x, y = x[:, :, :, None] / wave, y[:, :, :, None] / wave
    x = torch.stack((x[..., 0::2].sin(), x[..., 1::2].cos()), dim=4).flatten(3)
    y = torch.stack((y[..., 0::2].sin(), y[..., 1::2].cos()), dim=4).flatten(3)
    return torch.cat((y, x), dim=3).permute(0, 3, 1, 2)


def corners_of(boxes):
    x, y, w, h = boxes.unbind(-1)
    return torch.stack([x - 0.5 * w, y - 0.5 * h, x + 0.5 * w, y + 0.5 * h], dim=-1)


def overlap(a, b):
    """Generalised intersection over union of boxes given by corners, pair by pair."""
    area_a = (a[..., 2:] - a[..., :2]).prod(-1)
    area_b = (b[..., 2:] - b[..., :2]).prod(-1)
    both = (torch.min(a[..., 2:], b[..., 2:]) - torch.max(a[..., :2], b[..., :2])).clamp(min=0)
    union = area_a + area_b - both.prod(-1)
    hull = (torch.max(a[..., 2:], b[..., 2:]) - torch.min(a[..., :2], b[..., :2])).clamp(min=0)
    hull = hull.prod(-1)
    return both.prod(-1) / union - (hull - union) / hull


class Detr(Model):
    """Dilated ResNet, frozen norms and a frozen stem, sine positions of a mask, queries, boxes.

    Query i is matched with object i: choosing a match depends on data.
    """
    lr = 0.02

    def __init__(self, width=16):
        super().__init__()
        self.stem, self.norm = nn.Conv2d(3, 8, 3, 2, 1, bias=False), FrozenBatchNorm2d(8)
        self.stem.weight.requires_grad_(False)
        self.layer1 = Bottleneck(8, 12, 2, norm=FrozenBatchNorm2d)
        self.layer2 = Bottleneck(12, 12, 1, 2, norm=FrozenBatchNorm2d)
        self.input_proj = nn.Conv2d(12, width, 1)
        self.query_embed, self.queries = nn.Embedding(4, width), 4
        self.encoder = nn.TransformerEncoderLayer(width, 2, 24, dropout=0.0, batch_first=True)
        self.cross = nn.MultiheadAttention(width, 2, batch_first=True)
        self.cross_norm = nn.LayerNorm(width)
        self.classes = nn.Linear(width, 4)
        self.boxes = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 4))
        self.register_buffer("weights", torch.tensor([1.0, 1.0, 1.0, 0.1]))

    def forward(self, x, padding, labels, boxes):
        x = self.layer2(self.layer1(F.relu(self.norm(self.stem(centred(x))))))
        mask = F.interpolate(padding[None].float(), size=x.shape[-2:]).to(torch.bool)[0]
        positions = sine_positions(mask, self.query_embed.weight.shape[1] // 2)
        x = (self.input_proj(x) + positions).flatten(2).permute(0, 2, 1)
        mask = mask.flatten(1)
        memory = self.encoder(x, src_key_padding_mask=mask)
        query = self.query_embed.weight.unsqueeze(0).repeat(x.shape[0], 1, 1)
        y, _ = self.cross(query, memory, memory, key_padding_mask=mask)
        y = self.cross_norm(query + y)
        found = self.boxes(y).sigmoid()
        match = overlap(corners_of(found), corners_of(boxes))
        return (F.cross_entropy(self.classes(y).transpose(1, 2), labels, self.weights)
                + 5 * F.l1_loss(found, boxes) + 2 * (1 - match).mean())

    def batch(self, generator):
        padding = torch.zeros(2, 12, 12, dtype=torch.bool)
        padding[0, :, 8:] = True
        return (picture(generator, 2, 12), padding, integers(generator, 4, 2, 4),
                torch.rand(2, 4, 4, generator=generator) * 0.5 + 0.2)


MODELS = {"resnet": ResNet, "vit": Vit, "swin": Swin, "convnext": ConvNext, "mobilenet": MobileNet,
          "unet": UNet, "segmentation": Segmentation, "clip": Clip, "diffusion": Diffusion,
          "vae": Vae, "detr": Detr}
