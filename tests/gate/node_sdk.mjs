// What the official Node SDK makes of a gate at argv[2]: one line of JSON per case of argv[3], each in order.
import OpenAI from "openai";

const [url, cases] = process.argv.slice(2);
const client = new OpenAI({ baseURL: url, apiKey: "agent", timeout: 30_000 }); // its own number of retries
const ask = { model: "any", messages: [{ role: "user", content: "2 + 2?" }] };
const NOW = { headers: { "x-swarmgate-wait": "0s", "x-swarmgate-priority": "P0" } };

async function plain() {
  const { data, response } = await client.chat.completions.create(ask, NOW).withResponse();
  return { text: data.choices[0].message.content, usage: data.usage, key: response.headers.get("x-swarmgate-key-id") };
}

async function stream() {
  const said = { text: "", chunks: 0, counts: 0 };
  for await (const chunk of await client.chat.completions.create({ ...ask, stream: true }, NOW)) {
    said.text += chunk.choices[0]?.delta?.content ?? "";
    said.chunks += 1;
    said.counts += chunk.usage ? 1 : 0;
  }
  return said;
}

const names = Object.entries(OpenAI).filter(([name]) => name.endsWith("Error"));

function caught(error) {
  const kinds = names.filter(([, kind]) => error.constructor === kind).map(([name]) => name);
  const { status, code, message, error: body } = error;
  return { raised: kinds[0] ?? error.constructor.name, status, code, message, body };
}

for (const name of cases.split(",")) {
  const said = await { plain, stream }[name]().catch(caught);
  console.log(JSON.stringify(said));
}
