/** Part 9: the sinks, and how far each is behind. */
import { html } from "../vendor/htm-preact.js";
import { count, duration } from "../format.js";

export function Sinks({ sinks }) {
  const names = Object.keys(sinks).sort();
  return html`<section class="panel sinks" aria-labelledby="sinks">
    <h2 id="sinks">Sinks</h2>
    ${!names.length && html`<p class="quiet">The crawl writes to its own files only.</p>`}
    ${
      names.length > 0 &&
      html`<div class="scroll" tabindex="0" role="region" aria-label="Sinks"><table>
      <thead>
        <tr>
          <th scope="col">Sink</th>
          <th scope="col" class="number">Written</th>
          <th scope="col" class="number">Behind</th>
          <th scope="col" class="number">Lag</th>
        </tr>
      </thead>
      <tbody>
        ${names.map((name) => {
          const { written, lag, lag_s: seconds, error } = sinks[name];
          return html`<tr key=${name}>
              <th scope="row" class="text">${name}${error && html`<span class="bad block">${error}</span>`}</th>
              <td class="number">${count(written)}</td>
              <td class="number">${count(lag)}</td>
              <td class="number">${duration(seconds)}</td>
            </tr>`;
        })}
      </tbody>
    </table></div>`
    }
  </section>`;
}
