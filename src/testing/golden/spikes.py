#!/usr/bin/env python3
"""Independent reference of the spike detector: `spikes.py OUTDIR` writes series with their episodes (JSON).

Non-finite values are the strings "nan", "inf", "-inf". Steps count from 1.
"""
import json, math, random, statistics, sys


def num(v): return v if isinstance(v, (int, float)) else float(v)


def detect(series, window=64, level_window=9, threshold=6.0, min_count=16, min_jump=0.1, rearm=32, max_gap=5):
    accepted, run, flags, episodes, open_ = [], [], [], [], None

    def close(recovered, kind=None):
        nonlocal open_
        e = open_; open_ = None
        e["recovered"] = recovered
        if kind: e["kind"] = kind
        episodes.append(e)

    for step, raw in enumerate(series, 1):
        v = num(raw)
        if not math.isfinite(v): flagged, score, kind, level = True, math.inf, "nonfinite", (statistics.median(accepted[-level_window:]) if accepted else None)
        elif len(accepted) < min_count: flagged, score, kind, level = False, 0.0, "spike", None
        else:
            level = statistics.median(accepted[-level_window:])
            noise = 1.4826 / math.sqrt(2) * statistics.median([abs(b - a) for a, b in zip(accepted, accepted[1:])])
            score = (v - level) / max(noise, min_jump / threshold)
            flagged, kind = score > threshold, "spike"
        if flagged:
            flags.append(step)
            if open_ is None: open_ = dict(kind=kind, start_step=step, peak_step=step, end_step=step, level_before=level, peak=raw, score=score)
            else:
                open_["end_step"] = step
                if kind == "nonfinite" and open_["kind"] != "nonfinite" or score > open_["score"]: open_.update(peak_step=step, peak=raw, score=score)
                if kind == "nonfinite": open_["kind"] = "nonfinite"
            if kind == "spike":
                run.append(v)
                if len(run) >= rearm: accepted = run[-window:]; run = []; close(False, "shift")
        else:
            run = []
            accepted = (accepted + [v])[-window:]
            if open_ is not None and step - open_["end_step"] > max_gap: close(True)
    if open_ is not None: close(len(series) - open_["end_step"] >= 1)
    for e in episodes:
        if e["score"] == math.inf: e["score"] = "inf"
    return flags, episodes


def cases():
    r = random.Random(7); noise = lambda s: r.gauss(0, s)
    falling = [4.2 * math.exp(-t / 60) + 1.3 + noise(0.03) for t in range(300)]
    yield "falling-loss-has-none", falling, {}
    yield "constant-with-jitter-has-none", [2 + 1e-7 * math.sin(t) for t in range(200)], {}
    s = list(falling); s[150] += 3.0; yield "one-step", s, {}
    s = list(falling)
    for k, h in zip((100, 103, 106, 109), (3, 3, 3, 3)): s[k] += h
    yield "four-equal-close-together-are-one-episode", s, {}
    s = list(falling)
    for k in (100, 130, 160, 190): s[k] += 3
    yield "four-equal-apart-are-four", s, {}
    s = list(falling); s[120] = "nan"; s[180] += 2; yield "nan-does-not-poison", s, {}
    s = list(falling); s[120] = "inf"; s[121] = "nan"; s[123] += 2; yield "inf-nan-and-spike-in-one-episode", s, {}
    s = list(falling)
    for t in range(150, 300): s[t] += 1.5
    yield "lasting-shift-is-one-episode", s, {}
    s = list(falling)
    for t in range(150, 160): s[t] += 1.0
    yield "ten-step-excursion", s, {}
    s = list(falling)
    for t in range(295, 300): s[t] += 1.0
    yield "open-at-the-end", s, {}
    yield "huge-then-moderate", [2.0 + noise(0.01) for _ in range(30)] + [2e6, 2.0, 20.0] + [2.0 + noise(0.01) for _ in range(20)], {}
    yield "too-early-to-flag", [2.0, 2.0, 2.0, 50.0] + [2.0 + noise(0.01) for _ in range(30)], {}
    yield "grad-norm-as-logarithm", [math.log(0.5 * math.exp(noise(0.1))) for _ in range(100)] + [math.log(5.0)] + [math.log(0.5 * math.exp(noise(0.1))) for _ in range(30)], dict(min_jump=math.log(2))
    yield "drift-upwards-slowly", [2 + 0.002 * t + noise(0.03) for t in range(400)], {}


if __name__ == "__main__":
    for name, series, kw in cases():
        flags, episodes = detect(series, **kw)
        json.dump(dict(settings=dict(dict(window=64, level_window=9, threshold=6.0, min_count=16, min_jump=0.1, rearm=32, max_gap=5), **kw), series=series, flagged_steps=flags, episodes=episodes), open(f"{sys.argv[1]}/{name}.json", "w"))
        print(f"{name:45s} {len(flags):3d} flagged, episodes", [(e["kind"], e["start_step"], e["end_step"], e["recovered"]) for e in episodes])
