/** Keeps the document of the swarm: JSON merge patches (RFC 7396) and one new point of the series at a time. */

/** Points of the series that are kept. */
export const POINTS_MAX = 600;

const isObject = (value) => value !== null && typeof value === "object" && !Array.isArray(value);

/**
 * Returns the document with the patch applied. Unchanged members keep their identity, so that a view may compare them.
 * Objects have no prototype: a site may be named `__proto__`.
 */
export function mergePatch(target, patch) {
  if (!isObject(patch)) return patch;
  const merged = Object.assign(Object.create(null), isObject(target) ? target : null);
  for (const name of Object.keys(patch)) {
    if (patch[name] === null) delete merged[name];
    else merged[name] = mergePatch(merged[name], patch[name]);
  }
  return merged;
}

/** Returns the document after one `change` event. */
export function applyChange(document, patch) {
  const { series_tail: tail, ...rest } = patch;
  const merged = mergePatch(document, rest);
  if (tail) merged.series = withPoint(merged.series, tail);
  return merged;
}

/** Returns the series with a newer point appended, and without the oldest point above the limit. */
export function withPoint(series, tail) {
  const before = series ?? { t: [], found: [], done: [], rates: {} };
  const length = before.t.length;
  if (length && !(tail.t > before.t[length - 1])) return before;
  const from = Math.max(0, length + 1 - POINTS_MAX);
  const rates = Object.create(null);
  const told = tail.rates ?? {};
  for (const id of new Set([...Object.keys(before.rates), ...Object.keys(told)])) {
    const known = before.rates[id] ?? new Array(length).fill(null);
    const kept = known.slice(from);
    kept.push(told[id] ?? null);
    if (kept.some((rate) => rate !== null)) rates[id] = kept;
  }
  return {
    ...before,
    t: [...before.t.slice(from), tail.t],
    found: [...before.found.slice(from), tail.found],
    done: [...before.done.slice(from), tail.done],
    rates,
  };
}
