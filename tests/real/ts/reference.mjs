// A server with everything that the conformance suite asks a server for, on the official SDK, over Streamable HTTP:
// `node reference.mjs MODULES PORT`. haft is put in front of it, and has to pass what it passes by itself.

import { randomUUID } from "node:crypto";
import { createServer } from "node:http";
import { pathToFileURL } from "node:url";

const [modules, port] = process.argv.slice(2);
const sdk = (path) => import(pathToFileURL(`${modules}/@modelcontextprotocol/sdk/dist/esm/${path}.js`));
const { Server } = await sdk("server/index");
const { StreamableHTTPServerTransport } = await sdk("server/streamableHttp");
const { InMemoryEventStore } = await sdk("examples/shared/inMemoryEventStore");
const types = await sdk("types");

const PIXEL =
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
const SILENCE = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA=";

const text = (said, more = {}) => ({ type: "text", text: said, ...more });
const image = { type: "image", data: PIXEL, mimeType: "image/png" };
const resource = (uri, mimeType, said) => ({ type: "resource", resource: { uri, mimeType, text: said } });
const pause = () => new Promise((done) => setTimeout(done, 50));
const object = (properties = {}, more = {}) => ({ type: "object", properties, ...more });
const strings = (...names) =>
  object(Object.fromEntries(names.map((name) => [name, { type: "string" }])), { required: names });

const contact = {
  $schema: "https://json-schema.org/draft/2020-12/schema",
  ...object({ name: { type: "string" }, address: { $ref: "#/$defs/address" }, phone: { type: "string" } }),
  $defs: { address: { $anchor: "addressDef", ...strings("street", "city") } },
  additionalProperties: false,
  allOf: [{ anyOf: [{ required: ["phone"] }, { required: ["name"] }] }],
  if: { required: ["address"] },
  then: { required: ["name"] },
  else: { required: ["phone"] },
};

const titled = [
  { const: "value1", title: "One" },
  { const: "value2", title: "Two" },
];
const plain = ["option1", "option2", "option3"];
const choices = object({
  untitledSingle: { type: "string", enum: plain },
  titledSingle: { type: "string", oneOf: titled },
  legacyEnum: { type: "string", enum: ["opt1", "opt2"], enumNames: ["One", "Two"] },
  untitledMulti: { type: "array", items: { type: "string", enum: plain } },
  titledMulti: { type: "array", items: { anyOf: titled } },
});
const defaults = object({
  name: { type: "string", default: "John Doe" },
  age: { type: "integer", default: 30 },
  score: { type: "number", default: 95.5 },
  status: { type: "string", enum: ["active", "inactive", "pending"], default: "active" },
  verified: { type: "boolean", default: true },
});

/** Asks the person behind the client. */
async function ask(extra, message, requestedSchema) {
  const params = { mode: "form", message, requestedSchema };
  const said = await extra.sendRequest({ method: "elicitation/create", params }, types.ElicitResultSchema);
  return [text(`User response: action=${said.action}, content=${JSON.stringify(said.content ?? {})}`)];
}

/** Asks the model behind the client. */
async function sample(extra, prompt) {
  const params = { messages: [{ role: "user", content: text(prompt) }], maxTokens: 100 };
  const said = await extra.sendRequest({ method: "sampling/createMessage", params }, types.CreateMessageResultSchema);
  return [text(`LLM response: ${said.content.text}`)];
}

async function log(extra, ...messages) {
  for (const data of messages) {
    await extra.sendNotification({ method: "notifications/message", params: { level: "info", logger: "worker", data } });
    await pause();
  }
  return [text("Logged")];
}

/** The last number comes right before the result. */
async function report(extra) {
  const progressToken = extra._meta?.progressToken ?? 0;
  for (const progress of [0, 50, 100]) {
    if (progress > 0) await pause();
    const params = { progressToken, progress, total: 100, message: `${progress} of 100` };
    await extra.sendNotification({ method: "notifications/progress", params });
  }
  return [text(String(progressToken))];
}

const tools = {
  test_simple_text: () => [text("This is a simple text response for testing.")],
  test_image_content: () => [image],
  test_audio_content: () => [{ type: "audio", data: SILENCE, mimeType: "audio/wav" }],
  test_embedded_resource: () => [resource("test://embedded-resource", "text/plain", "This is embedded.")],
  test_multiple_content_types: () => [
    text("Multiple content types test:", { annotations: { audience: ["user"], priority: 0.5 }, _meta: { "test/k": 1 } }),
    image,
    resource("test://mixed-content-resource", "application/json", '{"test":"data","value":123}'),
    { type: "resource_link", uri: "test://static-text", name: "Static text", description: "Where it came from" },
  ],
  test_tool_with_logging: (_, extra) => log(extra, "Tool execution started", "Tool processing data", "Tool execution completed"),
  test_tool_with_progress: (_, extra) => report(extra),
  // Only clients of 2025-11-25 and newer can fetch an answer whose stream has ended: the SDK ends no other's.
  test_reconnection: async (_, extra) => {
    extra.closeSSEStream?.();
    await pause();
    return [text("Reconnection test completed")];
  },
  test_error_handling: () => {
    throw new Error("This tool intentionally returns an error for testing");
  },
  test_sampling: (args, extra) => sample(extra, args.prompt),
  test_elicitation: (args, extra) => ask(extra, args.message, strings("username", "email")),
  test_elicitation_sep1034_defaults: (_, extra) => ask(extra, "Please review", defaults),
  test_elicitation_sep1330_enums: (_, extra) => ask(extra, "Please choose", choices),
  json_schema_2020_12_tool: () => [text("ok")],
};
const inputs = {
  test_sampling: strings("prompt"),
  test_elicitation: strings("message"),
  json_schema_2020_12_tool: contact,
};

