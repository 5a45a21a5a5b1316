import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TreewardError } from '@treeward/base';
import { afterAll, describe, expect, it } from 'vitest';
import { llamaTools, MODELS } from '../testing/model-files.js';
import { HuggingFaceTemplate } from './huggingface.js';

const dir = mkdtempSync(join(tmpdir(), 'policy-hf-'));
afterAll(() => rmSync(dir, { recursive: true }));

describe('templates and files that are refused', () => {
  const refused = (options: {
    template?: string;
    directory?: string;
    variant?: 'strict' | 'stable';
  }): TreewardError => {
    const chatTemplate = join(dir, 'chat.jinja');
    if (options.template !== undefined) writeFileSync(chatTemplate, options.template);
    try {
      new HuggingFaceTemplate(options.directory ?? MODELS.qwen3, {
        ...(options.template === undefined ? {} : { chatTemplate }),
        variant: options.variant ?? 'stable',
      });
    } catch (error) {
      return error as TreewardError;
    }
    throw new Error('not refused');
  };
  const TURN = "'<|im_start|>' + message.role + '\n' + message.content + '<|im_end|>\n'";
  const loop = (body: string, before = ''): string =>
    `${before}{%- for message in messages -%}${body}{%- endfor -%}{%- if add_generation_prompt -%}{{ '<|im_start|>assistant\n' }}{%- endif -%}`;

  it('Qwen3 as it is: refused when strict, with the place; the stable variant lists where it differs', () => {
    expect(refused({ variant: 'strict' })).toMatchObject({
      code: 'TEMPLATE_E_UNSTABLE',
      message: expect.stringContaining('a conversation without tools: appending gives'),
      data: { where: 'a conversation without tools' },
    });
    expect(new HuggingFaceTemplate(MODELS.qwen3, { variant: 'stable' }).deviations).toEqual([
      'a conversation without tools',
      'a system message without tools',
      'tools and a system message',
      'several tool results in a row',
    ]);
    expect(new HuggingFaceTemplate(MODELS.llama3, { chatTemplate: llamaTools }).deviations).toEqual([]);
  });

  it.each([
    [
      'earlier turns are rewritten',
      loop(
        `{{ '<|im_start|>' + message.role + '\n' + (message.content if loop.last else '…') + '<|im_end|>\n' }}`,
      ),
      'a second user message',
    ],
    [
      'turns are counted at the start',
      loop(`{{ ${TURN} }}`, '{{ messages | length }}'),
      'a second user message',
    ],
    [
      'a generation prompt that was not asked for',
      `{%- for message in messages -%}{{ ${TURN} }}{%- endfor -%}{{ '<|im_start|>assistant\n' }}`,
      'a second user message',
    ],
    [
      'no generation prompt',
      `{%- for message in messages -%}{{ ${TURN} }}{%- endfor -%}`,
      'the generation prompt',
    ],
    [
      'tools inside the first user message',
      loop(
        `{%- if loop.first and tools -%}{{ '<|im_start|>user\nTools: ' + (tools | tojson) + message.content + '<|im_end|>\n' }}{%- else -%}{{ ${TURN} }}{%- endif -%}`,
      ),
      'the tools',
    ],
  ])('%s', (_, template, where) => {
    const error = refused({ template });
    expect(['TEMPLATE_E_UNSTABLE', 'TEMPLATE_E_FORMAT']).toContain(error.code);
    if (error.code === 'TEMPLATE_E_UNSTABLE') expect(error.data).toEqual({ where });
  });

  it('names a call format that it cannot read, and files that are missing', () => {
    expect(refused({ template: loop(`{{ ${TURN} }}`) })).toMatchObject({ code: 'TEMPLATE_E_FORMAT' });
    expect(refused({ directory: dir })).toMatchObject({ code: 'FILE_E_MISSING' });
    expect(refused({ template: '{% for' })).toMatchObject({ code: 'TEMPLATE_E_FILE' });
  });

  const tokens = [{ id: 2, content: '<|im_end|>', special: true }];
  const vocab = { a: 0, b: 1 };
  it.each<[string, unknown, unknown, string]>([
    ['null', null, {}, '(the whole file)'],
    ['a list', [], {}, '(the whole file)'],
    ['no added tokens', { model: { vocab } }, {}, 'added_tokens'],
    ['none of them', { added_tokens: [], model: { vocab } }, {}, 'added_tokens'],
    ['one without text', { added_tokens: [{ id: 2 }], model: { vocab } }, {}, 'added_tokens.0.content'],
    ['no model', { added_tokens: tokens }, {}, 'model'],
    ['no vocabulary', { added_tokens: tokens, model: { vocab: null } }, {}, 'model.vocab'],
    ['a list of pieces', { added_tokens: tokens, model: { vocab: [['a', 0]] } }, {}, 'model.vocab'],
    ['an id that is none', { added_tokens: tokens, model: { vocab: { a: '0' } } }, {}, 'model.vocab.a'],
    ['no settings', { added_tokens: tokens, model: { vocab } }, null, '(the whole file)'],
    ['no chat template', { added_tokens: tokens, model: { vocab } }, {}, 'chat_template'],
  ])('names file and field of a damaged tokenizer: %s', (_, tokenizer, config, field) => {
    const directory = mkdtempSync(join(dir, 'damaged-'));
    writeFileSync(join(directory, 'tokenizer.json'), JSON.stringify(tokenizer));
    writeFileSync(join(directory, 'tokenizer_config.json'), JSON.stringify(config));
    const error = refused({ directory });
    expect(error).toMatchObject({ code: 'TEMPLATE_E_FILE', data: { field } });
    expect(error.message).toContain(directory);
  });

  it('says when the library cannot use a tokenizer', () => {
    const directory = mkdtempSync(join(dir, 'strange-'));
    const model = { type: 'Own', vocab, merges: [] };
    writeFileSync(join(directory, 'tokenizer.json'), JSON.stringify({ added_tokens: tokens, model }));
    writeFileSync(join(directory, 'tokenizer_config.json'), JSON.stringify({ chat_template: 'x' }));
    expect(refused({ directory })).toMatchObject({ code: 'TEMPLATE_E_FILE' });
  });
});
