// Carries out a plan with the TypeScript SDK and prints what came of it as JSON. The plan is as in client.py.
import { createRequire } from 'node:module';

const require = createRequire(process.env.HAFT_TEST_NODE_MODULES + '/');
const { Client } = require('@modelcontextprotocol/sdk/client/index.js');
const { StdioClientTransport } = require('@modelcontextprotocol/sdk/client/stdio.js');
const { StreamableHTTPClientTransport } = require('@modelcontextprotocol/sdk/client/streamableHttp.js');
const { ElicitRequestSchema } = require('@modelcontextprotocol/sdk/types.js');

const plan = JSON.parse(process.argv[2]);
const asked = [];
const capabilities = plan.answer ? { elicitation: { form: {} } } : {};
const client = new Client({ name: 'haft-tests', version: '1' }, { capabilities });
if (plan.answer) {
  client.setRequestHandler(ElicitRequestSchema, async ({ params }) => {
    asked.push({ message: params.message, schema: params.requestedSchema });
    // As long as a person reads: an instant answer does not count as theirs.
    await new Promise(done => setTimeout(done, 1000));
    return { action: 'accept', content: plan.answer };
  });
}
let version;
const headers = plan.token ? { Authorization: `Bearer ${plan.token}` } : {};
if (plan.session) headers['Haft-Session'] = plan.session;
const transport = plan.http
  ? new StreamableHTTPClientTransport(new URL(plan.http), { requestInit: { headers } })
  : new StdioClientTransport({ command: plan.stdio[0], args: plan.stdio.slice(1), stderr: 'inherit', env: { ...process.env } });
// Both transports are told the version that was agreed on; only one keeps it.
const tell = transport.setProtocolVersion?.bind(transport);
transport.setProtocolVersion = agreed => {
  version = agreed;
  tell?.(agreed);
};
await client.connect(transport);

const tools = [];
let cursor;
do {
  const page = await client.listTools(cursor ? { cursor } : undefined);
  tools.push(...page.tools);
  cursor = page.nextCursor;
} while (cursor);

const calls = [];
for (const call of plan.calls) {
  const progress = [];
  const onprogress = said => progress.push(said.message);
  const options = { onprogress, resetTimeoutOnProgress: true, timeout: 60_000 };
  const result = await client.callTool({ name: call.tool, arguments: call.args }, undefined, options);
  const text = result.content.map(block => block.text ?? '').join('');
  calls.push({ error: !!result.isError, text, data: result.structuredContent ?? null, progress, meta: result._meta });
}
const server = client.getServerVersion().name;
if (plan.http) await transport.terminateSession();
await client.close();
console.log(JSON.stringify({ version, server, tools, calls, asked }));
