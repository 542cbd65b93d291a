// Drives Chromium: reads one order a line, as JSON, and answers each with a line.
// An order is {id, open: {options}} for a new page, or {id, page, method, args}; a method may be "keyboard.press".
// The method "metrics" answers with the counts and times of the page that Chromium keeps, as [name, value].
import { createRequire } from "node:module";
import { createInterface } from "node:readline";

const [, , library, executablePath] = process.argv;
const { chromium } = createRequire(library)(library);
const browser = await chromium.launch({
  executablePath,
  args: ["--no-sandbox", "--disable-gpu", "--disable-background-networking"],
});
const pages = [];

async function open(options) {
  const context = await browser.newContext(options);
  const page = await context.newPage();
  const problems = [];
  page.on("console", (message) => ["error", "warning"].includes(message.type()) && problems.push(message.text()));
  page.on("pageerror", (error) => problems.push(String(error)));
  return pages.push({ page, context, problems, protocol: null }) - 1;
}

async function metrics(one) {
  if (!one.protocol) {
    one.protocol = await one.context.newCDPSession(one.page);
    await one.protocol.send("Performance.enable");
  }
  const told = await one.protocol.send("Performance.getMetrics");
  return told.metrics.map(({ name, value }) => [name, value]);
}

async function carryOut(order) {
  if (order.open) return open(order.open);
  const { page, context, problems } = pages[order.page];
  if (order.method === "problems") return problems.splice(0);
  if (order.method === "close") return context.close();
  if (order.method === "metrics") return metrics(pages[order.page]);
  if (order.method === "evaluate") return page.evaluate(`(${order.args[0]})(${JSON.stringify(order.args[1] ?? null)})`);
  const path = order.method.split(".");
  const name = path.pop();
  const target = path.reduce((one, part) => one[part], page);
  const value = await target[name](...order.args);
  return ["string", "number", "boolean"].includes(typeof value) || Array.isArray(value) ? value : null;
}

for await (const line of createInterface({ input: process.stdin })) {
  const order = JSON.parse(line);
  carryOut(order).then(
    (value) => console.log(JSON.stringify({ id: order.id, value: value ?? null })),
    (error) => console.log(JSON.stringify({ id: order.id, error: String(error) })),
  );
}
await browser.close();
