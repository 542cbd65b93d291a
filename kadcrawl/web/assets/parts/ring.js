/** The key space as a ring: 0 is at the top, keys grow clockwise, each peer's ranges are arcs, moves are chords. */
import { Component, html } from "../vendor/htm-preact.js";
import { percent } from "../format.js";
import { placeOf } from "../keys.js";
import { colorOf } from "../palette.js";

const SIZE = 400;
const MIDDLE = SIZE / 2;
const OUTER = 158;
const INNER = 134;
const DOTS = 168;
const LABELS = 178;
/** Peers that have their names in the picture. */
const NAMES_MAX = 16;
/** Peers that have dots. Of more, the dots would be a second ring. */
const DOTS_MAX = 300;
/** The gap between two arcs, in radians, where arcs are wide enough for one. */
const GAP = 0.006;

/** Peers above which colors no longer tell them apart. */
const COLORED_MAX = 64;

/** Returns the classes of a picture. */
export const classOf = (kind, { points }, selected) =>
  `picture ${kind}${selected ? " chosen" : ""}${points.length > COLORED_MAX ? " many" : ""}`;

export const same = (a, b) =>
  Object.keys(b).every((name) => a[name] === b[name] || name === "names" || name === "label");

export class Ring extends Component {
  shouldComponentUpdate(next) {
    const { shown, ...rest } = this.props;
    const { shown: nextShown, ...nextRest } = next;
    return !same(rest, nextRest) || keysOf(shown) !== keysOf(nextShown);
  }

  render({ space, gone, names, me, selected, way, shown, still, label }) {
    const { points, shares } = space;
    const dots = points.length <= DOTS_MAX ? points : points.filter(({ id }) => id === me);
    const radius = radiusOf(points.length);
    return html`<svg
      class=${classOf("ring", space, selected)}
      viewBox="0 0 ${SIZE} ${SIZE}"
      role="img"
      aria-label=${label}
    >
      ${pathsOf(space).map(
        ([id, path], at) => html`<path key=${id} class=${arcClass(id, at, selected)} d=${path}>
          <title>${names[id]}: ${percent(shares.get(id))}</title>
        </path>`,
      )}
      ${[0, 0.25, 0.5, 0.75].map((place) => Tick(place))}
      <g class="dots">
        ${dots.map(({ id }) => Dot({ id, name: names[id], place: spot(placeOf(id), DOTS), radius, me, selected }))}
        ${gone
          .split(",")
          .filter(Boolean)
          .map((id) => Cross(id, names[id]))}
      </g>
      ${points.length <= NAMES_MAX && html`<g class="names">${namesOf(points, names)}</g>`}
      ${Chords({ shown, names, still, path: ({ from, to }) => chord(placeOf(from), placeOf(to)) })}
      ${way && Needle(way)}
    </svg>`;
  }
}

/** Returns the moves as lines. */
export function Chords({ shown, names, still, path }) {
  return html`<g class=${still ? "chords still" : "chords"}>
    ${shown.map(
      ([number, move]) => html`<path key=${number} class=${`chord ${move.kind}`} d=${path(move)}>
        <title>${names[move.from]} to ${names[move.to]}: ${move.count}</title>
      </path>`,
    )}
  </g>`;
}

/** Returns the mark of a peer. */
export function Dot({ id, name, place: [x, y], radius, me, selected }) {
  const own = id === me ? "me" : `dot fill-${colorOf(id)}`;
  const size = id === me ? Math.max(radius, 3) : id === selected ? radius + 2 : radius;
  return html`<circle key=${id} class=${id === selected ? `${own} on` : own} cx=${x} cy=${y} r=${size}>
    <title>${name}</title>
  </circle>`;
}

const arcClass = (id, at, selected) => `arc fill-${colorOf(id)}${at % 2 ? "" : " even"}${id === selected ? " on" : ""}`;

export const keysOf = (shown) => shown.map(([number]) => number).join();

const radiusOf = (peers) => (peers <= 64 ? 3.5 : peers <= 300 ? 2 : 1.2);

export function spot(place, radius) {
  const angle = 2 * Math.PI * place;
  return [MIDDLE + radius * Math.sin(angle), MIDDLE - radius * Math.cos(angle)];
}

