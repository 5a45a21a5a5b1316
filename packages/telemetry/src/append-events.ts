import type { RecordEvent } from './types.js';
import { RecordWriter } from './writer.js';

/**
 * Adds to a record that nobody is writing, and returns when it is in the file.
 * @throws TreewardError RECORD_E_OPEN, RECORD_E_EVENT, RECORD_E_WRITE
 */
export async function appendEvents(directory: string, events: readonly RecordEvent[]): Promise<void> {
  const writer = RecordWriter.open(directory);
  try {
    for (const event of events) writer.append(event);
  } finally {
    await writer.close();
  }
}
