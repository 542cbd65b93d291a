/** Part 7: how long the pending URLs have waited. */
import { html } from "../vendor/htm-preact.js";
import { count, duration } from "../format.js";

export function Ages({ ages }) {
  const most = Math.max(1, ...ages.map(({ urls }) => urls));
  return html`<section class="panel ages" aria-labelledby="ages">
    <h2 id="ages">Ages of the queue</h2>
    ${!ages.length && html`<p class="quiet">No URL is pending.</p>`}
    ${
      ages.length > 0 &&
      html`<table class="bars">
      <thead><tr><th scope="col">Waiting for</th><th scope="col" class="number">URLs</th><td></td></tr></thead>
      <tbody>
        ${ages.map(
          ({ up_to_s: limit, urls }, at) => html`<tr key=${limit}>
            <th scope="row">${limit ? `up to ${duration(limit)}` : `over ${duration(ages[at - 1]?.up_to_s ?? 0)}`}</th>
            <td class="number">${count(urls)}</td>
            <td class="room" aria-hidden="true">
              ${urls > 0 && html`<span class="bar" style=${{ width: `${(100 * urls) / most}%` }}></span>`}
            </td>
          </tr>`,
        )}
      </tbody>
    </table>`
    }
  </section>`;
}
