/** The page: begins the session, hears the stream, and draws the ten parts. */
import { Component, html, render } from "./vendor/htm-preact.js";
import { begin, lives, order } from "./session.js";
import { SILENCE_S, Stream } from "./stream.js";
import { Ages } from "./parts/ages.js";
import { Charts } from "./parts/charts.js";
import { Events } from "./parts/events.js";
import { Failures } from "./parts/failures.js";
import { Peers } from "./parts/peers.js";
import { Space } from "./parts/space.js";
import { Sentence } from "./parts/sentence.js";
import { Sinks } from "./parts/sinks.js";
import { Sites } from "./parts/sites.js";
import { Way } from "./parts/way.js";

const DOCUMENT_VERSION = 1;
/** Bits of a cell, where the peer does not tell them. */
const CELL_BITS = 16;
const NONE = {};
const NO_SESSION =
  "There is no session. Run kadcrawl web on a machine of the swarm and open the address that it prints.";
const ENDED = "The session has ended. Run kadcrawl web on a machine of the swarm and open the address that it prints.";

class Page extends Component {
  constructor() {
    super();
    this.state = { document: null, silence: 0, notice: null, said: null, selected: null, way: null };
    this.order = this.order.bind(this);
    this.select = (selected) => this.setState({ selected: this.state.selected === selected ? null : selected });
    this.found = (way) => this.setState({ way });
  }

  async componentDidMount() {
    try {
      this.session = await begin();
    } catch {
      return this.setState({ notice: "The peer does not answer. Reload the page when it runs again." });
    }
    if (!this.session) return this.setState({ notice: NO_SESSION });
    this.stream = new Stream("/events", {
      onDocument: () => this.soon(),
      onLost: () => this.setState({ notice: ENDED }),
      isSession: lives,
    });
    document.addEventListener("visibilitychange", () => this.soon());
    setInterval(() => this.listen(), 1000);
  }

  /** Draws the newest document in the next frame, once for all changes until then. A hidden page draws nothing. */
  soon() {
    if (this.asked || document.hidden || !this.stream.document) return;
    this.asked = true;
    requestAnimationFrame(() => {
      this.asked = false;
      this.setState({ document: this.stream.document, silence: 0 });
    });
  }

  listen() {
    const silence = this.stream.silence();
    const shown = silence >= SILENCE_S ? silence : 0;
    if (shown !== this.state.silence) this.setState({ silence: shown });
  }

  async order(body) {
    const { said, error } = await order(this.session, body);
    this.setState({ said: error ? { error } : { said } });
  }

  render(_, { document: shown, silence, notice, said, selected, way }) {
    if (notice) return html`<main><p class="notice" role="alert">${notice}</p></main>`;
    if (!shown) return html`<main><p class="notice" role="status">Waiting for the first data.</p></main>`;
    if (shown.version !== DOCUMENT_VERSION) {
      return html`<main>
        <p class="notice" role="alert">The peer has another version than this page. Reload the page.</p>
      </main>`;
    }
    // A peer that cannot tell of a part leaves it out of the document, and the page leaves it out too.
    const { crawl, peers, sites, failures, events, sinks, series, moves = NONE, queue_ages: ages, queue_counted: counted, now } = shown;
    const control = Boolean(shown.control && this.session.control);
    const title = crawl.name ?? "kadcrawl";
    if (document.title !== title) document.title = title;
    return html`
      <${Top} crawl=${crawl} me=${peers[shown.me]} silence=${silence} control=${control} onOrder=${this.order} />
      <main>
        <${Said} said=${said} onClose=${() => this.setState({ said: null })} />
        <${Sentence} crawl=${crawl} now=${now} />
        <${Charts} crawl=${crawl} series=${series} peers=${peers} now=${now} />
        <${Space} ...${{ peers, moves, now, me: shown.me, cellBits: crawl.cell_bits ?? CELL_BITS, selected, way }} />
        <${Peers} peers=${peers} me=${shown.me} selected=${selected} onSelect=${this.select} />
        ${sites && html`<${Sites} ...${{ sites, total: shown.sites_total, age: now - counted, peers, control, onOrder: this.order }} />`}
        ${failures && html`<${Failures} failures=${failures} />`} ${ages && html`<${Ages} ages=${ages} />`}
        ${events && html`<${Events} events=${events} now=${now} />`} ${sinks && html`<${Sinks} sinks=${sinks} />`}
        <${Way} peers=${peers} now=${now} onFound=${this.found} />
      </main>
    `;
  }
}

/** The line at the top: name of the crawl, whether data comes, and the order for the whole swarm. */
function Top({ crawl, me, silence, control, onOrder }) {
  const paused = crawl.state === "paused";
  return html`<header class="top">
    <h1>${crawl.name ?? "kadcrawl"}</h1>
    <p class="quiet">${me ? `seen by ${me.name}` : ""}</p>
    <p class=${silence ? "link lost" : "link"}>
      <span class="dot" aria-hidden="true"></span>
      ${silence ? `no data for ${silence} s, trying again` : "live"}
    </p>
    <span class="hidden" role="status">${silence ? "The connection is lost." : ""}</span>
    ${
      control &&
      !crawl.verdict.done &&
      html`<button type="button" onClick=${() => onOrder({ order: paused ? "resume" : "pause" })}>
      ${paused ? "Resume the crawl" : "Pause the crawl"}
    </button>`
    }
  </header>`;
}

/** The answer to the last order. */
function Said({ said, onClose }) {
  return html`<div class="said" role="status">
    ${
      said &&
      html`<p class=${said.error ? "bad" : "good"}>
      ${said.error ?? said.said}
      <button type="button" class="plain" onClick=${onClose} aria-label="Close this message">×</button>
    </p>`
    }
  </div>`;
}

const root = document.getElementById("page");
root.replaceChildren();
render(html`<${Page} />`, root);
