// Linear scales, and the round numbers at which an axis is labelled.

export function linear([low, high], [from, to]) {
  const slope = high === low ? 0 : (to - from) / (high - low);
  return (value) => from + (value - low) * slope;
}

// About `wanted` multiples of 1, 2 or 5 times a power of ten within [low, high].
export function ticks(low, high, wanted, whole = false) {
  if (!(high > low)) return [low];
  const rough = (high - low) / Math.max(wanted, 1);
  const power = 10 ** Math.floor(Math.log10(rough));
  const factor = [1, 2, 5, 10].find((each) => each * power >= rough * 0.999);
  const step = whole ? Math.max(1, Math.round(factor * power)) : factor * power;
  const first = Math.ceil(low / step - 1e-9);
  const last = Math.floor(high / step + 1e-9);
  return Array.from({ length: last - first + 1 }, (_, n) => (first + n) * step);
}

// The same, but at least three where so many fit in.
export function threeTicks(low, high, wanted, whole = false) {
  for (let more = Math.max(wanted, 3); more < 12; more++) {
    const found = ticks(low, high, more, whole);
    if (found.length >= 3) return found;
  }
  return ticks(low, high, wanted, whole);
}

export function tickDecimals(values) {
  if (values.length < 2) return 2;
  return Math.min(Math.max(0, Math.ceil(-Math.log10(Math.abs(values[1] - values[0])) - 1e-9)), 10);
}

// [low, high] of some numbers with room around them; never empty.
export function extent(values, room = 0.06) {
  const known = values.filter(Number.isFinite);
  if (!known.length) return [0, 1];
  const low = Math.min(...known);
  const high = Math.max(...known);
  const width = high - low || Math.abs(high) || 1;
  return [low - room * width, high + room * width];
}
