/** A table that shows thousands of rows without delay: only the rows in view are in the page. */
import { Component, html, useLayoutEffect, useMemo, useRef, useState } from "./vendor/htm-preact.js";
import { count, plural } from "./format.js";

/** Height of a row in pixels, as `--row` in style.css. */
const ROW = 28;
/** Rows kept above and below those in view. */
const MARGIN = 6;

/** One row. It renders anew only when its data, or what its cells take besides, is another. */
class Row extends Component {
  shouldComponentUpdate(next) {
    const { data, extra, columns, index } = this.props;
    return data !== next.data || extra !== next.extra || columns !== next.columns || index !== next.index;
  }

  render({ id, data, columns, extra, index }) {
    return html`<tr aria-rowindex=${index + 2}>
      ${columns.map(({ key, number, low, wide, cell }) => {
        const classes = [number && "number", low && `low-${low}`, wide && "wide"].filter(Boolean).join(" ");
        return html`<td key=${key} class=${classes}>${cell(data, id, extra)}</td>`;
      })}
    </tr>`;
  }
}

/**
 * Shows `items`, an object by ID. A column is {key, label, hint, number, low, sort(data, id), cell(data, id, extra)};
 * `low` leaves it out on narrow screens. `text(data, id)` is what the filter searches.
 */
export function Table({ label, items, columns, sorted, descending, text, extra, height = 13, empty }) {
  const [order, setOrder] = useState({ key: sorted, descending });
  const [wanted, setWanted] = useState("");
  const [top, setTop] = useState(0);
  const box = useRef(null);
  const ids = useMemo(
    () =>
      sortedIds(
        items,
        columns.find(({ key }) => key === order.key),
        order.descending,
        wanted,
        text,
      ),
    [items, columns, order, wanted],
  );
  const last = Math.max(0, ids.length - height);
  const first = Math.max(0, Math.min(Math.floor(top / ROW), last) - MARGIN);
  const end = Math.min(ids.length, Math.min(Math.floor(top / ROW), last) + height + MARGIN);
  useLayoutEffect(() => {
    if (box.current && box.current.scrollTop > last * ROW) setTop(box.current.scrollTop);
  }, [last]);
  const sortBy = (column) =>
    setOrder({ key: column.key, descending: order.key === column.key ? !order.descending : Boolean(column.number) });
  const total = Object.keys(items).length;
  return html`
    ${
      text &&
      html`<div class="filter">
      <label>Filter <input type="search" value=${wanted} onInput=${(event) => setWanted(event.target.value)} /></label>
      <span class="quiet">${wanted ? `${count(ids.length)} of ${plural(total, "row")}` : plural(total, "row")}</span>
    </div>`
    }
    <div
      class="scroll"
      ref=${box}
      tabindex="0"
      role="region"
      aria-label=${label}
      style=${{ maxHeight: `${(height + 1) * ROW + 2}px` }}
      onScroll=${(event) => setTop(event.currentTarget.scrollTop)}
    >
      <table aria-rowcount=${ids.length + 1}>
        <thead>
          <tr aria-rowindex="1">
            ${columns.map((column) => Head({ column, order, sortBy }))}
          </tr>
        </thead>
        <tbody>
          ${first > 0 && Space("above", first)}
          ${ids
            .slice(first, end)
            .map(
              (id, at) => html`<${Row} key=${id} ...${{ id, data: items[id], columns, extra, index: first + at }} />`,
            )}
          ${end < ids.length && Space("below", ids.length - end)}
          ${
            !ids.length &&
            html`<tr>
              <td class="empty" colspan=${columns.length}>${wanted ? "No row has this text." : empty}</td>
            </tr>`
          }
        </tbody>
      </table>
    </div>
  `;
}

/** The room of rows that are not in the page. */
function Space(key, rows) {
  return html`<tr key=${key} class="space" aria-hidden="true"><td style=${{ height: `${rows * ROW}px` }}></td></tr>`;
}

function Head({ column, order, sortBy }) {
  const { key, label, hint, number, low, sort } = column;
  const active = order.key === key;
  const classes = [number && "number", low && `low-${low}`].filter(Boolean).join(" ");
  const direction = active ? (order.descending ? "descending" : "ascending") : undefined;
  if (!sort) return html`<th key=${key} scope="col" class=${classes}>${label}</th>`;
  return html`<th key=${key} scope="col" class=${classes} aria-sort=${direction}>
    <button type="button" title=${hint} onClick=${() => sortBy(column)}>
      ${label}<span class="arrow" aria-hidden="true">${active ? (order.descending ? "▾" : "▴") : ""}</span>
    </button>
  </th>`;
}

function sortedIds(items, column, descending, wanted, text) {
  let ids = Object.keys(items);
  if (wanted) {
    const needle = wanted.toLowerCase();
    ids = ids.filter((id) => text(items[id], id).toLowerCase().includes(needle));
  }
  if (!column) return ids;
  const value = new Map(ids.map((id) => [id, column.sort(items[id], id)]));
  const sign = descending ? -1 : 1;
  return ids.sort((a, b) => sign * compare(value.get(a), value.get(b)) || (a < b ? -1 : 1));
}

/** Orders names with numbers in them as people do: peer-2 before peer-10. */
const NAMES = new Intl.Collator("en", { numeric: true });

function compare(a, b) {
  if (typeof a === "string" && typeof b === "string") return NAMES.compare(a, b);
  return (a ?? -Infinity) - (b ?? -Infinity) || 0;
}
