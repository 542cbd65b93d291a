/** Part 8: what has happened, newest first, with the number of each event. */
import { Component, html, useMemo, useState } from "../vendor/htm-preact.js";
import { clock } from "../format.js";

class Event extends Component {
  shouldComponentUpdate(next) {
    return this.props.event !== next.event;
  }

  render({ number, event, now }) {
    return html`<tr>
      <td class="number quiet">${number}</td>
      <td class="time">${clock(event.at, now)}</td>
      <td><span class="tag">${event.kind}</span></td>
      <td class="text">${event.text}</td>
    </tr>`;
  }
}

export function Events({ events, now }) {
  const [kind, setKind] = useState("");
  const numbers = useMemo(() => Object.keys(events).sort((a, b) => Number(b) - Number(a)), [events]);
  const kinds = [...new Set(numbers.map((number) => events[number].kind))].sort();
  const shown = kind ? numbers.filter((number) => events[number].kind === kind) : numbers;
  return html`<section class="panel events" aria-labelledby="events">
    <h2 id="events">Events</h2>
    <div class="filter">
      <label>Kind <select value=${kind} onChange=${(event) => setKind(event.target.value)}>
        <option value="">all</option>
        ${kinds.map((one) => html`<option key=${one} value=${one}>${one}</option>`)}
      </select></label>
      <span class="quiet">the last ${numbers.length}</span>
    </div>
    <div class="scroll low" tabindex="0" role="region" aria-label="Events">
      <table class="log">
        <thead>
          <tr>
            <th scope="col" class="number">No.</th>
            <th scope="col">Time</th>
            <th scope="col">Kind</th>
            <th scope="col">What</th>
          </tr>
        </thead>
        <tbody>
          ${shown.map((number) => html`<${Event} key=${number} number=${number} event=${events[number]} now=${now} />`)}
          ${!shown.length && html`<tr><td class="empty" colspan="4">Nothing has happened yet.</td></tr>`}
        </tbody>
      </table>
    </div>
  </section>`;
}
