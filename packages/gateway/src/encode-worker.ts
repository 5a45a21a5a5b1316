import { createTemplate, type ChatTemplate } from '@treeward/policy';
import { move, workerData } from 'piscina';
import type { EncodeTask, EncodeThread } from './encoder.js';

/** Made when the thread starts; a failure is told to every task, since a thread that dies would be started for ever. */
const made = attempt();

function attempt(): ChatTemplate | Error {
  const { spec, id, vocabSize } = workerData as EncodeThread;
  try {
    const template = createTemplate(spec);
    if (template.id === id && template.vocabSize === vocabSize) return template;
    const other = `${template.id} of ${template.vocabSize} ids`;
    return new Error(`encodeOn makes template ${other}, the gateway has ${id} of ${vocabSize}`);
  } catch (error) {
    return error as Error;
  }
}

/** The task of a Piscina thread: text in, ids out (moved, not copied). */
export default function encodeInWorker(task: EncodeTask): Int32Array {
  if (made instanceof Error) throw made;
  const ids = task.kind === 'head' ? made.head(task.tools) : made.message(task.message);
  // A template may hand out an array that it keeps, or a view of one.
  return move(ids.slice()) as Int32Array;
}
