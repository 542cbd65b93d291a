/** What the charts draw, from the series of the document: the fastest peers stacked, and where found and done meet. */

/** Peers that have a band of their own. All others share one. */
export const BANDS_MAX = 7;
export const OTHERS = "others";

/** Returns the IDs of the peers with bands of their own: the fastest of the window, in the order of IDs. */
export function fastest(rates, most = BANDS_MAX) {
  const sums = Object.entries(rates)
    .filter(([id]) => id !== OTHERS)
    .map(([id, values]) => [id, values.reduce((sum, value) => sum + (value ?? 0), 0)]);
  return sums
    .sort(([a, one], [b, other]) => other - one || (a < b ? -1 : 1))
    .slice(0, most)
    .map(([id]) => id)
    .sort();
}

/** Returns {values, sums}: the rates of each band, the others last, and their sums from the bottom up. */
export function stack(series, ids) {
  const length = series.t.length;
  const rest = Object.keys(series.rates).filter((id) => !ids.includes(id));
  const values = ids.map((id) => series.rates[id].map((value) => value ?? 0));
  if (rest.length) {
    const others = new Array(length).fill(0);
    for (const id of rest) series.rates[id].forEach((value, at) => (others[at] += value ?? 0));
    values.push(others);
  }
  const sums = [];
  for (const band of values) {
    const below = sums[sums.length - 1];
    sums.push(below ? band.map((value, at) => value + below[at]) : band);
  }
  return { values, sums };
}

/**
 * Returns the time axis [from, to]. It reaches to the estimated end where that is less than a window away, so that a
 * far end does not press the past together.
 */
export function axisOf(times, now, endInS) {
  const from = times[0] ?? now - 60;
  const to = Math.max(times[times.length - 1] ?? now, from + 60);
  if (endInS === null || endInS === undefined || endInS > to - from) return [from, to];
  return [from, Math.max(to, now + endInS)];
}
