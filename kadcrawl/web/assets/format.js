/** Numbers, sizes and times as text, of one form everywhere on the page. */

const WHOLE = new Intl.NumberFormat("en-US", { maximumFractionDigits: 0 });

export const NOTHING = "–";

const missing = (value) => value === null || value === undefined || Number.isNaN(value);

/** Returns a whole number with separators: 12,345. */
export const count = (value) => (missing(value) ? NOTHING : WHOLE.format(value));

/** Returns a number as the label of an axis: 0.5, 40, 2,500, 1.5 M. */
export const label = (value) => {
  for (const [size, unit] of [
    [1e9, "G"],
    [1e6, "M"],
  ])
    if (value >= size) return `${Number((value / size).toPrecision(4))} ${unit}`;
  return value.toLocaleString("en-US", { maximumSignificantDigits: 6 });
};

/** Returns a rate with three figures at most: 0.04, 4.1, 41.2, 412. */
export function rate(value) {
  if (missing(value)) return NOTHING;
  const digits = value >= 100 || value === 0 ? 0 : value >= 1 ? 1 : 2;
  return value.toLocaleString("en-US", { minimumFractionDigits: digits, maximumFractionDigits: digits });
}

/** Returns a number of bytes: 512 B, 48.1 MB, 1.2 GB. */
export function bytes(value) {
  if (missing(value)) return NOTHING;
  const units = ["B", "kB", "MB", "GB", "TB", "PB"];
  let unit = 0;
  while (value >= 1000 && unit < units.length - 1) {
    value /= 1000;
    unit += 1;
  }
  return `${unit && value < 100 ? value.toFixed(1) : Math.round(value)} ${units[unit]}`;
}

/** Returns a duration in two units at most: 0.5 s, 12 s, 3 min 20 s, 2 h 5 min, 4 d 3 h. */
export function duration(seconds) {
  if (missing(seconds)) return NOTHING;
  if (seconds < 0) seconds = 0;
  if (seconds < 9.95 && seconds % 1) return `${seconds.toFixed(1)} s`;
  let rest = Math.round(seconds);
  if (rest < 60) return `${rest} s`;
  if (rest < 3600) return pair(Math.floor(rest / 60), "min", rest % 60, "s");
  rest = Math.round(rest / 60);
  if (rest < 1440) return pair(Math.floor(rest / 60), "h", rest % 60, "min");
  rest = Math.round(rest / 60);
  return pair(Math.floor(rest / 24), "d", rest % 24, "h");
}

const pair = (large, largeUnit, small, smallUnit) =>
  small ? `${large} ${largeUnit} ${small} ${smallUnit}` : `${large} ${largeUnit}`;

/** Returns a share of one as a percentage. */
export const percent = (share) => (missing(share) ? NOTHING : `${(100 * share).toFixed(share < 0.0995 ? 2 : 1)} %`);

/** Returns the time of day, with the day where it is another one than today's. */
export function clock(unix, now = Date.now() / 1000) {
  if (missing(unix)) return NOTHING;
  const at = new Date(unix * 1000);
  const time = [at.getHours(), at.getMinutes(), at.getSeconds()].map((part) => String(part).padStart(2, "0")).join(":");
  if (at.toDateString() === new Date(now * 1000).toDateString()) return time;
  const day = [at.getFullYear(), at.getMonth() + 1, at.getDate()]
    .map((part) => String(part).padStart(2, "0"))
    .join("-");
  return `${day} ${time}`;
}

/** Returns the noun for a number: 1 page, 2 pages. */
export const plural = (number, one, many = `${one}s`) => `${count(number)} ${number === 1 ? one : many}`;

/** Returns the first digits of a node ID. */
export const shortId = (id) => (id ? id.slice(0, 8) : NOTHING);