const text = (point) => point.map((value) => value.toFixed(2)).join(" ");

/** Returns one path for each peer, for all of its arcs. */
function pathsOf(space) {
  if (space.paths) return space.paths;
  const paths = new Map(space.points.map(({ id }) => [id, ""]));
  for (const { from, to, id } of space.arcs) paths.set(id, paths.get(id) + arc(from, to));
  return (space.paths = [...paths]);
}

function arc(from, to) {
  if (to - from === 1) return arc(0, 0.5) + arc(0.5, 1);
  const gap = Math.min(GAP, (to - from) * Math.PI * 0.4) / (2 * Math.PI) / 2;
  const [start, end] = [from + gap, to - gap];
  const large = end - start > 0.5 ? 1 : 0;
  return (
    `M${text(spot(start, OUTER))}A${OUTER} ${OUTER} 0 ${large} 1 ${text(spot(end, OUTER))}` +
    `L${text(spot(end, INNER))}A${INNER} ${INNER} 0 ${large} 0 ${text(spot(start, INNER))}Z`
  );
}

function chord(from, to) {
  const middle = from + (to - from) / 2 + (Math.abs(to - from) > 0.5 ? 0.5 : 0);
  const distance = Math.min(Math.abs(to - from), 1 - Math.abs(to - from));
  const ends = [from, to].map((place) => text(spot(place, INNER - 4)));
  return `M${ends[0]}Q${text(spot(middle, INNER * (1 - 2 * distance)))} ${ends[1]}`;
}

function Tick(place) {
  const [x, y] = spot(place, INNER - 14);
  const digits = (place * 16).toString(16);
  return html`<text key=${place} class="tick" x=${x} y=${y} text-anchor="middle" dominant-baseline="central">
    ${digits}…
  </text>`;
}

function Cross(id, name) {
  const [x, y] = spot(placeOf(id), DOTS);
  return html`<path key=${id} class="gone" d="M${x - 4} ${y - 4}l8 8m0 -8l-8 8">
    <title>${name} is not heard</title>
  </path>`;
}

/** Returns the names beside their dots. */
function namesOf(points, names) {
  const places = apart(points.map(({ id }) => placeOf(id)));
  return points.map(({ id }, at) => {
    const [x, y] = spot(places[at], LABELS);
    const side = Math.sin(2 * Math.PI * places[at]);
    const anchor = Math.abs(side) < 0.2 ? "middle" : side > 0 ? "start" : "end";
    return html`<text key=${id} x=${x} y=${y} text-anchor=${anchor} dominant-baseline="central">
      ${(names[id] ?? "").slice(0, 12)}
    </text>`;
  });
}

/** Returns places around the ring, in order, pushed apart until no two names lie on each other. */
function apart(places) {
  for (let round = 0; places.length > 1 && round < 40; round += 1) {
    for (let at = 0; at < places.length; at += 1) {
      const next = (at + 1) % places.length;
      const gap = places[next] - places[at] + (next ? 0 : 1);
      // Names beside each other, at the top and the bottom, need more room than names below each other.
      const lacks = 0.014 + 0.028 * Math.abs(Math.cos(2 * Math.PI * places[at])) - gap;
      if (lacks > 0) {
        places[at] -= lacks / 2;
        places[next] += lacks / 2;
      }
    }
  }
  return places;
}

function Needle(way) {
  const place = placeOf(way.key);
  const mark = (id, kind) => {
    const end = spot(placeOf(id), INNER - 3);
    const bend = [spot(place, INNER - 3), [MIDDLE, MIDDLE], end].map(text).join("L");
    return html`<path class=${`needle ${kind}`} d=${`M${bend}`} />`;
  };
  const [x, y] = spot(place, (INNER + OUTER) / 2);
  return html`<g class="way-mark">
    ${(way.backups ?? []).map(({ id }) => mark(id, "backup"))} ${way.owner && mark(way.owner.id, "owner")}
    <circle class="key" cx=${x} cy=${y} r="5"><title>the key of ${way.url}</title></circle>
  </g>`;
}
