"use strict";
// Shared by the charts: the data, shared state, elements, number formats, axes.

const DATA = JSON.parse(document.getElementById("run-data").textContent);

// A value that tells its watchers when it changes.
function signal(value) {
  const watchers = [];
  return {
    get: () => value,
    set(next) {
      value = next;
      watchers.forEach((watcher) => watcher(value));
    },
    watch(watcher) {
      watchers.push(watcher);
      watcher(value);
    },
  };
}

const chosen = signal(null); // topic shown in the map and among the cards
const matches = signal(new Map()); // topic found by the search -> its matching words

function maker(space) {
  return (name, attributes = {}, ...children) => {
    const element = document.createElementNS(space, name);
    Object.entries(attributes).forEach(([key, value]) => element.setAttribute(key, value));
    element.append(...children);
    return element;
  };
}
const html = maker("http://www.w3.org/1999/xhtml");
const svg = maker("http://www.w3.org/2000/svg");

const digits = (options) => new Intl.NumberFormat("en-US", options).format;
const whole = digits({ maximumFractionDigits: 0 });
const four = digits({ maximumSignificantDigits: 4 });
const minus = (text) => text.replace("-", "−"); // as wide as digits are
const plain = (value) => minus(Math.abs(value) >= 1000 ? whole(value) : four(value));
const percent = digits({ style: "percent", minimumFractionDigits: 1, maximumFractionDigits: 1 });
const short = digits({ notation: "compact", maximumSignificantDigits: 3 });
const largest = (values) => values.reduce((a, b) => Math.max(a, b), -Infinity);
const smallest = (values) => values.reduce((a, b) => Math.min(a, b), Infinity);

// Position of a value between two ends of an axis.
function axis([low, high], [from, to], log) {
  const f = log ? Math.log : (value) => value;
  const span = f(high) - f(low) || 1;
  const scale = (value) => from + ((f(value) - f(low)) / span) * (to - from);
  scale.ticks = log && high / low > 8 ? decades(low, high) : steps(low, high);
  return scale;
}

// Multiples of 1, 2, 2.5 or 5 times a power of ten, about five of them.
function steps(low, high) {
  const raw = (high - low || 1) / 5;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 2.5, 5, 10].find((factor) => factor * power >= raw) * power;
  const first = Math.ceil(low / step - 1e-9);
  const count = Math.floor(high / step + 1e-9) - first + 1;
  return Array.from({ length: count }, (_, i) => (first + i) * step);
}

// Texts of ticks, with as many digits as tell them apart.
function tickTexts(ticks) {
  const texts = ticks.map(plain);
  if (new Set(texts).size === ticks.length) return texts;
  const places = placesOf(ticks);
  const text = digits({ minimumFractionDigits: places, maximumFractionDigits: places });
  return ticks.map((tick) => minus(text(tick)));
}

// Decimal places that the step between ticks has.
function placesOf(ticks) {
  const step = ticks[1] - ticks[0];
  let places = 0;
  while (places < 15 && Math.abs(Number(step.toFixed(places)) - step) > 1e-6 * step) places += 1;
  return places;
}

// A value beside these ticks, with a digit more than they have, so that it can lie between them.
function finer(value, ticks) {
  if (ticks.length < 2 || ticks[1] - ticks[0] >= 10) return plain(value);
  const places = Math.min(15, placesOf(ticks) + 1);
  const text = minus(digits({ maximumFractionDigits: places })(value));
  return text.length > plain(value).length ? text : plain(value);
}

// 1, 2, 5, 10, 20, ...; powers of ten alone where those would be too many.
function decades(low, high) {
  const ticks = [];
  const factors = high / low > 1e4 ? [1] : [1, 2, 5];
  for (let e = Math.floor(Math.log10(low)); e <= Math.log10(high); e += 1) {
    ticks.push(...factors.map((factor) => Number(`${factor}e${e}`)));
  }
  return ticks.filter((tick) => tick >= low && tick <= high);
}
