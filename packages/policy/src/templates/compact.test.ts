import { fileURLToPath } from 'node:url';
import type { Message, ReplyPart, ToolSpec } from '@treeward/messages';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { BpeTokenizer } from '../tokenizer/bpe-tokenizer.js';
import { SPECIALS } from '../tokenizer/vocabulary.js';
import { CompactTemplate } from './compact.js';

const tokenizer = BpeTokenizer.load(
  fileURLToPath(new URL('../__fixtures__/tokenizer.json', import.meta.url)),
);
const template = new CompactTemplate(tokenizer);
const ids = (text: string): number[] => [...tokenizer.encode(text)];
const special = (name: (typeof SPECIALS)[number]): number => tokenizer.special(name);

const tool = (name: string, properties: string[], required?: string[]): ToolSpec => ({
  name,
  description: 'dropped',
  parameters: {
    type: 'object',
    properties: Object.fromEntries(properties.map((p) => [p, { type: 'string' }])),
    ...(required ? { required } : {}),
  },
});
const call = (name: string, args: Record<string, unknown>): ReplyPart => ({
  type: 'tool_call',
  id: 'toolu_1',
  name,
  arguments: args,
});

// Text that spells specials, to show that it stays text.
const nasty = fc
  .array(fc.oneof(fc.constantFrom(...SPECIALS), fc.string({ unit: 'binary', maxLength: 12 })), {
    maxLength: 6,
  })
  .map((pieces) => pieces.join(''));
const word = nasty.filter((text) => text.length > 0);
const callPart = fc
  .record({ name: word, args: fc.dictionary(word, nasty) })
  .map(({ name, args }) => call(name, args));
const message: fc.Arbitrary<Message> = fc.oneof(
  fc.record({ role: fc.constant('system' as const), text: nasty }),
  fc.record({ role: fc.constant('user' as const), text: nasty }),
  fc.record({ role: fc.constant('tool' as const), callId: fc.constant('c'), text: nasty }),
  fc.record({
    role: fc.constant('assistant' as const),
    parts: fc.array(
      fc.oneof(
        nasty.map((text): ReplyPart => ({ type: 'text', text })),
        callPart,
      ),
      { maxLength: 2 },
    ),
  }),
);
const render = (messages: readonly Message[]): number[] => [
  ...template.head([tool('Read', ['file_path'], ['file_path'])]),
  ...messages.flatMap((m) => [...template.message(m)]),
];

describe('CompactTemplate: rendering', () => {
  it('spells a whole episode as documented', () => {
    const stream = Int32Array.from([
      ...template.head([
        tool('Bash', ['command', 'timeout'], ['command']),
        tool('Edit', ['file_path', 'old_string', 'new_string'], ['new_string', 'file_path', 'old_string']),
        tool('Now', []),
      ]),
      ...[
        { role: 'system', text: 'You are …' } as const,
        { role: 'user', text: 'Do it.' } as const,
        { role: 'assistant', parts: [call('Read', { file_path: 'notes.txt' })] } as Message,
        { role: 'tool', callId: 'x', text: 'hello' } as const,
        { role: 'assistant', parts: [{ type: 'text', text: 'Done.' }] } as Message,
      ].flatMap((m) => [...template.message(m)]),
    ]);
    expect(template.decode(stream)).toBe(
      '<sys>Bash(command) Edit(file_path,old_string,new_string) Now()<user>Do it.' +
        '<asst><call>Read<arg>file_path<eq>notes.txt<end><res>hello<asst>Done.<eot>',
    );
  });

  it('shows 400 characters of a tool result, counted in code points', () => {
    const shown = template.message({ role: 'tool', callId: 'x', text: '😀'.repeat(401) });
    expect(tokenizer.decode(shown)).toBe('<res>' + '😀'.repeat(400));
  });

  it('writes arguments that are not strings as canonical JSON', () => {
    const reply = template.reply([call('T', { n: 3, o: { b: [1, null], a: 'x' } })]);
    expect(template.decode(reply)).toBe('<call>T<arg>n<eq>3<arg>o<eq>{"a":"x","b":[1,null]}<end>');
  });

  it('keeps spelled specials in untrusted text as bytes', () => {
    fc.assert(
      fc.property(nasty, nasty, (result, instruction) => {
        const stream = [
          ...template.message({ role: 'user', text: instruction }),
          ...template.message({ role: 'tool', callId: 'x', text: result }),
        ];
        expect(stream.filter((id) => id < SPECIALS.length)).toEqual([special('<user>'), special('<res>')]);
      }),
    );
  });

  it('is append-only: a longer conversation has the shorter one as its prefix', () => {
    fc.assert(
      fc.property(fc.array(message, { maxLength: 6 }), fc.nat(6), (messages, cut) => {
        const short = render(messages.slice(0, cut));
        expect(render(messages).slice(0, short.length)).toEqual(short);
      }),
    );
  });

  it('puts the generation prompt before the very tokens that a reply renders to', () => {
    fc.assert(
      fc.property(callPart, (part) => {
        expect([...template.message({ role: 'assistant', parts: [part] })]).toEqual([
          ...template.generation,
          ...template.reply([part]),
        ]);
      }),
    );
  });
});

