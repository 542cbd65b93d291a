/**
 * The server's events: the whole document once, then changes. A broken connection is taken up by the browser, which
 * sends the last ID; a connection that the server refused is made anew, more and more slowly.
 */
import { applyChange } from "./patch.js";

/** Seconds of silence after which the page says so. The server tells something each five seconds. */
export const SILENCE_S = 8;
const RETRY_S = [1, 2, 4, 8, 15];

export class Stream {
  /** `onDocument` gets each new document, `onLost` learns that the session has ended. */
  constructor(url, { onDocument, onLost, isSession }) {
    this.url = url;
    this.onDocument = onDocument;
    this.onLost = onLost;
    this.isSession = isSession;
    this.heardAt = performance.now();
    this.document = null;
    this.tries = 0;
    this.open();
  }

  open() {
    const source = new EventSource(this.url);
    this.source = source;
    source.addEventListener("state", (event) => this.take(JSON.parse(event.data)));
    source.addEventListener("change", (event) => {
      if (this.document) this.take(applyChange(this.document, JSON.parse(event.data)));
    });
    source.addEventListener("error", () => {
      if (source.readyState === EventSource.CLOSED) this.again();
    });
  }

  async again() {
    const wait = RETRY_S[Math.min(this.tries, RETRY_S.length - 1)];
    this.tries += 1;
    if (!(await this.isSession())) return this.onLost();
    setTimeout(() => this.open(), wait * 1000);
  }

  take(document) {
    this.document = document;
    this.tries = 0;
    this.heardAt = performance.now();
    this.onDocument(document);
  }

  /** Returns the whole seconds since the server was heard. */
  silence() {
    return Math.floor((performance.now() - this.heardAt) / 1000);
  }
}
