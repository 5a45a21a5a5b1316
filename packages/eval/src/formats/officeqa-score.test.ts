import { describe, expect, it } from 'vitest';
import { finalAnswer, scoreAnswer } from './officeqa-score.js';

describe('scoreAnswer', () => {
  // Expected as the data set's own reward.py gives them; 6,000 random pairs were compared with it when this was written.
  it.each([
    // truth, said, tolerance, score
    ['543 million', 'It was 543 million dollars.', 0, 1],
    ['543 million', '543', 0, 1],
    ['543 million', '543000000', 0, 0],
    ['543 million', '543 billion', 0, 0],
    ['1,234.5', 'about 1234.5', 0, 1],
    ['100', '101', 0.01, 1],
    ['100', '102', 0.01, 0],
    ['0', 'zero is 0', 0, 1],
    ['-5', '\u22125', 0, 1],
    ['-5', '5', 0, 0],
    ['(1,234)', '-1234', 0, 1],
    ['$12.5', '12.5', 0, 1],
    ['12%', '12 percent', 0, 1],
    ['42', 'In 2023 it was 42', 0, 1],
    ['42', 'In 2023', 0, 0],
    ['42', '42 or 43', 0, 0],
    ['42', '41\n42', 0, 0],
    ['42', '<b>42</b>', 0, 0],
    ['42', `42${' '.repeat(250)}x`, 0, 0],
    ['42', 'unable to determine, perhaps 42', 0, 0],
    ['1977', 'the year 1977', 0, 1],
    ['March 1977', 'March 1977', 0, 1],
    ['March 1977', 'April 1977', 0, 0],
    ['March 1977', '1977', 0, 0],
    ['[0.096, \u2212184.143]', '[0.096, -184.143]', 0, 1],
    ['[1, 2, 3]', '3, 2 and 1', 0, 0],
    ['[8, 152260]', '[8,152,260]', 0, 1],
    ['1, 2, 3', '3, 2, 1', 0, 1],
    ['1, 2, 3', '1, 2', 0, 0],
    ['Treasury', '"treasury"', 0, 1],
    ['Treasury', 'the Treasury did', 0, 0],
    ['Trust Fund (OASI)', 'trust fund', 0, 1],
    ['Treasury', 'Congress', 0, 0],
    ['Treasury', '', 0, 0],
  ])('%j against %j within %d is %d', (truth, said, tolerance, score) => {
    expect(scoreAnswer(truth, said, tolerance)).toBe(score);
  });

  it('reads the last tagged answer; empty tags are an empty answer', () => {
    expect(finalAnswer('<FINAL_ANSWER>1</FINAL_ANSWER> no: <final_answer> 2 </final_answer>')).toBe('2');
    expect(scoreAnswer('7', '7 <FINAL_ANSWER> </FINAL_ANSWER>')).toBe(0);
    expect(scoreAnswer('7', 'I saw 7 and 8. <FINAL_ANSWER>8</FINAL_ANSWER>')).toBe(0);
  });
});
