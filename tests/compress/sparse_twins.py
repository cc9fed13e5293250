"""The slow, obvious twins of the sparse compressors: their bodies must agree byte for byte."""

import math
import struct

import numpy as np

from talka.compress.randomk import RandomK
from talka.compress.significance import Significance
from talka.compress.threshold import Threshold
from talka.compress.topk import TopK

SIXTY_FOUR = (1 << 64) - 1


def rice_parameter(num_values, count):
    b = 0
    while count and count << (b + 1) <= num_values - count:
        b += 1
    return b


def rice_words(indices, num_values):
    """Bytes of the codes: whole words of 4, the lowest bit first."""
    b = rice_parameter(num_values, len(indices))
    bits, following = "", 0
    for index in indices:
        gap = index - following
        bits += "0" * (gap >> b) + "1" + "".join(str(gap >> place & 1) for place in range(b))
        following = index + 1
    bits += "0" * (-len(bits) % 32)
    return int(bits[::-1] or "0", 2).to_bytes(len(bits) // 8, "little")


def rice_indices(data, num_values, count):
    bits = iter("".join(f"{byte:08b}"[::-1] for byte in data))
    b = rice_parameter(num_values, count)
    indices, following = [], 0
    for _ in range(count):
        gap = 0
        while next(bits) == "0":
            gap += 1 << b
        gap += sum(int(next(bits)) << place for place in range(b))
        indices.append(following + gap)
        following += gap + 1
    return indices


def one_in_each(num_values, count, key):
    indices, start = [], 0
    for place in range(count):
        length = num_values // count + (place < num_values % count)
        mixed = (key + place) * 0x9E3779B97F4A7C15 & SIXTY_FOUR
        mixed = (mixed ^ mixed >> 30) * 0xBF58476D1CE4E5B9 & SIXTY_FOUR
        mixed = (mixed ^ mixed >> 27) * 0x94D049BB133111EB & SIXTY_FOUR
        mixed ^= mixed >> 31
        indices.append(start + ((mixed >> 32) * length >> 32))
        start += length
    return indices


def wanted_of(values, residual):
    with np.errstate(over="ignore", invalid="ignore"):
        wanted = values.copy() if residual is None else values + residual
    if not np.isfinite(wanted).all():
        raise FloatingPointError
    return wanted


def put(room, body):
    room[: len(body)] = np.frombuffer(body, np.uint8)
    return len(body)


def add_at(out, indices, values, *, add, scale):
    if not add:
        out[:] = 0
    with np.errstate(over="ignore", invalid="ignore"):
        for index, value in zip(indices, values, strict=True):
            sent = np.float32(value) * np.float32(scale)
            out[index] = out[index] + sent if add else sent


class SlowValues:
    """Count, values, indices."""

    def send(self, wanted, chosen, residual, room):
        chosen = sorted(chosen)
        if residual is not None:
            residual[:] = wanted
            residual[chosen] = 0
        sent = wanted[chosen].astype("<f4").tobytes()
        return put(room, struct.pack("<I", len(chosen)) + sent + rice_words(chosen, len(wanted)))

    def decode_section(self, body, out, *, add, scale):
        data = body.tobytes()
        (count,) = struct.unpack_from("<I", data)
        values = np.frombuffer(data, "<f4", count, 4)
        indices = rice_indices(data[4 + 4 * count :], len(out), count)
        add_at(out, indices, values, add=add, scale=scale)


class SlowTopK(SlowValues, TopK):
    def encode_section(self, values, residual, piece, draw, room):
        wanted = wanted_of(values, residual)
        count = min(max(round(self.share * len(values)), 1), len(values))
        order = sorted(range(len(wanted)), key=lambda index: (-abs(wanted[index]), index))
        chosen = [index for index in order[:count] if wanted[index] != 0]
        return self.send(wanted, chosen, residual, room)


class SlowSignificance(SlowValues, Significance):
    def encode_section(self, values, residual, piece, draw, room):
        wanted = wanted_of(values, residual)
        lanes = [0.0] * 512
        for index, value in enumerate(wanted.tolist()):
            lanes[index % 512] += value * value
        total = 0.0
        for lane in lanes:
            total += lane
        tau = self.ratio * math.sqrt(total / len(wanted))
        tau = np.float32(tau if tau < float(np.finfo(np.float32).max) else math.inf)
        large = [index for index, one in enumerate(np.abs(wanted)) if one >= tau and one > 0]
        if not large and total > 0:
            large = [int(np.argmax(np.abs(wanted)))]
        return self.send(wanted, large, residual, room)


class SlowRandomK(RandomK):
    def encode_section(self, values, residual, piece, draw, room):
        wanted = wanted_of(values, residual)
        count = min(max(round(self.share * len(values)), 1), len(values))
        chosen = one_in_each(len(values), count, draw.shared)
        sent = wanted[chosen]
        if residual is None:
            for place in range(count):
                length = len(values) // count + (place < len(values) % count)
                with np.errstate(over="ignore"):
                    sent[place] *= np.float32(length)
            if not np.isfinite(sent).all():
                raise FloatingPointError
        else:
            residual[:] = wanted
            residual[chosen] = 0
        return put(room, struct.pack("<Q", draw.shared) + sent.astype("<f4").tobytes())

    def decode_section(self, body, out, *, add, scale):
        data = body.tobytes()
        (key,) = struct.unpack_from("<Q", data)
        values = np.frombuffer(data, "<f4", offset=8)
        add_at(out, one_in_each(len(out), len(values), key), values, add=add, scale=scale)


class SlowThreshold(Threshold):
    def encode_section(self, values, residual, piece, draw, room):
        wanted = wanted_of(values, residual)
        tau = np.float32(self.tau or self.adapted(wanted, piece, draw.noise))
        chosen = [index for index, one in enumerate(np.abs(wanted)) if one >= tau]
        picked = wanted[chosen]
        if residual is not None:
            residual[:] = wanted
            for index in chosen:
                residual[index] -= tau if wanted[index] > 0 else -tau
        if self.tau is None:
            self.learn(np.abs(picked).astype(float).tolist(), piece)
        signs = [int(value < 0) for value in picked]
        signs += [0] * (-len(signs) % 32)
        word = sum(sign << place for place, sign in enumerate(signs))
        head = struct.pack("<fI", tau, len(chosen)) + word.to_bytes(len(signs) // 8, "little")
        return put(room, head + rice_words(chosen, len(values)))

    def adapted(self, wanted, piece, key):
        size = min(len(wanted), max(len(wanted) // 32, 4096), 16384)
        some = np.abs(wanted[one_in_each(len(wanted), size, key)])
        depth = min(max(round(self.density * size), 1), size)
        tau = max(float(np.sort(some)[-depth]), self._floors.get((piece.name, piece.offset), 0.0))
        if tau == 0 and np.any(wanted):
            total = float(np.abs(wanted).sum(dtype=np.float64))
            tau = total / (2 * np.count_nonzero(wanted))
        return max(tau, float(np.finfo(np.float32).tiny))

    def learn(self, magnitudes, piece):
        at = piece.name, piece.offset
        if magnitudes:
            total = 0.0
            for one in magnitudes:
                total += one
            self._floors[at] = max(max(magnitudes) / 256, total / len(magnitudes) / 4)
        else:
            self._floors[at] = self._floors.get(at, 0.0) / 2

    def decode_section(self, body, out, *, add, scale):
        data = body.tobytes()
        tau, count = struct.unpack_from("<fI", data)
        num_signs = -(-count // 32) * 4
        signs = int.from_bytes(data[8 : 8 + num_signs], "little")
        values = [-tau if signs >> place & 1 else tau for place in range(count)]
        indices = rice_indices(data[8 + num_signs :], len(out), count)
        add_at(out, indices, values, add=add, scale=scale)
