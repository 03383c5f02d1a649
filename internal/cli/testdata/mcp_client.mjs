// A client of MCP by the official TypeScript SDK: node mcp_client.mjs SDK stdio COMMAND ARGS... | http URL TOKEN. It prints what it was answered.
const [, , dir, how, ...rest] = process.argv;
const from = (path) => import(`${dir}/dist/esm/${path}`);
const { Client } = await from("client/index.js");
const { ElicitRequestSchema } = await from("types.js");
const { StdioClientTransport } = await from("client/stdio.js");
const { StreamableHTTPClientTransport } = await from("client/streamableHttp.js");

const client = new Client({ name: "npm", version: "1" }, { capabilities: { elicitation: {} } });
let asked = "";
client.setRequestHandler(ElicitRequestSchema, async (req) => {
  asked = req.params.message;
  return { action: "accept", content: { approve: true } };
});
await client.connect(
  how === "stdio"
    ? new StdioClientTransport({ command: rest[0], args: rest.slice(1), env: process.env, stderr: "inherit" })
    : new StreamableHTTPClientTransport(new URL(rest[0]), { requestInit: { headers: { Authorization: `Bearer ${rest[1]}` } } }),
);
const progress = [];
const tools = (await client.listTools()).tools.map((t) => t.name);
const ask = await client.callTool({ name: "ask", arguments: { prompt: "go", session: `npm-${how}` } }, undefined, { onprogress: (p) => progress.push(p.message) });
const read = await client.callTool({ name: "read", arguments: { file_path: "a.txt" } });
const wrong = await client.callTool({ name: "read", arguments: { file_path: "none.txt" } });
const session = await client.readResource({ uri: `pawl://session/npm-${how}` });
console.log(JSON.stringify({ tools, asked, progress, ask, read, wrong, session, server: client.getServerVersion() }));
await client.close();
