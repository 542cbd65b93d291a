/** Part 2: pages a second stacked by peer, and found against done, on one time axis. */
import { Component, html } from "../vendor/htm-preact.js";
import { clock, count, duration, label, rate } from "../format.js";
import { colorOf, useMedia, valueOf } from "../palette.js";
import { axisOf, fastest, OTHERS, stack } from "../series.js";

const HEIGHT = { rates: 190, found: 160 };
const AXIS = 56;
const FONT = "12px system-ui, sans-serif";
/** Pixels between two labels of the time axis. */
const LABEL = 90;

export function Charts(props) {
  const dark = useMedia("(prefers-color-scheme: dark)");
  return html`<${Pair} ...${props} dark=${dark} />`;
}

class Pair extends Component {
  constructor() {
    super();
    this.state = { at: null };
  }

  shouldComponentUpdate(next, state) {
    const { series, dark, crawl, peers } = this.props;
    return (
      series !== next.series ||
      dark !== next.dark ||
      crawl !== next.crawl ||
      peers !== next.peers ||
      state.at !== this.state.at
    );
  }

  componentDidMount() {
    this.resized = new ResizeObserver(() => this.fit());
    this.resized.observe(this.box);
    this.draw();
  }

  componentDidUpdate(before) {
    if (before.dark !== this.props.dark) this.made = null;
    this.draw();
  }

  componentWillUnmount() {
    this.resized.disconnect();
    this.plots?.forEach((plot) => plot.destroy());
  }

  fit() {
    const width = this.box.clientWidth;
    this.plots?.forEach((plot) => plot.width !== width && plot.setSize({ width, height: plot.height }));
  }

  /** Returns the series in view, and what is drawn of it. It is computed once for each document. */
  view() {
    const { series, crawl, now } = this.props;
    if (this.viewed?.series === series && this.viewed.end === crawl.end_in_s) return this.viewed;
    const known = series ?? { t: [], found: [], done: [], rates: {} };
    const ids = fastest(known.rates);
    const bands = Object.keys(known.rates).length > ids.length ? [...ids, OTHERS] : ids;
    const axis = axisOf(known.t, now, crawl.verdict.done ? null : crawl.end_in_s);
    return (this.viewed = { series, known, ids, bands, axis, end: crawl.end_in_s, ...stack(known, ids) });
  }

  draw() {
    const view = this.view();
    const made = view.bands.join();
    if (this.made !== made || !this.plots) {
      this.plots?.forEach((plot) => plot.destroy());
      this.plots = this.make(view);
      this.made = made;
    }
    const [rates, found] = this.plots;
    // Bands are painted from the tallest sum down, so that each lower one covers the rest of it.
    rates.setData([view.known.t, ...[...view.sums].reverse()]);
    found.setData([view.known.t, view.known.found, view.known.done]);
  }

  make(view) {
    const width = this.box.clientWidth;
    const cursor = { y: false, sync: { key: "kadcrawl" }, points: { show: false }, drag: { x: false, y: false } };
    const ground = valueOf("--panel");
    const common = {
      width,
      cursor,
      legend: { show: false },
      padding: [8, 14, 6, 0],
      scales: {
        x: { time: true, range: () => this.view().axis },
        y: { range: (_, low, high) => [0, 1.05 * (high || 1)] },
      },
    };
    const bands = [...view.bands].reverse().map((id) => {
      const color = valueOf(`--color-${colored(id)}`);
      return { stroke: ground, width: 1, fill: color, points: { show: false } };
    });
    const rates = new uPlot(
      {
        ...common,
        height: HEIGHT.rates,
        axes: axes(false),
        series: [{}, ...bands],
        hooks: { setCursor: [(plot) => this.look(plot)] },
      },
      [[]],
      this.above,
    );
    const found = new uPlot(
      {
        ...common,
        height: HEIGHT.found,
        axes: axes(true),
        series: [
          {},
          { stroke: valueOf("--color-5"), width: 2, points: { show: false } },
          { stroke: valueOf("--color-2"), width: 2, fill: valueOf("--done"), points: { show: false } },
        ],
        hooks: { draw: [(plot) => this.drawEnd(plot)] },
      },
      [[]],
      this.below,
    );
    return [rates, found];
  }

