/** Part 10: the way of one URL: its key, owner and backups, its state, and what has happened to it. */
import { html, useState } from "../vendor/htm-preact.js";
import { clock, NOTHING } from "../format.js";
import { wayOf } from "../session.js";
import { Why } from "./failures.js";

export function Way({ peers, now, onFound }) {
  const [url, setUrl] = useState("");
  const [way, setWay] = useState(null);
  const ask = async (event) => {
    event.preventDefault();
    const answer = await wayOf(url.trim());
    setWay(answer);
    onFound(answer.key ? answer : null);
  };
  return html`<section class="panel way" aria-labelledby="way">
    <h2 id="way">The way of a URL</h2>
    <form class="filter" onSubmit=${ask}>
      <label class="grow">
        URL ${" "}
        <input
          type="text"
          inputmode="url"
          required
          spellcheck="false"
          autocomplete="off"
          value=${url}
          onInput=${(event) => setUrl(event.target.value)}
        />
      </label>
      <button type="submit">Show</button>
    </form>
    <div role="status">
      ${way?.error && html`<p class="bad">${way.error}</p>`}
      ${way && !way.error && html`<${Found} way=${way} peers=${peers} now=${now} />`}
    </div>
  </section>`;
}

function Found({ way, peers, now }) {
  const named = (peer) => (peer ? `${peers[peer.id]?.name ?? peer.id.slice(0, 8)} (${peer.address})` : NOTHING);
  return html`
    <dl>
      <dt>URL</dt>
      <dd class="break">${way.url}</dd>
      <dt>Key</dt>
      <dd><code class="break">${way.key}</code></dd>
      <dt>Site</dt>
      <dd class="break">${way.site}</dd>
      <dt>Owner</dt>
      <dd>${named(way.owner)}</dd>
      <dt>Backups</dt>
      <dd>${way.backups?.length ? way.backups.map(named).join(", ") : NOTHING}</dd>
      <dt>State</dt>
      <dd><strong>${way.state}</strong>${way.reason ? `: ${way.reason}` : ""}</dd>
    </dl>
    ${
      way.history?.length > 0 &&
      html`<h3>History</h3>
      <table class="log">
        <thead><tr><th scope="col">Time</th><th scope="col">Status</th><th scope="col">What</th></tr></thead>
        <tbody>
          ${way.history.map(
            ({ at, status, what }) =>
              html`<tr>
                <td class="time">${clock(at, now)}</td>
                <td>${status ?? NOTHING}</td>
                <td class="text">${what}</td>
              </tr>`,
          )}
        </tbody>
      </table>`
    }
    ${way.why?.length > 0 && html`<h3>What the check says</h3><${Why} said=${way} />`}
  `;
}