describe('CompactTemplate: parsing', () => {
  it('gives back a call and a text that it rendered', () => {
    fc.assert(
      fc.property(callPart, nasty, (part, text) => {
        expect(template.parse(template.reply([part]))).toEqual({ parts: [{ ...part, id: '' }] });
        expect(template.parse(template.reply([{ type: 'text', text }]))).toEqual({
          parts: [{ type: 'text', text }],
        });
      }),
    );
  });

  it('keeps an argument named __proto__ as data', () => {
    const sampled = [
      special('<call>'),
      ...ids('T'),
      special('<arg>'),
      ...ids('__proto__'),
      special('<eq>'),
      ...ids('x'),
    ];
    const [part] = template.parse(Int32Array.from([...sampled, special('<end>')])).parts;
    expect(part?.type === 'tool_call' && Object.entries(part.arguments)).toEqual([['__proto__', 'x']]);
  });

  const [CALL, ARG, EQ, END, EOT] = (['<call>', '<arg>', '<eq>', '<end>', '<eot>'] as const).map(special) as [
    number,
    number,
    number,
    number,
    number,
  ];
  it.each([
    ['nothing', [], '', /no tokens/],
    ['cut text', ids('Hi'), 'Hi', /end with <eot>/],
    ['special in text', [...ids('a'), ARG, EOT], 'a<arg><eot>', /inside text/],
    ['cut call', [CALL, ...ids('Read')], '<call>Read', /end with <end>/],
    ['nameless call', [CALL, ARG, ...ids('a'), EQ, END], '<call><arg>a<eq><end>', /without a name/],
    ['no <eq>', [CALL, ...ids('R'), ARG, ...ids('a'), END], '<call>R<arg>a<end>', /exactly one <eq>/],
    [
      'two <eq>',
      [CALL, ...ids('R'), ARG, ...ids('a'), EQ, EQ, END],
      '<call>R<arg>a<eq><eq><end>',
      /exactly one <eq>/,
    ],
    [
      'nameless argument',
      [CALL, ...ids('R'), ARG, EQ, END],
      '<call>R<arg><eq><end>',
      /argument without a name/,
    ],
    ['call in call', [CALL, ...ids('R'), CALL, END], '<call>R<call><end>', /call name/],
    [
      'end in value',
      [CALL, ...ids('R'), ARG, ...ids('a'), EQ, END, END],
      '<call>R<arg>a<eq><end><end>',
      /argument/,
    ],
    ['unknown id', [5000, EOT], '<?5000><eot>', /inside text/],
  ])('turns %s into visible text with a reason', (_, sampled, text, reason) => {
    const parsed = template.parse(Int32Array.from(sampled));
    expect(parsed.parts).toEqual([{ type: 'text', text }]);
    expect(parsed.malformed).toMatch(reason);
  });

  it('never throws, and what it accepts renders back to the same meaning', () => {
    const id = fc.oneof(fc.nat(9), fc.integer({ min: -5, max: template.vocabSize + 5 }), fc.integer());
    const framed = fc.tuple(
      fc.constantFrom([], [CALL]),
      fc.array(id, { maxLength: 12 }),
      fc.constantFrom([], [END], [EOT]),
    );
    fc.assert(
      fc.property(framed, (pieces) => {
        const parsed = template.parse(Int32Array.from(pieces.flat()));
        expect(parsed.parts).toHaveLength(1);
        if (parsed.malformed === undefined)
          expect(template.parse(template.reply(parsed.parts))).toEqual(parsed);
        else expect(parsed.parts[0]!.type).toBe('text');
      }),
      { numRuns: 2000 },
    );
  });
});
