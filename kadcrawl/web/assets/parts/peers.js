/** Part 4: the peers with their load, rate, memory and version. A name selects the peer in the ring. */
import { html, useMemo } from "../vendor/htm-preact.js";
import { bytes, count, duration, plural, rate, shortId, NOTHING } from "../format.js";
import { colorOf } from "../palette.js";
import { Table } from "../table.js";

export function Peers({ peers, me, selected, onSelect }) {
  const columns = useMemo(() => columnsOf(me, onSelect), [me, onSelect]);
  const all = Object.values(peers);
  const full = all.filter(({ kind }) => kind === "full").length;
  const gone = all.filter(({ alive }) => !alive).length;
  return html`<section class="panel peers" aria-labelledby="peers">
    <h2 id="peers">Peers</h2>
    <p class="quiet">
      ${count(full)} full, ${plural(all.length - full, "leaf", "leaves")}${gone ? `, ${count(gone)} not heard` : ""}
    </p>
    <${Table}
      label="Peers"
      items=${peers}
      columns=${columns}
      sorted="name"
      extra=${selected}
      text=${(peer, id) => `${peer.name} ${peer.address} ${peer.state} ${peer.kind} ${peer.version ?? ""} ${id}`}
      empty="No peer is known."
    />
  </section>`;
}

const columnsOf = (me, onSelect) => [
  {
    key: "name",
    label: "Peer",
    wide: true,
    sort: (peer) => peer.name,
    cell: (peer, id, selected) => named(peer, id, me, selected === id, onSelect),
  },
  { key: "id", label: "ID", low: "wide", sort: (_, id) => id, cell: (_, id) => html`<code>${shortId(id)}</code>` },
  {
    key: "address",
    label: "Address",
    low: "mid",
    sort: (peer) => peer.address,
    cell: (peer) => html`<code>${peer.address}</code>`,
  },
  {
    key: "state",
    label: "State",
    sort: (peer) => (peer.alive ? peer.state : "\uffff"),
    cell: (peer) =>
      peer.alive
        ? html`${peer.state}${peer.kind === "leaf" ? html` <span class="tag">leaf</span>` : ""}`
        : html`<span class="bad">✕ not heard</span>`,
  },
  {
    key: "rate",
    label: "Pages/s",
    number: true,
    sort: (peer) => peer.pages_per_s,
    cell: (peer) => rate(peer.pages_per_s),
  },
  {
    key: "pages",
    label: "Pages",
    number: true,
    low: "narrow",
    sort: (peer) => peer.pages,
    cell: (peer) => count(peer.pages),
  },
  { key: "pending", label: "Pending", number: true, sort: (peer) => peer.pending, cell: (peer) => count(peer.pending) },
  {
    key: "level",
    label: "Load level",
    hint: "Above 0: more work than the peer's own share; it lends. Below 0: room for more",
    number: true,
    low: "narrow",
    sort: (peer) => peer.level,
    cell: (peer) => level(peer.level),
  },
  {
    key: "cells",
    label: "Cells",
    number: true,
    low: "mid",
    sort: (peer) => peer.cells_owned,
    cell: (peer) => count(peer.cells_owned),
  },
  {
    key: "memory",
    label: "Memory",
    number: true,
    low: "mid",
    sort: (peer) => peer.memory_bytes,
    cell: (peer) => bytes(peer.memory_bytes),
  },
  {
    key: "heard",
    label: "Heard",
    hint: "Time since this peer heard of it",
    number: true,
    low: "narrow",
    sort: (peer) => peer.heard_s,
    cell: (peer) => duration(peer.heard_s),
  },
  {
    key: "version",
    label: "Version",
    low: "mid",
    sort: (peer) => peer.version ?? "",
    cell: (peer) => peer.version ?? NOTHING,
  },
];

function named(peer, id, me, isSelected, onSelect) {
  const button = html`<button
    type="button"
    class="plain name"
    aria-pressed=${String(isSelected)}
    title="Show in the ring"
    onClick=${() => onSelect(id)}
  >
    <span class=${`patch color-${colorOf(id)}`} aria-hidden="true"></span>${peer.name}
  </button>`;
  return id === me ? html`${button} <span class="tag">this peer</span>` : button;
}

function level(value) {
  if (value === null || value === undefined) return NOTHING;
  const shown = Math.abs(value) < 0.05 ? "0.0" : Math.abs(value).toFixed(1);
  return value <= -0.05 ? `−${shown}` : shown;
}
