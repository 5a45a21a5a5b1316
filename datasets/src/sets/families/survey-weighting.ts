import { read, write } from '../../steps.js';
import { csv, json, lines, sum } from '../text.js';
import type { Plan, SetFamily } from '../set-task.js';

const GROUPS = ['18-34', '35-54', '55+'];
const QUESTIONS = ['food', 'rooms', 'noise', 'staff'];
const [NO_ANSWER, REVERSED] = [99, 'noise'];

interface Options {
  weighted?: boolean;
  valid?: boolean;
  reversed?: boolean;
  newest?: boolean;
  tests?: boolean;
}

/** Answers of two waves, weighted to the population. Dominant mistake: the code for "no answer" is averaged. */
export const surveyWeighting: SetFamily = {
  name: 'survey-weighting',
  domain: 'analysis',
  level: 'hard',
  timeoutSeconds: 600,
  make(random) {
    const people = Array.from({ length: 24 }, (_, i) => ({
      id: `r${String(101 + i)}`,
      // The young are over-represented.
      group: GROUPS[i < 13 ? 0 : i < 20 ? 1 : 2]!,
      test: i === 4 || i === 15,
    }));
    const answers = (i: number): Record<string, number> =>
      Object.fromEntries(
        QUESTIONS.map((q, at) => [
          q,
          (i + 2 * at) % 7 === 0 ? NO_ANSWER : 1 + ((random.below(3) + Math.floor(i / 8) + at) % 5),
        ]),
      );
    const wave1 = people.slice(0, 16).map((p, i) => ({ ...p, answers: answers(i), wave: 1 }));
    const wave2 = [...people.slice(16), people[1]!, people[6]!, people[14]!].map((p, i) => ({
      ...p,
      answers: answers(i + 3),
      wave: 2,
    }));
    const population = random
      .shuffle([30 + random.below(6), 34, 20 + random.below(5)])
      .sort((a, b) => a - b)
      .map((n) => 1000 * n);
    const analyse = ({
      weighted = true,
      valid = true,
      reversed = true,
      newest = true,
      tests = false,
    }: Options = {}) => {
      const byId = new Map((newest ? [...wave1, ...wave2] : [...wave2, ...wave1]).map((r) => [r.id, r]));
      const rows = [...byId.values()].filter((r) => tests || !r.test);
      const weights = Object.fromEntries(
        GROUPS.map((group, i) => {
          const sample = rows.filter((r) => r.group === group).length / rows.length;
          return [
            group,
            {
              n: rows.filter((r) => r.group === group).length,
              weight: population[i]! / sum(population) / sample,
            },
          ];
        }),
      );
      const results = QUESTIONS.map((question) => {
        const used = rows
          .filter((r) => !valid || r.answers[question] !== NO_ANSWER)
          .map((r) => ({
            value: question === REVERSED && reversed ? 6 - r.answers[question]! : r.answers[question]!,
            weight: weighted ? weights[r.group]!.weight : 1,
          }));
        return {
          question,
          n: used.length,
          mean: sum(used.map((u) => u.value)) / used.length,
          weighted: sum(used.map((u) => u.value * u.weight)) / sum(used.map((u) => u.weight)),
        };
      });
      return { weights, results, respondents: rows.length };
    };
    const right = analyse();
    const files = {
      ...Object.fromEntries(
        [wave1, wave2].map((wave, i) => [
          `responses/wave${i + 1}.csv`,
          csv(
            ['respondent', ...QUESTIONS],
            random.shuffle(wave).map((r) => [r.id, ...QUESTIONS.map((q) => r.answers[q]!)]),
          ),
        ]),
      ),
      'people/groups.csv': csv(
        ['respondent', 'age_group'],
        random.shuffle(people).map((p) => [p.id, p.group]),
      ),
      'people/test-accounts.txt': lines(...people.filter((p) => p.test).map((p) => p.id)),
      'population.csv': csv(
        ['age_group', 'people'],
        GROUPS.map((group, i) => [group, population[i]!]),
      ),
      'codebook.md': lines(
        '# Codebook',
        '',
        '- Answers run from 1 (bad) to 5 (good).',
        `- ${NO_ANSWER} means no answer: it is left out for that question only.`,
        `- ${REVERSED} was asked the other way round: use 6 minus the answer.`,
      ),
      'method.md': lines(
        '# Method',
        '',
        '1. Test accounts are left out everywhere.',
        '2. Who answered in both waves counts once, with all answers of wave 2 (also where these are "no answer").',
        '3. The weight of an age group is its share of the population divided by its share of the respondents. Respondents are all who remain after 1 and 2, whichever questions they answered.',
        '4. The weighted mean of a question is the sum of weight × answer divided by the sum of weights, over the valid answers.',
        '5. Weights are not rounded before they are used; written values are rounded to 3 decimals.',
      ),
    };
    const rank = (results: typeof right.results): string[] =>
      [...results].sort((a, b) => b.weighted - a.weighted).map((r) => r.question);
    const plan = (found: typeof right): Plan => ({
      steps: [
        ...Object.keys(files).map(read),
        write(
          'weights.csv',
          csv(
            ['age_group', 'n', 'weight'],
            GROUPS.map((group) => [group, found.weights[group]!.n, found.weights[group]!.weight.toFixed(3)]),
          ),
        ),
        write(
          'results.csv',
          csv(
            ['question', 'n', 'mean', 'weighted_mean'],
            found.results.map((r) => [r.question, r.n, r.mean.toFixed(3), r.weighted.toFixed(3)]),
          ),
        ),
        write(
          'summary.json',
          json({
            respondents: found.respondents,
            best: rank(found.results)[0],
            worst: rank(found.results).at(-1),
          }),
        ),
        write(
          'report.md',
          lines(
            '# Survey',
            '',
            ...rank(found.results).map(
              (q) => `- ${q}: ${found.results.find((r) => r.question === q)!.weighted.toFixed(3)}`,
            ),
          ),
        ),
      ],
    });
    return {
      files,
      query:
        'Analyse the survey in responses/ following method.md and codebook.md. Write weights.csv (header age_group,n,weight; in the order of population.csv; n is the number of respondents), results.csv (header question,n,mean,weighted_mean; questions in the order of the columns; ' +
        'n is the number of valid answers, mean is unweighted), summary.json ({"respondents": how many, "best": question with the highest weighted mean, "worst": with the lowest}) and report.md with one line "- <question>: <weighted mean>" for each question, highest first ' +
        '(3 decimals; other lines must not begin with "- "). Differences in the third decimal do not matter.',
      expected:
        'The agent removes test accounts and older answers, handles codes and the reversed question, weights by age group and writes four files that agree.',
      truth: {
        groups: GROUPS.map((g) => [g, right.weights[g]!.n, right.weights[g]!.weight]),
        results: right.results,
        ranked: rank(right.results),
        respondents: right.respondents,
      },
      check: `
def rows(name, header):
    table = ws.table(name)
    return table[1] if table and table[0] == header else None
weights = rows("weights.csv", ["age_group", "n", "weight"])
results = rows("results.csv", ["question", "n", "mean", "weighted_mean"])
by = {row[0]: row for row in results or []}
summary = ws.json("summary.json")
lines = [line.strip()[2:].split(":") for line in ws.lines("report.md") or [] if line.strip().startswith("- ")]
reported = {parts[0].strip(): number(parts[1]) for parts in lines if len(parts) == 2}
def column(at_index, key):
    return share(close(at(by.get(row["question"]), at_index), row[key], 0.0025) for row in TRUTH["results"])
return {
    "group_sizes": float(weights is not None and same([row[:2] for row in weights], [row[:2] for row in TRUTH["groups"]])),
    "weights": share(close(at(weights, i, 2), row[2], 0.0025) for i, row in enumerate(TRUTH["groups"])),
    "questions": float(results is not None and [row[0] for row in results] == [row["question"] for row in TRUTH["results"]]),
    "valid_answers": column(1, "n"),
    "means": column(2, "mean"),
    "weighted_means": column(3, "weighted"),
    "respondents": float(close(at(summary, "respondents"), TRUTH["respondents"])),
    "best_and_worst": float(at(summary, "best") == TRUTH["ranked"][0] and at(summary, "worst") == TRUTH["ranked"][-1]),
    "report_order": float([parts[0].strip() for parts in lines] == TRUTH["ranked"]),
    "agree": float(bool(by) and set(by) == set(reported) and all(reported[name] is not None and close(row[3], reported[name], 0.0015) for name, row in by.items())),
}`,
      reference: plan(right),
      wrong: {
        'no-answer-averaged': {
          why: 'the code for no answer is averaged',
          ...plan(analyse({ valid: false })),
        },
        unweighted: { why: 'the means are not weighted', ...plan(analyse({ weighted: false })) },
        'not-reversed': {
          why: 'the reversed question is not turned round',
          ...plan(analyse({ reversed: false })),
        },
        'older-wave': { why: 'answers of the first wave win', ...plan(analyse({ newest: false })) },
        'tests-kept': { why: 'test accounts are counted', ...plan(analyse({ tests: true })) },
      },
    };
  },
};
