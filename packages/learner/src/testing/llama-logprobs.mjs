// node llama-logprobs.mjs model.gguf rows.json : prints, per row, llama.cpp's log-probability of each token given those
// before it. A process of its own: llama.cpp must not share one with TensorFlow or a test worker.
import { readFileSync } from 'node:fs';
import { getLlama } from 'node-llama-cpp';

const [, , modelPath, rowsPath] = process.argv;
const rows = JSON.parse(readFileSync(rowsPath, 'utf8'));
const llama = await getLlama({ gpu: false, build: 'never', logLevel: 'error' });
const model = await llama.loadModel({ modelPath });
const context = await model.createContext({ contextSize: 512, sequences: 1, threads: 1 });
const out = [];
for (const ids of rows) {
  const sequence = context.getSequence();
  const steps = await sequence.controlledEvaluate(
    ids.map((id) => [id, { generateNext: { probabilities: true } }]),
  );
  out.push(ids.map((id, i) => (i === 0 ? null : Math.log(steps[i - 1].next.probabilities.get(id) ?? 0))));
  await sequence.dispose();
}
process.stdout.write(JSON.stringify(out), () => process.exit(0));
