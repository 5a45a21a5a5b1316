import { mkdirSync } from 'node:fs';
import { resolve } from 'node:path';
import { Command } from 'commander';
import { RunFolder } from '@treeward/base';
import { loadDemonstrations } from '../cold-start/demonstrations.js';
import { makeTokenizer } from '../cold-start/make-tokenizer.js';
import { recordDemonstrations } from '../cold-start/record-demonstrations.js';
import { trainColdStart } from '../cold-start/train-cold-start.js';
import { Progress } from '../progress.js';
import { stopSignals } from '../stop-signals.js';
import { providerFlag, providerOption } from './provider-flag.js';

export function coldStartCommand(): Command {
  return new Command('cold-start')
    .description('make the embedded policy: demonstrations through the real CLIs, then supervised training')
    .addCommand(recordCommand())
    .addCommand(tokenizerCommand())
    .addCommand(trainCommand())
    .addHelpText(
      'after',
      `
Examples:
  treeward cold-start record --out runs/demos --claude-code 1200 --openclaw 150
  treeward cold-start tokenizer --demos runs/demos
  treeward cold-start train --demos runs/demos --out runs/cold --minutes 50
Recording and training resume where they were stopped; copy model.safetensors, config.json and tokenizer.json to datasets/cold-start.`,
    );
}

function recordCommand(): Command {
  return new Command('record')
    .description('a scripted demonstrator plays tasks through the real harnesses')
    .requiredOption('--out <dir>', 'run folder')
    .option(
      '--claude-code <n>',
      'tasks demonstrated in Claude Code, each in two or three plans',
      Number,
      1200,
    )
    .option('--openclaw <n>', 'in OpenClaw', Number, 150)
    .option('--pi <n>', 'in pi', Number, 0)
    .option('--agent-loop <n>', 'in our own loop', Number, 0)
    .option('--tokenizer <file>', 'tokenizer.json', 'datasets/cold-start/tokenizer.json')
    .option('--seed <n>', 'seed', Number, 0)
    .option('--concurrency <n>', 'rollouts in flight', Number, 6)
    .addOption(providerOption())
    .action(
      async (flags: {
        out: string;
        claudeCode: number;
        openclaw: number;
        pi: number;
        agentLoop: number;
        tokenizer: string;
        seed: number;
        concurrency: number;
        provider: string;
      }) => {
        const run = new RunFolder(resolve(flags.out));
        mkdirSync(run.root, { recursive: true });
        const progress = new Progress();
        const stop = stopSignals((text) => progress.line(text));
        const counts = {
          'claude-code': flags.claudeCode,
          openclaw: flags.openclaw,
          pi: flags.pi,
          'agent-loop': flags.agentLoop,
        };
        await recordDemonstrations(
          run,
          {
            tokenizer: resolve(flags.tokenizer),
            counts: Object.fromEntries(Object.entries(counts).filter(([, count]) => count > 0)),
            seed: flags.seed,
            sandboxes: await providerFlag(flags.provider),
            concurrency: flags.concurrency,
            perHarness: { openclaw: 2 },
            signal: AbortSignal.any([stop.now, stop.afterStep]),
          },
          progress,
        );
        stop.dispose();
      },
    );
}

function tokenizerCommand(): Command {
  return new Command('tokenizer')
    .description('train the tokenizer on recorded demonstrations')
    .requiredOption('--demos <dir>', 'folder made by cold-start record')
    .option('--out <file>', 'tokenizer.json', 'datasets/cold-start/tokenizer.json')
    .option('--vocab <n>', 'ids in all: 10 specials, 256 bytes, merges', Number, 768)
    .option('--seed <n>', 'seed', Number, 0)
    .action((flags: { demos: string; out: string; vocab: number; seed: number }) => {
      const demonstrations = loadDemonstrations(new RunFolder(resolve(flags.demos)));
      makeTokenizer(demonstrations, flags.vocab, resolve(flags.out), flags.seed);
      process.stdout.write(`${flags.out}: ${flags.vocab} ids from ${demonstrations.length} demonstrations\n`);
    });
}

function trainCommand(): Command {
  return new Command('train')
    .description('supervised training from recorded demonstrations')
    .requiredOption('--demos <dir>', 'folder made by cold-start record')
    .requiredOption('--out <dir>', 'run folder; receives model.safetensors, config.json, tokenizer.json')
    .option('--minutes <n>', 'wall time of the schedule', Number, 50)
    .option('--init <dir>', 'start from this checkpoint instead of random weights')
    .option('--tokenizer <file>', 'tokenizer.json', 'datasets/cold-start/tokenizer.json')
    .option('--learners <n>', 'learner processes, one core each', Number, 2)
    .option('--batch <n>', 'sequences per learner and step', Number, 32)
    .option('--lr <x>', 'peak learning rate of embeddings and norms (AdamW)', Number, 3e-3)
    .option('--muon-lr <x>', 'peak learning rate of the hidden matrices (Muon)', Number, 4e-3)
    .option('--seed <n>', 'seed', Number, 0)
    .action(
      async (flags: {
        demos: string;
        out: string;
        minutes: number;
        init?: string;
        tokenizer: string;
        learners: number;
        batch: number;
        lr: number;
        muonLr: number;
        seed: number;
      }) => {
        const progress = new Progress();
        const stop = stopSignals((text) => progress.line(text));
        await trainColdStart(
          new RunFolder(resolve(flags.out)),
          {
            demonstrations: new RunFolder(resolve(flags.demos)),
            tokenizer: resolve(flags.tokenizer),
            ...(flags.init ? { init: resolve(flags.init) } : {}),
            minutes: flags.minutes,
            seed: flags.seed,
            learners: flags.learners,
            batch: flags.batch,
            averageEvery: 25,
            malformedShare: 0.06,
            lr: flags.lr,
            muonLr: flags.muonLr,
            signal: AbortSignal.any([stop.now, stop.afterStep]),
          },
          progress,
        );
        stop.dispose();
      },
    );
}
