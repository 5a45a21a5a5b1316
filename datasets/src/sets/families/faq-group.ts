import { read, write } from '../../steps.js';
import { lines } from '../text.js';
import type { Plan, SetFamily } from '../set-task.js';

const ENTRIES: readonly (readonly [topic: string, question: string, answer: string])[] = [
  ['Orders', 'Can I change an order?', 'Until it is packed.'],
  ['Orders', 'Where is my order?', 'See the link in the mail.'],
  ['Orders', 'How do I cancel?', 'Write to the desk.'],
  ['Payment', 'Which cards work?', 'All common ones.'],
  ['Payment', 'Do you send invoices?', 'Yes, with every parcel.'],
  ['Payment', 'Is there a deposit?', 'Only for pallets.'],
  ['Returns', 'How long may I return?', 'Thirty days.'],
  ['Returns', 'Who pays the postage?', 'We do.'],
  ['Parking', 'Is there a car park?', 'Behind the hall.'],
  ['Pets', 'Are dogs allowed?', 'On a lead.'],
];

/** Loose questions → a page grouped by topic with contents. Dominant mistake: an older answer to the same question stays. */
export const faqGroup: SetFamily = {
  name: 'faq-group',
  domain: 'content',
  level: 'base',
  make(random) {
    const topics = random.shuffle(['Orders', 'Payment', 'Returns', 'Jobs']);
    const entries = random.shuffle(ENTRIES).map(([topic, question, answer]) => ({ topic, question, answer }));
    // Two questions are answered again later on.
    const again = random.shuffle(entries.slice(0, 6)).slice(0, 2);
    const all = [
      ...entries,
      ...again.map((entry, i) => ({
        ...entry,
        answer: `${entry.answer.slice(0, -1)}, since ${['May', 'June'][i]!}.`,
      })),
    ];
    const listed = (topic: string): string => (topics.includes(topic) ? topic : 'Other');
    type Options = { duplicates?: 'last' | 'first'; empty?: boolean; sort?: boolean; other?: boolean };
    const page = (options: Options = {}): { rows: string[]; sections: [string, [string, string][]][] } => {
      const { duplicates = 'last', empty = false, sort = true, other = true } = options;
      const chosen = new Map<string, (typeof all)[number]>();
      for (const entry of all)
        if (duplicates === 'last' || !chosen.has(entry.question)) chosen.set(entry.question, entry);
      const sections = [...topics, ...(other ? ['Other'] : [])]
        .map((topic): [string, [string, string][]] => {
          const own = [...chosen.values()]
            .filter((entry) => listed(entry.topic) === topic)
            .map((entry): [string, string] => [entry.question, entry.answer]);
          return [topic, sort ? own.sort((a, b) => (a[0] < b[0] ? -1 : 1)) : own];
        })
        .filter(([, own]) => empty || own.length > 0);
      const rows = [
        '# FAQ',
        '',
        '## Contents',
        '',
        ...sections.map(([topic, own]) => `- ${topic} (${own.length})`),
        ...sections.flatMap(([topic, own]) => [
          '',
          `## ${topic}`,
          ...own.flatMap(([question, answer]) => ['', `### ${question}`, '', answer]),
        ]),
      ];
      return { rows, sections };
    };
    const plan = (options?: Options): Plan => ({
      steps: [read('questions.txt'), read('topics.txt'), write('FAQ.md', lines(...page(options).rows))],
    });
    const { sections } = page();
    return {
      files: {
        'questions.txt': lines(
          ...all.flatMap((e) => [`Topic: ${e.topic}`, `Q: ${e.question}`, `A: ${e.answer}`, '---']),
        ),
        'topics.txt': lines(...topics),
      },
      query:
        'Make FAQ.md of questions.txt: the heading "# FAQ", then "## Contents" with one line "- <topic> (<number of questions>)" for each topic, then for each topic a section "## <topic>" with ' +
        '"### <question>" and below it the answer, word for word. Topics stand in the order of topics.txt; those without questions are left out; questions of topics that are not listed there go under "Other" at the end. ' +
        'Within a topic, questions are sorted alphabetically. If a question occurs more than once, only its last answer counts. Empty lines do not matter.',
      expected:
        'The agent groups the questions in the order of topics.txt, sorts them, keeps the last answers and writes the contents.',
      truth: {
        repeated: again.map(({ question }) => question),
        sections,
        contents: sections.map(([topic, own]) => `- ${topic} (${own.length})`),
      },
      check: `
lines = [line.strip() for line in ws.lines("FAQ.md") or [] if line.strip()]
found, contents, name = [], [], None
for line in lines:
    if line.startswith("### "):
        if found:
            found[-1][1].append([line[4:].strip(), ""])
    elif line.startswith("## "):
        name = line[3:].strip()
        if name != "Contents":
            found.append([name, []])
    elif name == "Contents":
        contents.append(line)
    elif found and found[-1][1]:
        entry = found[-1][1][-1]
        entry[1] = (entry[1] + " " + line).strip()
wanted = TRUTH["sections"]
answers = {question: answer for _, own in found for question, answer in own}
return {
    "heading": float(lines[:2] == ["# FAQ", "## Contents"]),
    "contents": float(contents == TRUTH["contents"]),
    "topics": float([topic for topic, _ in found] == [topic for topic, _ in wanted]),
    "questions": share([topic, [question for question, _ in own]] in [[t, [q for q, _ in o]] for t, o in found] for topic, own in wanted),
    "repeated": float(all(answers.get(question) == answer for _, own in wanted for question, answer in own if question in TRUTH["repeated"])),
    "answers": share(answers.get(question) == answer for _, own in wanted for question, answer in own),
}`,
      reference: plan(),
      wrong: {
        'first-answer': {
          why: 'the older answer to a repeated question stays',
          ...plan({ duplicates: 'first' }),
        },
        'empty-topic': { why: 'a topic without questions gets a section', ...plan({ empty: true }) },
        'file-order': { why: 'questions stand in the order of the file', ...plan({ sort: false }) },
        'others-lost': { why: 'questions of unlisted topics are left out', ...plan({ other: false }) },
      },
    };
  },
};
