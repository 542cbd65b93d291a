/**
 * The key space: which peer owns what, from node IDs alone, as kadcrawl/keys.py and overlay/ownership.py say.
 *
 * A cell is the top `cellBits` bits of a key. Its owner is the peer XOR-closest to its anchor, the key whose other bits
 * are zero. A node ID is 40 hexadecimal digits. Its first 32 bits are a number here, which holds every cell (24 bits).
 */

/** Bits of the sectors that a picture shows: 4096 sectors of a tenth of a degree. */
export const PICTURE_BITS = 12;

/** Returns the points of node IDs, in the order of the space. */
export function pointsOf(ids) {
  return [...ids].sort().map((id) => ({ id, head: parseInt(id.slice(0, 8), 16) }));
}

/** Returns the place of a key or node ID in the space, from 0 to 1. */
export const placeOf = (hex) => parseInt(hex.slice(0, 8), 16) / 2 ** 32;

/** Returns the node ID of the owner of a cell, or null without peers. */
export function ownerOf(cell, cellBits, points) {
  const anchor = (cell << (32 - cellBits)) >>> 0;
  let owner = null;
  let nearest = Infinity;
  for (const { id, head } of points) {
    const distance = (head ^ anchor) >>> 0;
    // Points are sorted: of two with one head, the first has the smaller rest, and the rest of an anchor is zero.
    if (distance < nearest) [owner, nearest] = [id, distance];
  }
  return owner;
}

/** Returns the cell of a key in hexadecimal digits. */
export const cellOf = (hex, cellBits) => parseInt(hex.slice(0, 8), 16) >>> (32 - cellBits);

/**
 * Returns the arcs of the space, as {from, to, id} with places from 0 to 1, in order, neighbors of one owner merged.
 *
 * Where one half of a range holds no peer, its keys belong to the peers of the other half, in the same proportions.
 */
export function arcsOf(points, bits = PICTURE_BITS) {
  const arcs = [];
  const size = 2 ** bits;
  const add = (start, length, { id }) => {
    const last = arcs[arcs.length - 1];
    if (last?.id === id) last.to = (start + length) / size;
    else arcs.push({ from: start / size, to: (start + length) / size, id });
  };
  const split = (start, length, low, high, bit) => {
    if (high - low === 1 || length === 1) return add(start, length, points[low]);
    const middle = firstWithBit(points, low, high, bit);
    const half = length / 2;
    split(start, half, low, middle === low ? high : middle, bit - 1);
    split(start + half, half, middle === high ? low : middle, high, bit - 1);
  };
  if (points.length) split(0, size, 0, points.length, 31);
  return arcs;
}

/** Returns the share of the space that each peer owns, by node ID. It is exact: a whole number of cells. */
export function sharesOf(points, cellBits) {
  const shares = new Map(points.map(({ id }) => [id, 0]));
  const split = (share, low, high, bit) => {
    if (high - low === 1 || bit < 32 - cellBits) return shares.set(points[low].id, share);
    const middle = firstWithBit(points, low, high, bit);
    if (middle === low || middle === high) return split(share, low, high, bit - 1);
    split(share / 2, low, middle, bit - 1);
    split(share / 2, middle, high, bit - 1);
  };
  if (points.length) split(1, 0, points.length, 31);
  return shares;
}

/**
 * Returns the tree of the node IDs: inner nodes {bit, left, right}, leaves {id}. Bits in which all agree are left out.
 */
export function treeOf(points) {
  const split = (low, high, bit) => {
    if (high - low === 1 || bit < 0) return { id: points[low].id };
    const middle = firstWithBit(points, low, high, bit);
    if (middle === low || middle === high) return split(low, high, bit - 1);
    return { bit, left: split(low, middle, bit - 1), right: split(middle, high, bit - 1) };
  };
  return points.length ? split(0, points.length, 31) : null;
}

function firstWithBit(points, low, high, bit) {
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((points[middle].head >>> bit) & 1) high = middle;
    else low = middle + 1;
  }
  return low;
}
