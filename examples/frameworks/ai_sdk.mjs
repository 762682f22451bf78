// An agent of the Vercel AI SDK that works with haft's tools: `node ai_sdk.mjs "What does this project do?"`.
//
// haft runs as a program of this one, or, where HAFT_URL is set (http://127.0.0.1:4747/mcp), as `haft serve`.
import { createMCPClient } from '@ai-sdk/mcp';
import { Experimental_StdioMCPTransport as StdioTransport } from '@ai-sdk/mcp/mcp-stdio';
import { openai } from '@ai-sdk/openai';
import { generateText, isStepCount } from 'ai';

const { HAFT_URL, HAFT_TOKEN, MODEL = 'gpt-5' } = process.env;
const haft = await createMCPClient({
  transport: HAFT_URL
    ? { type: 'http', url: HAFT_URL, headers: { Authorization: `Bearer ${HAFT_TOKEN}` } }
    : new StdioTransport({ command: 'haft', args: ['mcp', '--agent', 'ai-sdk'] }),
});
try {
  const tools = await haft.tools();
  const answer = await generateText({ model: openai(MODEL), tools, stopWhen: isStepCount(30), prompt: process.argv[2] });
  console.log(answer.text);
} finally {
  await haft.close();
}
