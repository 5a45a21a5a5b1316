import { createTemplate } from '@treeward/policy';
import { move, workerData } from 'piscina';
import type { EncodeTask, EncodeThread } from './encoder.js';

const { spec, id, vocabSize } = workerData as EncodeThread;
const template = createTemplate(spec);
if (template.id !== id || template.vocabSize !== vocabSize) {
  const made = `${template.id} of ${template.vocabSize} ids`;
  throw new Error(`encodeOn makes template ${made}, the gateway has ${id} of ${vocabSize}`);
}

/** The task of a Piscina thread: text in, ids out (moved, not copied). */
export default function encodeInWorker(task: EncodeTask): Int32Array {
  const ids = task.kind === 'head' ? template.head(task.tools) : template.message(task.message);
  // A template may hand out an array that it keeps, or a view of one.
  return move(ids.slice()) as Int32Array;
}
