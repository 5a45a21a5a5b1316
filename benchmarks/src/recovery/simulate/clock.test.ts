import { expect, it } from 'vitest';
import { Clock, type Process } from './clock.js';

it('runs processes in virtual time, whoever is due first', async () => {
  const clock = new Clock(100);
  const log: string[] = [];
  function* process(name: string, times: readonly number[]): Process<string> {
    for (const sleep of times) {
      yield { sleep };
      log.push(`${name}@${clock.now}`);
    }
    return name;
  }
  const a = clock.start(process('a', [10, 10]));
  const b = clock.start(process('b', [5, 30]), 1);
  clock.start(
    (function* (): Process<void> {
      yield { join: [a, b] };
      log.push(`joined ${a.result}${b.result}@${clock.now}`);
    })(),
  );
  await clock.run();
  expect(log).toEqual(['b@106', 'a@110', 'a@120', 'b@136', 'joined ab@136']);
});

it('stands still during real work, and nobody else runs', async () => {
  const clock = new Clock(0);
  const log: string[] = [];
  clock.start(
    (function* (): Process<void> {
      yield {
        work: async () => {
          await new Promise((resolve) => setTimeout(resolve, 5));
          log.push('worked');
        },
      };
      log.push(`then@${clock.now}`);
    })(),
  );
  clock.start(
    (function* (): Process<void> {
      log.push(`other@${clock.now}`);
      yield { sleep: 1 };
    })(),
  );
  await clock.run();
  expect(log).toEqual(['worked', 'then@0', 'other@0']);
});
