/** Part 6: failures by reason, with samples. Each sample leads to what `kadcrawl check` says about it. */
import { html, useState } from "../vendor/htm-preact.js";
import { count } from "../format.js";
import { whyOf } from "../session.js";

export function Failures({ failures }) {
  const reasons = Object.entries(failures).sort(([a, one], [b, other]) => other.count - one.count || (a < b ? -1 : 1));
  const most = reasons.length ? reasons[0][1].count : 1;
  return html`<section class="panel failures" aria-labelledby="failures">
    <h2 id="failures">Failures</h2>
    ${!reasons.length && html`<p class="quiet">No URL has failed.</p>`}
    <ul class="reasons">
      ${reasons.map(([reason, failure]) => html`<${Reason} key=${reason} ...${{ reason, failure, most }} />`)}
    </ul>
  </section>`;
}

function Reason({ reason, failure, most }) {
  return html`<li>
    <details>
      <summary>
        <span class="number">${count(failure.count)}</span>
        <span class="what"><strong>${reason}</strong> <span class="quiet">${failure.meaning}</span></span>
        <span class="room" aria-hidden="true">
          <span class="bar" style=${{ width: `${(100 * failure.count) / most}%` }}></span>
        </span>
      </summary>
      <ul class="samples">${(failure.samples ?? []).map((url) => html`<${Sample} key=${url} url=${url} />`)}</ul>
    </details>
  </li>`;
}

function Sample({ url }) {
  const [said, setSaid] = useState(null);
  const ask = async () => setSaid(await whyOf(url));
  return html`<li>
    <code class="break">${url}</code> ${" "}
    <button type="button" class="small" aria-label=${`Why ${url}`} onClick=${ask}>Why?</button>
    ${said && html`<${Why} said=${said} />`}
  </li>`;
}

/** The sentences of an answer, or its error. */
export function Why({ said }) {
  if (said.error) return html`<p class="bad" role="status">${said.error}</p>`;
  return html`<div role="status"><ul class="why">${said.why.map((sentence) => html`<li>${sentence}</li>`)}</ul></div>`;
}
