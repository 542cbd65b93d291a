/** Part 5: the sites with most waiting URLs, and the orders for single sites. */
import { html, useMemo, useRef, useState } from "../vendor/htm-preact.js";
import { count, duration, plural, NOTHING } from "../format.js";
import { Table } from "../table.js";

const READ_ONLY =
  "Orders are off: this page is read-only. Start with --web-control to pause, slow or exclude sites here.";

/** Seconds from which on the page says how old the list is. It is as old as one or two looks at the swarm otherwise. */
const OLD_S = 3.5;

export function Sites({ sites, total, age, peers, control, onOrder }) {
  const [asked, setAsked] = useState(null);
  const shown = Object.keys(sites).length;
  const names = useMemo(
    () => Object.fromEntries(Object.entries(peers).map(([id, { name }]) => [id, name])),
    [Object.keys(peers).join()],
  );
  const columns = useMemo(
    () =>
      columnsOf(names, (site, order) =>
        order === "slow" || order === "exclude" ? setAsked({ site, order }) : onOrder({ order, site }),
      ),
    [names, onOrder],
  );
  return html`<section class="panel sites" aria-labelledby="sites">
    <h2 id="sites">Sites</h2>
    <p class="quiet" id="sites-note">
      ${total > shown ? `The ${count(shown)} of ${plural(total, "site")} with most pending URLs` : plural(shown, "site")}. ${" "}
      ${age > OLD_S ? `Counted ${duration(age)} ago. ` : ""}${control ? "" : READ_ONLY}
    </p>
    <${Table}
      label="Sites"
      items=${sites}
      columns=${columns}
      sorted="pending"
      descending=${true}
      extra=${control}
      text=${(site, name) => `${name} ${site.order ?? ""} ${site.back_off_why ?? ""} ${names[site.owner] ?? ""}`}
      empty="No site has pending URLs."
    />
    ${
      asked &&
      html`<${Ask} ...${asked} delay=${sites[asked.site]?.delay_s} onOrder=${onOrder} onClose=${() => setAsked(null)} />`
    }
  </section>`;
}

const columnsOf = (names, onOrder) => [
  {
    key: "site",
    label: "Site",
    wide: true,
    sort: (_, name) => name,
    cell: (_, name) => html`<span class="clip" title=${name}>${name}</span>`,
  },
  { key: "pending", label: "Pending", number: true, sort: (site) => site.pending, cell: (site) => count(site.pending) },
  {
    key: "status",
    label: "Status",
    hint: "Status of the last answer",
    number: true,
    sort: (site) => site.last_status,
    cell: (site) => html`<span class=${site.last_status >= 400 ? "bad" : ""}>${site.last_status ?? NOTHING}</span>`,
  },
  {
    key: "delay",
    label: "Delay",
    hint: "Time between two requests",
    number: true,
    low: "narrow",
    sort: (site) => site.delay_s,
    cell: (site) => duration(site.delay_s),
  },
  {
    key: "next",
    label: "Next in",
    hint: "Time until the next request",
    number: true,
    low: "narrow",
    sort: (site) => site.next_in_s,
    cell: (site) => duration(site.next_in_s),
  },
  {
    key: "back",
    label: "Back-off",
    low: "mid",
    sort: (site) => site.back_off_s,
    cell: (site) =>
      site.back_off_s
        ? html`<span class="clip" title=${site.back_off_why}>
            ${duration(site.back_off_s)}${site.back_off_why && `: ${site.back_off_why}`}
          </span>`
        : NOTHING,
  },
  {
    key: "owner",
    label: "Owner",
    low: "mid",
    sort: (site) => names[site.owner] ?? "",
    cell: (site) => names[site.owner] ?? NOTHING,
  },
  {
    key: "order",
    label: "Order",
    sort: (site) => site.order ?? "",
    cell: (site) => (site.order ? html`<span class="tag strong">${site.order}</span>` : NOTHING),
  },
  { key: "do", label: "Give an order", cell: (site, name, control) => orders(site, name, control, onOrder) },
];

function orders(site, name, control, onOrder) {
  const button = (order, label) =>
    html`<button type="button" class="small" disabled=${!control} aria-describedby=${control ? undefined : "sites-note"}
      aria-label=${`${label.replace("…", "")} ${name}`} onClick=${() => onOrder(name, order)}>${label}</button>`;
  return html`<span class="orders">
    ${site.order === "paused" ? button("resume", "Resume") : button("pause", "Pause")}
    ${button("slow", "Slow…")} ${site.order === "excluded" ? button("include", "Include") : button("exclude", "Exclude…")}
  </span>`;
}

/** Asks for the delay, or once more, before an order that is not taken back by one click. */
function Ask({ site, order, delay, onOrder, onClose }) {
  const [seconds, setSeconds] = useState(Math.max(1, Math.round(2 * (delay ?? 1))));
  const dialog = useRef(null);
  const open = (element) => {
    dialog.current = element;
    if (element && !element.open) element.showModal();
  };
  const give = (event) => {
    event.preventDefault();
    onOrder(order === "slow" ? { order, site, delay_s: Number(seconds) } : { order, site });
    dialog.current.close();
  };
  const own = () => {
    onOrder({ order, site, delay_s: null });
    dialog.current.close();
  };
  return html`<dialog ref=${open} onClose=${onClose} aria-labelledby="ask">
    <form onSubmit=${give}>
      <h3 id="ask">${order === "slow" ? "Slow down" : "Exclude"} <span class="break">${site}</span></h3>
      ${
        order === "slow"
          ? html`<label>
              Seconds between two requests ${" "}
              <input
                type="number"
                min="0.1"
                max="86400"
                step="any"
                required
                value=${seconds}
                onInput=${(event) => setSeconds(event.target.value)}
              />
            </label>`
          : html`<p>No URL of this site is fetched any more, until it is included again.</p>`
      }
      <p class="buttons">
        <button type="submit" class="strong">${order === "slow" ? "Slow down" : "Exclude"}</button>
        ${order === "slow" && html`<button type="button" onClick=${own}>Its own delay</button>`}
        <button type="button" onClick=${() => dialog.current.close()}>Cancel</button>
      </p>
    </form>
  </dialog>`;
}
