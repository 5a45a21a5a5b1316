import { read, write } from '../../steps.js';
import { csv, lines } from '../text.js';
import type { Plan, SetFamily } from '../set-task.js';

const FIRST = ['Nora', 'Emil', 'Safiya', 'Otto', 'Lena', 'Kofi', 'Ines'];
const LAST = ['Brandt', 'Okafor', 'Lindqvist', 'Marsh', 'Vega', 'Haas', 'Pell'];
const ROOMS = ['Oak', 'Maple', 'Willow'];
const TEMPLATE = `Dear {{salutation}},

your seat at the {{event}} is confirmed.
Room: {{room}}
Please bring badge number {{badge}}.

The events team
`;

/** A template and a table → one letter a person. Dominant mistake: people who opted out get a letter. */
export const mailMerge: SetFamily = {
  name: 'mail-merge',
  domain: 'content',
  level: 'base',
  make(random) {
    const event = random.pick(['spring workshop', 'safety briefing', 'supplier day']);
    const last = random.shuffle(LAST);
    const people = random.shuffle(FIRST).map((first, i) => ({
      id: `p${11 + 3 * i}`,
      first,
      last: last[i]!,
      title: i % 3 === 1 ? '' : random.pick(['Dr.', 'Ms.', 'Mr.']),
      room: random.pick(ROOMS),
      badge: String(400 + random.below(500)),
      optOut: i === 2 || i === 5 ? 'yes' : 'no',
    }));
    const rows = random.shuffle(people);
    const letter = (p: (typeof people)[number], fallback = true): string =>
      TEMPLATE.replace(
        '{{salutation}}',
        p.title || !fallback ? `${p.title} ${p.last}` : `${p.first} ${p.last}`,
      )
        .replace('{{event}}', event)
        .replace('{{room}}', p.room)
        .replace('{{badge}}', p.badge);
    const invited = people.filter((p) => p.optOut === 'no');
    const plan = (
      options: {
        to?: typeof people;
        fallback?: boolean;
        index?: typeof people;
        name?: (id: string) => string;
      } = {},
    ): Plan => {
      const { to = invited, fallback = true, index = to, name = (id) => id } = options;
      return {
        steps: [
          ...['template.txt', 'people.csv', 'rules.md'].map(read),
          ...to.map((p) => write(`letters/${name(p.id)}.txt`, letter(p, fallback))),
          write('letters/index.txt', lines(...index.map(({ id }) => id))),
        ],
      };
    };
    return {
      files: {
        'template.txt': TEMPLATE,
        'people.csv': csv(
          ['id', 'first', 'last', 'title', 'room', 'badge', 'opted_out'],
          rows.map((p) => [p.id, p.first, p.last, p.title, p.room, p.badge, p.optOut]),
        ),
        'rules.md': lines(
          '# Letters',
          '',
          '- Nobody who opted out gets a letter.',
          '- The salutation is title and last name ("Dr. Vega"); without a title it is first and last name.',
          `- The event is the ${event}.`,
        ),
      },
      query:
        'Fill template.txt for the people in people.csv following rules.md, and write each letter to letters/<id>.txt with every placeholder replaced and all other ' +
        'text as in the template. Also write letters/index.txt: the ids of those who get a letter, one per line, sorted ascending. Put nothing else into letters/.',
      expected:
        'The agent writes one filled letter for each person who did not opt out, with the right salutation, and the sorted index.',
      truth: {
        letters: Object.fromEntries(invited.map((p) => [p.id, letter(p)])),
        untitled: invited.filter((p) => !p.title).map(({ id }) => id),
        ids: invited.map(({ id }) => id),
      },
      check: String.raw`
def words(text):
    return None if text is None else [line.strip() for line in text.strip().split("\n")]

wanted = {id: words(text) for id, text in TRUTH["letters"].items()}
found = {id: words(ws.text("letters/%s.txt" % id)) for id in wanted}
names = {"letters/%s.txt" % id for id in wanted} | {"letters/index.txt"}
return {
    "letters": share(found[id] == text for id, text in wanted.items()),
    "salutations": share(found[id] is not None and found[id][0] == wanted[id][0] for id in wanted),
    "untitled": share(found[id] is not None and found[id][0] == wanted[id][0] for id in TRUTH["untitled"]),
    "nobody_else": float(set(ws.files("letters")) == names),
    "index": float(ws.lines("letters/index.txt") == TRUTH["ids"]),
}`,
      reference: plan(),
      wrong: {
        'opted-out-written': { why: 'people who opted out get a letter', ...plan({ to: people }) },
        'no-fallback': {
          why: 'without a title the salutation lacks the first name',
          ...plan({ fallback: false }),
        },
        'index-unsorted': {
          why: 'the index keeps the order of the table',
          ...plan({ index: [...invited].reverse() }),
        },
        'named-by-number': {
          why: 'files are named letter-<id>.txt',
          ...plan({ name: (id) => `letter-${id}` }),
        },
      },
    };
  },
};