const resources = {
  "test://static-text": { mimeType: "text/plain", text: "This is the content of the static text resource." },
  "test://static-binary": { mimeType: "image/png", blob: PIXEL },
  "test://watched-resource": { mimeType: "text/plain", text: "Watched." },
};

function read(uri) {
  const id = /^test:\/\/template\/([^/]+)\/data$/.exec(uri)?.[1];
  if (id) return { mimeType: "application/json", text: JSON.stringify({ id, templateTest: true, data: `Data for ID: ${id}` }) };
  if (resources[uri]) return resources[uri];
  throw new types.McpError(-32002, "Resource not found", { uri });
}

const user = (content) => ({ role: "user", content });
const prompts = {
  test_simple_prompt: () => [user(text("This is a simple prompt for testing."))],
  test_prompt_with_arguments: (args) => [user(text(`Prompt with arguments: arg1='${args.arg1}', arg2='${args.arg2}'`))],
  test_prompt_with_embedded_resource: (args) => [
    user(resource(args.resourceUri, "text/plain", "Embedded resource content for testing.")),
    { role: "assistant", content: text("Please process the embedded resource above.") },
  ],
  test_prompt_with_image: () => [user(image), user(text("Please analyze the image above."))],
};
const promptArguments = {
  test_prompt_with_arguments: ["arg1", "arg2"],
  test_prompt_with_embedded_resource: ["resourceUri"],
};

function serve() {
  const capabilities = {
    tools: { listChanged: true }, resources: { subscribe: true, listChanged: true }, prompts: { listChanged: true },
    logging: {}, completions: {},
  };
  const server = new Server({ name: "reference", version: "1" }, { capabilities });
  const on = (schema, answer) => server.setRequestHandler(schema, answer);
  on(types.ListToolsRequestSchema, () => ({
    tools: Object.keys(tools).map((name) => ({ name, description: `Does ${name}`, inputSchema: inputs[name] ?? object() })),
  }));
  on(types.CallToolRequestSchema, async ({ params }, extra) => {
    if (!tools[params.name]) throw new types.McpError(-32602, `no tool ${params.name}`);
    try {
      return { content: await tools[params.name](params.arguments ?? {}, extra) };
    } catch (error) {
      return { content: [text(error.message)], isError: true };
    }
  });
  on(types.ListResourcesRequestSchema, () => ({
    resources: Object.entries(resources).map(([uri, { mimeType }]) => ({ uri, name: uri.slice(7), mimeType })),
  }));
  on(types.ListResourceTemplatesRequestSchema, () => ({
    resourceTemplates: [{ uriTemplate: "test://template/{id}/data", name: "Template", mimeType: "application/json" }],
  }));
  on(types.ReadResourceRequestSchema, ({ params: { uri } }) => ({ contents: [{ uri, ...read(uri) }] }));
  on(types.SubscribeRequestSchema, async ({ params: { uri } }, extra) => {
    // Whoever watches hears at once that there was something to watch.
    setTimeout(() => extra.sendNotification({ method: "notifications/resources/updated", params: { uri } }).catch(() => {}), 50);
    return {};
  });
  on(types.UnsubscribeRequestSchema, () => ({}));
  on(types.ListPromptsRequestSchema, () => ({
    prompts: Object.keys(prompts).map((name) => ({
      name, description: `Says ${name}`, arguments: promptArguments[name]?.map((name) => ({ name, required: true })),
    })),
  }));
  on(types.GetPromptRequestSchema, ({ params }) => {
    if (!prompts[params.name]) throw new types.McpError(-32602, `no prompt ${params.name}`);
    return { description: `Says ${params.name}`, messages: prompts[params.name](params.arguments ?? {}) };
  });
  on(types.CompleteRequestSchema, ({ params }) => {
    const values = ["paris", "park", "party"].filter((value) => value.startsWith(params.argument.value));
    return { completion: { values, total: values.length, hasMore: false } };
  });
  on(types.SetLevelRequestSchema, () => ({}));
  return server;
}

const sessions = new Map();
const http = createServer(async (request, response) => {
  const id = request.headers["mcp-session-id"];
  let transport = sessions.get(id);
  if (!transport && id) {
    response.writeHead(404).end();
    return;
  }
  if (!transport) {
    const hosts = [`localhost:${port}`, `127.0.0.1:${port}`];
    transport = new StreamableHTTPServerTransport({
      sessionIdGenerator: randomUUID,
      onsessioninitialized: (made) => sessions.set(made, transport),
      eventStore: new InMemoryEventStore(),
      retryInterval: 100,
      enableDnsRebindingProtection: true,
      allowedHosts: hosts,
      allowedOrigins: hosts.map((host) => `http://${host}`),
    });
    await serve().connect(transport);
  }
  await transport.handleRequest(request, response);
});
http.listen(Number(port), "127.0.0.1", () => console.log("ready"));
