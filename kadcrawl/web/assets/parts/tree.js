/** The tree of node IDs: peers that agree in more bits meet lower. Bits in which no two peers differ are left out. */
import { Component, html } from "../vendor/htm-preact.js";
import { placeOf, treeOf } from "../keys.js";
import { colorOf } from "../palette.js";
import { keysOf, same } from "./ring.js";

const WIDTH = 400;
const HEIGHT = 400;
const EDGE = 12;
const TOP = 20;
const LEAVES = 268;
const NAMES_MAX = 24;

export class Tree extends Component {
  shouldComponentUpdate(next) {
    const { shown, ...rest } = this.props;
    const { shown: nextShown, ...nextRest } = next;
    return !same(rest, nextRest) || keysOf(shown) !== keysOf(nextShown);
  }

  render({ space, names, me, selected, way, shown, still, label }) {
    const { lines, leaves, depth } = layoutOf(space);
    const at = (id) => leaves.get(id);
    const radius = leaves.size <= 64 ? 4 : leaves.size <= 300 ? 2 : 1;
    return html`<svg class=${selected ? "picture tree chosen" : "picture tree"} viewBox="0 0 ${WIDTH} ${HEIGHT}" role="img" aria-label=${label}>
      ${[...Array(Math.min(depth + 1, 12)).keys()].map((bit) => html`<path class="level" d=${`M${EDGE} ${levelOf(bit, depth)}H${WIDTH - EDGE}`} />`)}
      <path class="branches" d=${lines} />
      <g class=${still ? "chords still" : "chords"}>
        ${shown
          .filter(([, move]) => leaves.has(move.from) && leaves.has(move.to))
          .map(([number, move]) => html`<path key=${number} class=${`chord ${move.kind}`} d=${hanging(at(move.from), at(move.to))}><title>${names[move.from]} to ${names[move.to]}: ${move.count}</title></path>`)}
      </g>
      ${[...leaves].map(
        ([id, x]) => html`<circle key=${id} class=${id === me ? "me" : `dot fill-${colorOf(id)}${id === selected ? " on" : ""}`} cx=${x} cy=${LEAVES} r=${id === me ? Math.max(radius, 3) : id === selected ? radius + 3 : radius}><title>${names[id]}</title></circle>`,
      )}
      ${leaves.size <= NAMES_MAX &&
      html`<g class="names">
        ${[...leaves].map(([id, x]) => html`<text key=${id} x=${x} y=${LEAVES + 10} transform="rotate(90 ${x} ${LEAVES + 10})" dominant-baseline="central">${(names[id] ?? "").slice(0, 14)}</text>`)}
      </g>`}
      ${way?.owner && leaves.has(way.owner.id) && html`<circle class="key" cx=${at(way.owner.id)} cy=${LEAVES} r="7"><title>the owner of ${way.url}, whose key is at ${(100 * placeOf(way.key)).toFixed(1)} %</title></circle>`}
    </svg>`;
  }
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
    for (const [endX, endY] of ends) parts.push(`M${x.toFixed(1)} ${y.toFixed(1)}H${endX.toFixed(1)}V${endY.toFixed(1)}`);
    return [x, y];
  };
  if (root) visit(root);
  return (space.tree = { lines: parts.join(""), leaves, depth });
}

const depthOf = (node) => (!node || node.id !== undefined ? 0 : Math.max(31 - node.bit, depthOf(node.left), depthOf(node.right)));

function hanging(from, to) {
  const depth = 20 + Math.abs(to - from) * 0.25;
  return `M${from} ${LEAVES}C${from} ${LEAVES + depth} ${to} ${LEAVES + depth} ${to} ${LEAVES}`;
}
