/** Part 1: the crawl in one sentence, with the verdict: done, or exactly why not yet. */
import { html } from "../vendor/htm-preact.js";
import { bytes, clock, count, duration, rate } from "../format.js";

export function Sentence({ crawl, now }) {
  const { verdict } = crawl;
  // A verdict begins with its word: "Not done: 12 URLs pending, ..."
  const colon = verdict.sentence.indexOf(": ") + 1;
  const [word, rest] = [verdict.sentence.slice(0, colon), verdict.sentence.slice(colon)];
  const end = crawl.end_in_s;
  const isKnown = Number.isFinite(end) && !verdict.done;
  return html`<section class="sentence" aria-label="State of the crawl">
    <p class="figures">
      <strong class="state">${capital(crawl.state)}</strong>: <b>${count(crawl.pages)}</b> ${" "}
      ${crawl.pages === 1 ? "page" : "pages"} at <b>${rate(crawl.pages_per_s)}</b> a second, ${" "}
      <b>${count(crawl.pending)}</b> pending, ${" "}
      <b class=${crawl.failed ? "failed" : ""}>${count(crawl.failed)}</b> failed.
    </p>
    <p class=${verdict.done ? "verdict done" : "verdict"}>
      <${Sign} done=${verdict.done} />
      <strong>${word}</strong>${rest}
    </p>
    <p class="quiet">
      ${crawl.found !== undefined && `${count(crawl.found)} found, ${count(crawl.done)} done. `}
      ${bytes(crawl.received_bytes)} received since ${clock(crawl.started, now)}
      ${isKnown && `. At this rate the end is in ${duration(end)}, at ${clock(now + end, now)}`}.
      ${crawl.partition && ` By ${crawl.partition}, ${crawl.history} history.`}
    </p>
  </section>`;
}

const capital = (word) => (word ? word[0].toUpperCase() + word.slice(1) : word);

function Sign({ done }) {
  return html`<svg class="sign" viewBox="0 0 16 16" width="16" height="16" aria-hidden="true">
    <circle cx="8" cy="8" r="7" />
    <path d=${done ? "M4.500 8.300l2.400 2.400 4.600-5" : "M8 3.800V8l2.800 1.900"} />
  </svg>`;
}
