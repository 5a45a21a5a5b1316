import { copyFileSync, existsSync, mkdirSync, readdirSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { Command, Option } from 'commander';
import { TreewardError, writeFileAtomic } from '@treeward/base';
import { readWeights, writeGguf, writeWeights, type GgufType } from '@treeward/learner';
import { BpeTokenizer } from '@treeward/policy';
import { checkpointFolder } from '../checkpoint-folder.js';
import type { TrainConfig } from '../config.js';
import { compactTokenizerFiles } from '../export/compact-tokenizer.js';

interface ExportFlags {
  out: string;
  format: 'huggingface' | 'gguf';
  type: GgufType;
  template: TrainConfig['policy']['template'];
}

export function exportCommand(): Command {
  return new Command('export')
    .description('write a checkpoint for other programs: transformers (with its chat template) or llama.cpp')
    .argument('<checkpoint>', 'folder of a checkpoint, or hf:org/name')
    .requiredOption('--out <path>', 'folder to make; a file for gguf')
    .addOption(new Option('--format <name>').choices(['huggingface', 'gguf']).default('huggingface'))
    .addOption(
      new Option('--type <name>', 'of the matrices in a gguf file').choices(['f32', 'f16']).default('f32'),
    )
    .addOption(
      new Option('--template <kind>', 'the checkpoint’s: compact, or its own Hugging Face files, copied')
        .choices(['compact', 'huggingface'])
        .default('compact'),
    )
    .addHelpText(
      'after',
      `
Adapters (adapter_model.safetensors, PEFT) are copied beside the weights, which have them merged in.

Examples:
  treeward export runs/mixed/checkpoints/step_000013 --out /tmp/policy
  treeward export datasets/cold-start --format gguf --type f16 --out /tmp/policy.gguf`,
    )
    .action(async (name: string, { out, format, type, template }: ExportFlags) => {
      const checkpoint = await checkpointFolder(name, '<checkpoint>');
      const weights = readWeights(checkpoint);
      const target = resolve(out);
      if (existsSync(target)) {
        throw new TreewardError('CLI_E_EXISTS', `--out ${target} exists already`, { data: { file: target } });
      }
      if (format === 'gguf') {
        writeGguf(target, weights.config, weights.params, type);
      } else {
        mkdirSync(target, { recursive: true });
        writeWeights(target, weights);
        const copied = /^adapter_/;
        const companion = /^(tokenizer|special_tokens_map|vocab|merges|chat_template|generation_config)/;
        for (const file of readdirSync(checkpoint))
          if (copied.test(file) || (template === 'huggingface' && companion.test(file)))
            copyFileSync(join(checkpoint, file), join(target, file));
        if (template === 'compact') {
          const own = BpeTokenizer.load(join(checkpoint, 'tokenizer.json')).toJson();
          for (const [file, text] of Object.entries(compactTokenizerFiles(own, weights.config.maxPositions)))
            writeFileAtomic(join(target, file), text);
        }
      }
      process.stdout.write(`${target}\n`);
    });
}
