"""Models of text and sound, written as the public ones are, very small."""

import math

import torch
import torch.nn.functional as F
from torch import nn

from common import Model, integers, normal

WORDS, WIDTH, HEADS = 24, 12, 2


def heads(x, n=HEADS):
    """[batch, time, n * d] -> [batch, n, time, d]"""
    return x.view(x.shape[0], x.shape[1], n, -1).transpose(1, 2)


def joined(x):
    return x.transpose(1, 2).reshape(x.shape[0], x.shape[2], -1)


# ---- Llama --------------------------------------------------------------------------------------

class RmsNorm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x):
        kind = x.dtype
        x = x.to(torch.float32)
        x = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)
        return self.weight * x.to(kind)


class Rotary(nn.Module):
    """Without gradients and with autocast off: both are subgraphs in an exported program."""

    def __init__(self, width):
        super().__init__()
        frequency = 1.0 / 10000 ** (torch.arange(0, width, 2).float() / width)
        self.register_buffer("frequency", frequency, persistent=False)

    @torch.no_grad()
    def forward(self, x, positions):
        with torch.autocast(device_type=x.device.type, enabled=False):
            spread = self.frequency[None, :, None].float().expand(positions.shape[0], -1, 1)
            angle = (spread @ positions[:, None, :].float()).transpose(1, 2)
            angle = torch.cat((angle, angle), dim=-1)
            cosine, sine = angle.cos(), angle.sin()
        return cosine.to(x.dtype), sine.to(x.dtype)


def rotated(x, cosine, sine):
    half = x.shape[-1] // 2
    turned = torch.cat((-x[..., half:], x[..., :half]), dim=-1)
    return x * cosine.unsqueeze(1) + turned * sine.unsqueeze(1)


