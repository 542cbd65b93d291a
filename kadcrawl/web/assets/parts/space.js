/** Part 3: the key space as a ring, as the tree of XOR distances, or as a table, with the moves between peers. */
import { Component, html, useMemo, useState } from "../vendor/htm-preact.js";
import { clock, count, percent, plural, shortId, NOTHING } from "../format.js";
import { arcsOf, pointsOf, sharesOf } from "../keys.js";
import { colorOf, useMedia } from "../palette.js";
import { Table } from "../table.js";
import { Ring } from "./ring.js";
import { Tree } from "./tree.js";

/** Seconds in which a move is drawn: while it happens, and a little longer where nothing moves. */
const MOVE_S = 6;
const STILL_S = 30;
const VIEWS = [
  ["ring", "Ring"],
  ["tree", "XOR tree"],
  ["table", "Table"],
];

export function Space({ peers, moves, now, me, cellBits, selected, way }) {
  const [view, setView] = useState("ring");
  const still = useMedia("(prefers-reduced-motion: reduce)");
  const owners = Object.keys(peers).filter((id) => peers[id].kind === "full" && peers[id].alive);
  const known = owners.sort().join();
  const space = useMemo(() => {
    const points = pointsOf(owners);
    return { points, arcs: arcsOf(points), shares: sharesOf(points, cellBits) };
  }, [known, cellBits]);
  const gone = Object.keys(peers).filter((id) => peers[id].kind === "full" && !peers[id].alive);
  const shown = Object.entries(moves).filter(([, move]) => now - move.at < (still ? STILL_S : MOVE_S));
  const names = Object.fromEntries(Object.entries(peers).map(([id, { name }]) => [id, name]));
  const label = `The key space of ${plural(owners.length, "peer")}, ${plural(space.arcs.length, "range")}; ${
    shown.length ? plural(shown.length, "move") : "nothing moves"
  }. The table says the same.`;
  const picture = { space, gone: gone.join(), names, me, selected, way, shown, still, label };
  return html`<section class="panel space" aria-labelledby="space">
    <h2 id="space">Key space</h2>
    <fieldset class="views">
      <legend class="hidden">Show the key space as</legend>
      ${VIEWS.map(
        ([value, text]) =>
          html`<label key=${value}>
            <input type="radio" name="view" value=${value} checked=${view === value} onChange=${() => setView(value)} />
            <span>${text}</span>
          </label>`,
      )}
    </fieldset>
    ${view === "ring" && html`<${Ring} ...${picture} />`} ${view === "tree" && html`<${Tree} ...${picture} />`}
    ${view === "table" && html`<${Shares} space=${space} names=${names} me=${me} cellBits=${cellBits} />`}
    ${view !== "table" && html`<${Key} names=${names} selected=${selected} shares=${space.shares} />`}
    <${Moves} moves=${moves} names=${names} now=${now} />
  </section>`;
}

/** What the marks mean, and the share of the selected peer. */
function Key({ names, selected, shares }) {
  return html`<ul class="legend marks">
    <li>${Mark(24, html`<path class="chord cells" d="M1 5h22" />`)}cells move</li>
    <li>${Mark(24, html`<path class="chord loan" d="M1 5h22" />`)}loan</li>
    <li>${Mark(10, html`<circle class="me" cx="5" cy="5" r="3.5" />`)}this peer</li>
    ${
      selected &&
      names[selected] &&
      html`<li>
      <span class=${`patch color-${colorOf(selected)}`} aria-hidden="true"></span>
      ${names[selected]} owns <b class="number">${percent(shares.get(selected) ?? 0)}</b>
    </li>`
    }
  </ul>`;
}

const Mark = (width, shape) =>
  html`<svg viewBox="0 0 ${width} 10" width=${width} height="10" aria-hidden="true">${shape}</svg>`;

function Shares({ space, names, me, cellBits }) {
  const items = useMemo(() => {
    const rows = {};
    for (const { id } of space.points) rows[id] = { name: names[id], share: space.shares.get(id), ranges: [] };
    for (const arc of space.arcs) rows[arc.id]?.ranges.push(arc);
    return rows;
  }, [space]);
  const columns = useMemo(() => shareColumns(me, cellBits), [me, cellBits]);
  const empty = "No peer owns keys.";
  const table = { label: "Ranges of the peers", items, columns, sorted: "share", descending: true, height: 9, empty };
  return html`<${Table} ...${table} />`;
}

const shareColumns = (me, cellBits) => [
  {
    key: "name",
    label: "Peer",
    wide: true,
    sort: (row) => row.name,
    cell: (row, id) => html`${row.name}${id === me ? html` <span class="tag">this peer</span>` : ""}`,
  },
  { key: "id", label: "ID", low: "narrow", sort: (_, id) => id, cell: (_, id) => html`<code>${shortId(id)}</code>` },
  { key: "share", label: "Share", number: true, sort: (row) => row.share, cell: (row) => percent(row.share) },
  {
    key: "cells",
    label: "Cells",
    number: true,
    sort: (row) => row.share,
    cell: (row) => count(row.share * 2 ** cellBits),
  },
  {
    key: "ranges",
    label: "Ranges",
    number: true,
    sort: (row) => row.ranges.length,
    cell: (row) => count(row.ranges.length),
  },
  {
    key: "first",
    label: "First range",
    low: "mid",
    cell: (row) =>
      row.ranges.length ? html`<code>${bound(row.ranges[0].from)}…${bound(row.ranges[0].to)}</code>` : NOTHING,
  },
];

/** Returns a place as the first digits of a key. */
const bound = (place) =>
  Math.min(0xffff, Math.round(place * 0x10000))
    .toString(16)
    .padStart(4, "0");

/** The last moves as a list, newest first. */
class Moves extends Component {
  shouldComponentUpdate(next) {
    return next.moves !== this.props.moves;
  }

  render({ moves, names, now }) {
    const numbers = Object.keys(moves).sort((a, b) => Number(b) - Number(a));
    const named = (id) => names[id] ?? shortId(id);
    return html`<details class="moves">
      <summary>${numbers.length ? `The last ${plural(numbers.length, "move")}` : "Nothing has moved yet"}</summary>
      <div class="scroll low" tabindex="0" role="region" aria-label="Moves">
        <table class="log">
          <thead>
            <tr>
              <th scope="col">Time</th>
              <th scope="col">What</th>
              <th scope="col">From</th>
              <th scope="col">To</th>
            </tr>
          </thead>
          <tbody>
            ${numbers.map((number) => {
              const move = moves[number];
              return html`<tr key=${number}>
                <td class="time">${clock(move.at, now)}</td>
                <td>${plural(move.count, ...(move.kind === "loan" ? ["URL lent", "URLs lent"] : ["cell", "cells"]))}</td>
                <td>${named(move.from)}</td>
                <td>${named(move.to)}</td>
              </tr>`;
            })}
          </tbody>
        </table>
      </div>
    </details>`;
  }
}
