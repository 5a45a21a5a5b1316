import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { llamaTools, MODELS } from '../testing/model-files.js';
import { createTemplate, type TemplateSpec } from './template-spec.js';

const tokenizer = fileURLToPath(new URL('../__fixtures__/tokenizer.json', import.meta.url));

describe('createTemplate', () => {
  it('builds the same template from the same data, after a trip through JSON', () => {
    const specs: TemplateSpec[] = [
      { kind: 'compact', tokenizer },
      {
        kind: 'huggingface',
        directory: MODELS.llama3,
        chatTemplate: llamaTools,
        variant: 'strict',
        variables: { date_string: 'x' },
      },
    ];
    for (const spec of specs) {
      const first = createTemplate(spec);
      const again = createTemplate(JSON.parse(JSON.stringify(spec)) as TemplateSpec);
      expect(again.id).toBe(first.id);
      const message = { role: 'user', text: 'Hello <|eot_id|>' } as const;
      expect(again.message(message)).toEqual(first.message(message));
    }
  });

  it('names the field of a spec it cannot use', () => {
    const refused = (spec: unknown) => () => createTemplate(spec as TemplateSpec);
    expect(refused({ kind: 'compact' })).toThrow(/template\.tokenizer/);
    expect(refused({ kind: 'compact', tokenizer, extra: 1 })).toThrow(/extra/);
    expect(refused({ kind: 'huggingface', directory: MODELS.llama3, variant: 'loose' })).toThrow(
      /template\.variant/,
    );
    expect(refused({ kind: 'gpt' })).toThrow(/template\.kind/);
  });
});