class LlamaLayer(nn.Module):
    def __init__(self):
        super().__init__()
        self.input_norm, self.mlp_norm = RmsNorm(WIDTH), RmsNorm(WIDTH)
        self.q_proj = nn.Linear(WIDTH, WIDTH, bias=False)
        self.k_proj = nn.Linear(WIDTH, WIDTH // HEADS, bias=False)
        self.v_proj = nn.Linear(WIDTH, WIDTH // HEADS, bias=False)
        self.o_proj = nn.Linear(WIDTH, WIDTH, bias=False)
        self.gate_proj = nn.Linear(WIDTH, 24, bias=False)
        self.up_proj = nn.Linear(WIDTH, 24, bias=False)
        self.down_proj = nn.Linear(24, WIDTH, bias=False)

    def forward(self, x, cosine, sine):
        h = self.input_norm(x)
        q = rotated(heads(self.q_proj(h)), cosine, sine)
        k = rotated(heads(self.k_proj(h), 1), cosine, sine)
        v = heads(self.v_proj(h), 1)
        b, _, t, d = k.shape
        k = k[:, :, None].expand(b, 1, HEADS, t, d).reshape(b, HEADS, t, d)
        v = v[:, :, None].expand(b, 1, HEADS, t, d).reshape(b, HEADS, t, d)
        x = x + self.o_proj(joined(F.scaled_dot_product_attention(q, k, v, is_causal=True)))
        h = self.mlp_norm(x)
        return x + self.down_proj(F.silu(self.gate_proj(h)) * self.up_proj(h))


class Llama(Model):
    """Rotary positions, grouped heads, RMS norm, gated MLP."""
    lr = 0.5

    def __init__(self):
        super().__init__()
        self.embed_tokens = nn.Embedding(WORDS, WIDTH)
        self.rotary = Rotary(WIDTH // HEADS)
        self.layers = nn.ModuleList(LlamaLayer() for _ in range(2))
        self.norm = RmsNorm(WIDTH)
        self.lm_head = nn.Linear(WIDTH, WORDS, bias=False)

    def forward(self, tokens):
        x = self.embed_tokens(tokens)
        positions = torch.arange(tokens.shape[1], device=tokens.device).unsqueeze(0)
        cosine, sine = self.rotary(x, positions)
        for layer in self.layers:
            x = layer(x, cosine, sine)
        logits = self.lm_head(self.norm(x)).float()
        return F.cross_entropy(logits[..., :-1, :].contiguous().view(-1, WORDS),
                               tokens[..., 1:].contiguous().view(-1))

    def batch(self, generator):
        return (integers(generator, WORDS, 2, 8),)


# ---- GPT-2 --------------------------------------------------------------------------------------

class Conv1D(nn.Module):
    """GPT-2's linear layer: the weight is stored as [in, out]."""

    def __init__(self, wide, out):
        super().__init__()
        self.out = out
        self.weight = nn.Parameter(torch.randn(wide, out) * 0.1)
        self.bias = nn.Parameter(torch.zeros(out))

    def forward(self, x):
        flat = torch.addmm(self.bias, x.view(-1, x.size(-1)), self.weight)
        return flat.view(x.size()[:-1] + (self.out,))


class Gpt2Block(nn.Module):
    def __init__(self, length):
        super().__init__()
        self.ln_1, self.ln_2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.c_attn, self.c_proj = Conv1D(WIDTH, 3 * WIDTH), Conv1D(WIDTH, WIDTH)
        self.c_fc, self.c_out = Conv1D(WIDTH, 24), Conv1D(24, WIDTH)
        self.dropout = nn.Dropout(0.0)
        causal = torch.tril(torch.ones(length, length, dtype=torch.bool))
        self.register_buffer("causal", causal.view(1, 1, length, length))

    def forward(self, x):
        q, k, v = self.c_attn(self.ln_1(x)).split(WIDTH, dim=2)
        q, k, v = heads(q), heads(k), heads(v)
        weights = torch.matmul(q, k.transpose(-1, -2))
        weights = weights / torch.full([], v.size(-1) ** 0.5, dtype=weights.dtype)
        t = q.size(-2)
        lowest = torch.full([], torch.finfo(weights.dtype).min, dtype=weights.dtype)
        weights = torch.where(self.causal[:, :, :t, :t], weights, lowest)
        weights = self.dropout(F.softmax(weights, dim=-1))
        x = x + self.dropout(self.c_proj(joined(torch.matmul(weights, v))))
        h = self.c_fc(self.ln_2(x))
        h = 0.5 * h * (1.0 + torch.tanh(math.sqrt(2 / math.pi) * (h + 0.044715 * h.pow(3.0))))
        return x + self.dropout(self.c_out(h))


class Gpt2(Model):
    """Learned positions, one projection for q, k and v, head tied to the embedding."""
    lr = 0.2

    def __init__(self):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(WORDS, WIDTH), nn.Embedding(8, WIDTH)
        self.h = nn.ModuleList(Gpt2Block(8) for _ in range(2))
        self.ln_f = nn.LayerNorm(WIDTH)
        self.lm_head = nn.Linear(WIDTH, WORDS, bias=False)
        nn.init.normal_(self.wte.weight, std=0.2)
        self.lm_head.weight = self.wte.weight

    def forward(self, tokens):
        x = self.wte(tokens) + self.wpe(torch.arange(tokens.size(-1)))
        for block in self.h:
            x = block(x)
        logits = self.lm_head(self.ln_f(x))
        return F.cross_entropy(logits[:, :-1].reshape(-1, WORDS), tokens[:, 1:].reshape(-1))

    def batch(self, generator):
        return (integers(generator, WORDS, 2, 8),)


# ---- BERT ---------------------------------------------------------------------------------------

class BertLayer(nn.Module):
    def __init__(self):
        super().__init__()
        self.query, self.key = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH)
        self.value, self.dense = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH)
        self.intermediate, self.output = nn.Linear(WIDTH, 24), nn.Linear(24, WIDTH)
        self.norm_1, self.norm_2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)

    def forward(self, x, mask):
        scores = heads(self.query(x)) @ heads(self.key(x)).transpose(-1, -2)
        weights = F.softmax(scores / math.sqrt(WIDTH // HEADS) + mask, dim=-1)
        x = self.norm_1(self.dense(joined(weights @ heads(self.value(x)))) + x)
        return self.norm_2(self.output(F.gelu(self.intermediate(x))) + x)


class Bert(Model):
    """Attention mask, segments, masked words and next sentence; the decoder is tied."""
    lr = 0.1

    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(WORDS, WIDTH, padding_idx=0)
        self.segments, self.positions = nn.Embedding(2, WIDTH), nn.Embedding(8, WIDTH)
        self.norm = nn.LayerNorm(WIDTH, eps=1e-12)
        self.register_buffer("position_ids", torch.arange(8).expand(1, -1), persistent=False)
        self.layers = nn.ModuleList(BertLayer() for _ in range(2))
        self.pooler, self.seq_relationship = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, 2)
        self.decoder = nn.Linear(WIDTH, WORDS)
        self.decoder.weight = self.words.weight

    def forward(self, tokens, segments, attention_mask, labels, next_sentence):
        x = self.words(tokens) + self.segments(segments)
        x = self.norm(x + self.positions(self.position_ids[:, :tokens.shape[1]]))
        mask = (1.0 - attention_mask[:, None, None, :].to(x.dtype)) * torch.finfo(x.dtype).min
        for layer in self.layers:
            x = layer(x, mask)
        first = torch.tanh(self.pooler(x[:, 0]))
        return (F.cross_entropy(self.decoder(x).view(-1, WORDS), labels.view(-1), ignore_index=-100)
                + F.cross_entropy(self.seq_relationship(first).view(-1, 2), next_sentence.view(-1)))

    def batch(self, generator):
        tokens = integers(generator, WORDS, 2, 8, low=1)
        mask = (torch.arange(8) < integers(generator, 9, 2, 1, low=4)).long()
        guessed = integers(generator, 3, 2, 8) == 0
        guessed[:, 1] = True
        labels = tokens.masked_fill(~guessed, -100)
        return (tokens.masked_fill(guessed, 1) * mask, integers(generator, 2, 2, 8), mask, labels,
                integers(generator, 2, 2))


# ---- T5 -----------------------------------------------------------------------------------------

class T5Attention(nn.Module):
    def __init__(self, table, two_sided):
        super().__init__()
        self.q, self.k = nn.Linear(WIDTH, WIDTH, bias=False), nn.Linear(WIDTH, WIDTH, bias=False)
        self.v, self.o = nn.Linear(WIDTH, WIDTH, bias=False), nn.Linear(WIDTH, WIDTH, bias=False)
        self.two_sided = two_sided
        if table:
            self.relative_attention_bias = nn.Embedding(8, HEADS)

    def bias(self, queries, keys):
        """How far apart two places are, in 8 buckets that widen, looked up in the table."""
        apart = torch.arange(keys)[None, :] - torch.arange(queries)[:, None]
        buckets, found = 8, 0
        if self.two_sided:
            buckets //= 2
            found = found + (apart > 0).to(torch.long) * buckets
            apart = torch.abs(apart)
        else:
            apart = -torch.min(apart, torch.zeros_like(apart))
        exact = buckets // 2
        far = exact + (torch.log(apart.float() / exact) / math.log(16 / exact)
                       * (buckets - exact)).to(torch.long)
        far = torch.min(far, torch.full_like(far, buckets - 1))
        found = found + torch.where(apart < exact, apart, far)
        return self.relative_attention_bias(found).permute([2, 0, 1]).unsqueeze(0)

    def forward(self, x, source, bias):
        scores = torch.matmul(heads(self.q(x)), heads(self.k(source)).transpose(3, 2))
        scores = scores + bias
        weights = F.softmax(scores.float(), dim=-1).type_as(scores)
        return self.o(joined(torch.matmul(weights, heads(self.v(source)))))


class T5Block(nn.Module):
    def __init__(self, table, decoder):
        super().__init__()
        self.norm_1, self.norm_2 = nn.RMSNorm(WIDTH), nn.RMSNorm(WIDTH)
        self.norm_3 = nn.RMSNorm(WIDTH)
        self.own = T5Attention(table, two_sided=not decoder)
        if decoder:
            self.cross = T5Attention(False, True)
        self.wi, self.wo = nn.Linear(WIDTH, 24, bias=False), nn.Linear(24, WIDTH, bias=False)

    def forward(self, x, bias, encoded=None):
        h = self.norm_1(x)
        x = x + self.own(h, h, bias)
        if encoded is not None:
            x = x + self.cross(self.norm_2(x), encoded, x.new_zeros(1, 1, 1, encoded.shape[1]))
        return x + self.wo(F.relu(self.wi(self.norm_3(x))))


class T5(Model):
    """Encoder and decoder; what was encoded is used four times; relative position tables."""
    lr = 0.1

    def __init__(self):
        super().__init__()
        self.shared = nn.Embedding(WORDS, WIDTH)
        self.encoder = nn.ModuleList(T5Block(True, False) for _ in range(1))
        self.decoder = nn.ModuleList(T5Block(i == 0, True) for i in range(2))
        self.encoder_norm, self.decoder_norm = nn.RMSNorm(WIDTH), nn.RMSNorm(WIDTH)
        self.lm_head = nn.Linear(WIDTH, WORDS, bias=False)
        self.lm_head.weight = self.shared.weight

    def forward(self, source, labels):
        x = self.shared(source)
        bias = self.encoder[0].own.bias(source.shape[1], source.shape[1])
        for block in self.encoder:
            x = block(x, bias)
        encoded = self.encoder_norm(x)

        shifted = labels.new_zeros(labels.shape)
        shifted[..., 1:] = labels[..., :-1].clone()
        shifted[..., 0] = 0
        shifted.masked_fill_(shifted == -100, 0)
        x = self.shared(shifted)
        t = labels.shape[1]
        later = torch.full((t, t), torch.finfo(x.dtype).min).triu(1)
        bias = self.decoder[0].own.bias(t, t) + later
        for block in self.decoder:
            x = block(x, bias, encoded)
        logits = self.lm_head(self.decoder_norm(x) * WIDTH ** -0.5)
        return F.cross_entropy(logits.view(-1, WORDS), labels.view(-1), ignore_index=-100)

    def batch(self, generator):
        labels = integers(generator, WORDS, 2, 6)
        labels[:, -1] = -100
        return integers(generator, WORDS, 2, 8), labels


# ---- Mixture of experts -------------------------------------------------------------------------

class Experts(nn.Module):
    """Each token goes through its two best experts; dense, so no size depends on the choice."""

    def __init__(self, n=4):
        super().__init__()
        self.n = n
        self.router = nn.Linear(WIDTH, n, bias=False)
        self.up = nn.Parameter(torch.randn(n, WIDTH, 16) * 0.2)
        self.down = nn.Parameter(torch.randn(n, 16, WIDTH) * 0.2)

    def forward(self, x):
        weights = F.softmax(self.router(x), dim=-1)
        best, chosen = torch.topk(weights, 2, dim=-1)
        best = best / best.sum(dim=-1, keepdim=True)
        gates = torch.zeros_like(weights).scatter(-1, chosen, best)
        each = torch.einsum("btd,edh->beth", x, self.up)
        each = torch.einsum("beth,ehd->betd", F.silu(each), self.down)
        share = F.one_hot(chosen, self.n).float().mean(dim=(0, 1, 2))
        balance = self.n * torch.sum(share * weights.mean(dim=(0, 1)))
        return torch.einsum("bte,betd->btd", gates, each), balance


class Mixture(Model):
    """Mixture of experts: top-2 routing, a loss that balances the experts."""
    lr = 0.1

    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(WORDS, WIDTH)
        self.norms = nn.ModuleList(nn.LayerNorm(WIDTH) for _ in range(4))
        self.mixers = nn.ModuleList(nn.Linear(8, 8) for _ in range(2))
        self.experts = nn.ModuleList(Experts() for _ in range(2))
        self.head = nn.Linear(WIDTH, WORDS)

    def forward(self, tokens, labels):
        x, balance = self.embed(tokens), []
        for i, (mixer, experts) in enumerate(zip(self.mixers, self.experts)):
            x = x + mixer(self.norms[2 * i](x).mT).mT
            y, b = experts(self.norms[2 * i + 1](x))
            x = x + y
            balance.append(b)
        loss = F.cross_entropy(self.head(x).flatten(0, 1), labels.flatten())
        return loss + 0.01 * torch.stack(balance).sum()

    def batch(self, generator):
        return integers(generator, WORDS, 2, 8), integers(generator, WORDS, 2, 8)


# ---- Whisper ------------------------------------------------------------------------------------

class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.query, self.key = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH, bias=False)
        self.value, self.out = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH)

    def forward(self, x, source, causal=False):
        q, k, v = heads(self.query(x)), heads(self.key(source)), heads(self.value(source))
        return self.out(joined(F.scaled_dot_product_attention(q, k, v, is_causal=causal)))


