#!/usr/bin/env python3
"""One training step of the same decoder stack in PyTorch, timed: the side that gradflow is measured against.

  scripts/peer_torch.py --layers 12 --dim 64 --heads 4 --tokens 64 --batch 16 --placement pre --mode eager

modes
  eager         functional-style modules, fused AdamW, clip 1.0, no per-layer metric
  hooks         eager, and every step per layer: gradient norm of every parameter, variance and RMS of the block
                output, as people write it (one .item() each)
  hooks-best    the same numbers, stacked on the device and read once per step
  compile       torch.compile of forward and loss, no metric
  compile-best  compile, and the numbers of hooks-best returned by the compiled function
  xtransformers x-transformers' Decoder with the same sizes, no metric
Prints one JSON object: ms per step (minimum, median over --repeat), tokens/s, parameters. With --on-request it warms
up, prints {"ready": ...}, and then times one repeat for each line that it reads: so that two programs can take turns.
Every mode: float32, --threads threads, vocabulary 64, learned positions, untied head, bias everywhere, GELU, ffn 4x.
"""
import argparse
import json
import sys
import time

import torch
from torch import nn
import torch.nn.functional as F

p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
p.add_argument("--layers", type=int, default=12)
p.add_argument("--dim", type=int, default=64)
p.add_argument("--heads", type=int, default=4)
p.add_argument("--tokens", type=int, default=64)
p.add_argument("--batch", type=int, default=16)
p.add_argument("--vocab", type=int, default=64)
p.add_argument("--placement", choices=["pre", "post", "deepnorm"], default="pre")
p.add_argument("--mode", default="eager",
               choices=["eager", "hooks", "hooks-best", "compile", "compile-best", "xtransformers"])
p.add_argument("--device", default="cpu")
p.add_argument("--threads", type=int, default=1)
p.add_argument("--steps", type=int, default=5, help="steps per timed repeat")
p.add_argument("--repeat", type=int, default=5)
p.add_argument("--clock", choices=["wall", "processor"], default="wall",
               help="processor: the time that this process spent on a processor")
p.add_argument("--on-request", action="store_true", help="one repeat for each line of standard input")
a = p.parse_args()
torch.set_num_threads(a.threads)
torch.manual_seed(0)
device = torch.device(a.device)


class Block(nn.Module):
    def __init__(self, d, heads, placement, layers):
        super().__init__()
        self.heads, self.post = heads, placement != "pre"
        self.alpha = (2 * layers) ** 0.25 if placement == "deepnorm" else None
        self.n1, self.n2 = nn.LayerNorm(d), nn.LayerNorm(d)
        self.qkv, self.out = nn.Linear(d, 3 * d), nn.Linear(d, d)
        self.fc1, self.fc2 = nn.Linear(d, 4 * d), nn.Linear(4 * d, d)

    def attention(self, x):
        b, t, d = x.shape
        q, k, v = self.qkv(x).view(b, t, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(y.transpose(1, 2).reshape(b, t, d))

    def ffn(self, x):
        return self.fc2(F.gelu(self.fc1(x)))

    def skip(self, x):
        return x if self.alpha is None else self.alpha * x

    def forward(self, x):
        if self.post:
            x = self.n1(self.skip(x) + self.attention(x))
            return self.n2(self.skip(x) + self.ffn(x))
        x = x + self.attention(self.n1(x))
        return x + self.ffn(self.n2(x))


class Stack(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb, self.pos = nn.Embedding(a.vocab, a.dim), nn.Embedding(a.tokens, a.dim)
        self.blocks = nn.ModuleList(Block(a.dim, a.heads, a.placement, a.layers) for _ in range(a.layers))
        self.norm = nn.LayerNorm(a.dim) if a.placement == "pre" else nn.Identity()
        self.head = nn.Linear(a.dim, a.vocab)

    def forward(self, ids, stats=None):
        x = self.emb(ids) + self.pos.weight
        for b in self.blocks:
            x = b(x)
            if stats is not None:
                h = x.detach()
                stats.append(torch.stack([h.var(-1, unbiased=False).mean(), h.pow(2).mean().sqrt()]))
        return self.head(self.norm(x))


if a.mode == "xtransformers":
    from x_transformers import TransformerWrapper, Decoder
    model = TransformerWrapper(num_tokens=a.vocab, max_seq_len=a.tokens,
                               attn_layers=Decoder(dim=a.dim, depth=a.layers, heads=a.heads,
                                                   attn_dim_head=a.dim // a.heads, attn_flash=True,
                                                   pre_norm=a.placement == "pre"))
else:
    model = Stack()
model = model.to(device)
params = list(model.parameters())
opt = torch.optim.AdamW(params, lr=1e-4, fused=True)
ids = torch.randint(a.vocab, (a.batch, a.tokens + 1)).to(device)
inp, tgt = ids[:, :-1].contiguous(), ids[:, 1:].contiguous()
sink = []
now = time.perf_counter if a.clock == "wall" else time.process_time


def loss_of(i, t, stats=None):
    logits = model(i) if stats is None else model(i, stats)
    return F.cross_entropy(logits.flatten(0, 1), t.flatten())


def loss_and_stats(i, t):
    s = []
    l = loss_of(i, t, s)
    return l, torch.stack(s)


fwd = torch.compile(loss_of) if a.mode == "compile" else loss_of
fws = torch.compile(loss_and_stats) if a.mode == "compile-best" else loss_and_stats


def step():
    if a.mode in ("hooks", "hooks-best", "compile-best"):
        loss, stats = fws(inp, tgt)
    else:
        loss = fwd(inp, tgt)
    loss.backward()
    if a.mode == "hooks":
        sink.append([q.grad.norm().item() for q in params] + [v.item() for r in stats for v in r])
    elif a.mode in ("hooks-best", "compile-best"):
        norms = torch.stack(torch._foreach_norm([q.grad for q in params]))
        sink.append(torch.cat([norms, stats.flatten()]).tolist())
    nn.utils.clip_grad_norm_(params, 1.0)
    opt.step()
    opt.zero_grad()
    sink.append(loss.item())


def repeat():
    """Milliseconds of a step, the mean of --steps."""
    start = now()
    for _ in range(a.steps):
        step()
    ms = (now() - start) / a.steps * 1e3
    sink.clear()
    return ms


facts = {"peer": "torch " + torch.__version__, "mode": a.mode, "placement": a.placement, "layers": a.layers,
         "dim": a.dim, "heads": a.heads, "tokens": a.tokens, "batch": a.batch, "threads": a.threads,
         "device": str(device), "parameters": sum(q.numel() for q in params)}
for _ in range(3):
    step()
if a.on_request:
    print(json.dumps({"ready": True, **facts}), flush=True)
    for _ in sys.stdin:
        print(json.dumps({"ms": repeat()}), flush=True)
else:
    times = sorted(repeat() for _ in range(a.repeat))
    print(json.dumps({**facts, "ms_min": round(times[0], 3), "ms_median": round(times[len(times) // 2], 3),
                      "tokens_per_s": round(a.batch * a.tokens / times[0] * 1e3)}))