  /** Draws the way of `done` to the estimated end, where the end is on the axis. */
  drawEnd(plot) {
    const { crawl, now } = this.props;
    const { known, axis } = this.view();
    const last = known.t.length - 1;
    if (last < 0 || !crawl.end_in_s || crawl.verdict.done || now + crawl.end_in_s > axis[1]) return;
    const { ctx } = plot;
    const at = (x, y) => [plot.valToPos(x, "x", true), plot.valToPos(y, "y", true)];
    ctx.save();
    ctx.strokeStyle = valueOf("--color-2");
    ctx.lineWidth = 2 * devicePixelRatio;
    ctx.setLineDash([4 * devicePixelRatio, 4 * devicePixelRatio]);
    ctx.beginPath();
    ctx.moveTo(...at(known.t[last], known.done[last]));
    ctx.lineTo(...at(now + crawl.end_in_s, known.found[last]));
    ctx.stroke();
    ctx.restore();
  }

  look({ cursor }) {
    const at = cursor.idx ?? null;
    if (at !== this.state.at) this.setState({ at });
  }

  /** Moves the cursor of both charts to a point, as the pointer does. */
  seek(at) {
    const [rates] = this.plots;
    rates.setCursor({ left: rates.valToPos(this.view().known.t[at], "x"), top: 1 });
  }

  render({ peers, crawl, now }, { at }) {
    const { known, bands, values, axis } = this.view();
    const last = known.t.length - 1;
    const index = at === null || at > last ? last : at;
    const name = (id) => (id === OTHERS ? "all others" : (peers[id]?.name ?? id.slice(0, 8)));
    const total = values.reduce((sum, band) => sum + (band[index] ?? 0), 0);
    const when = index < 0 ? "no data yet" : at === null ? "now" : `at ${clock(known.t[index], now)}`;
    const end = crawl.end_in_s;
    const said = `${rate(total)} pages a second, ${count(known.found[index])} found, ${count(known.done[index])} done`;
    return html`<section class="panel charts" aria-labelledby="charts">
      <h2 id="charts">Pages a second, by peer</h2>
      <p class="quiet aside">${when}</p>
      <ul class="legend">
        <li><b class="number">${rate(total)}</b> in all</li>
        ${[...bands.keys()].reverse().map(
          (band) => html`<li key=${bands[band]}>
            <span class=${`patch color-${colored(bands[band])}`} aria-hidden="true"></span>
            ${name(bands[band])} <b class="number">${rate(values[band][index])}</b>
          </li>`,
        )}
      </ul>
      <div ref=${(box) => (this.box = box)} class="plots">
        <div
          role="img"
          aria-label=${`Pages a second, stacked by peer; ${when}: ${said}`}
          ref=${(box) => (this.above = box)}
        ></div>
        <h2>Found and done</h2>
        <ul class="legend">
          <li>
            <span class="patch line color-5" aria-hidden="true"></span>
            found <b class="number">${count(known.found[index])}</b>
          </li>
          <li>
            <span class="patch line color-2" aria-hidden="true"></span>
            done <b class="number">${count(known.done[index])}</b>
          </li>
          <li>${endOf(crawl, end, now)}</li>
        </ul>
        <div role="img" aria-label=${`URLs found and done; ${when}: ${said}`} ref=${(box) => (this.below = box)}></div>
      </div>
      ${
        last > 0 &&
        html`<label class="scrub"><span class="hidden">Time in both charts</span>
        <input
          type="range"
          style=${{ width: `${(100 * (known.t[last] - axis[0])) / (axis[1] - axis[0])}%` }}
          min="0"
          max=${last}
          value=${index}
          aria-valuetext=${`${clock(known.t[index], now)}: ${said}`}
          onInput=${(event) => this.seek(Number(event.target.value))}
        />
      </label>`
      }
    </section>`;
  }
}

const colored = (id) => (id === OTHERS ? OTHERS : colorOf(id));

function endOf(crawl, end, now) {
  if (crawl.verdict.done) return "the crawl is done";
  if (end === null || end === undefined) return "the end cannot be estimated yet";
  return html`<span>end in about <b>${duration(end)}</b>, at ${clock(now + end, now)}</span>`;
}

function axes(times) {
  const quiet = valueOf("--quiet");
  const grid = { stroke: valueOf("--line"), width: 1 };
  const common = { stroke: quiet, grid, ticks: { show: false }, font: FONT };
  return [
    {
      ...common,
      show: times,
      space: LABEL,
      size: 28,
      values: (_, splits) => splits.map((at) => clock(at, at).replace(/:00$/, "")),
    },
    { ...common, size: AXIS, space: 32, values: (_, splits) => splits.map(label) },
  ];
}
