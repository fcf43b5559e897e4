// Numbers, shares, ages and moments as people read them.

const NONE = "–";

function plain(value, decimals) {
  const text = new Intl.NumberFormat("en", {
    minimumFractionDigits: decimals,
    maximumFractionDigits: decimals,
  }).format(value);
  return /^-[0.,]*$/.test(text) ? text.slice(1) : text.replace("-", "−");
}

// Decimals with which the largest of some numbers has `digits` significant ones: columns align.
export function decimalsFor(values, digits = 4) {
  const largest = Math.max(...values.filter(Number.isFinite).map(Math.abs), 0);
  if (largest === 0) return digits - 1;
  return Math.min(Math.max(digits - 1 - Math.floor(Math.log10(largest)), 0), 10);
}

export function fixed(value, decimals) {
  return value === null || value === undefined ? NONE : plain(value, decimals);
}

// One number by itself: three decimals, fewer for large ones, more for tiny ones.
export function number(value) {
  if (value === null || value === undefined) return NONE;
  const size = Math.abs(value);
  return plain(value, size >= 1 ? decimalsFor([value], 4) : size >= 0.01 ? 3 : size ? decimalsFor([value], 2) : 0);
}

// A number that somebody chose: as it was written, without zeros at its end.
export function constant(value) {
  return value === null || value === undefined ? NONE : String(Number(value.toPrecision(6))).replace("-", "−");
}

export function signed(value, decimals) {
  const text = fixed(value, decimals);
  return value > 0 ? `+${text}` : text;
}

export function count(value) {
  return plain(value, 0);
}

export function plural(value, one, many = `${one}s`) {
  return `${count(value)} ${value === 1 ? one : many}`;
}

// 0 % and 100 % are said only when they are exact.
export function share(part, whole) {
  if (!whole) return NONE;
  const percent = (100 * part) / whole;
  if (percent > 0 && percent < 0.1) return "<\u00a00.1\u00a0%";
  if (percent < 100 && percent > 99.9) return ">\u00a099.9\u00a0%";
  return `${plain(percent, percent === 0 || percent === 100 ? 0 : 1)}\u00a0%`;
}

// A share as a percentage, with more digits for small ones.
export function percent(value) {
  const size = Math.abs(100 * value);
  return `${plain(100 * value, size >= 99.95 ? 0 : size >= 0.95 || size === 0 ? 1 : 2)}\u00a0%`;
}

export function age(seconds) {
  if (seconds === null || seconds === undefined) return NONE;
  const whole = Math.max(0, Math.floor(seconds));
  if (whole < 60) return `${whole} s`;
  const minutes = Math.floor(whole / 60);
  if (minutes < 60) return `${minutes} min`;
  const hours = Math.floor(minutes / 60);
  if (hours < 24) return minutes % 60 ? `${hours} h ${minutes % 60} min` : `${hours} h`;
  return hours % 24 ? `${Math.floor(hours / 24)} d ${hours % 24} h` : `${hours / 24} d`;
}

function two(value) {
  return String(value).padStart(2, "0");
}

const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

function day(date) {
  return `${date.getDate()} ${MONTHS[date.getMonth()]}`;
}

export function clock(date) {
  return `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
}

// With the day unless it is today's, with the year unless it is this year's.
export function moment(iso, now = new Date()) {
  const date = new Date(iso);
  if (date.toDateString() === now.toDateString()) return clock(date);
  const year = date.getFullYear() === now.getFullYear() ? "" : ` ${date.getFullYear()}`;
  return `${day(date)}${year} ${clock(date)}`;
}

// Short, for an axis that spans `milliseconds`.
export function tickTime(iso, milliseconds) {
  const date = new Date(iso);
  if (milliseconds > 2 * 86400e3) return day(date);
  return milliseconds > 600e3 ? clock(date).slice(0, 5) : clock(date);
}

export function played(action, candidates, label) {
  if (action === null) return "baseline";
  if (label) return label;
  return candidates === undefined ? `candidate ${action}` : `candidate ${action} of ${count(candidates)}`;
}
