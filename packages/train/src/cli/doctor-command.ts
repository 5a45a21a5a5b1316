import { Command } from 'commander';
import { examine, type DoctorReport } from '../doctor.js';

export function doctorCommand(): Command {
  return new Command('doctor')
    .description('what this machine has, what is missing and what will be skipped')
    .option('--probe', 'run every installed harness once and compare it with the pinned one (half a minute)')
    .option('--json', 'the whole report as JSON')
    .addHelpText(
      'after',
      '\nExamples:\n  treeward doctor\n  treeward doctor --probe\n  treeward doctor --json',
    )
    .action(async (flags: { json?: boolean; probe?: boolean }) => {
      const report = await examine({ probe: flags.probe ?? false });
      if (flags.json) process.stdout.write(JSON.stringify(report) + '\n');
      else print(report);
      if (report.missing.some((entry) => entry.needed)) process.exitCode = 1;
    });
}

function print(report: DoctorReport): void {
  const say = (name: string, text: string): boolean => process.stdout.write(`${name.padEnd(14)} ${text}\n`);
  say('node', report.node.version);
  say('sandbox', `bubblewrap, tier ${report.sandbox.tier}: ${report.sandbox.reasons.join('; ') || 'ok'}`);
  say('docker', `tier ${report.docker.tier}: ${report.docker.reasons.join('; ')}`);
  say('tensorflow', report.tensorflow ? `libtensorflow ${report.tensorflow.version}` : 'missing');
  say('native', report.native ? `${report.native.backend}` : 'missing');
  say('llama', `node-llama-cpp ${report.llama.version}`);
  say('cuda compiler', report.nvcc ?? 'none: kernels build for the CPU only');
  for (const [name, { version, pin, warnings }] of Object.entries(report.harnesses)) {
    const asPinned = warnings?.length === 0 ? ', behaves as pinned' : '';
    say(name, version === null ? `not installed (pin ${pin})` : version + asPinned);
    for (const warning of warnings ?? []) say('  warning', warning);
  }
  for (const entry of report.missing)
    say(entry.needed ? 'MISSING' : 'absent', `${entry.what} → ${entry.fix}`);
}
