import { read, write } from '../../steps.js';
import { csv, json, lines } from '../text.js';
import type { Plan, SetFamily } from '../set-task.js';

const ENGLISH: Record<string, string> = {
  'cart.title': 'Your basket',
  'cart.count': '{count} items',
  'cart.empty': 'Nothing here yet',
  'order.sent': 'Order {id} was sent on {day}',
  'order.track': 'Track your order',
  'account.hello': 'Hello {name}',
  'account.leave': 'Sign out',
  'help.call': 'Call us',
  'help.hours': 'Open from {from} to {to}',
  'help.write': 'Write to us',
};
const LANGUAGES = ['da', 'eo'];
const holders = (text: string): string => (text.match(/\{\w+\}/g) ?? []).sort().join();

interface Options {
  reviewed?: boolean;
  holders?: boolean;
  stale?: boolean;
  silent?: boolean;
}

/** Translations from an agency and a review merged into two locales. Dominant mistake: broken placeholders are taken over. */
export const localeMerge: SetFamily = {
  name: 'locale-merge',
  domain: 'content',
  level: 'hard',
  timeoutSeconds: 600,
  make(random) {
    const keys = random.shuffle(Object.keys(ENGLISH));
    const english = Object.fromEntries(keys.map((key) => [key, ENGLISH[key]!]));
    const withHolders = keys.filter((key) => holders(english[key]!) !== '');
    const translated = (key: string, tag: string): string => `${tag} ${english[key]!}`;
    const languages = LANGUAGES.map((language) => {
      const order = random.shuffle(keys);
      const broken = random.pick(withHolders);
      const rest = order.filter((key) => key !== broken);
      const [todo, gone, fixed, both, mangled] = rest as [string, string, string, string, string];
      const break_ = (text: string): string => (holders(text) ? text.replace('{', '{x') : `${text} {count}`);
      const current: Record<string, string> = {};
      for (const key of order) if (![gone, both].includes(key)) current[key] = translated(key, language);
      current[todo] = 'TODO';
      current['old.banner'] = `${language} summer sale`;
      const agency = Object.fromEntries(
        random
          .shuffle([fixed, both, mangled, broken])
          .map((key) => [key, translated(key, `${language}-agency`)]),
      );
      agency[broken] = break_(agency[broken]!);
      agency['old.footer'] = `${language} footer`;
      // The review betters one text and breaks the placeholders of another: there the agency's text holds.
      const review = {
        [both]: translated(both, `${language}-review`),
        [mangled]: break_(translated(mangled, `${language}-review`)),
      };
      return { language, current, agency, review };
    });
    const merge = ({
      reviewed = true,
      holders: checked = true,
      stale = false,
      silent = false,
    }: Options = {}) => {
      const rejected: string[][] = [];
      const missing: string[][] = [];
      const texts = Object.fromEntries(
        languages.map(({ language, current, agency, review }) => {
          const merged: Record<string, string> = {};
          for (const key of keys) {
            const candidates = [
              ['review', review[key]],
              ['agency', agency[key]],
              ['current', current[key] === 'TODO' && !silent ? undefined : current[key]],
            ] as [string, string | undefined][];
            if (!reviewed) [candidates[0], candidates[1]] = [candidates[1]!, candidates[0]!];
            for (const [source, text] of candidates)
              if (
                text !== undefined &&
                checked &&
                text !== 'TODO' &&
                holders(text) !== holders(english[key]!)
              )
                rejected.push([language, key, source]);
            const taken = candidates.find(
              ([, text]) =>
                text !== undefined &&
                (!checked || text === 'TODO' || holders(text) === holders(english[key]!)),
            );
            if (!taken) missing.push([language, key]);
            merged[key] = taken?.[1] ?? english[key]!;
          }
          if (stale) merged['old.banner'] = current['old.banner']!;
          return [language, merged];
        }),
      );
      const sorted = (rows: string[][]): string[][] =>
        rows.sort((a, b) => (a.join('/') < b.join('/') ? -1 : 1));
      return { texts, rejected: sorted(rejected), missing: sorted(missing) };
    };
    const right = merge();
    const files = {
      'locales/en.json': json(english),
      ...Object.fromEntries(
        languages.flatMap(({ language, current, agency, review }) => [
          [`locales/${language}.json`, json(current)],
          [`incoming/${language}-agency.json`, json(agency)],
          [`incoming/${language}-review.json`, json(review)],
        ]),
      ),
      'rules.md': lines(
        '# Merging translations',
        '',
        '1. For each key of locales/en.json the text comes from the review, else from the agency, else from the current file.',
        '2. A text is rejected if its placeholders (words in braces) are not the same as those of the English text; then the next source is asked. A rejected text is listed once, with its source (review, agency or current).',
        '3. The text TODO counts as no text.',
        '4. If no source has a good text, the English one is used and the key is missing.',
        '5. Keys that are not in en.json are dropped without a report.',
        '6. Keys stand in the order of en.json.',
      ),
    };
    const plan = (result: typeof right): Plan => ({
      steps: [
        ...Object.keys(files).map(read),
        ...LANGUAGES.map((language) => write(`locales/${language}.json`, json(result.texts[language]))),
        write('rejected.csv', csv(['language', 'key', 'source'], result.rejected)),
        write('missing.csv', csv(['language', 'key'], result.missing)),
        write(
          'report.json',
          json(
            Object.fromEntries(
              LANGUAGES.map((language) => [
                language,
                {
                  keys: Object.keys(result.texts[language]!).length,
                  missing: result.missing.filter((row) => row[0] === language).length,
                  rejected: result.rejected.filter((row) => row[0] === language).length,
                },
              ]),
            ),
          ),
        ),
      ],
    });
    return {
      files,
      query:
        `Merge the translations of incoming/ into locales/${LANGUAGES[0]!}.json and locales/${LANGUAGES[1]!}.json following rules.md, in place; leave locales/en.json as it is. Write rejected.csv (header language,key,source: every rejected text, also where a better source was used), ` +
        'missing.csv (header language,key), both sorted by language, then key, and report.json: {language: {"keys": number of keys now, "missing", "rejected": how many}} for both languages.',
      expected:
        'The agent merges by source priority, rejects texts with wrong placeholders, drops stale keys, keeps the English order and reports what is missing or rejected.',
      truth: {
        texts: right.texts,
        rejected: right.rejected,
        missing: right.missing,
        order: keys,
        english,
        before: Object.fromEntries(languages.map((l) => [l.language, l.current])),
      },
      check: `
found = {language: ws.json("locales/%s.json" % language) for language in TRUTH["texts"]}
done = {language: isinstance(found[language], dict) and found[language] != TRUTH["before"][language] for language in found}
def rows(name, header):
    table = ws.table(name)
    return table[1] if table and table[0] == header else None
rejected = rows("rejected.csv", ["language", "key", "source"])
missing = rows("missing.csv", ["language", "key"])
report = ws.json("report.json")
counts = {language: {"keys": len(texts), "missing": sum(row[0] == language for row in TRUTH["missing"]), "rejected": sum(row[0] == language for row in TRUTH["rejected"])} for language, texts in TRUTH["texts"].items()}
scores = {}
for language, texts in TRUTH["texts"].items():
    old = TRUTH["before"][language]
    changes = [key for key in texts if old.get(key) != texts[key]]
    scores[language + "_changes"] = share(at(found[language], key) == texts[key] for key in changes)
    scores[language + "_whole"] = float(done[language] and found[language] == texts)
    scores[language + "_order"] = float(done[language] and list(found[language]) == TRUTH["order"])
scores["rejected"] = members(rejected, TRUTH["rejected"])
scores["missing"] = members(missing, TRUTH["missing"])
scores["sorted"] = float(same(rejected, TRUTH["rejected"]) and same(missing, TRUTH["missing"]))
scores["report"] = float(same(report, counts))
scores["agree"] = float(all(done.values()) and rejected is not None and missing is not None and all(close(at(report, language, "keys"), len(found[language])) and close(at(report, language, "missing"), sum(row[0] == language for row in missing)) and close(at(report, language, "rejected"), sum(row[0] == language for row in rejected)) for language in found))
scores["english_kept"] = float(all(done.values()) and ws.json("locales/en.json") == TRUTH["english"])
return scores`,
      reference: plan(right),
      wrong: {
        'placeholders-unchecked': {
          why: 'texts with broken placeholders are taken over',
          ...plan(merge({ holders: false })),
        },
        'agency-first': { why: 'the agency wins over the review', ...plan(merge({ reviewed: false })) },
        'stale-kept': { why: 'a key that English no longer has stays', ...plan(merge({ stale: true })) },
        'todo-kept': { why: 'TODO is taken for a text', ...plan(merge({ silent: true })) },
      },
    };
  },
};
