import { Command } from 'commander';
import { examine, type DoctorReport } from '../doctor.js';

export function doctorCommand(): Command {
  return new Command('doctor')
    .description('what this machine has, what is missing and what will be skipped')
    .option('--json', 'the whole report as JSON')
    .addHelpText('after', '\nExamples:\n  treeward doctor\n  treeward doctor --json')
    .action(async (flags: { json?: boolean }) => {
      const report = await examine();
      if (flags.json) process.stdout.write(JSON.stringify(report) + '\n');
      else print(report);
      if (report.missing.some((entry) => entry.needed)) process.exitCode = 1;
    });
}

function print(report: DoctorReport): void {
  const say = (name: string, text: string): boolean => process.stdout.write(`${name.padEnd(14)} ${text}\n`);
  say('node', report.node.version);
  say('sandbox', `bubblewrap, tier ${report.sandbox.tier}: ${report.sandbox.reasons.join('; ') || 'ok'}`);
  say('tensorflow', report.tensorflow ? `libtensorflow ${report.tensorflow.version}` : 'missing');
  say('native', report.native ? `${report.native.backend}` : 'missing');
  say('llama', `node-llama-cpp ${report.llama.version}`);
  say('cuda compiler', report.nvcc ?? 'none: kernels build for the CPU only');
  say('docker', report.docker ?? 'none');
  for (const [name, harness] of Object.entries(report.harnesses))
    say(name, harness.version ? harness.version : `not installed (pin ${harness.pin})`);
  for (const entry of report.missing)
    say(entry.needed ? 'MISSING' : 'absent', `${entry.what} → ${entry.fix}`);
}
