"""Slow and obvious twins of all compressors: numpy, one step after the other.

A twin returns the values that arrive when `wanted` (values plus residual) is encoded. It makes no bytes:
payloads are decoded by the compressor itself, and both have to agree bit for bit.
"""

import numpy as np
import torch

LANES, BLOCK = 16, 4096


def none(compressor, wanted, piece, draw):
    return wanted.copy()


def fp16(compressor, wanted, piece, draw):
    return np.clip(wanted, -65504, 65504).astype(np.float16).astype(np.float32)


def bf16(compressor, wanted, piece, draw):
    largest = torch.finfo(torch.bfloat16).max
    return torch.from_numpy(wanted).clamp(-largest, largest).to(torch.bfloat16).float().numpy()


def trunc16(compressor, wanted, piece, draw):
    return (wanted.view(np.uint32) & np.uint32(0xFFFF0000)).view(np.float32)


def sum_in_blocks(values):
    """Return the float64 sum: sixteen lanes per 4,096 values, lanes in order, blocks in order."""
    values = np.concatenate([values, np.zeros(-len(values) % LANES)]).astype(np.float64)
    total = 0.0
    for start in range(0, len(values), BLOCK):
        lanes = np.zeros(LANES)
        for row in values[start : start + BLOCK].reshape(-1, LANES):
            lanes += row
        block = lanes[0]
        for lane in lanes[1:]:
            block += lane
        total += block
    return total


def zero_rows(wanted, piece):
    """Return a mask of the values in rows of a matrix that are all zero."""
    masked = np.zeros(len(wanted), bool)
    row_length = int(np.prod(piece.shape[1:]))
    if len(piece.shape) < 2 or row_length < 8:
        return masked
    rows = (np.arange(len(wanted)) + piece.offset) // row_length
    for row in np.unique(rows):
        masked[rows == row] = not wanted[rows == row].any()
    return masked


def onebit(compressor, wanted, piece, draw):
    kept = ~zero_rows(wanted, piece)
    values = wanted[kept]
    means, block = np.zeros_like(values), compressor.block or max(len(values), 1)
    for start in range(0, len(values), block):
        part, out = values[start : start + block], means[start : start + block]
        for side in (part >= 0, part < 0):
            if side.any():
                out[side] = np.float32(sum_in_blocks(np.where(side, part, 0)) / side.sum())
    sent = np.zeros_like(wanted)
    sent[kept] = means
    return sent


def random_words(key, num_values):
    """32 bits for each value: a hash of its pair of rows, turned by half for the second row."""
    index = np.arange(num_values, dtype=np.uint64)
    word, all_bits = index // 32 * 16 + index % 16, np.uint64(0xFFFFFFFF)
    word = (word + np.uint64(key & 0xFFFFFFFF)) & all_bits
    word = ((word ^ (word >> 16)) * np.uint64(0x7FEB352D)) & all_bits
    word = word ^ np.uint64(key >> 32)
    word = ((word ^ (word >> 15)) * np.uint64(0x846CA68B)) & all_bits
    word = word ^ (word >> 16)
    turned = ((word << 16) | (word >> 16)) & all_bits
    return np.where(index % 32 < 16, word, turned).astype(np.uint32)


def norm_of(bucket, norm):
    if norm == "max":
        found = float(np.abs(bucket).max())
    else:
        full = len(bucket) // LANES * LANES
        total = sum_in_blocks(bucket[:full].astype(np.float64) ** 2)
        for value in bucket[full:].astype(np.float64):
            total += value * value
        found = float(np.sqrt(total))
    return (
        np.float32(min(found, 2.0**128 * (1 - 2.0**-20))) if found >= 2.0**-100 else np.float32(0)
    )


def grid(compressor, wanted, piece, draw):
    top, size = compressor.top, compressor.bucket or len(wanted)
    half, least = np.float32(top / 2), np.float32(top % 2 / 2)
    chance = (random_words(draw.noise, len(wanted)) >> 2).astype(np.int64)
    sent = np.empty_like(wanted)
    for start in range(0, len(wanted), size):
        part = slice(start, start + size)
        norm = norm_of(wanted[part], compressor.norm)
        inverse = np.float32(top / 2 / float(norm)) if norm else np.float32(0)
        above = np.minimum(np.abs(wanted[part]) * inverse, half) - least
        level = np.floor(above)
        goes_up = ((above - level) * np.float32(2**30)).astype(np.int64) > chance[part]
        point = np.copysign(1, wanted[part]) * (level + goes_up.astype(np.float32) + least)
        sent[part] = 2 * point * np.float32(float(norm) / top)
    return sent


TWINS = {
    "none": none,
    "fp16": fp16,
    "bf16": bf16,
    "trunc16": trunc16,
    "onebit": onebit,
    "uniform": grid,
    "qsgd": grid,
    "terngrad": grid,
}
