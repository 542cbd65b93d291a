/** The tree of node IDs: peers that agree in more bits meet lower. Bits in which no two peers differ are left out. */
import { Component, html } from "../vendor/htm-preact.js";
import { placeOf, treeOf } from "../keys.js";
import { Chords, classOf, Dot, keysOf, same } from "./ring.js";

const WIDTH = 400;
const HEIGHT = 400;
const EDGE = 12;
const TOP = 20;
const LEAVES = 268;
const NAMES_MAX = 24;
/** Levels with a line of their own: deeper ones would fill the picture. */
const LEVELS_MAX = 12;

export class Tree extends Component {
  shouldComponentUpdate(next) {
    const { shown, ...rest } = this.props;
    const { shown: nextShown, ...nextRest } = next;
    return !same(rest, nextRest) || keysOf(shown) !== keysOf(nextShown);
  }

  render({ space, names, me, selected, way, shown, still, label }) {
    const { lines, leaves, depth } = layoutOf(space);
    const radius = leaves.size <= 64 ? 4 : leaves.size <= 300 ? 2 : 1;
    const named = leaves.size <= NAMES_MAX;
    const path = ({ from, to }) => hanging(leaves.get(from), leaves.get(to), named ? LEAVES + 62 : LEAVES + 4);
    const drawn = shown.filter(([, { from, to }]) => leaves.has(from) && leaves.has(to));
    const levels = [...Array(Math.min(depth + 1, LEVELS_MAX)).keys()];
    return html`<svg
      class=${classOf("tree", space, selected)}
      viewBox="0 0 ${WIDTH} ${HEIGHT}"
      role="img"
      aria-label=${label}
    >
      ${levels.map((bit) => html`<path class="level" d=${`M${EDGE} ${levelOf(bit, depth)}H${WIDTH - EDGE}`} />`)}
      <path class="branches" d=${lines} />
      ${Chords({ shown: drawn, names, still, path })}
      ${[...leaves].map(([id, x]) => Dot({ id, name: names[id], place: [x, LEAVES], radius, me, selected }))}
      ${named && html`<g class="names">${[...leaves].map(([id, x]) => Name(id, x, names[id]))}</g>`}
      ${way?.owner && leaves.has(way.owner.id) && Owner(way, leaves.get(way.owner.id))}
    </svg>`;
  }
}

function Name(id, x, name) {
  const turned = `rotate(90 ${x} ${LEAVES + 10})`;
  return html`<text key=${id} x=${x} y=${LEAVES + 10} transform=${turned} dominant-baseline="central">
    ${(name ?? "").slice(0, 12)}
  </text>`;
}

function Owner(way, x) {
  return html`<circle class="key" cx=${x} cy=${LEAVES} r="7">
    <title>the owner of ${way.url}, whose key is at ${(100 * placeOf(way.key)).toFixed(1)} %</title>
  </circle>`;
}

const levelOf = (bit, depth) => TOP + ((LEAVES - TOP) * bit) / Math.max(depth, 1);

/** Returns the lines of the tree as one path, and the place of each leaf. */
function layoutOf(space) {
  if (space.tree) return space.tree;
  const leaves = new Map();
  const step = (WIDTH - 2 * EDGE) / Math.max(space.points.length - 1, 1);
  space.points.forEach(({ id }, at) => leaves.set(id, space.points.length === 1 ? WIDTH / 2 : EDGE + at * step));
  const root = treeOf(space.points);
  const depth = depthOf(root) + 1;
  const parts = [];
  const visit = (node) => {
    if (node.id !== undefined) return [leaves.get(node.id), LEAVES];
    const y = levelOf(31 - node.bit, depth);
    const ends = [visit(node.left), visit(node.right)];
    const x = (ends[0][0] + ends[1][0]) / 2;
    for (const [endX, endY] of ends)
      parts.push(`M${x.toFixed(1)} ${y.toFixed(1)}H${endX.toFixed(1)}V${endY.toFixed(1)}`);
    return [x, y];
  };
  if (root) visit(root);
  return (space.tree = { lines: parts.join(""), leaves, depth });
}

const depthOf = (node) =>
  !node || node.id !== undefined ? 0 : Math.max(31 - node.bit, depthOf(node.left), depthOf(node.right));

/** Returns a curve below the leaves and their names, which begin at `top`. */
function hanging(from, to, top) {
  const depth = top + 16 + Math.abs(to - from) * 0.16;
  return `M${from} ${top}C${from} ${depth} ${to} ${depth} ${to} ${top}`;
}
