// Opens files in speedscope, lets it export what it read, and prints that as JSON: for each file a list of profiles with
// name, unit, and the weight of each stack. Also checks JSON files with speedscope's own schema.
// usage: node speedscope.cjs CHROMIUM FILE...
const fs = require("fs");
const os = require("os");
const path = require("path");
const modules = path.join(process.env.NODE_MODULES, "node_modules");
const puppeteer = require(path.join(modules, "puppeteer-core"));
const release = path.join(modules, "speedscope/dist/release");
const [chromium, ...files] = process.argv.slice(2);

function stacks(profile, frames) {
  const sums = {};
  const add = (stack, weight) => {
    const key = stack.map((row) => frames[row].name).join(";");
    sums[key] = (sums[key] || 0) + weight;
  };
  if (profile.type === "sampled") {
    profile.samples.forEach((stack, i) => add(stack, profile.weights[i]));
  } else {
    const open = [];
    let last = profile.startValue;
    for (const event of profile.events) {
      if (event.at > last) add(open, event.at - last);
      last = event.at;
      event.type === "O" ? open.push(event.frame) : open.pop();
    }
    if (profile.endValue > last) add(open, profile.endValue - last);
  }
  return sums;
}

function isValid(file) {
  const Ajv = require(path.join(modules, "ajv"));
  const schema = JSON.parse(fs.readFileSync(path.join(release, "file-format-schema.json")));
  return new Ajv({ strict: false }).compile(schema)(JSON.parse(fs.readFileSync(file)));
}

async function exported(browser, file) {
  const downloads = fs.mkdtempSync(path.join(os.tmpdir(), "speedscope-"));
  const page = await browser.newPage();
  page.setDefaultTimeout(0);
  const session = await page.createCDPSession();
  await session.send("Browser.setDownloadBehavior", { behavior: "allow", downloadPath: downloads });
  await page.goto(`file://${release}/index.html#localProfilePath=none`);
  await page.waitForFunction("window.speedscope && window.speedscope.loadFileFromBase64");
  const name = path.basename(file);
  const content = fs.readFileSync(file).toString("base64");
  await page.evaluate((n, c) => window.speedscope.loadFileFromBase64(n, c), name, content);
  await page.waitForFunction("document.querySelectorAll('canvas').length > 1");
  // A key that comes before speedscope listens is lost: it is pressed until there is a file. Whoever runs this ends it if there
  // never is one.
  let saved = [];
  for (let i = 0; saved.length === 0; i++) {
    if (i % 10 === 0) {
      await page.keyboard.down("Control");
      await page.keyboard.press("s");
      await page.keyboard.up("Control");
    }
    await new Promise((done) => setTimeout(done, 50));
    saved = fs.readdirSync(downloads).filter((name) => name.endsWith(".json"));
  }
  const json = JSON.parse(fs.readFileSync(path.join(downloads, saved[0])));
  fs.rmSync(downloads, { recursive: true });
  await page.close();
  return json.profiles.map((profile) => ({
    name: profile.name,
    unit: profile.unit,
    stacks: stacks(profile, json.shared.frames),
  }));
}

(async () => {
  const browser = await puppeteer.launch({
    executablePath: chromium,
    headless: true,
    timeout: 0,
    args: ["--no-sandbox", "--use-gl=angle", "--use-angle=swiftshader", "--enable-unsafe-swiftshader"],
  });
  const results = [];
  for (const file of files) {
    const valid = file.endsWith(".json") ? isValid(file) : null;
    results.push({ valid, profiles: await exported(browser, file) });
  }
  await browser.close();
  console.log(JSON.stringify(results));
})().catch((error) => {
  console.error(error);
  process.exit(1);
});