class WhisperBlock(nn.Module):
    def __init__(self, cross):
        super().__init__()
        self.attn, self.attn_ln = Attention(), nn.LayerNorm(WIDTH)
        self.cross_attn = Attention() if cross else None
        self.cross_attn_ln = nn.LayerNorm(WIDTH) if cross else None
        self.mlp = nn.Sequential(nn.Linear(WIDTH, 24), nn.GELU(), nn.Linear(24, WIDTH))
        self.mlp_ln = nn.LayerNorm(WIDTH)

    def forward(self, x, sound=None):
        h = self.attn_ln(x)
        x = x + self.attn(h, h, causal=self.cross_attn is not None)
        if self.cross_attn is not None:
            x = x + self.cross_attn(self.cross_attn_ln(x), sound)
        return x + self.mlp(self.mlp_ln(x))


class Whisper(Model):
    """1-D convolutions over a spectrogram, sine positions, decoder with a tied embedding."""
    lr = 0.1

    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv1d(8, WIDTH, 3, padding=1)
        self.conv2 = nn.Conv1d(WIDTH, WIDTH, 3, stride=2, padding=1)
        angle = torch.arange(8)[:, None] * torch.exp(-torch.arange(WIDTH // 2) * 1.3)[None, :]
        self.register_buffer("positions", torch.cat([angle.sin(), angle.cos()], dim=1))
        self.encoder, self.ln_post = WhisperBlock(False), nn.LayerNorm(WIDTH)
        self.token_embedding = nn.Embedding(WORDS, WIDTH)
        self.positional_embedding = nn.Parameter(torch.randn(8, WIDTH) * 0.1)
        self.decoder, self.ln = WhisperBlock(True), nn.LayerNorm(WIDTH)

    def forward(self, spectrum, tokens):
        x = F.gelu(self.conv2(F.gelu(self.conv1(spectrum)))).permute(0, 2, 1)
        sound = self.ln_post(self.encoder((x + self.positions).to(x.dtype)))
        x = self.token_embedding(tokens[:, :-1]) + self.positional_embedding[:tokens.shape[1] - 1]
        x = self.ln(self.decoder(x, sound))
        logits = (x @ torch.transpose(self.token_embedding.weight, 0, 1)).float()
        return F.cross_entropy(logits.transpose(1, 2), tokens[:, 1:])

    def batch(self, generator):
        return normal(generator, 2, 8, 16), integers(generator, WORDS, 2, 7)


# ---- Mamba --------------------------------------------------------------------------------------

class MambaBlock(nn.Module):
    """The selective scan as a loop over time."""

    def __init__(self, inner=12, states=4, rank=2):
        super().__init__()
        self.sizes = (rank, states, states)
        self.norm = nn.RMSNorm(WIDTH)
        self.in_proj = nn.Linear(WIDTH, 2 * inner, bias=False)
        self.conv1d = nn.Conv1d(inner, inner, 3, groups=inner, padding=2)
        self.x_proj = nn.Linear(inner, rank + 2 * states, bias=False)
        self.dt_proj = nn.Linear(rank, inner)
        a = torch.arange(1, states + 1, dtype=torch.float32).repeat(inner, 1)
        self.A_log, self.D = nn.Parameter(torch.log(a)), nn.Parameter(torch.ones(inner))
        self.out_proj = nn.Linear(inner, WIDTH, bias=False)

    def forward(self, hidden):
        time = hidden.shape[1]
        x, gate = self.in_proj(self.norm(hidden)).transpose(1, 2).chunk(2, dim=1)
        x = F.silu(self.conv1d(x)[..., :time])
        step, b, c = torch.split(self.x_proj(x.transpose(1, 2)), self.sizes, dim=-1)
        step = F.softplus(self.dt_proj(step))  # [batch, time, inner]
        decay = torch.exp(step.unsqueeze(-1) * -torch.exp(self.A_log.float()))
        added = torch.einsum("bti,btn,bit->btin", step, b, x)
        state, out = torch.zeros_like(added[:, 0]), []
        for t in range(time):
            state = decay[:, t] * state + added[:, t]
            out.append(torch.einsum("bin,bn->bi", state, c[:, t]))
        y = torch.stack(out, dim=2) + x * self.D[None, :, None]
        return hidden + self.out_proj((y * F.silu(gate)).transpose(1, 2))


class Mamba(Model):
    """Selective state space: a causal depthwise convolution and a scan."""
    lr = 0.2

    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(WORDS, WIDTH)
        self.layers = nn.ModuleList(MambaBlock() for _ in range(2))
        self.norm_f = nn.RMSNorm(WIDTH)

    def forward(self, tokens):
        x = self.embedding(tokens)
        for layer in self.layers:
            x = layer(x)
        logits = F.linear(self.norm_f(x), self.embedding.weight) * 0.2
        return F.cross_entropy(logits[:, :-1].reshape(-1, WORDS), tokens[:, 1:].reshape(-1))

    def batch(self, generator):
        return (integers(generator, WORDS, 2, 6),)


# ---- LSTM ---------------------------------------------------------------------------------------

class Lstm(Model):
    """Two layers in both directions, then a GRU and a plain RNN: operators that take lists."""
    lr = 0.3

    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(WORDS, WIDTH)
        self.lstm = nn.LSTM(WIDTH, 8, num_layers=2, batch_first=True, bidirectional=True)
        self.gru = nn.GRU(16, 12)
        self.rnn = nn.RNN(12, 8, nonlinearity="tanh")
        self.head = nn.Linear(8, WORDS)

    def forward(self, tokens):
        x, (h, c) = self.lstm(self.embed(tokens[:, :-1]))
        x, last = self.gru(x.transpose(0, 1), torch.zeros(1, tokens.shape[0], 12))
        x, _ = self.rnn(x)
        logits = self.head(x).permute(1, 2, 0)
        return F.cross_entropy(logits, tokens[:, 1:]) + 0.1 * (h * c).mean() + 0.1 * last.mean()

    def batch(self, generator):
        return (integers(generator, WORDS, 2, 7),)


# ---- wav2vec ------------------------------------------------------------------------------------

class Wav2Vec(Model):
    """Sound samples, group norm, position convolution with weight norm."""
    lr = 0.02

    def __init__(self):
        super().__init__()
        self.conv0, self.norm0 = nn.Conv1d(1, 12, 5, 3, bias=False), nn.GroupNorm(12, 12)
        self.conv1, self.norm1 = nn.Conv1d(12, 12, 3, 2), nn.LayerNorm(12)
        self.project = nn.Linear(12, WIDTH)
        self.pos_conv = nn.utils.parametrizations.weight_norm(
            nn.Conv1d(WIDTH, WIDTH, 4, padding=2, groups=4), name="weight", dim=2)
        self.masked_spec_embed = nn.Parameter(torch.rand(WIDTH))
        self.encoder, self.lm_head = WhisperBlock(False), nn.Linear(WIDTH, 8)

    def forward(self, samples, hidden_times, labels):
        x = F.gelu(self.norm0(self.conv0(samples[:, None])))
        x = F.gelu(self.conv1(x)).transpose(1, 2)
        x = self.project(self.norm1(x))
        x = torch.where(hidden_times[..., None], self.masked_spec_embed, x)
        x = x + F.gelu(self.pos_conv(x.transpose(1, 2))[:, :, :-1]).transpose(1, 2)
        odds = F.log_softmax(self.lm_head(self.encoder(x)), dim=-1, dtype=torch.float32)
        return F.nll_loss(odds.flatten(0, 1), labels.flatten())

    def batch(self, generator):
        return (normal(generator, 2, 80), integers(generator, 5, 2, 12) == 0,
                integers(generator, 8, 2, 12))


MODELS = {"llama": Llama, "gpt2": Gpt2, "bert": Bert, "t5": T5, "mixture": Mixture,
          "whisper": Whisper, "mamba": Mamba, "lstm": Lstm, "wav2vec": Wav2Vec}
