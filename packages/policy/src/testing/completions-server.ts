import { createServer, type IncomingMessage, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { TreewardError } from '@treeward/base';
import type { Engine } from '../types.js';

interface CompletionBody {
  model: string;
  prompt: number[];
  max_tokens: number;
  temperature: number;
  top_p: number;
  top_k: number;
  seed: number;
  logit_bias: Record<string, number>;
  stop_token_ids: number[];
  return_token_ids?: boolean;
}

/**
 * Protocol fake: an HTTP server that speaks the part of vLLM's completions protocol that we use, in front of real engines found by model
 * name. What it samples is real; only the server is not vLLM.
 */
export async function serveCompletions(
  engineFor: (model: string) => Engine | undefined,
): Promise<{ baseUrl: string; server: Server; bodies: CompletionBody[] }> {
  const bodies: CompletionBody[] = [];
  const server = createServer((request, response) => {
    const gone = new AbortController();
    response.on('close', () => gone.abort());
    const send = (status: number, body: unknown): void => {
      response.writeHead(status, { 'content-type': 'application/json' });
      response.end(JSON.stringify(body));
    };
    answer(request, gone.signal).then(
      (body) => send(200, body),
      (error: Error) => {
        const code = TreewardError.isInstance(error) ? error.code : 'E_UNEXPECTED';
        send(code === 'NOT_FOUND' ? 404 : 400, { error: { message: `${code}: ${error.message}`, code } });
      },
    );
  });
  const answer = async (request: IncomingMessage, signal: AbortSignal): Promise<unknown> => {
    const body = JSON.parse(await textOf(request)) as CompletionBody;
    bodies.push(body);
    const engine = engineFor(body.model);
    if (!engine) throw new TreewardError('NOT_FOUND', `the model ${body.model} does not exist`);
    const sampled = await engine.sample(
      'current',
      {
        prompt: Int32Array.from(body.prompt),
        stopIds: body.stop_token_ids,
        tag: `seed ${body.seed}`,
        sampling: {
          temperature: body.temperature,
          topP: body.top_p,
          topK: body.top_k,
          bannedIds: Object.entries(body.logit_bias).flatMap(([id, bias]) =>
            bias <= -100 ? [Number(id)] : [],
          ),
          maxTokens: body.max_tokens,
          seed: String(body.seed),
        },
      },
      { signal },
    );
    return {
      id: 'cmpl-1',
      object: 'text_completion',
      created: 0,
      model: body.model,
      choices: [
        {
          index: 0,
          text: '',
          finish_reason: sampled.finish === 'stop' ? 'stop' : 'length',
          logprobs: {
            token_logprobs: [...sampled.logprobs],
            tokens: [],
            top_logprobs: null,
            text_offset: [],
          },
          ...(body.return_token_ids ? { token_ids: [...sampled.tokens], prompt_token_ids: body.prompt } : {}),
        },
      ],
      usage: { prompt_tokens: body.prompt.length, completion_tokens: sampled.tokens.length, total_tokens: 0 },
    };
  };
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return { baseUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`, server, bodies };
}

export async function textOf(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString();
}
