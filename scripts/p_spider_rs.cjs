// The benchmark's opponent in Rust: spider-rs by its package for Node, one crawl for each seed, side by side.
//
// node p_spider_rs.cjs PATTERN URL... NODE_PATH leads to @spider-rs/spider-rs. No page reaches JavaScript.
const { Website } = require("@spider-rs/spider-rs");

async function main([pattern, ...seeds]) {
  await Promise.all(seeds.map((seed) => new Website(seed).withWhitelistUrl([pattern]).build().crawl()));
  process.exit(0); // Its threads do not always end by themselves.
}

main(process.argv.slice(2));
