import { read, write } from '../steps.js';
import { lines, type Family } from './family.js';

/** From, About and When of a mail, in any order, become three lines. Dominant flaw: only the first line. */
export const reply: Family = {
  name: 'reply',
  domain: 'productivity',
  make(draw) {
    const [from, to] = [draw.file('txt'), draw.file('txt')];
    const [sender, topic] = [draw.value('name'), draw.value('item')];
    const when = `${draw.value('day')} ${8 + draw.below(10)}:00`;
    const mail = lines(
      ...draw.shuffle([`From ${sender}`, `About ${topic}`, `When ${when}`, `Cc ${draw.value('name')}`]),
    );
    const want = [`To ${sender}`, `Re ${topic}`, `Ok ${when}`] as const;
    return {
      files: { [from]: mail },
      query: draw.pick([
        `Answer the mail in ${from}: write ${to} with lines To, Re and Ok with sender, topic and time.`,
        `Write a reply to ${from} in ${to} with the lines To, Re, Ok.`,
        `Confirm the meeting from ${from} in ${to} using To, Re and Ok lines.`,
      ]),
      rules: [
        { name: 'exists', weight: 0.1, kind: 'exists', path: to },
        { name: 'to', weight: 0.25, kind: 'has', path: to, line: want[0] },
        { name: 're', weight: 0.25, kind: 'has', path: to, line: want[1] },
        { name: 'ok', weight: 0.25, kind: 'has', path: to, line: want[2] },
        { name: 'shape', weight: 0.15, kind: 'equal', path: to, want: [...want] },
      ],
      oracle: [read(from), write(to, lines(...want))],
      flaws: [[read(from), write(to, want[0])], [read(from)], [read(from), write(to, mail)]],
    };
  },
};
