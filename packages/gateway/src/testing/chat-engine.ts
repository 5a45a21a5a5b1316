import { TreewardError } from '@treeward/base';
import type { ChatReply, ChatRequest, Engine, EngineFacts } from '@treeward/policy';

/** An upstream that has only text: messages in, a turn out. */
export class ChatEngine implements Engine {
  readonly requests: ChatRequest[] = [];
  /** Thrown by that many calls, one each, before the rest is answered. */
  faults: Error[] = [];
  /** The turn that it gives. */
  answer: (request: ChatRequest) => Partial<ChatReply> = () => ({});

  async describe(): Promise<EngineFacts> {
    return {
      name: 'chat',
      ids: false,
      logprobs: 'none',
      contextLength: 100,
      vocabSize: 0,
      policy: null,
    };
  }

  async load(): Promise<void> {
    throw new TreewardError('ENGINE_E_WEIGHTS', 'an upstream takes no weights');
  }

  async sample(): Promise<never> {
    throw new TreewardError('ENGINE_E_IDS', 'an upstream takes no ids');
  }

  async chat(request: ChatRequest): Promise<ChatReply> {
    this.requests.push(request);
    const fault = this.faults.shift();
    if (fault) throw fault;
    return {
      parts: [{ type: 'text', text: `answer ${this.requests.length} of the other` }],
      finish: 'stop',
      usage: { promptTokens: 1234, completionTokens: 56 },
      model: 'vendor-large-1',
      ...this.answer(request),
    };
  }

  async close(): Promise<void> {}
}
